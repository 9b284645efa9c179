"""Report addresses: mail to `spam@…` or `ham@…` teaches what is attached to it.

A person forwards one mail or several as attachments (message/rfc822), or "redirects" a single one;
the relay hands the report over at the end of DATA and passes the receipt on in its reply. Whether
the sender may report at all (trusted networks, authenticated) is the relay's business.

What is learned is the attached mail: as it was scanned when it still carries our id, else as it is.
A report without any attached mail teaches nothing: a forward as text is the person's own mail, not
the one that was meant; the receipt says so. Attachments are found at any depth of the report, but
the attachments of an attached mail belong to that mail.
"""

import asyncio
import email
from collections.abc import Callable, Iterator, Sequence
from email.message import Message
from email.policy import compat32

from spamd.feedback.learn import Candidate, Extract, Teacher
from spamd.feedback.options import FeedbackOptions
from spamd.ports import History
from spamd.sample import Label

SOURCE = "address"

VERBATIM = compat32.clone(max_line_length=0, mangle_from_=False, linesep="\r\n")
"""Write a mail as it was read: no line folded anew, no ">From "."""

DEPTH = 20
"""Levels of multipart in a report: people's programs make two or three."""


class ReportAddress:
    """The desk where reports are handed in (`ports.ReportDesk`)."""

    def __init__(
        self, options: FeedbackOptions, history: History, teacher: Teacher, extract: Extract
    ) -> None:
        self._options = options
        self._history = history
        self._teacher = teacher
        self._extract = extract
        self._reported = reported_as(options)

    def label_for(self, recipient: bytes) -> Label | None:
        """Return what mail to this address (without angle brackets) teaches, None for any other."""
        return self._reported(recipient)

    async def take(self, content: bytes, label: Label, actor: str) -> str:
        """Learn the mails attached to a report and return the receipt, one line of ASCII text.

        Raises:
            TemporaryError: nothing was learned; the client may come again.
        """
        mails = await asyncio.to_thread(attached, content)
        if not mails:
            return f"no mail attached, nothing learned; forward as attachment to report {label}"
        taken = mails[: self._options.report_mails]
        candidates = [await self._candidate(mail, label) for mail in taken]
        tally = await self._teacher.teach(candidates, SOURCE, actor)
        parts = [f"{len(mails)} reported as {label}", f"{tally.learned.total()} learned"]
        parts += [f"{tally.already} known"] if tally.already else []
        parts += [f"{tally.held} held for review"] if tally.held else []
        parts += [f"{len(mails) - len(taken)} too many"] if len(mails) > len(taken) else []
        return ", ".join(parts)

    async def _candidate(self, mail: bytes, label: Label) -> Candidate:
        features = await asyncio.to_thread(self._extract, mail)
        known = None
        if features.id:
            known = (await self._history.by_id([features.id])).get(features.id)
        if known is None:
            known = (await self._history.by_digest([features.digest])).get(features.digest)
        kept = await self._history.kept(known.digest) if known else None
        return Candidate(features=kept or features, label=label, known=known)


def reported_as(options: FeedbackOptions) -> Callable[[bytes], Label | None]:
    """Return what tells what mail to an address teaches, None for any other.

    An address of the settings without "@" stands for that local part at any domain.
    """
    labels = {
        address.casefold().encode(): label
        for label, addresses in (
            (Label.SPAM, options.spam_addresses),
            (Label.HAM, options.ham_addresses),
        )
        for address in addresses
    }

    def label_for(recipient: bytes) -> Label | None:
        address = recipient.lower()
        return labels.get(address) or labels.get(address.partition(b"@")[0])

    return label_for


def attached(content: bytes) -> Sequence[bytes]:
    """Return the mails attached to a report, byte for byte where they stand unencoded."""
    report = email.message_from_bytes(content, policy=VERBATIM)
    return list(_attached(report, DEPTH))


def _attached(part: Message, depth: int) -> Iterator[bytes]:
    if part.get_content_type() == "message/rfc822":
        yield _bytes_of(part)
        return
    payload = part.get_payload()
    if depth and part.is_multipart() and isinstance(payload, list):
        for child in payload:
            if isinstance(child, Message):
                yield from _attached(child, depth - 1)
        return
    if _filename(part).endswith(".eml"):
        # Some programs send a mail as a file of any type.
        body = part.get_payload(decode=True)
        if isinstance(body, bytes) and body:
            yield body


def _filename(part: Message) -> str:
    try:
        return (part.get_filename() or "").lower()
    except (LookupError, ValueError):
        return ""  # RFC 2231 continuations gone wrong


def _bytes_of(part: Message) -> bytes:
    """Return the mail in a message/rfc822 part, also when it was encoded against RFC 2046."""
    payload = part.get_payload()
    inner = payload[0] if isinstance(payload, list) and payload else payload
    if not isinstance(inner, Message):
        return str(inner).encode("utf-8", "surrogateescape")
    encoding = str(part.get("Content-Transfer-Encoding", "")).strip().lower()
    if encoding in {"base64", "quoted-printable"} and not inner.keys():
        wrapped = Message()
        wrapped["Content-Transfer-Encoding"] = encoding
        wrapped.set_payload(inner.get_payload())
        decoded = wrapped.get_payload(decode=True)
        if isinstance(decoded, bytes):
            return decoded
    return inner.as_bytes(policy=VERBATIM)
