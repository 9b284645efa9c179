"""What a person is put together from."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from spamd.bayes.own import Layer
from spamd.bayes.wishes import NO_WISHES, Wishes


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Who is behind an address.

    user     canonical name; "@example.org" for somebody there who is no user; "" for nobody
    missing  what could not be asked, in one clause; the name is then by the rules alone
    how      what decided: "rules", "aliases", "query", "command", "users_file"
    """

    user: str
    missing: str = ""
    how: str = "rules"


class Names(Protocol):
    """Who knows which user is behind an address or a login name."""

    async def of(self, addresses: Sequence[bytes]) -> Mapping[bytes, Named]:
        """Return who is behind each address; it never fails, and may be cancelled."""


class Lookup(Protocol):
    """A database or a program that can be asked who is behind a name."""

    async def users(self, name: str) -> Sequence[str]:
        """Return the users that a name leads to, as written there; it may be cancelled.

        Raises:
            TemporaryError: it does not answer.
        """

    async def close(self) -> None:
        """Leave it."""


class WishesSource(Protocol):
    """Who knows what people wish, in memory."""

    def of(self, user: str) -> Wishes:
        """Return what a user wishes, over what their domain wishes, over what the site does."""


class Layers(Protocol):
    """Who knows what was learned from people alone."""

    def of(self, user: str) -> Layer | None:
        """Return a user's layer, None for who has none, and for whom it must be read first."""

    def unread(self, users: Collection[str]) -> Sequence[str]:
        """Return those of these users whose layer must be read first."""

    async def read(self, users: Collection[str]) -> Mapping[str, Layer]:
        """Read users' layers; who has none is left out.

        It is cancelled when the time is over; what it has read by then it keeps for the next mail.

        Raises:
            TemporaryError: they can't be read.
        """


class NoWishes:
    """Nobody wishes anything."""

    def of(self, user: str) -> Wishes:  # noqa: ARG002 - the port
        """Return no wishes."""
        return NO_WISHES


class NoLayers:
    """Nobody has a layer."""

    def of(self, user: str) -> Layer | None:  # noqa: ARG002 - the port
        """Return no layer."""
        return None

    def unread(self, users: Collection[str]) -> Sequence[str]:  # noqa: ARG002 - the port
        """Return nobody."""
        return ()

    async def read(self, users: Collection[str]) -> Mapping[str, Layer]:  # noqa: ARG002 - the port
        """Return no layers."""
        return {}
