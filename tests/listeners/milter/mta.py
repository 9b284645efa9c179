"""A mail server's side of the milter protocol, for tests: what it sends, and what it does.

It waits for an answer to every step unless silence was agreed on, takes no answer that the
protocol does not allow where it stands, and carries out what it is told.
"""

import asyncio
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from spamd.listeners.milter.listener import milter_listener
from spamd.listeners.milter.negotiation import SILENT
from spamd.listeners.milter.options import MilterOptions
from spamd.network.shared import Shared
from spamd.network.sockets import open_sockets
from spamd.network.stream_listener import StreamListener
from spamd.ports import Inspector
from spamd.relay.options import RelayOptions
from tests.fakes import FakeClock, FakeInspector, FakeObserver, NoTeacher

POSTFIX = (6, 0x1FF, 0x1FFFFF)
"""What Postfix 3.7 offers: version, actions, steps."""

WAIT_S = 20.0
RECEIVED = (b"Received", b" by mx.test; Sat, 28 Nov 2026 10:00:00 +0000")


def frame(command: bytes, data: bytes = b"") -> bytes:
    """Return a packet."""
    return struct.pack("!I", 1 + len(data)) + command + data


def macros(command: bytes, **values: str) -> bytes:
    """Return the macros that come before a command; names of one letter have no braces."""
    pairs = [(name if len(name) == 1 else f"{{{name}}}", value) for name, value in values.items()]
    return frame(b"D", command + "".join(f"{a}\0{b}\0" for a, b in pairs).encode())


def connect(name: str = "c.test", address: str = "192.0.2.7", port: int = 4711) -> bytes:
    """Return the packet that says who has connected."""
    family = b"6" if ":" in address else b"4"
    data = name.encode() + b"\0" + family + struct.pack("!H", port) + address.encode() + b"\0"
    return frame(b"C", data)


@dataclass
class Outcome:
    """What a mail server does with a message.

    header      fields as they are delivered: name, value with what stands behind the colon
    verdict     the last answer: b"c" or b"y"
    reply       of the client, when it is not the server's own
    progress    signs of life before the answer
    """

    header: list[tuple[bytes, bytes]]
    verdict: bytes = b""
    reply: bytes = b""
    quarantined: bytes = b""
    progress: int = 0
    skipped: int = 0

    @property
    def ours(self) -> dict[bytes, bytes]:
        """Our fields."""
        return {name: value for name, value in self.header if name.lower().startswith(b"x-spam-")}


