"""Mail on disk: threads write and read it, the event loop never does."""

import asyncio
import io
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import IO, Any

import pytest

from spamd.message.envelope import Envelope
from spamd.network.spool import BLOCK, Budget, SpooledMessage
from spamd.relay.options import BareNewlines
from spamd.report import Verdicts
from tests.fakes import FakeInspector
from tests.relay.peers import MESSAGE, ScriptedNextHop, relay
from tests.waiting import until

MIB = 2**20
LARGE = b"Subject: large\r\n\r\n" + b"..words and words\r\n" * 150_000
BARE = b"Subject: large\r\n\r\n" + b"words and words\n" * 150_000 + b"\r\n"


class Watched(io.FileIO):
    """A file that notes who writes and reads, and may be slow."""

    threads: set[int]
    gate: threading.Event

    def write(self, data: Any) -> int:
        self.threads.add(threading.get_ident())
        self.gate.wait(10)
        return super().write(data)

    def read(self, size: int | None = -1) -> bytes:
        self.threads.add(threading.get_ident())
        return super().read(-1 if size is None else size)


class ReadsInThread(FakeInspector):
    """Reads large mail as the real inspector does."""

    async def inspect(
        self,
        read: Callable[[], bytes],
        size_bytes: int,
        envelope: Envelope,
        rest: Callable[[], bytes],
    ) -> Verdicts:
        content = await asyncio.to_thread(read)
        return await super().inspect(lambda: content, size_bytes, envelope, rest)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Watched]]:
    """Make all files of the spool watched ones."""
    usual = tempfile.TemporaryFile
    Watched.threads, Watched.gate = set(), threading.Event()
    Watched.gate.set()

    def file(**options: Any) -> IO[bytes]:
        Watched.threads.add(threading.get_ident())
        with usual(**options) as made:
            return Watched(os.dup(made.fileno()), "r+")

    monkeypatch.setattr(tempfile, "TemporaryFile", file)
    yield Watched
    Watched.gate.set()


@pytest.mark.parametrize("message", [LARGE, BARE], ids=["as it should be", "bare newlines"])
@pytest.mark.parametrize("way", ["DATA", "BDAT"])
async def test_i7_the_event_loop_neither_writes_nor_reads_large_mail(
    watched: type[Watched], message: bytes, way: str
) -> None:
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, inspector=ReadsInThread()) as running,
    ):
        talk, answer = await running.talk(), b""
        if way == "DATA":
            answer = await talk.deliver(message)
        else:
            await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>", b"RCPT TO:<b@y.test>")
            for at in range(0, len(message), 700_000):
                piece = message[at : at + 700_000]
                last = b" LAST" if at + 700_000 >= len(message) else b""
                await talk.send(b"BDAT %d%s\r\n" % (len(piece), last) + piece)
                answer = await talk.reply()
        assert answer.startswith(b"250 ")
        lines = message.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        sent = lines if way == "DATA" else lines.replace(b"\r\n..", b"\r\n...")
        assert hop.messages[0].endswith(sent)
        assert watched.threads
        assert threading.get_ident() not in watched.threads


async def test_i7_small_mail_needs_no_thread(watched: type[Watched]) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        assert (await (await running.talk()).deliver()).startswith(b"250 ")
        assert not watched.threads
        assert not running.relay.context.shared.budget.threads._threads


async def test_i7_others_are_served_while_the_disk_stands_still(watched: type[Watched]) -> None:
    watched.gate.clear()
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk, other = await running.talk(), await running.talk()
        await talk.begin()
        sending = asyncio.create_task(talk.send(LARGE * 4 + b".\r\n"))
        for _ in range(5):
            assert (await other.deliver(MESSAGE)).startswith(b"250 ")
        watched.gate.set()
        await sending
        assert (await talk.reply()).startswith(b"250 ")
        assert hop.messages[-1].endswith(LARGE * 4)


async def test_i7_what_waits_for_a_slow_disk_is_bounded_and_comes_in_order(
    watched: type[Watched],
) -> None:
    watched.gate.clear()
    budget = Budget(memory_bytes=MIB, spool_bytes=64 * MIB, spool_above_bytes=MIB)
    message = SpooledMessage(budget.share(""))
    pieces = [bytes([number]) * (BLOCK // 3) for number in range(60)]
    taken = []
    for piece in pieces:
        if message.behind:
            break
        message.append(piece)
        taken.append(piece)
    assert len(b"".join(taken)) <= MIB + 3 * BLOCK
    came: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    message.when_written = lambda: None if came.done() else came.set_result(None)
    watched.gate.set()
    async with asyncio.timeout(10):
        await came
    for piece in pieces[len(taken) :]:
        message.append(piece)
    await message.settled()
    assert b"".join(message.blocks()) == b"".join(pieces)
    assert b"".join([block async for block in message.read(100)]) == b"".join(pieces)[100:]
    message.close()
    budget.close()


async def test_i7_a_client_that_goes_while_the_disk_stands_still_leaves_nothing(
    watched: type[Watched],
) -> None:
    watched.gate.clear()
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        budget = running.relay.context.shared.budget
        before = budget.memory_bytes, budget.spool_bytes
        talk = await running.talk()
        await talk.begin()
        sending = asyncio.create_task(talk.send(LARGE))
        await until(lambda: budget.spool_bytes < before[1])
        sending.cancel()
        talk.reset()
        watched.gate.set()
        await running.empty()
        assert (budget.memory_bytes, budget.spool_bytes) == before


async def test_i7_a_full_disk_is_452_and_the_session_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(**_: object) -> IO[bytes]:
        return open("/dev/full", "wb", buffering=0)  # noqa: PTH123 - the spool's

    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, bare_newline=BareNewlines.REJECT) as running,
    ):
        talk = await running.talk()
        with monkeypatch.context() as patch:
            patch.setattr(tempfile, "TemporaryFile", full)
            assert (await talk.deliver(LARGE)).startswith(b"452 4.3.1 ")
        assert (await talk.deliver(LARGE, hello=b"")).startswith(b"250 ")
