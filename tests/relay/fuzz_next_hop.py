"""Coverage-guided fuzzing of the next hop's answers: `make fuzz FUZZ=next_hop SECONDS=3600`.

What the next hop says comes in pieces, cut at NUL, each after something that we have sent. One
that begins with \\x01 comes at once, before we have sent anything more. No message may count as
accepted by a reply that began to come before its end was sent.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import atheris  # type: ignore[import-untyped]  # installed only by who runs this

with atheris.instrument_imports(include=["spamd.relay"]):
    import spamd.relay.outbound.wire
    from spamd.errors import SpamdError
    from spamd.message.envelope import Client
    from spamd.network.deadlines import DeadlineTimer
    from spamd.network.spool import Budget, SpooledMessage
    from spamd.relay.content.outgoing import Outgoing
    from spamd.relay.options import NextHopOptions
    from spamd.relay.outbound.smtp import SmtpSession
    from spamd.relay.urls import parse_next_hop
    from tests.relay.memory import MemoryTransport

CLIENT = Client(
    address="192.0.2.9", port=25, helo="c.test", name="", tls=False, login=None, protocol="ESMTP"
)
GOOD = b"220 n\r\n\x00250-n\r\n250-PIPELINING\r\n250 XFORWARD NAME ADDR\r\n\x00"
SEEDS = (
    GOOD + b"250 ok\r\n250 ok\r\n\x00250 ok\r\n\x00354 go\r\n\x00\x00250 queued\r\n",
    GOOD + b"250 ok\r\n250 ok\r\n\x00250 ok\r\n\x00354 go\r\n\x01250 early\r\n\x00250 queued\r\n",
    GOOD + b"550 no\r\n250 ok\r\n\x00450 ok\r\n\x00421 gone\r\n",
    b"220-a\r\n220 b\r\n\x00500 what\r\n\x00250 ok\r\n\x00250 ok\r\n\x00354\r\n\x00552 big\r\n",
    b"220 n\r\n\x00250-n\r\n2",
)
spamd.relay.outbound.wire.PROBE_S = 0.0
PATIENCE_S = 0.001
LOOP = asyncio.new_event_loop()


class Peer:
    """Feeds the pieces, and remembers how much had come when the end of the message was sent."""

    def __init__(self, pieces: list[bytes], wire: Any) -> None:
        self._pieces = pieces
        self._wire = wire
        self.transport = MemoryTransport(wire, self.answer)
        self.said = 0
        self.said_before_end: int | None = None
        self.due = False
        self._turn = 0

    def answer(self) -> None:
        if self.transport.written.endswith(b"\r\n.\r\n"):
            self.said_before_end = self.said
        if not self.due:
            self.due = True
            asyncio.get_running_loop().call_soon(self.feed)

    def feed(self) -> None:
        self.due = False
        while not self.transport.closed:
            if not self._pieces:
                self._wire.eof_received()
                self.transport.close()
                return
            piece = self._pieces.pop(0).removeprefix(b"\x01")
            self.said += len(piece)
            self._wire.data_received(piece)
            if not self._pieces or not self._pieces[0].startswith(b"\x01"):
                break
        if self.transport.closed:
            return
        self._turn += 1
        asyncio.get_running_loop().call_later(PATIENCE_S, self._go_on, self._turn)

    def _go_on(self, turn: int) -> None:
        """Say the next piece when nothing was sent meanwhile: a reply has come in part only."""
        if turn == self._turn:
            self.feed()


async def dialogue(data: bytes) -> None:
    """Play one next hop to its end."""
    lmtp = data[:1] == b"L"
    session = SmtpSession(
        parse_next_hop("lmtp://192.0.2.1" if lmtp else "smtp://192.0.2.1", key="url"),
        NextHopOptions(url="smtp://192.0.2.1"),
        "mx.test",
        None,
        DeadlineTimer(),
    )
    wire = session._wire
    peer = Peer(data[1:].split(b"\x00"), wire)
    wire.connection_made(peer.transport)
    message = SpooledMessage(
        Budget(memory_bytes=10**6, spool_bytes=10**6, spool_above_bytes=10**5).share("")
    )
    message.append(b"Subject: x\r\n\r\nwords\r\n")
    recipients = (b"a@y.test", b"b@y.test") if lmtp else (b"a@y.test",)
    try:
        async with asyncio.timeout(20):
            peer.feed()
            await wire.banner(10)
            answer = await session.greet(CLIENT, extended=True)
            answer = await session.mail(b"FROM:<a@x.test>", CLIENT)
            for each in recipients:
                answer = await session.rcpt(b"TO:<" + each + b">", None)
            outgoing = Outgoing(
                header=b"X: y\r\n", message=message, start=0, sender=b"", junk=False
            )
            replies = await session.deliver(outgoing, recipients, 10)
            assert len(replies) == len(recipients)
            for answer in replies:
                if answer.accepted:
                    assert peer.said_before_end is not None
                    assert peer.said - peer.said_before_end >= len(answer.raw)
    except SpamdError:
        assert not session.usable or not peer.transport.closed
    finally:
        session.abort()
        message.close()
    await asyncio.sleep(0)


def one_input(data: bytes) -> None:
    """Play one next hop."""
    LOOP.run_until_complete(dialogue(data))


def main() -> None:
    """Run the fuzzer with the options of libFuzzer given on the command line."""
    for folder in (Path(word) for word in sys.argv[1:] if not word.startswith("-")):
        folder.mkdir(exist_ok=True, parents=True)
        for number, seed in enumerate(SEEDS):
            for kind in (b"S", b"L"):
                (folder / f"seed-{number}-{kind.decode()}").write_bytes(kind + seed)
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
