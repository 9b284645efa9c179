"""Heavy mail: a fair queue, processes that can be stopped, and light mail that never waits."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from spamd.bayes.decision import DecisionOptions, Verdict
from spamd.bayes.model import BayesOptions, Model
from spamd.errors import Overloaded
from spamd.extraction.queue import HELPERS, VERY_HEAVY_BYTES, Extractor, Turns, network_of
from spamd.message.envelope import Client, Envelope
from spamd.message.facts import SCHEMA
from spamd.message.features import extract
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.report import ScanReport
from spamd.scanning import INLINE_BYTES, START_BYTES, Scanner, ScanningInspector
from tests.fakes import FakeClock, FakeObserver
from tests.relay.peers import ScriptedNextHop, relay

HEAVY = b"Subject: heavy\n\n" + b"".join(b"word%d and more " % place for place in range(3_000))
ENDLESS_S = 60.0
"""Longer than any test may take."""

CLIENT = Client(
    address="192.0.2.1", port=1, helo="a", name="", tls=False, login=None, protocol="ESMTP"
)
ENVELOPE = Envelope(sender=b"", recipients=(b"a@b.test",), client=CLIENT)


class Notes:
    """Keeps the reports."""

    def __init__(self) -> None:
        self.reports: list[ScanReport] = []

    def record(self, report: ScanReport) -> None:
        self.reports.append(report)


@asynccontextmanager
async def extractor(
    *, wait_s: float = ENDLESS_S, work_s: float = ENDLESS_S
) -> AsyncIterator[Extractor]:
    made = Extractor(TokenizerOptions(), wait_s=wait_s, work_s=work_s)
    try:
        yield made
    finally:
        await made.close()


def inspector(
    made: Extractor, observer: FakeObserver | None = None, *, defer: bool = False
) -> ScanningInspector:
    scanner = Scanner(
        model=lambda: Model.empty(SCHEMA, BayesOptions()),
        decision=DecisionOptions(),
        tokenizer=TokenizerOptions(),
        clock=FakeClock(),
        key=b"0123456789abcdef",
        random=os.urandom,
    )
    told = observer or FakeObserver()
    return ScanningInspector(scanner, made, FakeClock(), Notes(), told, defer=defer)


def giving(content: bytes) -> Callable[[], bytes]:
    return lambda: content


async def test_k2_a_helper_finds_what_a_scan_here_finds() -> None:
    async with extractor() as made:
        found = await made.extract(giving(HEAVY), len(HEAVY), "192.0.2.1")
        again = await made.extract(giving(HEAVY), len(HEAVY), "192.0.2.1")
    here = extract(HEAVY, arriving=True)
    assert list(found.texts) == list(here.texts)
    assert found.sample.ids.tolist() == here.sample.ids.tolist()
    assert found.sample.continuous.tolist() == here.sample.continuous.tolist()
    assert (found.digest, found.defects) == (here.digest, here.defects)
    assert found.digest == again.digest
    assert len(found.texts.words) <= 2 * len(found.texts)


async def test_k2_a_scan_that_takes_too_long_is_stopped_and_the_next_one_gets_another_helper() -> (
    None
):
    async with extractor(work_s=0.0) as made:
        with pytest.raises(Overloaded, match="too long"):
            await made.extract(giving(HEAVY), len(HEAVY), "192.0.2.1")
        made._work_s = ENDLESS_S
        assert (await made.extract(giving(HEAVY), len(HEAVY), "192.0.2.1")).digest


async def test_k2_a_cancelled_scan_frees_its_place() -> None:
    async with extractor() as made:
        for _ in range(HELPERS + 1):
            task = asyncio.create_task(made.extract(giving(HEAVY), len(HEAVY), "192.0.2.1"))
            await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        assert made._turns._free == HELPERS
        assert (await made.extract(giving(HEAVY), len(HEAVY), "192.0.2.1")).digest


async def test_k2_a_helper_that_died_is_named_and_replaced() -> None:
    async with extractor() as made:
        await made.extract(giving(HEAVY), len(HEAVY), "192.0.2.1")
        (helper,) = made._idle
        helper._process.kill()
        await helper.ended()
        with pytest.raises(Overloaded, match="ended"):
            await made.extract(giving(HEAVY), len(HEAVY), "192.0.2.1")
        assert (await made.extract(giving(HEAVY), len(HEAVY), "192.0.2.1")).digest


async def test_k2_a_helper_without_work_ends() -> None:
    async with extractor() as made:
        await made.extract(giving(HEAVY), len(HEAVY), "192.0.2.1")
        (helper,) = made._idle
        made._retire(helper)
        await helper.ended()
        assert made._idle == []


# Whose turn it is


async def served(turns: Turns, wanted: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Let mails (client, size) wait for one place; return them in the order of their turns."""
    order: list[tuple[str, int]] = []

    async def come(client: str, size: int) -> None:
        async with turns.of(client, size, ENDLESS_S):
            order.append((client, size))

    async with asyncio.TaskGroup() as group, turns.of("192.0.2.7", 1, ENDLESS_S):
        for client, size in wanted:
            group.create_task(come(client, size))
        await asyncio.sleep(0)
    return order


