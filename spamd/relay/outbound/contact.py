"""Whether the default next hop is there: as mail met it lately, else by asking it.

It is asked only when nothing is known: after a quiet minute, or while it was away a moment ago. So
a busy relay asks nobody, and an idle one writes little into the next hop's log.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime

from spamd.errors import NextHopRefused, NextHopUnavailable
from spamd.ports import Clock

KNOWN_S = 60.0
"""So long it is taken to be there still."""

AWAY_S = 5.0
"""So long it is taken to be away still: who waits for it wants to know."""


class Contact:
    """What is known of the next hop.

    Args:
        clock: for the moment of the last contact, and since when it is away.

    Attributes:
        away_since: when it was first missed; None while it answers.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._asked = -KNOWN_S
        self.away_since: datetime | None = None

    async def told(self, open_it: Callable[[], Awaitable[object]]) -> None:
        """Ask the next hop, if nothing is known of it, by opening a session."""
        age_s = self._clock.monotonic() - self._asked
        if age_s < (KNOWN_S if self.away_since is None else AWAY_S):
            return
        try:
            await open_it()
        except (NextHopUnavailable, NextHopRefused, TimeoutError) as error:
            self.missed(error)
        else:
            self.met()

    def met(self) -> None:
        """Take note that it has answered."""
        self._asked = self._clock.monotonic()
        self.away_since = None

    def missed(self, error: Exception) -> None:
        """Take note that it is not there, unless it only refused a client."""
        if isinstance(error, NextHopRefused) and not error.reply.startswith(b"4"):
            self.met()
            return
        self._asked = self._clock.monotonic()
        if self.away_since is None:
            self.away_since = self._clock.now()
