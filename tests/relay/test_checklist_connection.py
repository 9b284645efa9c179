"""Rows C of the checklist: connection and session."""

import asyncio
import socket

import pytest

from spamd.network.judge import OnFault
from spamd.relay.options import RelayOptions
from tests.fakes import FakeInspector
from tests.relay.peers import MESSAGE, QUEUED, WAIT_S, Do, ScriptedNextHop, Talk, relay
from tests.servers.base import free_port


@pytest.mark.parametrize("hello", [b"EHLO c.test", b"HELO c.test"])
async def test_smtp_c02_an_unreachable_next_hop_is_421_at_the_greeting(hello: bytes) -> None:
    async with relay(f"smtp://127.0.0.1:{free_port()}") as running:
        talk = await running.talk()
        assert (await talk.say(hello)).startswith(b"421 4.4.1 ")
        ((event, fault),) = running.observer.faults
        assert event == "session.failed"
        assert "can't connect to smtp://127.0.0.1:" in str(fault)
        assert await talk.rest() == b""


async def test_smtp_c02_the_next_session_tries_again() -> None:
    hop = ScriptedNextHop(port=free_port())
    async with relay(hop.url) as running:
        assert (await (await running.talk()).say(b"EHLO c.test")).startswith(b"421 4.4.1 ")
        async with hop:
            talk = await running.talk()
            assert (await talk.deliver()).startswith(b"250 ")


async def test_smtp_c08_too_many_connections_in_all() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, max_connections=2) as running:
        await running.talk()
        first = await running.talk()
        third = await running.talk(greeting=False)
        assert (await third.reply()).startswith(b"421 4.7.0 Too many connections")
        assert await third.rest() == b""
        await first.say(b"QUIT")
        assert await first.rest() == b""
        fourth = await running.talk()
        assert (await fourth.say(b"EHLO c.test")).startswith(b"250")


async def test_smtp_c08_too_many_connections_of_one_client() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, max_connections_per_client=1) as running:
        await running.talk()
        second = await running.talk(greeting=False)
        assert (await second.reply()).startswith(b"421 4.7.0 ")


@pytest.mark.parametrize(
    "before",
    [
        b"",
        b"EHLO c.test\r\n",
        b"EHLO c.test\r\nMAIL FROM:<a@x.test>\r\n",
        b"EHLO c.test\r\nMAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\n",
        b"EHLO c.test\r\nMAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nDATA\r\nSubject: half",
    ],
)
async def test_smtp_c10_a_client_that_vanishes_leaves_no_message(before: bytes) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.send(before)
        for _ in range(before.count(b"\r\n")):
            assert (await talk.reply())[:1] in {b"2", b"3"}
        talk.writer.transport.abort()
        await hop.until(lambda: hop.open == 0)
        assert hop.messages == []
        assert running.observer.faults == []


async def test_smtp_c10_a_client_that_vanishes_before_the_banner_leaves_no_connection() -> None:
    async with ScriptedNextHop(answers={"": Do.NOTHING}) as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.send(b"EHLO c.test\r\n")
        await hop.until(lambda: hop.open == 1)
        talk.reset()
        await hop.until(lambda: hop.open == 0)


async def test_smtp_c10_a_client_that_vanishes_during_the_verdict_leaves_no_message() -> None:
    inspector = FakeInspector(gate=asyncio.Event())
    async with ScriptedNextHop() as hop, relay(hop.url, inspector=inspector) as running:
        talk = await running.talk()
        await talk.begin()
        await talk.send(MESSAGE + b".\r\n")
        await inspector.begun.wait()
        talk.reset()
        await hop.until(lambda: hop.open == 0)
        assert hop.messages == []


async def test_smtp_c10_a_client_that_vanishes_during_delivery_changes_nothing() -> None:
    async with ScriptedNextHop(answers={".": Do.NOTHING}) as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.begin()
        await talk.send(MESSAGE + b".\r\n")
        await hop.until(lambda: len(hop.messages) == 1)
        talk.reset()
        assert hop.open == 1
        for writer in hop.writers:
            writer.write(b"250 2.0.0 queued late\r\n")
        await hop.until(lambda: hop.open == 0)
        (_, reply, _) = running.observer.scans[0]
        assert reply == b"250 2.0.0 queued late\r\n"


async def test_smtp_c11_a_client_that_half_closes_gets_all_replies() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.send(
            b"EHLO c.test\r\nMAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nDATA\r\n"
            + MESSAGE
            + b".\r\nQUIT\r\n"
        )
        talk.writer.write_eof()
        text = await talk.rest()
        assert text.endswith(b"250 2.0.0 queued as ABC123\r\n221 2.0.0 Bye\r\n")
        assert len(hop.messages) == 1


async def test_smtp_c12_stopping_tells_idle_sessions_and_finishes_busy_ones() -> None:
    inspector = FakeInspector(gate=asyncio.Event())
    async with ScriptedNextHop() as hop, relay(hop.url, inspector=inspector) as running:
        idle, busy = await running.talk(), await running.talk()
        await idle.say(b"EHLO c.test")
        await busy.begin()
        await busy.send(MESSAGE + b".\r\n")
        await inspector.begun.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(running.relay.stop(WAIT_S))
            assert (await idle.reply()).startswith(b"421 4.3.2 ")
            assert await idle.rest() == b""
            assert inspector.gate is not None
            inspector.gate.set()
            assert await busy.reply() == QUEUED
            assert (await busy.reply()).startswith(b"421 4.3.2 ")
        assert len(hop.messages) == 1
        with pytest.raises(ConnectionError):
            await Talk.to(running.port)


