"""Slow, broken and too many clients: each has an end, and the others are served meanwhile."""

import asyncio
import os
import pwd
import subprocess
import zlib
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fakes import SPAM, FakeInspector, FakeTeacher
from tests.listeners.spamc.clients import MAIL, Running, request, running
from tests.rights import NOBODY, needs_root
from tests.servers.base import require
from tests.servers.spamassassin import SPAMC
from tests.waiting import until


async def test_a_client_that_never_ends_its_head_is_told_of_the_time() -> None:
    async with running(command_timeout_s=0.2) as here:
        for piece in (b"", b"CHECK SPAMC/1.5\r\n", b"CHECK SPAMC/1.5\r\nUser: a\r\n"):
            reply = await here.ask(piece, ends=False)
            assert reply.startswith(b"SPAMD/1.0 79 Timeout: (0 second socket timeout"), piece
        await until(lambda: not here.listener.connections)


async def test_a_client_that_sends_its_head_byte_by_byte_has_one_time_for_all_of_it() -> None:
    async with running(command_timeout_s=0.3) as here:
        reader, writer = await here.connect()
        reply = asyncio.ensure_future(reader.read())
        with suppress(ConnectionError):
            while not reply.done():
                writer.write(b"X")
                await writer.drain()
                await asyncio.wait([reply], timeout=0.05)
        assert (await reply).startswith(b"SPAMD/1.0 79 Timeout")
        writer.close()


async def test_a_client_that_stops_in_the_middle_of_its_mail_is_told_of_the_time() -> None:
    async with running(data_timeout_s=0.2) as here:
        reply = await here.ask(request("PROCESS")[:-3], ends=False)
        assert reply.startswith(b"SPAMD/1.0 79 Timeout: ")
        await until(lambda: here.shared.budget.memory_bytes == 64 * 2**20)


async def test_a_mail_that_comes_slower_than_a_modem_is_given_up() -> None:
    async with running(data_grace_s=0.1, data_rate=1e9, data_timeout_s=5) as here:
        reader, writer = await here.connect()
        writer.write(b"CHECK SPAMC/1.5\r\n\r\n")
        reply = asyncio.ensure_future(reader.read())
        with suppress(ConnectionError):
            while not reply.done():
                writer.write(b"slow")
                await writer.drain()
                await asyncio.wait([reply], timeout=0.05)
        assert (await reply).startswith(b"SPAMD/1.0 79 Timeout: ")
        writer.close()


async def test_a_client_that_reads_nothing_does_not_hold_a_large_mail_for_ever() -> None:
    mail = MAIL + b"line\r\n" * 3_000_000
    async with running(data_timeout_s=0.3, spool_above_bytes=1000) as here:
        reader, writer = await here.connect()
        writer.write(request("PROCESS", mail))
        await writer.drain()
        await until(lambda: bool(here.observer.scans))
        await until(lambda: not here.listener.connections)
        assert here.shared.budget.spool_bytes == 2048 * 2**20
        writer.close()
        del reader


async def test_a_mail_larger_than_is_taken_is_refused_and_the_client_reads_why() -> None:
    mail = MAIL + b"line\r\n" * 400_000
    async with running(max_message_bytes=100_000) as here:
        for verb in ("PROCESS", "CHECK"):
            for data in (request(verb, mail), f"{verb} SPAMC/1.5\r\n\r\n".encode() + mail):
                reply = await here.ask(data)
                line = b"SPAMD/1.0 65 Data Error: the message is larger than 100000 bytes\r\n"
                assert reply == line


async def test_what_is_inflated_is_bounded_too() -> None:
    data = zlib.compress(b"\0" * 100_000_000)
    head = b"CHECK SPAMC/1.5\r\nCompress: zlib\r\nContent-length: %d\r\n\r\n" % len(data)
    async with running(max_message_bytes=1_000_000) as here:
        assert (await here.ask(head + data)).startswith(b"SPAMD/1.0 65 Data Error: ")
        assert here.shared.budget.memory_bytes == 64 * 2**20


async def test_when_memory_and_disk_are_used_up_a_client_shall_come_again() -> None:
    async with running(
        memory_bytes=2000, spool_above_bytes=1000, spool_bytes=3000, max_message_bytes=3000
    ) as here:
        gone = [await here.connect() for _ in range(3)]
        for _, writer in gone:
            writer.write(request("CHECK", MAIL + b"x" * 2900)[:-100])
        await until(lambda: here.shared.budget.spool_bytes < 500)
        reply = await here.ask(request("CHECK", MAIL + b"x" * 2900))
        assert reply == b"SPAMD/1.0 75 Temporary Failure: please try again later\r\n"
        for _, writer in gone:
            writer.close()


