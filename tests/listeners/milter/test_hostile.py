"""Servers that keep to nothing, are slow, or are very many: nobody else suffers."""

import asyncio
import struct
from pathlib import Path

from spamd.listeners.milter.options import MilterOptions
from spamd.listeners.milter.packets import LONGEST
from spamd.listeners.milter.session import Session
from tests.fakes import SPAM, FakeInspector
from tests.listeners.milter.hostile import Written, connection_of, fuzz, stream
from tests.listeners.milter.mta import frame, listening
from tests.waiting import until

HEADER = [(b"Subject", b" x")]


async def test_whatever_comes_the_answers_are_whole_and_nothing_is_kept() -> None:
    assert await fuzz(range(300)) > 1_000


async def test_hundreds_of_silent_and_slow_servers_keep_nobody_out() -> None:
    async with listening(FakeInspector(SPAM)) as running:
        crowd = [await running.mta(None) for _ in range(500)]
        for number, mta in enumerate(crowd):
            mta.writer.write(stream(number)[: number % 60])
        outcome = await running.message(HEADER)
        assert outcome.verdict == b"c"
        assert b"X-Spam-Flag" in outcome.ours


async def test_long_packets_that_do_not_end_take_no_more_memory_than_there_is() -> None:
    async with listening(memory_bytes=8 * LONGEST) as running:
        for _ in range(20):
            mta = await running.mta()
            mta.writer.write(struct.pack("!I", LONGEST) + b"B" + b"x" * 100_000)
        await until(lambda: len(running.observer.faults) == 20 - 8)
        assert {type(fault).__name__ for _, fault in running.observer.faults} == {"Overloaded"}
        assert (await running.message(HEADER)).verdict == b"c"


class Stuck(Written):
    """A server that reads no answers."""

    async def drain(self) -> None:
        await asyncio.Event().wait()


async def test_a_server_that_reads_no_answers_is_not_waited_for() -> None:
    async with listening(data_timeout_s=0.05) as running:
        reader = asyncio.StreamReader()
        connection = connection_of(reader, Stuck(), running.shared)
        reader.feed_data(stream(1))
        async with asyncio.timeout(10):
            await Session(connection, running.shared, MilterOptions(), lambda: False).run()
        connection.time_limit.stop()


async def test_a_flood_of_tiny_fields_lets_others_through_and_is_refused(tmp_path: Path) -> None:
    inspector = FakeInspector(SPAM)
    inspector.reads_bytes = 400_000
    async with listening(inspector, spool_directory=str(tmp_path)) as running:
        mta = await running.mta()
        await mta.envelope()
        mta.writer.write(frame(b"L", b"a\0b\0") * 101_000)
        assert (await running.message(HEADER)).verdict == b"c"
        mta.writer.write(frame(b"N") + frame(b"E"))
        command, data = await mta.answer()
        assert (command, data) == (b"y", b"552 5.3.4 Message header too large\0")