async def test_smtp_c12_what_does_not_finish_in_time_is_cut_and_not_delivered() -> None:
    inspector = FakeInspector(gate=asyncio.Event())
    async with ScriptedNextHop() as hop, relay(hop.url, inspector=inspector) as running:
        talk = await running.talk()
        await talk.begin()
        await talk.send(MESSAGE + b".\r\n")
        await inspector.begun.wait()
        await running.relay.stop(0.05)
        assert b"250" not in await talk.rest()
        assert hop.messages == []


async def test_smtp_c14_a_client_that_does_not_read_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spamd.relay.inbound.transport.LINGER_S", 0.05)
    async with (
        ScriptedNextHop() as hop,
        relay(
            hop.url, command_timeout_s=0.2, max_commands_without_mail=10**6, command_delay_s=0
        ) as running,
    ):
        loop = asyncio.get_running_loop()
        for listening in running.relay._servers[0].sockets:  # so that little waits in the kernel
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(0)
            await loop.sock_connect(client, ("127.0.0.1", running.port))
            with pytest.raises(ConnectionError):
                await _ask_for_ever(client)


async def test_smtp_c15_many_pipelined_noops_are_answered_in_order() -> None:
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, max_commands_without_mail=10**6, command_delay_s=0) as running,
    ):
        talk = await running.talk()
        async with asyncio.TaskGroup() as group:
            group.create_task(talk.send(b"NOOP\r\n" * 20_000 + b"QUIT\r\n"))
            text = await talk.rest()
        assert text == b"250 2.0.0 OK\r\n" * 20_000 + b"221 2.0.0 Bye\r\n"
        assert hop.connections == 0


async def test_smtp_c15_an_endless_line_is_refused_and_not_kept() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        async with asyncio.TaskGroup() as group:
            group.create_task(talk.send(b"MAIL FROM:<" + b"a" * 1_000_000 + b">\r\nNOOP\r\n"))
            assert (await talk.reply()).startswith(b"500 5.5.2 ")
            assert await talk.reply() == b"250 2.0.0 OK\r\n"
        assert hop.commands == []


async def test_smtp_c16_an_exception_in_the_inspector_is_never_permanent() -> None:
    inspector = FakeInspector(fault=ZeroDivisionError("secret"))
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, inspector=inspector, on_fault=OnFault.DEFER) as running,
    ):
        talk = await running.talk()
        answer = await talk.deliver()
        assert answer.startswith(b"451 4.3.0 ")
        assert b"secret" not in answer
        assert hop.messages == []
        assert hop.verbs[-1] == "RSET"


async def test_smtp_c16_an_exception_in_a_command_ends_the_session_with_421(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test")

        def broken(*_: object) -> None:
            raise ZeroDivisionError("secret")

        monkeypatch.setattr("spamd.relay.inbound.transaction.parse_path", broken)
        answer = await talk.say(b"MAIL FROM:<a@x.test>")
        assert answer.startswith(b"421 4.3.0 ")
        assert b"secret" not in answer
        assert await talk.rest() == b""
        await hop.until(lambda: hop.open == 0)
        assert [type(fault) for _, fault in running.observer.faults] == [ZeroDivisionError]


async def test_smtp_c16_an_observer_that_fails_does_not_lose_the_reply() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:

        def broken(*_: object, **__: object) -> None:
            raise ZeroDivisionError

        running.observer.scanned = broken  # type: ignore[method-assign]  # the fault is the test
        talk = await running.talk()
        answer = await talk.deliver()
        assert answer == QUEUED


async def test_smtp_c17_a_full_disk_is_452_and_nothing_is_sent() -> None:
    async with (
        ScriptedNextHop() as hop,
        relay(
            hop.url,
            memory_bytes=1000,
            spool_above_bytes=1000,
            spool_bytes=2000,
            max_message_bytes=2000,
        ) as running,
    ):
        first, second = await running.talk(), await running.talk()
        await first.begin()
        await first.send(MESSAGE + b"x" * 1500 + b"\r\n")
        await second.begin()
        await second.send(MESSAGE + b"x" * 1500 + b"\r\n.\r\n")
        assert (await second.reply()).startswith(b"452 4.3.1 ")
        assert [event for event, _ in running.observer.faults] == ["message.failed"]
        await first.send(b".\r\n")
        assert (await first.reply()).startswith(b"250 ")
        assert len(hop.messages) == 1
        assert (await second.deliver(hello=b"")).startswith(b"250 ")


async def _ask_for_ever(client: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(WAIT_S):
        while True:
            await loop.sock_sendall(client, b"HELP\r\n" * 10_000)


def test_the_timeouts_are_those_of_the_checklist() -> None:
    options = RelayOptions()
    assert options.command_timeout_s == 300
    assert options.data_timeout_s == 180
    assert (options.data_rate, options.data_grace_s) == (500, 600)
    assert (options.tls_handshake_s, options.proxy_header_s) == (30, 5)
    assert options.content_timeout_s == 540


@pytest.mark.parametrize("step", ["MAIL", "RCPT", "DATA", "BDAT"])
async def test_k11_a_transaction_that_is_open_when_we_stop_reads_421(step: str) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        script = [b"EHLO c.test", b"MAIL FROM:<a@x.test>", b"RCPT TO:<b@y.test>"]
        script += [b"BDAT 6\r\nabcd" if step == "BDAT" else b"DATA"]
        for line in script:
            assert (await talk.say(line))[:1] in b"23"
            if line.startswith(step.encode()):
                break
        if step == "DATA":
            await talk.send(b"Subject: half\r\n")
        await running.relay.stop(0.1)
        assert await talk.reply() == b"421 4.3.2 Shutting down, please try again later\r\n"
        assert await talk.rest() == b""
        assert hop.messages == []
