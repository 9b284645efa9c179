"""Report addresses: mail to `spam@…` or `ham@…` teaches what is attached to it.

A person forwards one mail or several as attachments (message/rfc822), or "redirects" a single one;
the relay threads the report over at the end of DATA and passes the receipt on in its reply. Whether
the sender may report at all (trusted networks, authenticated) is the relay's business.

What is learned is the attached mail: as it was scanned when it still carries our id, else as it is.
A report without any attached mail teaches nothing: a forward as text is the person's own mail, not
the one that was meant; the receipt says so. Attachments are found at any depth of the report, but
the attachments of an attached mail belong to that mail. A report is taken apart by the parser that
takes mail apart (`message.parser.attached`): no content of it is an error.
"""

import asyncio
from collections.abc import Callable

from spamd.feedback.durable_teacher import DurableTeacher
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.teacher import Extract
from spamd.message.limits import Limits
from spamd.message.mime.parser import attached
from spamd.sample import Label

SOURCE = "address"


class ReportAddress:
    """Takes reports (`relay.ports.ReportHandler`)."""

    def __init__(
        self,
        options: FeedbackOptions,
        teacher: DurableTeacher,
        extract: Extract,
        limits: Limits = Limits(),  # noqa: B008 - frozen value
    ) -> None:
        self._options = options
        self._teacher = teacher
        self._extract = extract
        self._limits = limits
        self._reported = reported_as(options)

    def label_for(self, recipient: bytes) -> Label | None:
        """Return what mail to this address (without angle brackets) teaches, None for any other."""
        return self._reported(recipient)

    async def take(self, content: bytes, label: Label, actor: str) -> str:
        """Learn the mails attached to a report and return the receipt, one line of ASCII text.

        Raises:
            TemporaryError: nothing was learned; the client may come again.
        """
        mails = await asyncio.to_thread(attached, content, self._limits)
        if not mails:
            return (
                "no message attached, nothing learned; forward the message as an attachment"
                f" to report {label}"
            )
        taken = mails[: self._options.report_mails]
        features = [await asyncio.to_thread(self._extract, mail) for mail in taken]
        summary = await self._teacher.teach(features, label, SOURCE, actor)
        parts = [f"{len(mails)} reported as {label}", f"{summary.learned.total()} learned"]
        parts += [f"{summary.already} known"] if summary.already else []
        parts += [f"{summary.held} held for review"] if summary.held else []
        if summary.waiting:
            parts[1:] = [f"{summary.waiting} kept, to be learned once the database answers"]
        parts += [f"{len(mails) - len(taken)} too many"] if len(mails) > len(taken) else []
        return ", ".join(parts)


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
