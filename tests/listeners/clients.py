"""What clients of any listener do: connect, send pieces, read all that comes back."""

import asyncio
from dataclasses import dataclass
from typing import ClassVar

from spamd.network.shared import Shared
from tests.fakes import FakeObserver


@dataclass(kw_only=True)
class Running:
    """A listener that runs; `address` is where.

    ends  clients of its protocol end their side behind a request
    """

    ends: ClassVar[bool]
    address: tuple[str, int] | str
    observer: FakeObserver
    shared: Shared

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self.address, str):
            return await asyncio.open_unix_connection(self.address)
        return await asyncio.open_connection(*self.address)

    async def ask(self, *pieces: bytes, ends: bool | None = None) -> bytes:
        """Send pieces one after the other and return all that comes back until the end."""
        reader, writer = await self.connect()
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            if self.ends if ends is None else ends:
                writer.write_eof()
            return await reader.read()
        finally:
            writer.close()
