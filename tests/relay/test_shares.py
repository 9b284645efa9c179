"""What one client or network may hold of what all share: places, memory, disk, open files."""

import asyncio
import resource
import tracemalloc

import pytest

from spamd.network.connection_limiter import ConnectionLimiter
from spamd.network.spool import Budget, SpooledMessage
from spamd.relay.content.data import BdatReader
from spamd.relay.options import MIB, RelayOptions
from tests.relay.peers import MESSAGE, ScriptedNextHop, relay


def test_k13_one_network_has_no_more_places_than_its_share() -> None:
    limiter = ConnectionLimiter(
        RelayOptions(max_connections_per_client=2, max_connections_per_network=5)
    )
    slots = [limiter.acquire(f"192.0.2.{number // 2}") for number in range(6)]
    assert [slot is not None for slot in slots] == [True] * 5 + [False]
    assert limiter.acquire("192.0.3.1") is not None
    assert slots[0] is not None
    limiter.release(slots[0])
    assert limiter.acquire("192.0.2.200") is not None
    assert limiter.acquire("192.0.2.201") is None
    sites = [limiter.acquire(f"2001:db8:0:{number}::1") for number in range(6)]
    assert [site is not None for site in sites] == [True] * 5 + [False]
    assert limiter.acquire("2001:db8:1::1") is not None


def test_k13_who_was_refused_is_not_remembered() -> None:
    limiter = ConnectionLimiter(RelayOptions(max_connections_per_network=1))
    slot = limiter.acquire("192.0.2.1")
    assert slot is not None
    for number in range(2, 200):
        assert limiter.acquire(f"192.0.2.{number}") is None
    limiter.release(slot)
    assert not limiter._open


def test_k13_a_network_holds_its_share_of_memory_and_disk_and_no_more() -> None:
    budget = Budget(
        memory_bytes=1_000, spool_bytes=10_000, spool_above_bytes=200, client_share=0.25
    )
    letters = [SpooledMessage(budget.share("192.0.2")) for _ in range(30)]
    held = 0
    for message in letters:
        try:
            message.append(b"x" * 100)
        except Exception:  # noqa: BLE001 - full
            break
        held += 100
    assert held == 250 // 100 * 100 + 2_500
    other = SpooledMessage(budget.share("198.51.100"))
    other.append(b"x" * 200)
    assert not other.spooled
    for message in (*letters, other):
        message.close()
    assert (budget.memory_bytes, budget.spool_bytes) == (1_000, 10_000)
    del letters, message, other
    assert len(budget._shares) == 0


def test_k13_a_share_holds_one_message_however_small_it_is() -> None:
    budget = Budget(
        memory_bytes=100,
        spool_bytes=1_000,
        spool_above_bytes=10,
        client_share=0.01,
        max_message_bytes=900,
    )
    message = SpooledMessage(budget.share("192.0.2"))
    message.append(b"x" * 900)
    message.close()


async def test_k13_one_network_does_not_fill_the_spool_of_the_others() -> None:
    options = {
        "memory_bytes": 4_000,
        "spool_above_bytes": 1_000,
        "max_message_bytes": 100_000,
        "spool_bytes": 400_000,
        "trusted_networks": ("127.0.0.0/8",),
    }
    async with ScriptedNextHop() as hop, relay(hop.url, **options) as running:  # type: ignore[arg-type]  # options of the relay
        answers = []
        for address in (b"192.0.2.1", b"192.0.2.2", b"198.51.100.1"):
            talk = await running.talk()
            assert (await talk.say(b"XCLIENT ADDR=" + address)).startswith(b"220 ")
            await talk.begin()
            await talk.send(b"Subject: large\r\n\r\n" + b"x" * 76_000 + b"\r\n")
            answers.append(talk)
        for talk in reversed(answers):  # nobody has ended while the others begin
            await talk.send(b".\r\n")
        codes = [(await talk.reply())[:3] for talk in answers]
        assert sorted(codes) == [b"250", b"250", b"452"]
        assert codes[2] == b"250"
        assert (await (await running.talk()).deliver()).startswith(b"250 ")


def test_k13_chunks_of_two_octets_take_about_their_size() -> None:
    budget = Budget(memory_bytes=MIB, spool_bytes=MIB, spool_above_bytes=MIB)
    reader = BdatReader(budget.share(""), MIB)
    tracemalloc.start()
    try:
        for _ in range(100_000):
            reader.feed(b"xy")
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 2 * 200_000
    reader.last()
    assert reader.message.whole() == b"xy" * 100_000 + b"\r\n"
    reader.close()


def test_k13_no_more_connections_are_let_in_than_files_can_be_open() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 400), hard))
    try:
        assert ConnectionLimiter(RelayOptions()).max_connections == 100
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_k13_the_log_says_when_fewer_connections_are_possible() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 400), hard))
    try:
        async with ScriptedNextHop() as hop, relay(hop.url) as running:
            assert running.observer.events == [
                ("connections.limited", {"allowed": 100, "wanted": 1000})
            ]
            assert (await (await running.talk()).deliver(MESSAGE)).startswith(b"250 ")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("blocks", [1, 1_000])
async def test_k13_memory_is_given_back_by_a_client_that_goes_in_the_middle(blocks: int) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        budget = running.relay.context.shared.budget
        before = budget.memory_bytes, budget.spool_bytes
        talk = await running.talk()
        await talk.begin()
        for _ in range(blocks):
            await talk.send(b"words and words\r\n" * 100)
            await asyncio.sleep(0)
        talk.reset()
        await running.empty()
        assert (budget.memory_bytes, budget.spool_bytes) == before
