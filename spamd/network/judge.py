"""How a listener comes to a verdict: in time, and whatever happens with a report.

    verdicts = await judge.message(message, envelope, time_limit)

No fault of ours may cost a mail: what could not be judged is `unscanned` or comes again later, as
`relay.on_fault` says.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Protocol

from spamd.errors import DeadlineExceeded, Overloaded, TemporaryError
from spamd.message.envelope import Envelope
from spamd.message.identity import rest_of
from spamd.network.deadlines import TimeLimit
from spamd.network.spool import SpooledMessage
from spamd.ports import Inspector, Observer
from spamd.report import Verdicts


class OnFault(StrEnum):
    """What happens to a message that could not be judged; it is never refused for good."""

    ACCEPT = "accept"  # goes on, marked as not scanned
    DEFER = "defer"  # the client tries again


class JudgeOptions(Protocol):
    """The settings of a judge (`relay.options.RelayOptions` has them)."""

    @property
    def on_fault(self) -> OnFault: ...  # noqa: D102 - the options say what each is
    @property
    def inspect_timeout_s(self) -> float: ...  # noqa: D102


class Judge:
    """Asks the inspector, and says what follows when it fails.

    Attributes:
        inspector: who judges; another one once the database is open.
    """

    def __init__(self, inspector: Inspector, observer: Observer, options: JudgeOptions) -> None:
        self.inspector = inspector
        self._observer = observer
        self._options = options

    @property
    def reads_bytes(self) -> int:
        """How much of the start of a message is looked at, lines ended by LF."""
        return self.inspector.reads_bytes

    async def message(
        self,
        message: SpooledMessage,
        envelope: Envelope,
        time_limit: TimeLimit,
        plain: Callable[[bytes], bytes] = bytes,
        plain_blocks: Callable[[Iterator[bytes]], Iterable[bytes]] = iter,
    ) -> Verdicts:
        """Return the verdicts on a message that is settled.

        plain         returns bytes of the message as they were meant (dot-stuffing taken away)
        plain_blocks  likewise, of block after block

        Raises:
            Overloaded: others are in front; it is the client's to come again.
            TemporaryError: there is no verdict, and the message shall come again.
        """
        return await self.verdicts(
            lambda: start_of(message, self.reads_bytes, plain),
            message.size_bytes,
            envelope,
            lambda: rest_of(plain_blocks(message.again())),
            time_limit,
        )

    async def verdicts(
        self,
        read: Callable[[], bytes],
        size_bytes: int,
        envelope: Envelope,
        rest: Callable[[], bytes],
        time_limit: TimeLimit,
    ) -> Verdicts:
        """Return the verdicts on a message of about that size; see `ports.Inspector.inspect`.

        Raises:
            Overloaded: others are in front; it is the client's to come again.
            TemporaryError: there is no verdict, and the message shall come again.
        """
        inspector = self.inspector
        most = inspector.reads_bytes
        try:
            with time_limit.of(self._options.inspect_timeout_s):
                found = await inspector.inspect(read, min(size_bytes, most), envelope, rest)
        except Overloaded:
            raise
        except Exception as error:  # noqa: BLE001 - no fault of the inspector may cost a mail
            fault = error
        else:  # judged by its start
            return found.sized(size_bytes) if size_bytes > most else found
        self._observer.failed("message.unscanned", fault)
        if self._options.on_fault is OnFault.DEFER:
            raise TemporaryError("no verdict") from fault
        return Verdicts(site=inspector.unscanned(_public(fault), size_bytes))


def start_of(message: SpooledMessage, limit: int, plain: Callable[[bytes], bytes]) -> bytes:
    """Return a message as it was meant, of a spooled one enough of its start.

    That is more than `limit` bytes, each line end counted as one. A byte that counts takes at most
    two on the wire (a CR before an LF, a dot before a dot), so the second reading is the last.
    """
    if not message.spooled:
        return plain(message.whole()) if message.dotted else message.whole()
    text = plain(message.first(limit))
    missing = limit + 1 - (len(text) - text.count(b"\r\n"))
    if missing > 0 and message.size_bytes > limit:
        text = plain(message.first(limit + 2 * missing))
    return text


def _public(fault: Exception) -> str:
    """Return the reason that stands in the header field; never the text of an exception."""
    if isinstance(fault, DeadlineExceeded):
        return "no verdict in time"
    return "not scanned: internal fault, see the log"
