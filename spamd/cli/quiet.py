"""The observer of commands whose own output says all there is to say."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spamd.feedback.ports import AccountState, Held
    from spamd.sample import Label


class QuietObserver:
    """Tells nobody: the command's own output says all there is to say."""

    def learned(
        self, label: "Label", source: str, outcome: str, before: float, after: float
    ) -> None:
        """Ignore it: the summary counts lessons."""

    def held(self, lesson: "Held") -> None:
        """Ignore it: the summary counts them."""

    def watched(self, accounts: "Mapping[AccountState, int]") -> None:
        """Ignore it: the summary names what went wrong."""

    def happened(self, event: str, **details: str | float) -> None:
        """Ignore it: the summary counts."""

    def failed(self, event: str, error: BaseException, **details: str | float) -> None:
        """Ignore it: the summary names faults."""
