"""Hostile clients of the HTTP listener: broken requests, and very many of them."""

import asyncio
from pathlib import Path

from tests.fakes import SPAM, FakeInspector
from tests.listeners.web.broken import play
from tests.listeners.web.clients import MAIL, Running, request, running
from tests.memory import peak_bytes, settled_bytes
from tests.waiting import until

MIB = 2**20


def free(here: Running) -> bool:
    """Tell whether nobody is connected and nothing is held any more."""
    budget, options = here.shared.budget, here.shared.options
    now = budget.memory_bytes, budget.spool_bytes
    all_free = now == (options.memory_bytes, options.spool_bytes)
    connections = here.listener.connections
    return all_free and not connections.connections and not connections.tasks


async def test_broken_requests_are_answered_or_ended_and_nothing_stays_of_them(
    tmp_path: Path,
) -> None:
    async with running(FakeInspector(SPAM), address=f"unix:{tmp_path}/s") as here:
        said = await play(here, 500, seed=1)
        await until(lambda: free(here))
        assert (await here.get("/ping")).status == 200
    assert sum(said.values()) == 500
    assert {line.split(" ")[0] for line in said} <= {"HTTP/1.1", "RSPAMD/1.3", ""}
    assert not here.observer.faults


async def test_very_many_slow_clients_cost_little_and_others_are_served() -> None:
    many = 500
    kinds = (
        b"POST /checkv2 HTTP/1.1\r\n",
        request("/checkv2", MAIL, [f"X-{n}: {'x' * 50}" for n in range(900)])[:-5],
        request("/checkv2", MAIL * 10_000)[:-5],
    )
    async with running(FakeInspector(SPAM), spool_above_bytes=100_000) as here:
        await here.post("/checkv2")
        before = settled_bytes()
        slow = [await here.connect() for _ in range(many)]
        for number, (_, writer) in enumerate(slow):
            writer.write(kinds[number % len(kinds)])
        await until(lambda: len(here.listener.connections.tasks) > many // 2)
        answers = await asyncio.gather(*(here.post("/checkv2") for _ in range(20)))
        assert {answer.json["action"] for answer in answers} == {"add header"}
        assert peak_bytes() - before < 250 * MIB  # both ends of all connections are in here
        for _, writer in slow:
            writer.close()
        await until(lambda: free(here))
