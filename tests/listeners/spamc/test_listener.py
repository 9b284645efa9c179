"""Requests and what comes back, with a judge that says what it is told."""

import asyncio
import os
import pwd
from dataclasses import replace
from pathlib import Path

import pytest

from spamd.errors import DeadlineExceeded, Overloaded, StorageUnavailable
from spamd.ports import Taught
from spamd.sample import Label
from tests.fakes import HAM, SPAM, FakeInspector, FakeTeacher, NoTeacher
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
    async with running(judge := FakeInspector(HAM)) as here:
        reply = await here.ask(request("CHECK"), ends=False)
    assert reply == b"SPAMD/1.1 0 EX_OK\r\nSpam: False ; -1.8 / 5.0\r\n\r\n"
    assert judge.seen[0][0] == MAIL
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
    async with running(judge := FakeInspector(SPAM, gate=gate)) as here:
        asking = asyncio.ensure_future(here.ask(request("CHECK")))
        await judge.begun.wait()
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


async def test_symbols_are_one_list_and_older_clients_read_a_line_end() -> None:
    report = replace(SPAM, scores={"graham": 3.0, "facts": -1.0, "grams": 0.0})
    names = b"SPAMD_SPAM,BAYES_99,BAYES_999,SPAMD_GRAHAM_SPAM,SPAMD_FACTS_HAM"
    async with running(FakeInspector(report)) as here:
        lines, body = split(await here.ask(request("SYMBOLS")))
        old = await here.ask(request("SYMBOLS", version="1.2"))
    assert lines[1:] == [b"Content-length: %d" % len(names), b"Spam: True ; 9.7 / 5.0"]
    assert body == names
    assert old == b"SPAMD/1.1 0 EX_OK\r\nSpam: True ; 9.7 / 5.0\r\n\r\n" + names + b"\r\n"


async def test_a_report_says_why_and_one_that_is_wanted_of_spam_only_is_empty_for_ham() -> None:
    async with running(FakeInspector(SPAM)) as here:
        assert split(await here.ask(request("REPORT")))[1] == b"spam\n  as told\n"
        lines, body = split(await here.ask(request("REPORT_IFSPAM")))
        assert (lines[2], body) == (b"Spam: Yes ; 9.7 / 5.0", b"spam\n  as told\n")
    async with running(FakeInspector(HAM)) as here:
        lines, body = split(await here.ask(request("REPORT_IFSPAM")))
        assert (lines[2], body) == (b"Spam: No ; -1.8 / 5.0", b"")
        assert split(await here.ask(request("REPORT")))[1] == b"ham\n  as told\n"


SPAM_SET = ("Message-class: spam", "Set: local")
HAM_SET = ("Message-class: ham", "Set: local", "Remove: remote")
REPORTED = ("Message-class: spam", "Set: local,remote")


@pytest.mark.parametrize(
    ("headers", "answer", "done"),
    [
        (SPAM_SET, Taught.LEARNED, b"DidSet: local\r\n"),
        (SPAM_SET, Taught.HELD, b"DidSet: local\r\n"),
        (SPAM_SET, Taught.KNOWN, b""),
        (HAM_SET, Taught.LEARNED, b"DidSet: local\r\nDidRemove: remote\r\n"),
        (HAM_SET, Taught.KNOWN, b"DidRemove: remote\r\n"),
        (REPORTED, Taught.LEARNED, b"DidSet: local,remote\r\n"),
        (REPORTED, Taught.HELD, b"DidSet: local,remote\r\n"),
        (REPORTED, Taught.KNOWN, b"DidSet: remote\r\n"),
        (("Remove: local",), Taught.FORGOTTEN, b"DidRemove: local\r\n"),
        (("Remove: local",), Taught.UNKNOWN, b""),
        (("Set: remote",), Taught.LEARNED, b""),
    ],
)
async def test_what_is_told_is_done_and_the_reply_says_what_changed(
    headers: tuple[str, ...], answer: Taught, done: bytes
) -> None:
    teacher = FakeTeacher(answer)
    async with running(teacher=teacher, report_networks=("127.0.0.0/8",)) as here:
        reply = await here.ask(request("TELL", headers=headers))
    assert reply == b"SPAMD/1.1 0 EX_OK\r\n" + done + b"\r\n\r\n"
    label = Label.HAM if headers is HAM_SET else Label.SPAM
    assert teacher.learned == [(MAIL, label, "spamc", "127.0.0.1")] * (len(headers) > 1)
    assert teacher.forgotten == [MAIL] * (headers == ("Remove: local",))
    assert not here.observer.scans


async def test_nobody_teaches_who_may_not_report_and_the_line_says_so() -> None:
    teacher = FakeTeacher()
    async with running(teacher=teacher, report_networks=("192.0.2.0/24",)) as here:
        reply = await here.ask(request("TELL", headers=SPAM_SET))
    assert reply.startswith(b"SPAMD/1.0 69 Service Unavailable: TELL commands are not enabled")
    assert not teacher.learned


