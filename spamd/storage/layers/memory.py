"""Users' layers in memory, read on demand (the port `users.ports.Layers`).

Which users have one, and since which change, is followed as the corpus is; so who has none costs
nothing. Layers themselves are read when a mail comes for their user, and kept while there is room,
those used last; each is as new as what was followed.
"""

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import func, select

from spamd.bayes.own import Layer
from spamd.errors import StorageUnavailable
from spamd.ports import Clock
from spamd.storage.engine import Database
from spamd.storage.layers.reading import revised_layer
from spamd.storage.layers.tables import user_layer
from spamd.storage.layers.user_lessons import LAYERS
from spamd.storage.senders.memory import State, state

BYTES = 64 * 1024 * 1024
"""Of all layers in memory: some hundred with 500 lessons each, thousands of the usual size."""

PAUSE_S = 5.0
"""After a failed read nobody asks for so long: mail must not wait for the same again and again."""


class LayersInMemory:
    """Layers of users.

    Args:
        database: where they are.
        clock: for the pause.
        size_bytes: of all that are kept.
    """

    def __init__(self, database: Database, clock: Clock, size_bytes: int = BYTES) -> None:
        self._database = database
        self._clock = clock
        self.most_bytes = size_bytes
        self._at: State | None = None
        self._revisions: dict[str, int] = {}
        self._layers: OrderedDict[str, tuple[int, Layer]] = OrderedDict()
        self._pause_until = float("-inf")
        self.size_bytes = 0

    def unread(self, users: Collection[str]) -> Sequence[str]:
        """Return those of these users whose layer has to be read first."""
        return [user for user in users if user in self._revisions and self.of(user) is None]

    def of(self, user: str) -> Layer | None:
        """Return a user's layer as far as it is here."""
        wanted, found = self._revisions.get(user), self._layers.get(user)
        if wanted is None or found is None or found[0] < wanted:
            return None
        self._layers.move_to_end(user)
        return found[1]

    async def read(self, users: Collection[str]) -> Mapping[str, Layer]:
        """Return users' layers, and keep them.

        Raises:
            StorageUnavailable: they can't be read, or could not some seconds ago.
        """
        if self._clock.monotonic() < self._pause_until:
            raise StorageUnavailable("own lessons could not be read some seconds ago")
        pause_until = self._clock.monotonic() + PAUSE_S
        read: dict[str, Layer] = {}
        done = False
        try:
            async with self._database.bare() as connection:  # a transaction costs two round trips
                for user in users:
                    revision, layer = await revised_layer(connection, user)
                    if layer is not None:
                        read[user] = layer
                        self._keep(user, revision, layer)
            done = True
        except ValueError as error:  # damaged; mail goes on by the site's verdict
            raise StorageUnavailable("own lessons can't be read") from error
        finally:
            self._pause_until = float("-inf") if done else pause_until
        return read

    def _keep(self, user: str, revision: int, layer: Layer) -> None:
        self._drop(user)
        self._layers[user] = (revision, layer)
        self.size_bytes += layer.size_bytes
        while self.size_bytes > self.most_bytes and len(self._layers) > 1:
            self._drop(next(iter(self._layers)))

    def _drop(self, user: str) -> None:
        if (old := self._layers.pop(user, None)) is not None:
            self.size_bytes -= old[1].size_bytes

    async def refresh(self, database: Database) -> None:
        """Bring what is followed to what the database holds.

        Raises:
            StorageUnavailable: it stays as it was.
        """
        row = user_layer.c
        async with database.reading() as connection:
            there = await state(connection, LAYERS, select(func.max(row.revision)))
            if there == self._at:
                return
            grown = self._at is not None and there[0] == self._at[0]
            since = self._at[1] if grown and self._at else 0
            wanted = select(row.user, row.revision).where(row.revision > since)
            rows = await connection.execute(wanted)
            found = {row.user: row.revision for row in rows}
        if grown:
            self._revisions |= found
        else:  # somebody's are gone, and their number may be given out again
            self._revisions = found
            for user in list(self._layers):
                self._drop(user)
        self._at = there
