"""A listener with a fake judge, and what clients send to it."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from spamd.listeners.spamc.listener import spamc_listener
from spamd.listeners.spamc.options import SpamcOptions
from spamd.network.shared import Shared
from spamd.network.sockets import open_sockets
from spamd.network.stream_listener import StreamListener
from spamd.ports import Inspector, MessageTeacher
from spamd.relay.options import RelayOptions
from tests.fakes import FakeClock, FakeInspector, FakeObserver, NoTeacher
from tests.listeners import clients

MAIL = b"From: a@x.test\r\nSubject: hello\r\n\r\nbody\r\n"


@dataclass(kw_only=True)
class Running(clients.Running):
    """A listener for clients of SpamAssassin."""

    ends = True
    listener: StreamListener


@asynccontextmanager
async def running(
    inspector: Inspector | None = None,
    teacher: MessageTeacher | None = None,
    address: str = "127.0.0.1:0",
    mode: str = "0660",
    **options: Any,
) -> AsyncIterator[Running]:
    """Run a listener."""
    inspector = inspector or FakeInspector()
    observer = FakeObserver()
    shared = Shared.of(
        RelayOptions(**options), inspector, teacher or NoTeacher(), observer, FakeClock()
    )
    spamc = SpamcOptions(listen=(address,), socket_mode=mode)
    ((sock,),) = open_sockets(spamc.listeners, 1)
    listener = spamc_listener(spamc, shared, [sock])
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
