"""The receipt of a report: a short mail that tells its sender what was learned.

It goes by the session at the next hop that the report's transaction began on, to the envelope
sender alone, with an empty sender of its own (RFC 3834), so that nothing can come back. Nobody gets
one who is a report address, has no address (a bounce) or needs SMTPUTF8, and no report that says it
was made by a program or a list. Who may report at all is asked before
(`ConnectionLimiter.may_report`), so no stranger can have receipts sent to others.

A receipt that cannot be sent costs nothing but itself: the reply to the report says the same.
"""

import re
import secrets
from datetime import datetime

from spamd.errors import NextHopUnavailable, SpamdError
from spamd.message.envelope import Envelope
from spamd.message.mime.parser import parse
from spamd.network.spool import SpooledMessage
from spamd.relay.content.outgoing import Outgoing
from spamd.relay.content.received_field import date
from spamd.relay.inbound.context import RelayContext
from spamd.relay.outbound.router import NextHopSession
from spamd.relay.smtp.commands import parse_path

TIMEOUT_S = 60.0
"""For the end of data of a receipt: the reporter waits for the reply meanwhile."""

_ADDRESS = re.compile(rb"[!-;=?-~]{1,320}")  # printable ASCII without blanks and angle brackets
_MESSAGE_ID = re.compile(rb"\s*(<[!-;=?-~]{1,250}>)\s*")


async def send_receipt(
    context: RelayContext, next_hop: NextHopSession, envelope: Envelope, header: bytes, text: str
) -> None:
    """Send a receipt where one is due; the session is ready for a new mail before and after.

    header  the header section of the report          text  what was learned, a line of ASCII
    """
    if not context.relay.report_receipts or not _due(context, envelope, header):
        return
    message = SpooledMessage(context.shared.budget.share(""))
    try:
        message.append(_mail(context.hostname, context.shared.clock.now(), envelope, header, text))
        await _deliver(next_hop, envelope, message)
    except SpamdError as error:
        context.shared.observer.failed("receipt.failed", error)
    finally:
        message.close()


def _due(context: RelayContext, envelope: Envelope, header: bytes) -> bool:
    """Tell whether a person waits for a receipt."""
    handler, sender = context.report_handler, envelope.sender
    if (
        handler is None
        or _ADDRESS.fullmatch(sender) is None
        or handler.label_for(sender) is not None
    ):
        return False
    report = parse(header)
    automatic = (report.first("auto-submitted") or b"no").strip().lower()
    bulk = (report.first("precedence") or b"").strip().lower() in {b"bulk", b"list", b"junk"}
    return automatic == b"no" and not bulk and report.first("list-id") is None  # RFC 3834 §2


def _mail(hostname: str, now: datetime, envelope: Envelope, header: bytes, text: str) -> bytes:
    """Return the receipt as it goes over the wire."""
    found = _MESSAGE_ID.fullmatch(parse(header).first("message-id") or b"")
    answered = b"In-Reply-To: %s\r\nReferences: %s\r\n" % (found[1], found[1]) if found else b""
    return (
        f"From: spamd <{envelope.recipients[0].decode('ascii', 'replace')}>\r\n"
        f"To: <{envelope.sender.decode('ascii')}>\r\n"
        f"Subject: Your report: {text}\r\n"
        f"Date: {date(now)}\r\n"
        f"Message-ID: <{secrets.token_hex(12)}@{hostname}>\r\n"
    ).encode("ascii", "replace") + (
        answered + b"Auto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\n"
        b"Content-Type: text/plain; charset=us-ascii\r\n\r\n"
        b"Thank you for your report.\r\n\r\n" + text.encode("ascii", "replace") + b"\r\n"
    )


async def _deliver(next_hop: NextHopSession, report: Envelope, message: SpooledMessage) -> None:
    """Send a message from nobody to the sender of a report.

    Raises:
        SpamdError: the next hop did not take it.
    """
    recipient = report.sender
    wire = b"TO:<" + recipient + b">"
    answer = await next_hop.mail(b"FROM:<>", report.client)
    if answer.accepted:
        answer = await next_hop.rcpt(wire, parse_path(wire))
        if answer.accepted:
            outgoing = Outgoing(header=b"", message=message, start=0, sender=b"", junk=False)
            (answer, *_) = await next_hop.deliver(outgoing, (recipient,), TIMEOUT_S)
        else:
            await next_hop.reset()
    if not answer.accepted:
        raise NextHopUnavailable(f"the receipt was answered {answer.code}")
