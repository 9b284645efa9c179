"""A listener with a fake judge, and what clients send to it."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from spamd.listeners.spamc.listener import SpamcListener
from spamd.network.addresses import parse_listeners
from spamd.network.shared import Shared
from spamd.network.sockets import open_sockets
from spamd.ports import Inspector, MessageTeacher
from spamd.relay.options import RelayOptions
from tests.fakes import FakeClock, FakeInspector, FakeObserver, NoTeacher

MAIL = b"From: a@x.test\r\nSubject: hello\r\n\r\nbody\r\n"


@dataclass(kw_only=True)
class Running:
    """A listener that runs; `address` is where."""

    address: tuple[str, int] | str
    observer: FakeObserver
    shared: Shared
    listener: SpamcListener

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self.address, str):
            return await asyncio.open_unix_connection(self.address)
        return await asyncio.open_connection(*self.address)

    async def ask(self, *pieces: bytes, ends: bool = True) -> bytes:
        """Send pieces one after the other, end our side, and return all that comes back."""
        reader, writer = await self.connect()
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            if ends:
                writer.write_eof()
            return await reader.read()
        finally:
            writer.close()


@asynccontextmanager
async def running(
    inspector: Inspector | None = None,
    teacher: MessageTeacher | None = None,
    address: str = "127.0.0.1:0",
    **options: Any,
) -> AsyncIterator[Running]:
    """Run a listener."""
    inspector = inspector or FakeInspector()
    observer = FakeObserver()
    shared = Shared.of(
        RelayOptions(**options), inspector, teacher or NoTeacher(), observer, FakeClock()
    )
    addresses = parse_listeners((address,), key="spamc.listen")
    ((sock,),) = open_sockets(addresses, 1)
    listener = SpamcListener(shared, addresses, [sock])
    await listener.start()
    try:
        yield Running(
            address=sock.getsockname(),
            observer=observer,
            shared=shared,
            listener=listener,
        )
    finally:
        await listener.stop()
        shared.close()


def request(
    verb: str, mail: bytes = MAIL, headers: Iterable[str] = (), *, version: str = "1.5"
) -> bytes:
    """Return a request with the length of its mail."""
    lines = [f"{verb} SPAMC/{version}", f"Content-length: {len(mail)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + mail


def split(reply: bytes) -> tuple[list[bytes], bytes]:
    """Return the lines of a reply's head, and its body."""
    head, _, body = reply.partition(b"\r\n\r\n")
    return head.split(b"\r\n"), body
