"""Which table the processes of this machine share, and who writes the next one.

    FOLDER/tokens-ID.table   the newest (`table_file`); ID is the database's
    FOLDER/tokens-ID.lock    held by who writes; the system lets go of it with the process

The folder is `database.local`. A file that no process has written anew for a month is of a database
that is no longer used, and goes. A process looks for a new file at each refresh. What it needs
besides, the words that changed since, it has in memory of its own (`bayes.layered`); once these are
many, one of the processes writes a new file. Without the file, as on a full disk, each process
keeps the table in its own memory, as small ones are kept anyway.
"""

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from math import inf
from pathlib import Path

from spamd.bayes.layered import LayeredTable
from spamd.storage.mapped.table_file import MappedTable, NoTable, Stamp, TableFile, TableKey, stamp
from spamd.wording import reason

LEAST_TOKENS = 100_000
"""Smaller tables, of 3 MB, are kept by each process."""

CHANGED_LEAST = 50_000
CHANGED_SHARE = 1 / 32
"""So many words of a table, at least, change before it is written anew: each process keeps 31 bytes
for each of them, and writing ten million takes seconds."""

OLD_S = 6 * 3600.0
"""Or it is so old and anything has changed: `database.changes_hours` must not pass over it."""

AGAIN_S = 600.0
"""Before writing is tried again after it failed, and before a file that is no table is looked at
again."""

PAUSE_S = 60.0
"""A file stays at least so long: processes that are at odds about what the database holds, as while
another server takes over, must not write in turn without end."""

UNUSED_S = 30 * 86_400.0

LOCKED_S = 0.02
"""Between two looks whether the one who writes has finished."""


class SharedTables:
    """The tables in a folder; tests make the numbers small.

    least   tokens of a table that is shared
    fault   why none can be written; empty when it can, as far as we know
    """

    def __init__(
        self,
        folder: Path,
        *,
        least: int = LEAST_TOKENS,
        changed: int = CHANGED_LEAST,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._folder = folder
        self._name = ""
        self.least = least
        self.fault = ""
        self._pause_s = pause_s
        self._changed = changed
        self._failed_at = -AGAIN_S
        self._opened: MappedTable | None = None
        self._refused: Stamp | None = None

    @property
    def named(self) -> bool:
        """Whether it is known of which database the tables are."""
        return bool(self._name)

    def name(self, database: bytes) -> None:
        """Say of which database the tables are."""
        self._name = f"tokens-{database[:6].hex()}"

    @property
    def path(self) -> Path:
        """Where the newest table lies, or would."""
        return self._folder / f"{self._name}.table"

    def current(self) -> MappedTable | None:
        """Return the newest table; None when there is none that can be trusted."""
        now = self._stamp()
        if now is None or now == self._refused:
            return None
        if self._opened is None or self._opened.stamp != now:
            try:
                self._opened = TableFile.opened(self.path)
            except NoTable:
                self._refused = now
                return None
        return self._opened

    def refuse(self, mapped: MappedTable) -> None:
        """Take note that a table is of no use here: it is another database's, or of the past."""
        self._refused = mapped.stamp

    def newer_than(self, used: MappedTable | None) -> bool:
        """Return whether there is another file than the one in use; it costs next to nothing."""
        now = self._stamp()
        return now not in (None, self._refused, used.stamp if used else None)

    def due(self, table: object, used: MappedTable | None, tokens: int) -> bool:
        """Return whether a new file should be written."""
        if tokens < self.least or time.monotonic() - self._failed_at < AGAIN_S:
            return False
        if abs(self._age_s()) < self._pause_s:
            return False
        if not isinstance(table, LayeredTable) or used is None:
            return True
        many = max(self._changed, CHANGED_SHARE * len(table))
        return table.changed > many or (table.changed > 0 and self._age_s() > OLD_S)

    def write(self, key: TableKey, table: LayeredTable) -> bool:
        """Write the next file, unless another process does; on a fault keep what there is."""
        lock = None
        try:
            lock = self._lock()
            if lock is None:
                return False
            with TableFile.writing(self.path, key, len(table)) as file:
                for ids, cells in table.pieces():
                    file.add(ids, cells)
            self._remove_unused()
        except OSError as error:
            self.failed(error)
            return False
        finally:
            if lock is not None:
                os.close(lock)
        self.fault = ""
        return True

    def failed(self, error: Exception) -> None:
        """Take note that no file could be written."""
        self.fault = f"{self.path}: {reason(error)}"
        self._failed_at = time.monotonic()

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        """Wait until no other process of the machine writes, and keep them from it.

        Raises:
            OSError: the folder can't be used.
        """
        while (lock := self._lock()) is None:  # noqa: ASYNC110 - another process has it
            await asyncio.sleep(LOCKED_S)
        try:
            yield
        finally:
            os.close(lock)

    def _remove_unused(self) -> None:
        for file in self._folder.glob("tokens-*.*"):
            with suppress(OSError):
                if (
                    file.name.split(".")[0] != self._name
                    and time.time() - file.stat().st_mtime > UNUSED_S
                ):
                    file.unlink()

    def _lock(self) -> int | None:
        """Return the lock, None while another process has it.

        Raises:
            OSError: the folder can't be used.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._folder / f"{self._name}.lock", flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _stamp(self) -> Stamp | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return stamp(found)

    def _age_s(self) -> float:
        try:
            return time.time() - self.path.stat().st_mtime
        except OSError:
            return inf
