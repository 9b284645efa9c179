"""Both ends of the relay for tests: a next hop that does as it is told, and a raw client."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Self, cast

from spamd.network.addresses import Listener
from spamd.network.shared import Shared
from spamd.network.sockets import open_sockets
from spamd.ports import Inspector
from spamd.relay.listener import Relay
from spamd.relay.options import NextHopOptions, RelayOptions, TlsOptions
from spamd.relay.ports import ReportHandler
from tests.fakes import FakeClock, FakeInspector, FakeObserver, NoTeacher
from tests.waiting import until

WAIT_S = 10.0
"""Nothing here takes that long; it ends a test that would hang."""

QUEUED = b"250 2.0.0 queued as ABC123\r\n"
"""The next hop's reply to a message, unless it is told another."""

MESSAGE = b"From: a@x.test\r\nSubject: hello\r\n\r\nSome words.\r\n"
FULL = [b"PIPELINING", b"SIZE 20000000", b"8BITMIME", b"SMTPUTF8", b"DSN", b"ENHANCEDSTATUSCODES"]


class Do(Enum):
    """What a next hop does instead of answering."""

    CLOSE = "closes the connection"
    RESET = "resets the connection"
    NOTHING = "says nothing"


Answer = bytes | Do


@dataclass
class ScriptedNextHop:
    """An SMTP or LMTP server whose answers are set by the test.

    answers  verb → answer, or a list of answers one after the other (the last one stays);
             "" is the banner, "." the answer to a message (LMTP: a list of them for each message)
    early    verb → answer sent after only a part of the body has come ("." only)
    """

    extensions: Sequence[bytes] = tuple(FULL)
    answers: dict[str, Answer | list[Answer]] = field(default_factory=dict)
    lmtp: bool = False
    split: bool = False
    drop_in_body_after: int | None = None
    commands: list[bytes] = field(default_factory=list)
    messages: list[bytes] = field(default_factory=list)
    envelopes: list[tuple[bytes, list[bytes]]] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    port: int = 0
    writers: set[asyncio.StreamWriter] = field(default_factory=set)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=2**27)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self.writers:
            writer.transport.abort()
        await self.until(lambda: self.open == 0)

    @property
    def url(self) -> str:
        return f"{'lmtp' if self.lmtp else 'smtp'}://127.0.0.1:{self.port}"

    @property
    def verbs(self) -> list[str]:
        return [command.split(b" ")[0].decode().upper() for command in self.commands]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(WAIT_S), self.changed:
            await self.changed.wait_for(condition)

    async def _note(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        self.writers.add(writer)
        await self._note()
        try:
            await self._dialogue(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self.writers.discard(writer)
            self.open -= 1
            await self._note()

    async def _dialogue(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._say(writer, "", b"220 next.test ESMTP\r\n")
        recipients = 0
        envelope: tuple[bytes, list[bytes]] = (b"", [])
        while line := await reader.readline():
            command = line.rstrip(b"\r\n")
            self.commands.append(command)
            await self._note()
            verb = command.split(b" ")[0].decode().upper()
            match verb:
                case "EHLO" | "LHLO":
                    lines = [b"next.test", *self.extensions]
                    text = b"".join(b"250-" + each + b"\r\n" for each in lines[:-1])
                    await self._say(writer, verb, text + b"250 " + lines[-1] + b"\r\n")
                    recipients = 0
                case "MAIL":
                    envelope = (command[5:], [])
                    recipients = 0
                    await self._say(writer, verb, b"250 2.1.0 sender fine\r\n")
                case "RCPT":
                    answer = await self._say(writer, verb, b"250 2.1.5 recipient fine\r\n")
                    if answer.startswith(b"2"):
                        recipients += 1
                        envelope[1].append(command[5:])
                case "DATA":
                    answer = await self._say(writer, verb, b"354 go on\r\n")
                    if answer.startswith(b"3"):
                        await self._message(reader, writer, envelope, recipients)
                case "QUIT":
                    await self._say(writer, verb, b"221 2.0.0 bye\r\n")
                    return
                case "STARTTLS" if "STARTTLS" in self.answers:
                    await self._say(writer, verb, b"454 4.7.0 no\r\n")
                case _:
                    await self._say(writer, verb, b"250 2.0.0 ok\r\n")

    async def _message(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        envelope: tuple[bytes, list[bytes]],
        recipients: int,
    ) -> None:
        if self.drop_in_body_after is not None:
            await reader.readexactly(self.drop_in_body_after)
            writer.transport.abort()
            raise ConnectionResetError
        body = bytearray(b"\r\n")
        while not body.endswith(b"\r\n.\r\n"):  # nothing is pipelined behind a message
            block = await reader.read(2**20)
            if not block:
                raise ConnectionResetError
            body += block
        self.messages.append(bytes(body[2:-3]))
        self.envelopes.append(envelope)
        await self._note()
        for _ in range(recipients if self.lmtp else 1):
            await self._say(writer, ".", QUEUED)

    async def _say(self, writer: asyncio.StreamWriter, verb: str, usual: bytes) -> bytes:
        answer = self.answers.get(verb, usual)
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        match answer:
            case Do.CLOSE:
                raise ConnectionResetError
            case Do.RESET:
                writer.transport.abort()
                raise ConnectionResetError
            case Do.NOTHING:
                return b"none"
            case _:
                pass
        assert isinstance(answer, bytes)
        if self.split:
            for at in range(len(answer)):
                writer.write(answer[at : at + 1])
                await writer.drain()
                await asyncio.sleep(0)
        else:
            writer.write(answer)
        await writer.drain()
        if answer.startswith(b"421"):
            raise ConnectionResetError
        return answer


class Talk:
    """A client that says exactly what the test says."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, port: int, *, greeting: bool = True) -> Self:
        talk = cls(*await asyncio.open_connection("127.0.0.1", port, limit=2**20))
        if greeting:
            assert (await talk.reply()).startswith(b"220 ")
        return talk

    async def reply(self) -> bytes:
        """Return the next reply, all its lines; empty when the connection has ended."""
        text = b""
        async with asyncio.timeout(WAIT_S):
            while line := await self.reader.readline():
                text += line
                if line[3:4] != b"-":
                    break
        return text

    async def say(self, *lines: bytes) -> bytes:
        """Send lines and return the reply to the last of them."""
        answer = b""
        for line in lines:
            self.writer.write(line + b"\r\n")
            answer = await self.reply()
        return answer

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.writer.write(data)
        async with asyncio.timeout(WAIT_S):
            await self.writer.drain()

    async def begin(
        self,
        sender: bytes = b"<a@x.test>",
        recipients: Sequence[bytes] = (b"<b@y.test>",),
        hello: bytes = b"EHLO client.test",
    ) -> None:
        """Go as far as the 354 of DATA."""
        if hello:
            answer = await self.say(hello)
            assert answer.startswith(b"250"), answer
        assert (await self.say(b"MAIL FROM:" + sender)).startswith(b"250")
        for recipient in recipients:
            assert (await self.say(b"RCPT TO:" + recipient)).startswith(b"250")
        assert (await self.say(b"DATA")).startswith(b"354")

    async def deliver(self, wire: bytes = MESSAGE, **envelope: object) -> bytes:
        """Send one message in wire form and return the final reply."""
        await self.begin(**envelope)  # type: ignore[arg-type]  # begin's own arguments
        await self.send(wire + b".\r\n")
        return await self.reply()

    async def rest(self) -> bytes:
        """Return everything until the connection ends, however it ends."""
        text = b""
        with suppress(ConnectionError):
            async with asyncio.timeout(WAIT_S):
                while block := await self.reader.read(2**16):
                    text += block
        return text

    def reset(self) -> None:
        """Vanish: the other side reads an error, not an end."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


class NotOpen:
    """Stands in for a socket that listens, where nobody is to connect."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def getsockname(self) -> tuple[str, int]:
        return self._listener.host, self._listener.port


def not_open(listeners: Sequence[Listener]) -> list[socket.socket]:
    return [cast("socket.socket", NotOpen(listener)) for listener in listeners]


@dataclass
class Running:
    """A relay under test, and what belongs to it."""

    relay: Relay
    inspector: FakeInspector
    observer: FakeObserver
    talks: list[Talk] = field(default_factory=list)

    @property
    def port(self) -> int:
        return self.relay.addresses[0][1]

    async def empty(self) -> None:
        """Wait until no session is left."""
        await until(lambda: not self.relay.sessions)

    async def talk(self, *, greeting: bool = True, listener: int = 0) -> Talk:
        talk = await Talk.to(self.relay.addresses[listener][1], greeting=greeting)
        self.talks.append(talk)
        return talk


@asynccontextmanager
async def relay(
    url: str,
    *,
    inspector: FakeInspector | None = None,
    next_hop: Mapping[str, object] | None = None,
    tls: TlsOptions | None = None,
    real_inspector: Inspector | None = None,
    report_handler: ReportHandler | None = None,
    **options: Any,
) -> AsyncIterator[Running]:
    """Run a relay in front of `url`; options are those of the section `relay`."""
    fake, observer = inspector or FakeInspector(), FakeObserver()
    values: dict[str, object] = {"listen": ("127.0.0.1:0",), "hostname": "mx.test", **options}
    settings = RelayOptions(**values)  # type: ignore[arg-type]  # the dataclass checks them
    (sockets,) = open_sockets(settings.listeners, 1)
    service = Relay(
        options=settings,
        next_hop=NextHopOptions(**{"url": url, **(next_hop or {})}),  # type: ignore[arg-type]
        tls=tls or TlsOptions(),
        shared=Shared.of(settings, real_inspector or fake, NoTeacher(), observer, FakeClock()),
        sockets=sockets,
        report_handler=report_handler,
    )
    await service.start()
    running = Running(service, fake, observer)
    try:
        yield running
    finally:
        for talk in running.talks:
            await talk.close()
        await service.stop(WAIT_S)


async def start_tls(talk: Talk, trust: ssl.SSLContext) -> None:
    """Begin TLS after the reply to STARTTLS."""
    async with asyncio.timeout(WAIT_S):
        await talk.writer.start_tls(trust, server_hostname="localhost")
