"""Databases that have this version's tables already: made once for each process, then copied.

Thirteen steps of a migration take longer than most tests of a database; what they do is tested in
test_migrate.py, and by whatever starts with no database at all.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from spamd.storage.engine import Database
from spamd.storage.migrate import upgrade
from spamd.storage.options import DatabaseOptions


def bring_up(url: str) -> None:
    """Bring an empty database to this version's schema; a test's event loop may be running."""

    async def brought_up() -> None:
        database = await Database.open(DatabaseOptions(url=url))
        try:
            await upgrade(database)
        finally:
            await database.close()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, brought_up()).result()


@cache
def _sqlite() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "spamd.db"
        bring_up(f"sqlite:///{path}")
        return path.read_bytes()


def lay(path: Path) -> None:
    """Put a SQLite database of this version where none is."""
    if not path.exists():
        path.write_bytes(_sqlite())
        path.chmod(0o640)
