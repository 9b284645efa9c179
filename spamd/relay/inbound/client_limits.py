"""How long a client may talk without bringing mail.

Every command counts, not every pause: a client that sends a thousand of them in one piece costs as
much as one that sends them one by one. Those that bring a mail nearer (MAIL and RCPT that are
answered, chunks of some size) are taken off again, and a mail that comes wipes everything but
wrong commands away.

Who goes on without mail is served slower and slower before it is sent away: work that is put off
costs nobody anything. The same for whoever comes again and again without mail (`Visits`).
"""

from math import exp

from spamd.relay.options import RelayOptions
from spamd.relay.smtp.replies import TooManyCommands

UNHURRIED = 20
"""Commands without a mail that are answered at once; a client in earnest has three or four."""

RECIPIENTS_TWICE = 2
"""Since the last mail, this many times the recipients that one may have: a client that hears from
452 that there are too many has sent the rest already."""

BAD_UNHURRIED = 5
BAD_WEIGHT = 4
"""Wrong commands answered at once, and how much longer each of the others waits."""

VISITS_S = 10.0
"""Time after which a session without mail counts for a third (1/e)."""

VISITS_UNHURRIED = 200
"""Such sessions lately that one client may have before it waits for its greetings."""

VISITS_FOR_DELAY = 25
"""Such sessions more for which it waits once more as long as a command does."""

LONGEST_WEIGHT = 5
"""So many times as long as a command a greeting waits at most: others of the address wait too."""

VISITORS = 10_000
"""Clients remembered; when there are more, those whose visits no longer count are forgotten."""


class Conduct:
    """What one client has said since its last mail; too much of it raises `TooManyCommands`."""

    __slots__ = ("_bad", "_idle", "_options", "_recipients", "_since", "fruitless")

    def __init__(self, options: RelayOptions, now: float) -> None:
        self._options = options
        self._since = now
        self._idle = self._bad = self._recipients = 0
        self.fruitless = True

    def left_s(self, now: float) -> float:
        """Return how long the session may still go on without mail.

        Raises:
            TooManyCommands: no longer.
        """
        left_s = self._since + self._options.session_timeout_s - now
        if left_s <= 0:
            raise TooManyCommands
        return left_s

    def command(self) -> None:
        """Count a command."""
        self._idle += 1
        if self._idle > self._options.max_commands_without_mail:
            raise TooManyCommands

    def useful(self) -> None:
        """Note that the last command was one that a mail needs."""
        self._idle -= 1

    def bad(self) -> None:
        """Count a command that there is not."""
        self._bad += 1
        if self._bad > self._options.max_bad_commands:
            raise TooManyCommands

    def recipient(self) -> None:
        """Count a recipient that was asked for."""
        self._recipients += 1
        if self._recipients > RECIPIENTS_TWICE * self._options.max_recipients:
            raise TooManyCommands

    @property
    def delay_s(self) -> float:
        """Return how long the next command waits."""
        if self._bad > BAD_UNHURRIED:
            return BAD_WEIGHT * self._options.command_delay_s
        slow = self._idle > UNHURRIED or self._recipients > self._options.max_recipients
        return self._options.command_delay_s if slow else 0.0

    def mail_came(self, now: float) -> None:
        """Note that the session brought a message."""
        self._idle = self._recipients = 0
        self._since = now
        self.fruitless = False


class Visits:
    """How often each client came lately without bringing mail."""

    def __init__(self, options: RelayOptions) -> None:
        self._options = options
        self._seen: dict[str, tuple[float, float]] = {}

    def note(self, ticket: str, now: float) -> None:
        """Count a session that brought no mail."""
        if ticket:
            self._seen[ticket] = (self._count(ticket, now) + 1, now)
            if len(self._seen) > VISITORS:
                self._seen = {
                    each: seen for each, seen in self._seen.items() if seen[1] > now - 3 * VISITS_S
                }

    def delay_s(self, ticket: str, now: float) -> float:
        """Return how long the client waits for its greeting."""
        weight = (self._count(ticket, now) - VISITS_UNHURRIED) / VISITS_FOR_DELAY
        return self._options.command_delay_s * min(LONGEST_WEIGHT, max(0.0, weight))

    def _count(self, ticket: str, now: float) -> float:
        if ticket not in self._seen:
            return 0.0
        count, then = self._seen[ticket]
        return count * exp((then - now) / VISITS_S)
