"""Connections: how requests are cut, how long they may take, and how they end."""

import asyncio
import itertools
import re
import socket

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spamd.listeners.web.protocol import HEAD_BYTES, HEAD_FIELDS
from tests.fakes import SPAM, FakeInspector
from tests.listeners.web.clients import MAIL, answers, chunked, request, running
from tests.waiting import until

RSPAMC = (
    b"CHECK RSPAMC/1.3\r\nContent-length: %d\r\nQueue-Id: 1abc\r\nFrom: <a@x.test>\r\n"
    b"Recipient-Number: 1\r\nRcpt: <b@y.test>\r\nHelo: x.test\r\nIP: 192.0.2.1\r\n\r\n"
)
"""As Exim 4.96 sends it; no test of ours may stand for Exim: tests/e2e."""

EXIM_MAIL = b"From a@x.test Sat Nov 28 10:00:00 2026\n" + MAIL


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes long takes a moment."""
    monkeypatch.setattr("spamd.listeners.web.protocol.HEAD_S", 0.05)
    monkeypatch.setattr("spamd.listeners.web.protocol.LINGER_S", 0.05)


REQUESTS = {
    "with a length": request("/checkv2", MAIL, ["Rcpt: b@y.test", "From: a@x.test"]),
    "in chunks": chunked("/checkv2", [MAIL[:7], MAIL[7:9], MAIL[9:]], ["Rcpt: b@y.test"]),
    "two at once": request("/checkv2", MAIL, last=False) + request("/checkv2", MAIL + b"x"),
    "broken": request("/checkv2", MAIL, ["Bad field: 1"]),
    "broken chunks": chunked("/checkv2", [MAIL]).replace(b"\r\n0\r\n", b"\r\nzz\r\n"),
    "of another protocol": RSPAMC % len(EXIM_MAIL) + EXIM_MAIL,
}


@pytest.mark.parametrize("kind", REQUESTS)
async def test_any_cut_of_a_request_gives_the_same(kind: str) -> None:
    raw = REQUESTS[kind]
    dated = re.compile(rb"date: [^\r]*\r\n")
    async with running(FakeInspector(SPAM)) as here:
        whole = dated.sub(b"", await here.ask(raw))
        octets = dated.sub(b"", await here.ask(*(raw[at : at + 1] for at in range(len(raw)))))
        halves = {dated.sub(b"", await here.ask(raw[:at], raw[at:])) for at in range(1, 60, 7)}
        seen = {content for content, _ in here.inspector.seen}
    assert {whole, octets} | halves == {whole}
    assert seen <= {MAIL, MAIL + b"x", EXIM_MAIL}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    cuts=st.lists(st.integers(1, 400), max_size=12, unique=True),
    kind=st.sampled_from(sorted(REQUESTS)),
)
async def test_random_cuts_give_the_same(cuts: list[int], kind: str) -> None:
    raw = REQUESTS[kind]
    places = [0, *sorted(cuts), len(raw)]
    pieces = [raw[start:end] for start, end in itertools.pairwise(places)]
    dated = re.compile(rb"date: [^\r]*\r\n")
    async with running(FakeInspector(SPAM)) as here:
        whole = await here.ask(raw)
        cut = await here.ask(*filter(None, pieces))
    assert dated.sub(b"", whole) == dated.sub(b"", cut)


async def test_the_protocol_before_http_is_answered_in_its_own_form_and_closed() -> None:
    async with running(FakeInspector(SPAM)) as here:
        raw = await here.ask(RSPAMC % len(EXIM_MAIL) + EXIM_MAIL)
    assert raw == (
        b"RSPAMD/1.3 0 EX_OK\r\nMetric: default; True; 9.70 / 5.00 / 0.0\r\n"
        b"Action: add header\r\nMessage-ID: 1@x.test\r\n\r\n"
    )
    ((content, envelope),) = here.inspector.seen
    assert content == EXIM_MAIL
    assert (envelope.sender, envelope.recipients) == (b"a@x.test", (b"b@y.test",))
    assert envelope.client.address == "192.0.2.1"


@pytest.mark.parametrize(
    "raw",
    [
        b"CHECK RSPAMC/1.3\r\nFrom: a\r\n\r\n",
        b"CHECK RSPAMC/1.3\r\nno field\r\n\r\n",
        b"CHECK RSPAMC/1.3\r\nContent-length: 999999999999\r\n\r\n",
    ],
)
async def test_a_fault_in_the_protocol_before_http_is_answered_in_its_own_form(raw: bytes) -> None:
    async with running() as here:
        answer = await here.ask(raw)
    assert answer.startswith(b"RSPAMD/1.3 76 ")


@pytest.mark.parametrize(
    "raw",
    [
        b"CHECK RSPAMC/" + b"1" * 100 + b"\r\n\r\n",
        b"CHECK SPAMC/1.5\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
        b"EHLO x.test\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET http://[/ HTTP/1.1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\n\r\n",
        b"POST /checkv2 HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        (
            b"POST /checkv2 HTTP/1.1\r\nContent-Length: 1\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        ),
        b"POST /checkv2 HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /checkv2 HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        (
            b"POST /checkv2 HTTP/1.1\r\nUpgrade: h2c\r\nConnection: upgrade\r\n"
            b"Content-Length: 5\r\n\r\nhello"
        ),
    ],
)
async def test_what_is_no_request_is_refused_and_closed(raw: bytes) -> None:
    async with running() as here:
        answer = await here.ask(raw)
        assert (await here.get("/ping")).status == 200
    assert answer.startswith(b"HTTP/1.1 4")
    assert not here.inspector.seen
    assert not here.observer.faults


async def test_a_head_is_bounded_in_octets_and_fields() -> None:
    long = request("/ping", None, ["X: " + "x" * 2 * HEAD_BYTES], method="GET")
    many = request("/ping", None, ["X: x"] * (HEAD_FIELDS + 1), method="GET")
    enough = request("/ping", None, [f"Rcpt: {'r' * 50}@y.test"] * 1000, method="GET")
    async with running() as here:
        assert (await here.ask(long)).startswith(b"HTTP/1.1 431 ")
        assert (await here.ask(many)).startswith(b"HTTP/1.1 400 ")
        assert (await here.ask(enough)).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "flood",
    [
        b"1;" + b"x" * 2 * HEAD_BYTES,
        b"0\r\nX: " + b"x" * 2 * HEAD_BYTES,
        b"0\r\n" + b"X: x\r\n" * 2 * HEAD_FIELDS,
    ],
)
async def test_what_stands_between_the_octets_of_a_body_is_bounded(flood: bytes) -> None:
    head = request("/checkv2", None, ["Transfer-Encoding: chunked"])
    async with running() as here:
        answer = await here.ask(head, flood[:9], *[flood[9:]] * 3)
    assert answer.startswith(b"HTTP/1.1 4")
    assert not here.inspector.seen


async def test_a_field_behind_the_body_is_no_field_of_the_request() -> None:
    raw = chunked("/checkv2", [MAIL]).removesuffix(b"\r\n") + b"Rcpt: b@y.test\r\n\r\n"
    async with running() as here:
        assert (await here.ask(raw)).startswith(b"HTTP/1.1 200 ")
    assert here.inspector.seen[0][1].recipients == ()


@pytest.mark.usefixtures("no_time")
@pytest.mark.parametrize("sent", [b"", b"\r\n\r\n", b"POST /che", b"POST /checkv2 HTTP/1.1\r\nA:"])
async def test_a_head_that_does_not_come_ends_its_connection(sent: bytes) -> None:
    async with running() as here:
        assert (await here.ask(sent)).startswith(b"HTTP/1.1 408 ")


@pytest.mark.usefixtures("no_time")
async def test_a_body_that_does_not_come_ends_its_connection() -> None:
    async with running(data_timeout_s=0.05) as here:
        answer = await here.ask(request("/checkv2", MAIL)[:-5])
    assert answer.startswith(b"HTTP/1.1 408 ")


async def test_a_body_that_comes_by_drops_ends_its_connection() -> None:
    async with running(data_grace_s=0.05, data_rate=1e6) as here:
        reader, writer = await here.connect()
        writer.write(request("/checkv2", MAIL * 1000)[:-30_000])
        answer = asyncio.ensure_future(reader.read())
        while not answer.done():
            writer.write(b"x")
            await asyncio.sleep(0.01)
        assert answer.result().startswith(b"HTTP/1.1 408 ")
        writer.close()
    assert not here.inspector.seen


async def test_who_waits_between_two_requests_is_closed_after_a_while() -> None:
    async with running(command_timeout_s=1.0) as here:
        reader, writer = await here.connect()
        writer.write(request("/ping", None, method="GET", last=False))
        (answer,) = answers(await reader.read())
        writer.close()
    assert answer.status == 200


async def test_who_closes_its_side_after_its_request_still_reads_the_answer() -> None:
    async with running(FakeInspector(SPAM)) as here:
        raw = await here.ask(request("/checkv2", MAIL, last=False), ends=True)
    assert raw.startswith(b"HTTP/1.1 200 ")


async def test_garbage_behind_a_request_does_not_cost_its_answer() -> None:
    async with running(FakeInspector(SPAM)) as here:
        raw = await here.ask(request("/checkv2", MAIL, last=False) + b"\0garbage\r\n\r\n")
    (answer,) = answers(raw)
    assert answer.json["action"] == "add header"


async def test_who_is_refused_while_sending_can_read_why() -> None:
    async with running(max_message_bytes=2**20, spool_above_bytes=1000) as here:
        reader, writer = await here.connect()
        writer.write(request("/checkv2", None, ["Content-Length: 9000000"]))
        for _ in range(90):
            writer.write(bytes(100_000))
            await writer.drain()
        assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")
        writer.close()


async def test_more_clients_than_the_limit_read_so() -> None:
    async with running(max_connections=1) as here:
        _, first = await here.connect()
        await until(lambda: here.listener.connections.connections)
        assert (await here.ask(b"")).startswith(b"HTTP/1.1 503 too many connections\r\n")
        first.close()
        await until(lambda: not here.listener.connections.connections)
        assert (await here.get("/ping")).status == 200


@pytest.mark.usefixtures("no_time")
async def test_who_does_not_read_its_answers_is_cut_off() -> None:
    async with running(data_timeout_s=0.1) as here:
        with socket.socket() as small:
            small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            small.settimeout(0)
            await asyncio.get_running_loop().sock_connect(small, here.address)
            _, writer = await asyncio.open_connection(sock=small.dup())
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # of asyncio's own transport
        writer.write(request("/stat", None, method="GET", last=False) * 6_000)
        await until(lambda: here.listener.connections.connections)
        await until(lambda: not here.listener.connections.connections)
        writer.transport.abort()


async def test_the_end_finishes_what_is_in_hand_and_closes_who_waits() -> None:
    gate = asyncio.Event()
    async with running(FakeInspector(SPAM, gate=gate)) as here:
        idle, waiting = await here.connect()
        asking = asyncio.ensure_future(here.ask(request("/checkv2", MAIL, last=False)))
        await here.inspector.begun.wait()
        stopping = asyncio.ensure_future(here.listener.stop())
        assert await idle.read() == b""
        waiting.close()
        gate.set()
        await stopping
        assert (await asking).startswith(b"HTTP/1.1 200 ")


async def test_what_is_not_finished_in_time_at_the_end_shall_come_again() -> None:
    async with running(FakeInspector(SPAM, gate=asyncio.Event())) as here:
        asking = asyncio.ensure_future(here.ask(request("/checkv2", MAIL)))
        await here.inspector.begun.wait()
        await here.listener.stop(0.01)
        assert (await asking).startswith(b"HTTP/1.1 503 shutting down")
        assert not here.listener.connections.tasks
