"""What only the relay needs of the rest, as a Protocol: who takes reports.

`feedback` implements it without knowing us.
"""

from typing import Protocol

from spamd.sample import Label


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
