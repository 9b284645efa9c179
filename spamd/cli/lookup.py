"""How a scan at the command line looks words up: in the quickest way that the database allows."""

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Protocol

from spamd.resources import open_store

if TYPE_CHECKING:
    from asyncio import Runner

    import numpy as np
    from numpy.typing import NDArray

    from spamd.bayes.model import Model
    from spamd.lists.known import KnownOptions
    from spamd.lists.senders import Senders
    from spamd.message.authentication.proof import AuthOptions
    from spamd.settings import Settings
    from spamd.storage.store import Store


class Words(Protocol):
    """What scanning needs of the database."""

    def secret(self) -> bytes:
        """Return the key of our message ids' check."""
        ...

    def load_model(self, ids: "NDArray[np.int64]") -> "Model":
        """Return a model that knows these tokens."""
        ...

    def senders(self, auth: "AuthOptions", known: "KnownOptions") -> "Senders":
        """Return what is known of senders."""
        ...


@contextmanager
def looked_up(settings: "Settings") -> Iterator[Words]:
    """Give what looks words up.

    In a SQLite file that is ours this needs neither SQLAlchemy nor an event loop.

    Raises:
        ConfigError: the setting can't be right.
        StorageUnavailable: the database does not answer.
    """
    from spamd.message.facts import SCHEMA
    from spamd.storage.corpus.sqlite_lookup import Lookup

    lookup = Lookup.of(
        settings.database,
        schema=SCHEMA,
        bayes=settings.bayes,
    )
    if lookup is not None:
        yield lookup
        return
    from asyncio import Runner

    with Runner() as runner:
        stack = AsyncExitStack()
        store = runner.run(stack.enter_async_context(open_store(settings)))
        try:
            yield Awaited(store, runner)
        finally:
            runner.run(stack.aclose())


class Awaited:
    """A store for who does not wait on an event loop (`Words`)."""

    def __init__(self, store: "Store", runner: "Runner") -> None:
        self._store = store
        self._runner = runner

    def secret(self) -> bytes:
        """Return the key of our message ids' check."""
        return self._runner.run(self._store.secret())

    def load_model(self, ids: "NDArray[np.int64]") -> "Model":
        """Return a model that knows these tokens."""
        return self._runner.run(self._store.load_model(ids))

    def senders(self, auth: "AuthOptions", known: "KnownOptions") -> "Senders":  # noqa: ARG002 - the store has them
        """Return what is known of senders."""
        return self._runner.run(self._store.load_senders())
