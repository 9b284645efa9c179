"""The mail of a request: what of it is judged, and how it is handed back with our fields on top.

Line ends stay as they came, and our fields take those of the first line. Nothing is changed but the
header section: what may pass for a field of ours goes, as by the relay.
"""

from collections.abc import Iterable

from spamd.errors import MessageTooLarge
from spamd.listeners.preface import Preface
from spamd.listeners.spamc.request import Head
from spamd.message.envelope import Client, Envelope
from spamd.message.header_top import header_end, newline_of
from spamd.message.spam_fields import holds_fields, render
from spamd.network.spool import SpooledMessage
from spamd.report import ScanReport


def header_of(message: SpooledMessage, limit: int) -> tuple[bytes, int]:
    """Return the header section through the first empty line, and where the rest begins.

    Of a spooled message it is read, by a thread, within the first `limit` bytes.

    Raises:
        MessageTooLarge: the header section alone is larger than `limit`.
    """
    text = message.first(limit) if message.spooled else message.whole()
    # As far as the first empty line: where the header ends before one, readers don't agree.
    end = text.find(b"\n", header_end(text)) + 1
    if not end and len(text) == message.size_bytes:
        return text, len(text)
    if not end:
        end = text.rfind(b"\n") + 1 or len(text)
        if holds_fields(text[:end]):
            raise MessageTooLarge("the header section is larger than tokenizer.limits allows")
    return text[:end], end


def fields_for(header: bytes, report: ScanReport) -> bytes:
    """Return our fields with the line ends of a header section."""
    return render(report.fields(), newline_of(header))


def body_start(blocks: Iterable[bytes]) -> int:
    r"""Return where clients of HEADERS take the body of their mail to begin: `\n\n`, `\r\n\r\n`.

    They put it behind what they are given, so that has to end there: where the two don't agree, a
    piece of the mail would be missing, or come twice.
    """
    seen, before = 0, b""
    for block in blocks:
        text = before + block
        ends = [at + len(mark) for mark in (b"\r\n\r\n", b"\n\n") if (at := text.find(mark)) >= 0]
        if ends:
            return seen - len(before) + min(ends)
        seen += len(block)
        before = text[-3:]
    return seen


def envelope_of(head: Head, preface: Preface, address: str) -> Envelope:
    """Return the envelope of a request.

    Exim names the recipients; with one of them the mail is theirs. The `User` of a request is
    whoever runs the program, or the one it was told.
    """
    recipients = preface.recipients
    user = b"" if len(recipients) == 1 else head.user.encode()
    client = client_of(address)
    return Envelope(sender=preface.sender, recipients=recipients, client=client, user=user)


def client_of(address: str) -> Client:
    """Return who asks: of the client of the mail itself the protocol says nothing."""
    return Client(
        address=address, port=0, helo="", name="", tls=False, login=None, protocol="SPAMC"
    )
