"""What the relay needs of the rest, as Protocols: who judges mail, who takes reports, an observer.

`scanning` and `feedback` implement them without knowing us; tests use those of `tests/fakes.py`.
"""

from collections.abc import Callable
from typing import Protocol

from spamd.message.envelope import Envelope
from spamd.ports import Observer
from spamd.report import ScanReport
from spamd.sample import Label


class Inspector(Protocol):
    """Who judges a message for the relay."""

    @property
    def reads_bytes(self) -> int:
        """How much of the start of a message is looked at, lines ended by LF."""

    async def inspect(
        self,
        read: Callable[[], bytes],
        size_bytes: int,
        envelope: Envelope,
        rest: Callable[[], bytes],
    ) -> ScanReport:
        """Return the report on a message of about that size.

        `read` returns it (header and body as plain bytes, not dot-stuffed) and is called when its
        turn has come, so that no mail lies in memory while it waits; of one that is larger than
        `reads_bytes` it may be the start. `rest` then returns what stands for all of it
        (`identity.rest_of`); it is called in a thread. Content never makes it fail.

        Raises:
            Overloaded: others are in front; it is the client's to come again.
            TemporaryError: the message can't be judged now; `relay.on_fault` says what follows.
        """

    def unscanned(self, reason: str, size_bytes: int) -> ScanReport:
        """Return the report on a message that goes on without having been judged."""


class ReportHandler(Protocol):
    """Takes mail sent to the report addresses (`spam@…`, `ham@…`); asked by the relay."""

    def label_for(self, recipient: bytes) -> Label | None:
        """Return what mail to this address (without angle brackets) teaches, None for any other."""

    async def take(self, content: bytes, label: Label, actor: str) -> str:
        """Learn the mails attached to a report and return the receipt, one line of ASCII text.

        `actor` is who logged in, else the address of the client.

        Raises:
            TemporaryError: nothing was learned; the client may come again.
        """


class RelayObserver(Observer, Protocol):
    """Whom the relay tells what happened."""

    def scanned(self, report: ScanReport, *, reply: bytes, recipients: int) -> None:
        """Tell of one message: what was found, and the final reply the client got."""