async def test_k2_who_has_used_much_lets_others_go_first() -> None:
    turns = Turns(1)
    turns._charge("192.0.2.1", 5.0)
    other = ("192.0.2.9", 500_000)
    order = await served(turns, [*[("192.0.2.1", 100_000)] * 50, other])
    assert order[0] == other


async def test_k2_of_one_client_the_smaller_mail_goes_first() -> None:
    sizes = [400_000, 300_000, 40_000]
    order = await served(Turns(1), [("192.0.2.1", size) for size in sizes])
    assert [size for _, size in order] == sorted(sizes)


async def test_k2_very_heavy_mail_leaves_a_place_to_other_mail() -> None:
    turns = Turns(2)
    heavy = VERY_HEAVY_BYTES + 1
    async with turns.of("192.0.2.1", heavy, ENDLESS_S):
        with pytest.raises(Overloaded):
            async with turns.of("192.0.2.2", heavy, 0.0):
                pass
        async with turns.of("192.0.2.3", VERY_HEAVY_BYTES, ENDLESS_S):
            pass
    async with turns.of("192.0.2.2", heavy, ENDLESS_S):
        assert turns._free == 1


async def test_k2_no_place_is_lost_when_waiting_ends() -> None:
    turns = Turns(1)
    for wait_s in (0.0, 0.0, 0.0):
        async with turns.of("192.0.2.1", 1, ENDLESS_S):
            with pytest.raises(Overloaded, match="free in time"):
                async with turns.of("192.0.2.2", 1, wait_s):
                    pass
    assert turns._free == 1
    assert turns._waiting == []


async def test_k2_the_clients_that_are_remembered_are_bounded() -> None:
    turns = Turns(1)
    for number in range(10_000):
        turns._charge(f"2001:db8::{number}", 1.0)
    assert len(turns._used) <= 4_096


def test_k2_a_network_of_ipv6_is_one_client() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::2") != network_of("2001:db8:1::1")
    assert network_of("192.0.2.1") != network_of("192.0.2.2")
    assert network_of("unix socket") == "unix socket"


# What the relay gets


async def test_k2_light_mail_never_waits_behind_heavy_mail() -> None:
    async with extractor() as made:
        judge = inspector(made)
        async with made._turns.of("a", 1, ENDLESS_S), made._turns.of("b", 1, ENDLESS_S):
            heavy = asyncio.create_task(judge.inspect(giving(HEAVY), len(HEAVY), ENVELOPE, bytes))
            await asyncio.sleep(0)
            light = HEAVY[:INLINE_BYTES]
            report = await judge.inspect(giving(light), len(light), ENVELOPE, bytes)
            assert report.probability is not None
            assert not heavy.done()
        assert (await heavy).probability is not None


async def test_k2_a_mail_is_read_when_its_turn_has_come_and_not_before() -> None:
    reads: list[int] = []

    def read() -> bytes:
        reads.append(1)
        return HEAVY

    async with extractor() as made:
        judge = inspector(made)
        async with made._turns.of("a", 1, ENDLESS_S), made._turns.of("b", 1, ENDLESS_S):
            waiting = [
                asyncio.create_task(judge.inspect(read, len(HEAVY), ENVELOPE, bytes))
                for _ in range(5)
            ]
            await asyncio.sleep(0)
            assert reads == []
        for task in waiting:
            await task
    assert len(reads) == 5


async def test_k2_heavy_mail_without_a_turn_is_judged_by_its_start() -> None:
    observer = FakeObserver()
    async with (
        extractor(wait_s=0.0) as made,
        made._turns.of("a", 1, ENDLESS_S),
        made._turns.of("b", 1, ENDLESS_S),
    ):
        report = await inspector(made, observer).inspect(giving(HEAVY), len(HEAVY), ENVELOPE, bytes)
    assert report.verdict is not Verdict.UNSCANNED
    assert report.features is not None
    assert "message cut" in report.features.defects
    words = set(report.features.texts)
    assert "word0" in words
    assert f"word{START_BYTES // 10}" not in words
    assert report.features.size_bytes == len(HEAVY)
    assert [event for event, _ in observer.faults] == ["message.overloaded"]


async def test_k2_heavy_mail_without_a_turn_is_deferred_where_it_is_set_so() -> None:
    content = HEAVY.replace(b"\n", b"\r\n") + b"\r\n"
    async with extractor(wait_s=0.0) as made, ScriptedNextHop() as hop:
        judge = inspector(made, defer=True)
        async with (
            relay(hop.url, real_inspector=judge) as running,
            made._turns.of("a", 1, ENDLESS_S),
            made._turns.of("b", 1, ENDLESS_S),
        ):
            talk = await running.talk()
            assert (await talk.deliver(content)).startswith(b"451 4.3.2")
            assert hop.messages == []
