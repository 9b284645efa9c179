"""Requests and what comes back, with a judge that says what it is told."""

import asyncio
from pathlib import Path

import pytest

from tests.fakes import HAM, SPAM, FakeInspector
from tests.listeners.spamc.clients import MAIL, request, running, split
from tests.waiting import until


async def test_a_ping_is_answered_at_once_by_all_versions_without_an_empty_line() -> None:
    async with running() as here:
        assert await here.ask(b"PING SPAMC/1.2\r\n", ends=False) == b"SPAMD/1.5 0 PONG\r\n"
        assert await here.ask(b"PING SPAMC/1.5\r\n\r\n", ends=False) == b"SPAMD/1.5 0 PONG\r\n"


async def test_a_check_says_the_verdict_and_the_score() -> None:
    async with running(FakeInspector(SPAM)) as here:
        reply = await here.ask(request("CHECK"))
    assert reply == b"SPAMD/1.1 0 EX_OK\r\nSpam: True ; 9.7 / 5.0\r\n\r\n"
    async with running(FakeInspector(HAM)) as here:
        reply = await here.ask(request("CHECK"), ends=False)
    assert reply == b"SPAMD/1.1 0 EX_OK\r\nSpam: False ; -1.8 / 5.0\r\n\r\n"
    assert here.inspector.seen[0][0] == MAIL
    assert [reply for _, reply, _ in here.observer.scans] == [b"0"]


async def test_the_mail_comes_back_with_our_fields_on_top_and_all_else_as_it_was() -> None:
    async with running(FakeInspector(SPAM)) as here:
        whole = await here.ask(request("PROCESS"))
        header = await here.ask(request("HEADERS"))
    lines, body = split(whole)
    assert lines == [
        b"SPAMD/1.1 0 EX_OK",
        b"Content-length: %d" % len(body),
        b"Spam: True ; 9.7 / 5.0",
    ]
    assert body.startswith(b"X-Spam-Status: Yes, ")
    assert body.endswith(b"\r\nX-Spam-Id: fake-id\r\n" + MAIL)
    assert split(header)[1] == body.removesuffix(b"body\r\n")


async def test_over_a_unix_socket_it_is_the_same(tmp_path: Path) -> None:
    async with running(FakeInspector(SPAM), address=f"unix:{tmp_path}/s") as here:
        reply = await here.ask(request("PROCESS"))
    assert split(reply)[1].endswith(MAIL)


async def test_the_end_of_the_daemon_waits_for_a_mail_that_is_being_judged() -> None:
    gate = asyncio.Event()
    async with running(FakeInspector(SPAM, gate=gate)) as here:
        asking = asyncio.ensure_future(here.ask(request("CHECK")))
        await here.inspector.begun.wait()
        stopping = asyncio.ensure_future(here.listener.stop())
        await asyncio.sleep(0)
        gate.set()
        await stopping
        assert (await asking).startswith(b"SPAMD/1.1 0 EX_OK")


async def test_a_mail_on_disk_comes_back_whole() -> None:
    mail = MAIL + b"line\r\n" * 500_000
    async with running(FakeInspector(SPAM), spool_above_bytes=1000) as here:
        whole = await here.ask(request("PROCESS", mail))
        header = await here.ask(request("HEADERS", mail))
        await until(lambda: here.shared.budget.spool_bytes == 2048 * 2**20)
    assert split(whole)[1].endswith(b"X-Spam-Id: fake-id\r\n" + mail)
    assert split(header)[1].endswith(b"X-Spam-Id: fake-id\r\n" + MAIL.removesuffix(b"body\r\n"))


@pytest.mark.parametrize("header", ["", "Content-length: 99"])
async def test_a_client_that_goes_in_the_middle_gets_no_verdict(header: str) -> None:
    async with running() as here:
        reply = await here.ask(f"CHECK SPAMC/1.5\r\n{header}".encode())
    assert reply == b"SPAMD/1.0 76 Bad header line: (EOF during headers)\r\n"
    assert not here.observer.scans