async def test_more_clients_than_may_be_are_told_to_come_again() -> None:
    async with running(max_connections=1) as here:
        _, writer = await here.connect()
        await until(lambda: bool(here.listener.connections))
        assert await here.ask() == b"SPAMD/1.0 75 Temporary Failure: too many connections\r\n"
        writer.close()


async def test_a_client_that_hangs_up_costs_nothing_and_is_no_fault() -> None:
    async with running(FakeInspector(SPAM)) as here:
        for data in (b"", b"CHECK", request("CHECK")[:-3], request("PROCESS")):
            _, writer = await here.connect()
            writer.write(data)
            writer.transport.abort()
        await until(lambda: not here.listener.connections)
        assert not here.observer.faults
        assert here.shared.budget.memory_bytes == 64 * 2**20


async def test_more_than_was_announced_is_refused_also_when_it_comes_late() -> None:
    gate = asyncio.Event()
    async with running(judge := FakeInspector(SPAM, gate=gate)) as here:
        reader, writer = await here.connect()
        writer.write(request("PROCESS"))
        await judge.begun.wait()
        writer.write(b"the rest of the mail")
        (connection,) = here.listener.connections.values()
        await until(lambda: bool(connection.reader._buffer))  # type: ignore[attr-defined]  # it has come
        gate.set()
        assert (await reader.read()).startswith(b"SPAMD/1.0 76 Bad header line: (Content-Length")
        writer.close()


async def test_what_waits_at_the_end_of_the_daemon_is_closed() -> None:
    async with running() as here:
        reader, writer = await here.connect()
        writer.write(b"CHECK SPAMC/1.5\r\n")
        await until(lambda: bool(here.listener.connections))
        await here.listener.stop()
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()


async def spamc_says(here: Running, *options: str, mail: bytes = MAIL) -> tuple[int, bytes]:
    """Run spamc on a listener of this process."""
    require("spamassassin")
    assert isinstance(here.address, tuple)
    command = [str(SPAMC), "-p", str(here.address[1]), "--connect-retries=1", "--filter-retries=1"]
    done = await asyncio.to_thread(
        lambda: subprocess.run(
            [*command, *options], input=mail, capture_output=True, check=False,
            env={"PATH": os.environ["PATH"]},
        )
    )  # fmt: skip
    return done.returncode, done.stdout


async def test_spamc_hands_on_the_mail_as_it_was_when_there_is_no_verdict() -> None:
    async with running(FakeInspector(fault=ZeroDivisionError()), on_fault="defer") as here:
        assert await spamc_says(here) == (0, MAIL)
        assert await spamc_says(here, "--headers") == (0, MAIL)
        assert await spamc_says(here, "-c") == (0, b"0/0\n")
        assert (await spamc_says(here, "-x"))[1] == b""
    async with running(FakeInspector(SPAM), max_message_bytes=1000) as here:
        mail = MAIL + b"x\r\n" * 50_000
        assert await spamc_says(here, mail=mail) == (0, mail)


@pytest.mark.parametrize(("networks", "code"), [((), 74), (("127.0.0.1/32",), 0)])
async def test_spamc_says_that_it_may_not_teach(networks: tuple[str, ...], code: int) -> None:
    async with running(teacher=FakeTeacher(), report_networks=networks) as here:
        assert (await spamc_says(here, "-L", "spam"))[0] == code


@needs_root
async def test_at_a_socket_that_all_may_open_an_account_teaches_for_itself_only(
    home: Path,
) -> None:
    require("spamassassin")
    teacher = FakeTeacher(known=("anna",))
    command = [str(SPAMC), "-U", f"{home}/s", "-L", "spam"]

    def told(*options: str, user: int | None = None) -> int:
        return subprocess.run(
            [*command, *options], input=MAIL, capture_output=True, check=False, cwd="/",
            env={"PATH": os.environ["PATH"]}, user=user,
        ).returncode  # fmt: skip

    async with running(teacher=teacher, address=f"unix:{home}/s", mode="0666") as here:
        assert await asyncio.to_thread(told, "-u", "anna", user=NOBODY) == 74
        assert await asyncio.to_thread(told, user=NOBODY) == 0  # it names the account
        assert await asyncio.to_thread(told, "-u", "anna") == 0
        assert not here.observer.faults
    assert teacher.users == [pwd.getpwuid(NOBODY).pw_name, "anna"]


async def test_a_mail_whose_client_went_away_meanwhile_is_told_of_all_the_same() -> None:
    gate = asyncio.Event()
    async with running(judge := FakeInspector(SPAM, gate=gate)) as here:
        _, writer = await here.connect()
        writer.write(request("PROCESS"))
        await judge.begun.wait()
        writer.transport.abort()
        gate.set()
        await until(lambda: not here.listener.connections)
        assert [report for report, *_ in here.observer.scans] == [SPAM]
        assert not here.observer.faults
