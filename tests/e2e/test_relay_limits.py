"""Limits under pressure: documented codes, bounded memory, others served meanwhile."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from statistics import quantiles

import pytest

from tests.memory import forget_peak, peak_bytes
from tests.relay.faulty_next_hop import Clients, FaultyNextHop, agree
from tests.relay.peers import MESSAGE, ScriptedNextHop, Talk
from tests.test_daemon import Running, supervised
from tests.waiting import until

MIB = 2**20


@pytest.fixture
async def hop() -> AsyncIterator[ScriptedNextHop]:
    async with ScriptedNextHop() as started:
        yield started


def worker(running: Running) -> int:
    """Return the process id of the only worker."""
    (found,) = running.supervisor.processes
    return found


async def latencies(port: int, count: int) -> list[float]:
    """Return how long each of so many mails of one client took."""
    loop = asyncio.get_running_loop()
    talk = await Talk.to(port)
    await talk.say(b"EHLO quick.test")
    found = []
    for _ in range(count):
        started = loop.time()
        assert (await talk.deliver(hello=b"")).startswith(b"250 ")
        found.append(loop.time() - started)
    await talk.close()
    return found


def p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98]


async def test_ten_messages_of_50_mib_stay_within_the_budget(hop: ScriptedNextHop) -> None:
    async with supervised(hop.url, workers=1) as running:
        rest = forget_peak(worker(running))
        body = b"Subject: big\r\n\r\n" + (b"x" * 76 + b"\r\n") * 13_000

        async def send_one() -> None:
            talk = await Talk.to(running.port)
            await talk.begin()
            for _ in range(49):
                talk.writer.write(body)
                async with asyncio.timeout(120):
                    await talk.writer.drain()
            talk.writer.write(b".\r\n")
            async with asyncio.timeout(120):
                answer = await talk.reader.readline()
            assert answer.startswith(b"250 "), answer
            hop.messages.clear()
            await talk.close()

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(send_one()) for _ in range(10)]
        assert len(tasks) == len(hop.envelopes) == 10
        # 64 MiB of `relay.memory_bytes`, and per session a block at each end.
        assert peak_bytes(worker(running)) - rest < (64 + 10 * 4 + 32) * MIB


async def test_a_message_above_the_limit_is_552_and_costs_no_memory(hop: ScriptedNextHop) -> None:
    async with supervised(hop.url, workers=1) as running:
        rest = forget_peak(worker(running))
        talk = await Talk.to(running.port)
        await talk.begin()
        block = (b"x" * 76 + b"\r\n") * 13_000
        for _ in range(60):
            await talk.send(block)
        await talk.send(b".\r\n")
        async with asyncio.timeout(60):
            assert (await talk.reader.readline()).startswith(b"552 5.3.4 ")
        assert peak_bytes(worker(running)) - rest < 32 * MIB
        assert hop.messages == []
        await talk.close()


async def test_a_thousand_recipients_and_not_one_more(hop: ScriptedNextHop) -> None:
    async with supervised(hop.url, workers=1) as running:
        talk = await Talk.to(running.port)
        await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>")
        await talk.send(b"".join(b"RCPT TO:<r%d@y.test>\r\n" % number for number in range(1001)))
        answers = [await talk.reply() for _ in range(1001)]
        assert {answer[:3] for answer in answers[:1000]} == {b"250"}
        assert answers[1000].startswith(b"452 4.5.3 ")
        assert (await talk.say(b"DATA")).startswith(b"354")
        await talk.send(MESSAGE + b".\r\n")
        assert (await talk.reply()).startswith(b"250 ")
        assert len(hop.envelopes[0][1]) == 1000
        await talk.close()


async def test_idle_and_slow_connections_leave_room_and_time_for_others(
    hop: ScriptedNextHop,
) -> None:
    async with supervised(hop.url, workers=1) as running:
        quiet = await latencies(running.port, 200)
        idle: list[Talk] = []
        refused = 0
        for _ in range(1000):
            talk = await Talk.to(running.port, greeting=False)
            greeting = await talk.reply()
            if greeting.startswith(b"421 4.7.0 "):
                refused += 1
                await talk.close()
            else:
                idle.append(talk)
            if len(idle) == 90 and refused == 0:
                # ten places are left of the hundred of one client: they drip a byte at a time
                for dripping in idle[:20]:
                    await dripping.begin()
        assert (len(idle), refused) == (100, 900)
        await idle.pop().close()
        drip = asyncio.create_task(_drip(idle[:20]))
        busy = await latencies(running.port, 200)
        drip.cancel()
        with suppress(asyncio.CancelledError):
            await drip
        for talk in idle:
            await talk.close()
        # Twice the quiet value, with a floor below which a busy machine's scheduler decides.
        assert p99(busy) < max(2 * p99(quiet), 0.5)


async def _drip(talks: list[Talk]) -> None:
    while True:
        for talk in talks:
            await talk.send(b"x")
        await asyncio.sleep(0.05)


async def test_sighup_under_load_drops_no_session() -> None:
    async with FaultyNextHop() as next_hop:  # noqa: SIM117 - the second needs it
        async with supervised(f"smtp://127.0.0.1:{next_hop.port}") as running:
            clients = Clients(running.port)
            before = set(running.supervisor.processes)
            sending = asyncio.create_task(clients.send(range(600), 10))
            os.kill(os.getpid(), signal.SIGHUP)
            await until(lambda: not before & set(running.supervisor.processes))
            await sending
            agree(clients, next_hop)
            assert set(clients.accepted) == set(range(600))
            assert clients.uncertain == set()
            assert max(next_hop.received.values()) == 1
