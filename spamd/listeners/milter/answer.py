"""What the mail server is told about a message: header fields to take out and to put in, a verdict.

    what forges our fields is taken out · ours are put on top · quarantine, if so set · go on

Or one reply, which the mail server gives to its client. Changes come before a verdict, nothing
after it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from spamd.bayes.decision import Action
from spamd.errors import (
    DeadlineExceeded,
    MessageRejected,
    MessageTooLarge,
    Overloaded,
    ProtocolError,
    SpamdError,
    SpoolFull,
    StorageUnavailable,
)
from spamd.listeners.milter.negotiation import Agreement
from spamd.listeners.milter.packets import CONTINUE, inserted, quarantined, replied
from spamd.message.spam_fields import render
from spamd.report import ScanReport

REJECTED = "550 5.7.1 Rejected as spam"

TOP = 1
"""Where our fields go: on top of what the sender wrote. At 0 they would stand above the Received
field of the mail server itself, which all other ways in leave above them: what is read of a mail in
its mailbox would no longer be what was judged (`message/trace.py`)."""

_ACCEPTED = "250 2.0.0 OK"
_INTERNAL = "451 4.3.0 Temporary error, please try again later"
_FAULTS: tuple[tuple[type[SpamdError], str], ...] = (
    (MessageRejected, REJECTED),
    (MessageTooLarge, "552 5.3.4 Message header too large"),
    (SpoolFull, "452 4.3.1 Insufficient storage, please try again later"),
    (Overloaded, "451 4.3.2 Busy, please try again later"),
    (DeadlineExceeded, "451 4.3.0 Busy, please try again later"),
)
"""As over SMTP (`relay/smtp/replies.py`): what has no row is a fault of ours, never 5yz."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What goes to the mail server, and the reply its client gets if nobody else objects."""

    packets: bytes
    reply: str


def answer_to(report: ScanReport, removals: Sequence[bytes], agreement: Agreement) -> Answer:
    """Return the answer to a message that was judged, or goes on unscanned."""
    quarantine = report.action is Action.REJECT and agreement.may_quarantine
    if report.action is Action.REJECT and not quarantine:
        return Answer(packets=replied(REJECTED), reply=REJECTED)
    packets = [*removals] if agreement.may_change else []
    if agreement.may_add:
        packets += _on_top(report, leading_space=agreement.leading_space)
    if quarantine:
        packets.append(quarantined(REJECTED.partition(" ")[2]))
    packets.append(CONTINUE)  # not "accept": filters behind us shall see it too
    return Answer(packets=b"".join(packets), reply=_ACCEPTED)


def answer_to_fault(error: Exception) -> Answer:
    """Return the answer to a message that can't be taken."""
    reply = next((reply for kind, reply in _FAULTS if isinstance(error, kind)), _INTERNAL)
    return Answer(packets=replied(reply), reply=reply)


def needs_logging(error: Exception) -> bool:
    """Tell whether a fault is ours."""
    ours = (ProtocolError, StorageUnavailable, SpoolFull)
    return not isinstance(error, SpamdError) or isinstance(error, ours)


def _on_top(report: ScanReport, *, leading_space: bool) -> list[bytes]:
    """Return the packets that put our fields on top, each above the one before: the last first."""
    packets = []
    for field in reversed(report.fields()):
        name, _, value = render([field], b"\n").rstrip(b"\n").partition(b":")
        packets.append(inserted(TOP, name, value if leading_space else value.removeprefix(b" ")))
    return packets