@dataclass
class Mta:
    """One connection to a milter."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    version: int = 0
    actions: int = 0
    steps: int = 0
    lists: dict[int, bytes] = field(default_factory=dict)

    async def answer(self) -> tuple[bytes, bytes]:
        """Return the next packet of the milter."""
        async with asyncio.timeout(WAIT_S):
            (length,) = struct.unpack("!I", await self.reader.readexactly(4))
            data = await self.reader.readexactly(length)
        return data[:1], data[1:]

    async def negotiate(self, offer: tuple[int, int, int] = POSTFIX) -> None:
        """Offer, and hold the milter to what it asks for."""
        self.writer.write(frame(b"O", struct.pack("!III", *offer)))
        command, data = await self.answer()
        assert command == b"O"
        self.version, self.actions, self.steps = struct.unpack("!III", data[:12])
        assert self.version <= offer[0]
        assert self.actions & ~offer[1] == 0
        assert self.steps & ~offer[2] == 0
        rest = data[12:]
        while rest:
            (stage,) = struct.unpack("!I", rest[:4])
            names, _, rest = rest[4:].partition(b"\0")
            self.lists[stage] = names
        assert not self.lists or self.actions & 0x100

    async def step(self, command: bytes, data: bytes = b"") -> bytes:
        """Send a step and return the answer, b"" where none was agreed on."""
        self.writer.write(frame(command, data))
        if self.steps & SILENT[command]:
            return b""
        answer, rest = await self.answer()
        assert answer in ((b"c", b"s") if command == b"B" else (b"c",))
        assert answer != b"s" or self.steps & 0x400
        assert rest == b""
        return answer

    async def client(self, *, helo: str = "c.test", address: str = "192.0.2.7") -> None:
        """Tell of a client that greets."""
        if not self.steps & SILENT[b"C"]:
            self.writer.write(connect(address=address))
            assert await self.answer() == (b"c", b"")
        else:
            self.writer.write(connect(address=address))
        await self.step(b"H", helo.encode() + b"\0")

    async def envelope(self, *recipients: str, sender: str = "<a@x.test>") -> None:
        """Tell of sender and recipients."""
        await self.step(b"M", sender.encode() + b"\0SIZE=100\0")
        for recipient in recipients or ("<b@y.test>",):
            self.writer.write(macros(b"R", rcpt_mailer="smtp"))
            await self.step(b"R", recipient.encode() + b"\0")

    async def content(
        self, header: Sequence[tuple[bytes, bytes]], body: bytes, piece: int = 65535
    ) -> Outcome:
        """Send a message and do with it as told."""
        spaced = bool(self.steps & 0x100000)
        for name, value in header:
            shown = value if spaced else value.removeprefix(b" ")
            await self.step(b"L", name + b"\0" + shown + b"\0")
        await self.step(b"N")
        outcome = Outcome([*header])
        for at in range(0, len(body), piece):
            if await self.step(b"B", body[at : at + piece]) == b"s":
                outcome.skipped = len(body) - at - piece
                break
        self.writer.write(macros(b"E", i="4Qabc") + frame(b"E"))
        await self.outcome(outcome, spaced=spaced)
        return outcome

    async def outcome(self, outcome: Outcome, *, spaced: bool) -> None:
        """Carry out what is answered to a message, until the verdict."""
        list_ = [RECEIVED, *outcome.header]
        while not outcome.verdict:
            answer, data = await self.answer()
            match answer:
                case b"p":
                    outcome.progress += 1
                case b"i" | b"m":
                    (index,) = struct.unpack("!I", data[:4])
                    name, value, end = data[4:].split(b"\0")
                    assert end == b""
                    assert answer == b"m" or b"\r" not in value
                    value = value if spaced or not value else b" " + value
                    assert self.actions & (1 if answer == b"i" else 0x10)
                    if answer == b"i":
                        list_.insert(index, (name, value))
                    else:
                        self._change(list_, index, name, value)
                case b"q":
                    assert self.actions & 0x20
                    outcome.quarantined = data
                case b"y":
                    assert data.endswith(b"\0")
                    outcome.verdict, outcome.reply = b"y", data[:-1]
                case _:
                    assert answer == b"c"
                    assert data == b""
                    outcome.verdict = b"c"
        assert list_[0] == RECEIVED
        outcome.header = [field for field in list_[1:] if field[1]]

    @staticmethod
    def _change(header: list[tuple[bytes, bytes]], index: int, name: bytes, value: bytes) -> None:
        places = [at for at, field in enumerate(header) if field[0].lower() == name.lower()]
        places = [at for at in places if header[at] is not RECEIVED]
        at = places[index - 1]
        if value:
            header[at] = header[at][0], value
        else:
            del header[at]


@dataclass
class Listening:
    """A milter listener, with fakes behind it."""

    milter: StreamListener
    shared: Shared
    inspector: FakeInspector
    observer: FakeObserver
    address: tuple[str, int]
    opened: list[asyncio.StreamWriter] = field(default_factory=list)

    async def mta(self, offer: tuple[int, int, int] | None = POSTFIX) -> Mta:
        """Return a connection, negotiated unless there is no offer."""
        reader, writer = await asyncio.open_connection(*self.address)
        self.opened.append(writer)
        mta = Mta(reader, writer)
        if offer is not None:
            await mta.negotiate(offer)
        return mta

    async def message(
        self,
        header: Sequence[tuple[bytes, bytes]] = ((b"Subject", b" x"),),
        body: bytes = b"hello\r\n",
        offer: tuple[int, int, int] = POSTFIX,
    ) -> Outcome:
        """Send one message over a connection of its own."""
        mta = await self.mta(offer)
        await mta.client()
        await mta.envelope()
        outcome = await mta.content(header, body)
        mta.writer.write(frame(b"Q"))
        assert await mta.reader.read() == b""
        return outcome


@asynccontextmanager
async def listening(
    judge: Inspector | None = None, *, quarantine: bool = False, **options: Any
) -> AsyncIterator[Listening]:
    """Run a milter listener; budgets are whole and nothing is left when it has ended."""
    inspector = judge if isinstance(judge, FakeInspector) else FakeInspector()
    observer = FakeObserver()
    shared = Shared.of(
        RelayOptions(**options), judge or inspector, NoTeacher(), observer, FakeClock()
    )
    milter_options = MilterOptions(listen=("127.0.0.1:0",), quarantine=quarantine)
    ((sock,),) = open_sockets(milter_options.listeners, 1)
    milter = milter_listener(milter_options, shared, [sock])
    before = shared.budget.memory_bytes, shared.budget.spool_bytes
    running = Listening(milter, shared, inspector, observer, sock.getsockname())
    await milter.start()
    try:
        yield running
    finally:
        for writer in running.opened:
            writer.close()
        await milter.stop(5.0)
        shared.close()
    assert (shared.budget.memory_bytes, shared.budget.spool_bytes) == before