async def test_whoever_may_open_the_socket_may_teach_and_is_known_by_the_account(
    tmp_path: Path,
) -> None:
    teacher = FakeTeacher()
    async with running(teacher=teacher, address=f"unix:{tmp_path}/s") as here:
        await here.ask(request("TELL", headers=("User: root2", *SPAM_SET)))
    assert [actor for *_, actor in teacher.learned] == [pwd.getpwuid(os.getuid()).pw_name]


@pytest.mark.parametrize(
    ("known", "headers", "users"),
    [
        ((), ("User: anna", *SPAM_SET), [""]),
        (("anna",), ("User: anna", *SPAM_SET), ["anna"]),
        (("anna",), ("User: bob", *SPAM_SET), ["bob"]),
        (("anna",), ("User: anna", "Own: yes", "Remove: local"), ["anna"]),
        (("anna",), SPAM_SET, [""]),
    ],
)
async def test_a_lesson_is_for_the_user_that_is_named_where_people_have_filters_of_their_own(
    known: tuple[str, ...], headers: tuple[str, ...], users: list[str]
) -> None:
    teacher = FakeTeacher(known=known)
    async with running(teacher=teacher, report_networks=("127.0.0.0/8",)) as here:
        reply = await here.ask(request("TELL", headers=headers))
    assert reply.startswith(b"SPAMD/1.1 0 EX_OK\r\n")
    assert teacher.users == users


@pytest.mark.parametrize("known", [(), ("anna",)])
async def test_a_lesson_for_a_user_or_nobody_is_refused_where_there_is_no_such_user(
    known: tuple[str, ...],
) -> None:
    teacher = FakeTeacher(known=known)
    async with running(teacher=teacher, report_networks=("127.0.0.0/8",)) as here:
        reply = await here.ask(request("TELL", headers=("User: bob", "Own: yes", *SPAM_SET)))
    assert reply.startswith(b"SPAMD/1.0 67 No User: ")
    assert not teacher.learned


async def test_a_large_mail_is_taught_whole() -> None:
    teacher, mail = FakeTeacher(), MAIL + b"line\r\n" * 300_000
    async with running(
        teacher=teacher, report_networks=("127.0.0.0/8",), spool_above_bytes=1000
    ) as here:
        await here.ask(request("TELL", mail, SPAM_SET))
    assert [content for content, *_ in teacher.learned] == [mail]


FAULTS = (StorageUnavailable("secret"), Overloaded("secret"), DeadlineExceeded("secret"))


@pytest.mark.parametrize("fault", FAULTS)
async def test_what_can_not_be_taught_now_is_to_be_tried_again(fault: Exception) -> None:
    async with running(teacher=FakeTeacher(fault=fault), report_networks=("127.0.0.0/8",)) as here:
        reply = await here.ask(request("TELL", headers=SPAM_SET))
    assert reply == b"SPAMD/1.0 75 Temporary Failure: please try again later\r\n"


async def test_a_mail_that_can_not_be_judged_goes_on_unscanned_or_is_to_be_tried_again() -> None:
    async with running(FakeInspector(fault=ZeroDivisionError("secret"))) as here:
        reply = await here.ask(request("PROCESS"))
        assert b"\r\nSpam: False ; 0.0 / 5.0\r\n" in reply
        assert reply.endswith(MAIL)
        symbols = await here.ask(request("SYMBOLS"))
        assert symbols.endswith(b"\r\n\r\nSPAMD_UNSCANNED")
        report = await here.ask(request("REPORT"))
        assert report.endswith(b"unscanned\n  not scanned: internal fault, see the log\n")
    async with running(FakeInspector(fault=ZeroDivisionError()), on_fault="defer") as here:
        reply = await here.ask(request("PROCESS"))
        assert reply == b"SPAMD/1.0 75 Temporary Failure: please try again later\r\n"


async def test_a_fault_of_ours_is_told_to_the_log_and_not_to_the_client() -> None:
    async with running(teacher=NoTeacher(), report_networks=("127.0.0.0/8",)) as here:
        reply = await here.ask(request("TELL", headers=SPAM_SET))
    assert reply == b"SPAMD/1.0 70 Internal Error: please try again later\r\n"
    assert [event for event, _ in here.observer.faults] == ["session.failed"]


async def test_a_mail_with_a_very_long_header_section_comes_back_whole() -> None:
    mail = b"X-A: b\r\n" * 20_000 + b"X-Spam-Flag: YES\r\n" + MAIL
    async with running(FakeInspector(SPAM)) as here:
        whole = await here.ask(request("PROCESS", mail))
    assert split(whole)[1].endswith(b"X-Spam-Id: fake-id\r\n" + b"X-A: b\r\n" * 20_000 + MAIL)
