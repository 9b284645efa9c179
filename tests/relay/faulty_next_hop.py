"""Both ends of a load: clients that try until they are told 250, a next hop that writes down all.

Accepted must be delivered at least once and unchanged. A mail may come twice only where SMTP itself
can't tell: its final reply was lost on the way (RFC 1047).
"""

import asyncio
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from tests.relay.peers import Talk

PATIENCE_S = 60.0
"""A worker that is being started anew takes seconds on a busy machine."""


def message(number: int) -> bytes:
    """Return a mail that differs from all others, with dots, long lines and 8-bit in it."""
    chance = random.Random(number)
    lines = [b"." * chance.randrange(4) + b"\xe4word " * chance.randrange(200) for _ in range(20)]
    head = b"Subject: mail %d\r\nMessage-ID: <%d@x.test>\r\n\r\n" % (number, number)
    return head + b"".join(b"." * line.startswith(b".") + line + b"\r\n" for line in lines)


@dataclass
class FaultyNextHop:
    """An SMTP server with an in-memory ledger and all kinds of bad days.

    fault_rate   share of steps at which something goes wrong
    received     number of each mail → how often it came whole
    lost_reply   numbers of mails whose final reply this side did not get out
    damaged      mails that are not what was sent
    """

    fault_rate: float = 0.0
    seed: int = 1
    received: Counter[int] = field(default_factory=Counter)
    lost_reply: set[int] = field(default_factory=set)
    damaged: list[bytes] = field(default_factory=list)
    port: int = 0

    async def __aenter__(self) -> Self:
        self._chance = random.Random(self.seed)
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen (again, on the same port)."""
        self._writers: set[asyncio.StreamWriter] = set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=2**20)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Cut everything, as a power cut would."""
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        while self._writers:  # noqa: ASYNC110 - each removes itself when it ends
            await asyncio.sleep(0.001)

    def _goes_wrong(self) -> bool:
        return self._chance.random() < self.fault_rate

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            writer.write(b"220 ledger.test ESMTP\r\n")
            while line := await reader.readline():
                await self._command(line.upper().split()[0], reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()
            self._writers.discard(writer)

    async def _command(
        self, verb: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if verb != b"QUIT" and self._goes_wrong():
            await self._misbehave(writer)
        elif verb == b"EHLO":
            writer.write(b"250-ledger.test\r\n250-8BITMIME\r\n250 PIPELINING\r\n")
        elif verb == b"DATA":
            writer.write(b"354 go on\r\n")
            await self._message(reader, writer)
        else:
            writer.write(b"250 ok\r\n")

    async def _misbehave(self, writer: asyncio.StreamWriter) -> None:
        match self._chance.randrange(4):
            case 0:
                raise ConnectionResetError
            case 1:
                writer.write(b"451 4.3.0 not now\r\n")
            case 2:
                writer.write(b"421 4.3.2 going down\r\n")
                raise ConnectionResetError
            case _:
                await asyncio.sleep(0.05)
                writer.write(b"450 4.2.0 slowly no\r\n")

    async def _message(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._goes_wrong():
            await reader.readexactly(self._chance.randrange(2000))
            raise ConnectionResetError  # in the body: it is not received
        body = bytearray()
        while not body.endswith(b"\r\n.\r\n"):
            block = await reader.read(2**16)
            if not block:
                raise ConnectionResetError
            body += block
        start = body.index(b"Subject: mail ")
        number = int(body[start + 14 : body.index(b"\r\n", start)])
        if body[start:-3] != message(number):
            self.damaged.append(bytes(body))
        if self._goes_wrong():
            match self._chance.randrange(3):
                case 0:
                    writer.write(b"452 4.3.1 full\r\n")
                    return
                case 1:
                    self.received[number] += 1
                    self.lost_reply.add(number)
                    raise ConnectionResetError  # taken, but nobody is told
                case _:
                    await asyncio.sleep(0.05)
        self.received[number] += 1
        try:
            writer.write(b"250 2.0.0 in the ledger\r\n")
            await writer.drain()
        except ConnectionError:
            self.lost_reply.add(number)
            raise


@dataclass
class Clients:
    """Clients that send each mail until it is accepted.

    accepted   numbers of mails that got 250
    uncertain  numbers of mails whose connection broke when the end of data had been sent
    """

    port: int
    accepted: Counter[int] = field(default_factory=Counter)
    uncertain: set[int] = field(default_factory=set)
    refused: list[bytes] = field(default_factory=list)

    async def send(self, numbers: Iterable[int], connections: int) -> None:
        """Send all mails over so many connections at once."""
        waiting = iter(list(numbers))

        async def send_some() -> None:
            talk: Talk | None = None
            for number in waiting:
                async with asyncio.timeout(PATIENCE_S * 4):
                    while number not in self.accepted:
                        talk = await self._try(talk, number)
            if talk is not None:
                await talk.close()

        async with asyncio.TaskGroup() as group:
            for _ in range(connections):
                group.create_task(send_some())

    async def _try(self, talk: Talk | None, number: int) -> Talk | None:
        """Try once; return the connection if it can go on."""
        sent = False
        try:
            if talk is None:
                talk = Talk(*await asyncio.open_connection("127.0.0.1", self.port, limit=2**20))
                await self._expect(talk, b"220")
                await self._expect(talk, b"250", b"EHLO client.test")
            await self._expect(talk, b"250", b"MAIL FROM:<a%d@x.test>" % number)
            await self._expect(talk, b"250", b"RCPT TO:<b@y.test>")
            await self._expect(talk, b"354", b"DATA")
            sent = True
            talk.writer.write(message(number) + b".\r\n")
            answer = await talk.reply()
            if answer.startswith(b"250"):
                self.accepted[number] += 1
                return talk
            if answer.startswith(b"5"):
                self.refused.append(answer)
            elif not answer or b"4.4.2" in answer:
                self.uncertain.add(number)
        except (ConnectionError, TimeoutError, _Refused):
            if sent:
                self.uncertain.add(number)
        if talk is not None:
            talk.writer.transport.abort()
        await asyncio.sleep(0.01)
        return None

    async def _expect(self, talk: Talk, code: bytes, line: bytes = b"") -> None:
        if line:
            talk.writer.write(line + b"\r\n")
        answer = await talk.reply()
        if answer.startswith(b"5"):
            self.refused.append(answer)
        if not answer.startswith(code):
            raise _Refused


class _Refused(Exception):
    pass


def agree(clients: Clients, next_hop: FaultyNextHop) -> None:
    """Hold both ends against each other."""
    assert clients.refused == []
    assert next_hop.damaged == []
    assert set(clients.accepted) <= set(next_hop.received), "accepted and lost"
    repeated = {number for number, times in next_hop.received.items() if times > 1}
    assert repeated <= next_hop.lost_reply | clients.uncertain, "repeated without need"
