"""Limits on what a client may send without bringing a message.

Every command counts, not every pause: a client that sends a thousand of them in one piece costs as
much as one that sends them one by one. Commands that a message needs (MAIL and RCPT that are
answered, chunks of some size) are not counted, and a message resets all counts but that of wrong
commands.

A client that goes on without a message is delayed more and more before it is disconnected. So is
one that connects again and again without a message (`RecentClients`).
"""

from math import exp

from spamd.relay.options import RelayOptions
from spamd.relay.smtp.replies import TooManyCommands

COMMANDS_UNDELAYED = 20
"""Commands without a mail that are answered at once; a client in earnest has three or four."""

RECIPIENTS_FACTOR = 2
"""Since the last mail, this many times the recipients that one may have: a client that hears from
452 that there are too many has sent the rest already."""

BAD_UNDELAYED = 5
BAD_DELAYS = 4
"""Wrong commands answered at once, and how much longer each of the others waits."""

FORGET_S = 10.0
"""Time after which a session without mail counts for a third (1/e)."""

FRUITLESS_UNDELAYED = 200
"""Such sessions lately that one client may have before it waits for its greetings."""

FRUITLESS_PER_DELAY = 25
"""Such sessions more for which it waits once more as long as a command does."""

MAX_DELAYS = 5
"""So many times as long as a command a greeting waits at most: others of the address wait too."""

CLIENTS_REMEMBERED = 10_000
"""Clients remembered; when there are more, those whose sessions no longer count are forgotten."""


class ClientLimits:
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
        if self._recipients > RECIPIENTS_FACTOR * self._options.max_recipients:
            raise TooManyCommands

    @property
    def delay_s(self) -> float:
        """Return how long the next command waits."""
        if self._bad > BAD_UNDELAYED:
            return BAD_DELAYS * self._options.command_delay_s
        slow = self._idle > COMMANDS_UNDELAYED or self._recipients > self._options.max_recipients
        return self._options.command_delay_s if slow else 0.0

    def message_received(self, now: float) -> None:
        """Note that the session brought a message."""
        self._idle = self._recipients = 0
        self._since = now
        self.fruitless = False


class RecentClients:
    """How often each client came lately without bringing mail."""

    def __init__(self, options: RelayOptions) -> None:
        self._options = options
        self._seen: dict[str, tuple[float, float]] = {}

    def note_fruitless(self, client: str, now: float) -> None:
        """Count a session that brought no mail."""
        if client:
            self._seen[client] = (self._count(client, now) + 1, now)
            if len(self._seen) > CLIENTS_REMEMBERED:
                self._seen = {
                    each: seen for each, seen in self._seen.items() if seen[1] > now - 3 * FORGET_S
                }

    def delay_s(self, client: str, now: float) -> float:
        """Return how long the client waits for its greeting."""
        weight = (self._count(client, now) - FRUITLESS_UNDELAYED) / FRUITLESS_PER_DELAY
        return self._options.command_delay_s * min(MAX_DELAYS, max(0.0, weight))

    def _count(self, client: str, now: float) -> float:
        if client not in self._seen:
            return 0.0
        count, then = self._seen[client]
        return count * exp((then - now) / FORGET_S)
