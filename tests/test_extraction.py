"""Large messages: a fair queue, processes that can be stopped; small ones never wait."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from spamd.bayes.decision import DecisionOptions, Verdict
from spamd.bayes.model import BayesOptions, Model
from spamd.errors import Overloaded
from spamd.extraction.extractor import WORKERS, Extractor
from spamd.extraction.fair_queue import VERY_LARGE_BYTES, FairQueue, network_of
from spamd.extraction.worker import START_BYTES, hurried
from spamd.message.envelope import Client, Envelope
from spamd.message.facts import SCHEMA
from spamd.message.features import extract
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.report import ScanReport
from spamd.scanning import INLINE_BYTES, Scanner, ScanningInspector
from tests.fakes import FakeClock, FakeObserver
from tests.hostile import MULTIPART
from tests.relay.peers import ScriptedNextHop, relay

LARGE = b"Subject: large\n\n" + b"".join(b"word%d and more " % place for place in range(3_000))
PAGES = MULTIPART + (b"--b\nContent-Type: text/html\n\n" + b"<p>" * 2_800 + b"\n") * 10
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


async def test_k2_a_worker_finds_what_a_scan_here_finds() -> None:
    async with extractor() as made:
        found = await made.extract(giving(LARGE), len(LARGE), "192.0.2.1")
        again = await made.extract(giving(LARGE), len(LARGE), "192.0.2.1")
    here = extract(LARGE, arriving=True)
    assert list(found.texts) == list(here.texts)
    assert found.sample.ids.tolist() == here.sample.ids.tolist()
    assert found.sample.continuous.tolist() == here.sample.continuous.tolist()
    assert (found.digest, found.defects) == (here.digest, here.defects)
    assert found.digest == again.digest
    assert len(found.texts.words) <= 2 * len(found.texts)


async def test_k2_a_scan_that_takes_too_long_is_stopped_and_the_next_one_gets_another_worker() -> (
    None
):
    async with extractor(work_s=0.0) as made:
        with pytest.raises(Overloaded, match="too long"):
            await made.extract(giving(LARGE), len(LARGE), "192.0.2.1")
        made._work_s = ENDLESS_S
        assert (await made.extract(giving(LARGE), len(LARGE), "192.0.2.1")).digest


async def test_k2_a_cancelled_scan_frees_its_place() -> None:
    async with extractor() as made:
        for _ in range(WORKERS + 1):
            task = asyncio.create_task(made.extract(giving(LARGE), len(LARGE), "192.0.2.1"))
            await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        assert made.queue.free == WORKERS
        assert (await made.extract(giving(LARGE), len(LARGE), "192.0.2.1")).digest


async def test_k2_a_worker_that_died_is_named_and_replaced() -> None:
    async with extractor() as made:
        await made.extract(giving(LARGE), len(LARGE), "192.0.2.1")
        (worker,) = made.idle
        os.kill(worker.pid, signal.SIGKILL)
        await worker.ended()
        with pytest.raises(Overloaded, match="ended"):
            await made.extract(giving(LARGE), len(LARGE), "192.0.2.1")
        assert (await made.extract(giving(LARGE), len(LARGE), "192.0.2.1")).digest


async def test_k2_a_worker_without_work_ends() -> None:
    async with extractor() as made:
        await made.extract(giving(LARGE), len(LARGE), "192.0.2.1")
        (worker,) = made.idle
        made.retire(worker)
        await worker.ended()
        assert made.idle == []


# Whose turn it is


async def served(queue: FairQueue, wanted: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Let mails (client, size) wait for one place; return them in the order of their queue."""
    order: list[tuple[str, int]] = []

    async def come(client: str, size: int) -> None:
        async with queue.worker(client, size, ENDLESS_S):
            order.append((client, size))

    async with asyncio.TaskGroup() as group, queue.worker("192.0.2.7", 1, ENDLESS_S):
        for client, size in wanted:
            group.create_task(come(client, size))
        await asyncio.sleep(0)
    return order


async def test_k2_who_has_used_much_lets_others_go_first() -> None:
    queue = FairQueue(1)
    queue.charge("192.0.2.1", 5.0)
    other = ("192.0.2.9", 500_000)
    order = await served(queue, [*[("192.0.2.1", 100_000)] * 50, other])
    assert order[0] == other


async def test_k2_of_one_client_the_smaller_mail_goes_first() -> None:
    sizes = [400_000, 300_000, 40_000]
    order = await served(FairQueue(1), [("192.0.2.1", size) for size in sizes])
    assert [size for _, size in order] == sorted(sizes)


async def test_k2_very_large_mail_leaves_a_place_to_other_mail() -> None:
    queue = FairQueue(2)
    large = VERY_LARGE_BYTES + 1
    async with queue.worker("192.0.2.1", large, ENDLESS_S):
        with pytest.raises(Overloaded):
            async with queue.worker("192.0.2.2", large, 0.0):
                pass
        async with queue.worker("192.0.2.3", VERY_LARGE_BYTES, ENDLESS_S):
            pass
    async with queue.worker("192.0.2.2", large, ENDLESS_S):
        assert queue.free == 1


