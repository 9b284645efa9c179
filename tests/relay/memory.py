"""A relay in memory, without sockets: a transport that is a list, and a next hop that takes all."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from spamd.message.envelope import Client
from spamd.network.addresses import Listener
from spamd.network.shared import Shared
from spamd.relay.content.outgoing import Outgoing
from spamd.relay.inbound.session import Session
from spamd.relay.listener import Relay
from spamd.relay.options import NextHopOptions, RelayOptions, TlsOptions
from spamd.relay.smtp.commands import Path
from spamd.relay.smtp.replies import Reply, reply
from tests.fakes import FakeClock, FakeInspector, FakeObserver, NoTeacher
from tests.relay.peers import not_open

if TYPE_CHECKING:
    from spamd.relay.smtp.capabilities import Capabilities

OK = reply(250, "2.0.0 OK")


class MemoryTransport(asyncio.Transport):
    """Keeps what is written; closing tells the protocol, as a loop would."""

    def __init__(self, protocol: asyncio.Protocol, wrote: Callable[[], None] | None = None) -> None:
        super().__init__({"peername": ("192.0.2.9", 4711)})
        self._protocol = protocol
        self._wrote = wrote
        self.written = bytearray()
        self.paused = self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self.closed:
            self.written += data
            if self._wrote is not None:
                self._wrote()

    def write_eof(self) -> None:
        self.close()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def get_write_buffer_size(self) -> int:
        return 0


class TakesAll:
    """A next hop that takes every message and remembers it (`next_hops.NextHopSession`)."""

    usable = True
    knows_client = False
    one_mailbox = False

    def __init__(self, *, lmtp: bool = False) -> None:
        self.capabilities: Capabilities | None = {b"8BITMIME": b"", b"SMTPUTF8": b"", b"DSN": b""}
        self.lmtp = lmtp
        self.messages: list[bytes] = []
        self.outgoing: dict[object, object] = {}

    async def open(self, client: Client) -> "TakesAll":
        return self

    async def greet(self, client: Client, *, extended: bool) -> Reply:
        return OK

    async def mail(self, argument: bytes, client: Client) -> Reply:
        return OK

    async def rcpt(self, argument: bytes, path: Path | None) -> Reply:
        return OK

    async def reset(self) -> Reply:
        return OK

    async def command(self, line: bytes) -> Reply:
        return reply(502, "5.5.1 Command not implemented")

    def keep_alive(self) -> None:
        pass

    async def deliver(
        self, outgoing: Outgoing, recipients: Sequence[bytes], timeout_s: float
    ) -> list[Reply]:
        self.messages.append(outgoing.header + b"".join(outgoing.message.blocks(outgoing.start)))
        return [OK] * (len(recipients) if self.lmtp else 1)

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass


class MemoryRelay:
    """A relay that no one can connect to but by `session`."""

    def __init__(self, *, lmtp: bool = False, **options: Any) -> None:
        self.hop = TakesAll(lmtp=lmtp)
        self.observer = FakeObserver()
        self.inspector = FakeInspector()
        self.listener = Listener(key="relay.listen", host="127.0.0.1", lmtp=lmtp)
        values = RelayOptions(**{"hostname": "mx.test", **options})
        self.relay = Relay(
            options=values,
            next_hop=NextHopOptions(url="smtp://192.0.2.1"),
            tls=TlsOptions(),
            shared=Shared.of(values, self.inspector, NoTeacher(), self.observer, FakeClock()),
            sockets=not_open(values.listeners),
        )
        self.context = self.relay.context
        self.context.next_hops = cast("Any", self.hop)

    async def start(self) -> None:
        ready = asyncio.Event()
        keep = self.relay._keep(ready)
        self.relay._keeper = asyncio.get_running_loop().create_task(keep)
        await ready.wait()

    def session(self) -> tuple[Session, MemoryTransport]:
        session = Session(self.context, self.listener)
        transport = MemoryTransport(session.transport)
        session.transport.connection_made(transport)
        return session, transport
