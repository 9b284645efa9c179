"""Load with faults: what was accepted is delivered, whatever dies on the way."""

import asyncio
import os
import random
import signal
from contextlib import suppress

import pytest

from tests.e2e.relay_daemon import Spamd
from tests.relay.faulty_next_hop import Clients, FaultyNextHop, agree
from tests.sizes import sized
from tests.test_daemon import supervised

MAILS = sized(1_200, 10_000)
KILLS = sized(4, 20)
CONNECTIONS = 50


@pytest.mark.timeout(1200)
async def test_thousands_of_mails_amid_faults_are_neither_lost_nor_changed() -> None:
    chance = random.Random(11)
    async with FaultyNextHop(fault_rate=0.02) as next_hop:  # noqa: SIM117 - the second needs it
        async with supervised(f"smtp://127.0.0.1:{next_hop.port}") as running:
            clients = Clients(running.port)
            over = asyncio.Event()

            async def stop_and_start_the_next_hop() -> None:
                while not over.is_set():
                    await asyncio.sleep(chance.uniform(1.0, 3.0))
                    await next_hop.stop()
                    await asyncio.sleep(chance.uniform(0.0, 0.5))
                    await next_hop.start()

            async def kill_workers() -> None:
                while not over.is_set():
                    await asyncio.sleep(chance.uniform(3.0, 8.0))
                    if running.supervisor.processes:
                        with suppress(ProcessLookupError):
                            os.kill(chance.choice(running.supervisor.processes), signal.SIGKILL)

            async with asyncio.TaskGroup() as group:
                group.create_task(stop_and_start_the_next_hop())
                group.create_task(kill_workers())
                await clients.send(range(MAILS), CONNECTIONS)
                over.set()
            assert len(clients.accepted) == MAILS
            agree(clients, next_hop)


@pytest.mark.timeout(1200)
async def test_smtp_c13_killed_at_random_moments_nothing_accepted_is_lost() -> None:
    chance = random.Random(13)
    async with FaultyNextHop() as next_hop:
        spamd = Spamd(f"smtp://127.0.0.1:{next_hop.port}", "relay.workers = 2")
        try:
            await asyncio.to_thread(spamd.start)
            clients = Clients(spamd.port)
            sending = asyncio.create_task(clients.send(range(KILLS * 150), 8))
            for moment in range(KILLS):
                await asyncio.sleep(chance.uniform(0.2, 1.5))
                workers = await asyncio.to_thread(spamd.workers)
                if moment % 4 == 3 or not workers:
                    await asyncio.to_thread(spamd.kill)  # all at once
                    await asyncio.to_thread(spamd.start)
                else:
                    with suppress(ProcessLookupError):
                        os.kill(chance.choice(workers), signal.SIGKILL)
            await sending
            agree(clients, next_hop)
            await asyncio.to_thread(spamd.stop)
            await asyncio.to_thread(spamd.run, "database", "verify")
        finally:
            await asyncio.to_thread(spamd.close)