async def test_k2_no_place_is_lost_when_waiting_ends() -> None:
    queue = FairQueue(1)
    for wait_s in (0.0, 0.0, 0.0):
        async with queue.worker("192.0.2.1", 1, ENDLESS_S):
            with pytest.raises(Overloaded, match="free in time"):
                async with queue.worker("192.0.2.2", 1, wait_s):
                    pass
    assert queue.free == 1
    assert queue.waiting == 0


async def test_k2_the_clients_that_are_remembered_are_bounded() -> None:
    queue = FairQueue(1)
    for number in range(10_000):
        queue.charge(f"2001:db8::{number}", 1.0)
    assert queue.clients <= 4_096


def test_k2_a_network_of_ipv6_is_one_client() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::2") != network_of("2001:db8:1::1")
    assert network_of("192.0.2.1") != network_of("192.0.2.2")
    assert network_of("unix socket") == "unix socket"


# What the relay gets


async def test_k2_small_mail_never_waits_behind_large_mail() -> None:
    async with extractor() as made:
        judge = inspector(made)
        async with made.queue.worker("a", 1, ENDLESS_S), made.queue.worker("b", 1, ENDLESS_S):
            large = asyncio.create_task(judge.inspect(giving(LARGE), len(LARGE), ENVELOPE, bytes))
            await asyncio.sleep(0)
            small = LARGE[:INLINE_BYTES]
            report = (await judge.inspect(giving(small), len(small), ENVELOPE, bytes)).site
            assert report.probability is not None
            assert not large.done()
        assert (await large).site.probability is not None


async def test_k2_a_mail_is_read_when_its_turn_has_come_and_not_before() -> None:
    reads: list[int] = []

    def read() -> bytes:
        reads.append(1)
        return LARGE

    async with extractor() as made:
        judge = inspector(made)
        async with made.queue.worker("a", 1, ENDLESS_S), made.queue.worker("b", 1, ENDLESS_S):
            waiting = [
                asyncio.create_task(judge.inspect(read, len(LARGE), ENVELOPE, bytes))
                for _ in range(5)
            ]
            await asyncio.sleep(0)
            assert reads == []
        for task in waiting:
            await task
    assert len(reads) == 5


async def test_k2_large_mail_without_a_turn_is_judged_by_its_start() -> None:
    observer = FakeObserver()
    async with (
        extractor(wait_s=0.0) as made,
        made.queue.worker("a", 1, ENDLESS_S),
        made.queue.worker("b", 1, ENDLESS_S),
    ):
        judge = inspector(made, observer)
        report = (await judge.inspect(giving(LARGE), len(LARGE), ENVELOPE, bytes)).site
    assert report.verdict is not Verdict.UNSCANNED
    assert report.features is not None
    assert "message cut" in report.features.defects
    words = set(report.features.texts)
    assert "word0" in words
    assert f"word{START_BYTES // 10}" not in words
    assert report.features.size_bytes == len(LARGE)
    assert [event for event, _ in observer.faults] == ["message.overloaded"]


async def test_k2_a_worker_finds_in_a_start_what_is_found_here() -> None:
    content = LARGE.replace(b" ", b"\r\n")
    async with extractor() as made:
        found = await made.extract_start(giving(content), "192.0.2.1")
        assert len(made.idle) == 1
    here = extract(content, hurried(TokenizerOptions()), arriving=True)
    assert list(found.texts) == list(here.texts)
    assert found.sample.continuous.tolist() == here.sample.continuous.tolist()
    assert (found.digest, found.defects) == (here.digest, here.defects)
    assert found.size_bytes == here.size_bytes == len(content)


async def test_k2_many_starts_at_once_leave_the_event_loop_to_others() -> None:
    began = time.thread_time()
    extract(PAGES, hurried(TokenizerOptions()), arriving=True)
    one_here_s = time.thread_time() - began
    async with extractor() as made:
        await made.extract_start(giving(PAGES), "192.0.2.1")
        began = time.thread_time()
        async with asyncio.TaskGroup() as group:
            for _ in range(20):
                group.create_task(made.extract_start(giving(PAGES), "192.0.2.1"))
        assert time.thread_time() - began < 20 * one_here_s / 3


async def test_k2_large_mail_without_a_turn_is_deferred_where_it_is_set_so() -> None:
    content = LARGE.replace(b"\n", b"\r\n") + b"\r\n"
    async with extractor(wait_s=0.0) as made, ScriptedNextHop() as hop:
        judge = inspector(made, defer=True)
        async with (
            relay(hop.url, real_inspector=judge) as running,
            made.queue.worker("a", 1, ENDLESS_S),
            made.queue.worker("b", 1, ENDLESS_S),
        ):
            talk = await running.talk()
            assert (await talk.deliver(content)).startswith(b"451 4.3.2")
            assert hop.messages == []
