"""What Exim puts in front of a mail about which it asks a filter: an mbox line and the envelope.

They are no part of the mail, for by every way in a mail has the same words and the same identity.
"""

import asyncio
import re
from dataclasses import dataclass

from spamd.message.envelope import Envelope
from spamd.message.identity import rest_of
from spamd.network.deadlines import TimeLimit
from spamd.network.judge import Judge, start_of
from spamd.network.spool import SpooledMessage
from spamd.report import Verdicts

_PREFACE = re.compile(
    rb"From [^\n]*\n(?=X-Envelope-(?:From|To):)"
    rb"(?:X-Envelope-From: <([^\n]*)>\r?\n)?(?:X-Envelope-To: ([^\n]*)\n)?"
)
PREFACE_BYTES = 256 * 1024
"""The lines in front name up to some thousand recipients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preface:
    """The lines that Exim puts in front of a mail, and the envelope that they name."""

    length: int = 0
    sender: bytes = b""
    recipients: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, start: bytes) -> "Preface":
        """Return what stands in front of a mail that starts so."""
        found = _PREFACE.match(start)
        if found is None:
            return cls()
        names = (name.strip() for name in (found[2] or b"").split(b","))
        return cls(
            length=found.end(),
            sender=found[1] or b"",
            recipients=tuple(name for name in names if name),
        )

    @classmethod
    async def in_front_of(cls, message: SpooledMessage) -> "Preface":
        """Return what stands in front of a mail that is settled."""
        if message.spooled:
            return cls.of(await asyncio.to_thread(message.first, PREFACE_BYTES))
        return cls.of(message.first(PREFACE_BYTES))


async def judged_behind(
    preface: Preface,
    message: SpooledMessage,
    judge: Judge,
    envelope: Envelope,
    time_limit: TimeLimit,
) -> Verdicts:
    """Return the verdicts on the mail behind a preface: as much of it is looked at as of any.

    Raises:
        Overloaded, TemporaryError: as `Judge.verdicts`.
    """
    skip = preface.length
    return await judge.verdicts(
        lambda: start_of(message, judge.reads_bytes + skip, bytes)[skip:],
        message.size_bytes - skip,
        envelope,
        lambda: rest_of(message.again()),
        time_limit,
    )
