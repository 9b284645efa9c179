"""The milter with real servers: Postfix, Sendmail, and OpenDKIM's miltertest as a second codec."""

import asyncio
import os
import signal
import smtplib
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests.cli.conftest import made_up
from tests.e2e.relay_daemon import Spamd
from tests.listeners.milter.mta import Mta, Outcome
from tests.listeners.milter.trip import (
    AS_IT_IS,
    MailServer,
    below,
    compared,
    our_fields,
    postfix_with,
    sendmail_with,
    signed,
)
from tests.servers.base import Server, free_port, require
from tests.servers.postfix import Postfix, PostfixOptions, SmtpSink
from tests.waiting import wait_until

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.eml"))
FORGED = (
    b"X-Spam-Flag: YES\nx-spam-STATUS: No,\n\tscore=-100\nFrom: a@x.test\nX-Spam-Id: 0-0\n"
    b"Subject: forged\nX-Spam-Flag: NO\nX-Spam: kept\nMessage-ID: <forged@x.test>\n"
    b"Date: Sat, 28 Nov 2026 10:00:00 +0000\nTo: b@y.test\n\nX-Spam-Flag: in the text\n"
)
CUTOFFS = 'decision.rule = "cutoffs"\ndecision.minimum_ham = 5\ndecision.minimum_spam = 5\n'
REJECT = "decision.reject = true\ndecision.reject_cutoff = 0.9\n"
SERVERS = [pytest.param(postfix_with, id="postfix"), pytest.param(sendmail_with, id="sendmail")]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as servers:
        yield servers


def needs(server: MailServer) -> None:
    require("smtp-sink")
    require("postfix" if server is postfix_with else "sendmail")


@cache
def taught() -> bytes:
    """Return a database that has learned ten mails of each label."""
    spamd = Spamd("maildir://./unused", CUTOFFS)
    try:
        for label in ("spam", "ham"):
            folder = spamd.directory / label
            folder.mkdir()
            for number in range(10):
                (folder / f"{number}.eml").write_bytes(made_up(label, number))
            spamd.run("train", label, str(folder))
        return (spamd.directory / "spamd.sqlite").read_bytes()
    finally:
        spamd.close()


def daemon(settings: str = "") -> tuple[Spamd, int]:
    """Return a daemon that has learned, and the port of its milter."""
    port = free_port()
    listen = f'milter.listen = "127.0.0.1:{port}"\n'
    spamd = Spamd("maildir://./unused", f"{listen}{CUTOFFS}{settings}\n")
    (spamd.directory / "spamd.sqlite").write_bytes(taught())
    return spamd, port


def started(
    stack: ExitStack, server: MailServer, settings: str = ""
) -> tuple[Spamd, SmtpSink, Server]:
    spamd, port = daemon(settings)
    stack.enter_context(spamd)
    sink = stack.enter_context(SmtpSink())
    return spamd, sink, stack.enter_context(server(sink.port, port))


def send(port: int, content: bytes, *recipients: str) -> tuple[int, bytes]:
    """Send a mail; return the reply to it."""
    with smtplib.SMTP("127.0.0.1", port, timeout=120) as client:
        client.ehlo("c.test")
        client.mail("a@x.test")
        for recipient in recipients or ("b@y.test",):
            assert client.rcpt(recipient)[0] == 250
        return client.data(content)


@pytest.mark.parametrize("server", SERVERS)
def test_mail_arrives_marked_and_else_as_without_us_judged_as_by_scan(
    server: MailServer, tmp_path: Path
) -> None:
    needs(server)
    mails = [made_up("spam", 11), made_up("ham", 11), FORGED]
    mails += [path.read_bytes() for path in GOLDEN]
    paths = [tmp_path / f"{number}.eml" for number in range(len(mails))]
    for path, mail in zip(paths, mails, strict=True):
        path.write_bytes(signed(mail))
    spamd, port = daemon()
    with spamd:
        found = compared(server, spamd, port, paths)
    assert found.faults == []
    assert found.counts["mails"] == len(mails)
    assert found.counts["signatures that are good with us"] >= len(mails) - 4


@pytest.mark.parametrize("server", SERVERS)
def test_forged_fields_are_gone_and_ours_stand_on_top_in_order(
    server: MailServer, stack: ExitStack
) -> None:
    needs(server)
    _, sink, running = started(stack, server)
    assert send(running.port, FORGED.replace(b"\n", b"\r\n"))[0] == 250
    (mail,) = sink.mails(at_least=1)
    start = mail.content.index(b"X-Spam-")
    names = [field.partition(b":")[0] for field in our_fields(mail.content, start)]
    assert names == [b"X-Spam-Status", b"X-Spam-Probability", b"X-Spam-Id"]
    assert below(mail.content) == (
        b"From: a@x.test\nSubject: forged\nX-Spam: kept\nMessage-ID: <forged@x.test>\n"
        b"Date: Sat, 28 Nov 2026 10:00:00 +0000\nTo: b@y.test\n\nX-Spam-Flag: in the text\n"
    )


@pytest.mark.parametrize("server", SERVERS)
def test_spam_is_refused_and_the_session_goes_on_with_twenty_recipients(
    server: MailServer, stack: ExitStack
) -> None:
    needs(server)
    spamd, sink, running = started(stack, server, REJECT)
    code, text = send(running.port, made_up("spam", 11))
    assert (code, text) == (550, b"5.7.1 Rejected as spam")
    people = [f"b{number}@y.test" for number in range(20)]
    assert send(running.port, made_up("ham", 11), *people)[0] == 250
    wait_until(
        lambda: sum(len(mail.recipients) for mail in sink.mails(at_least=1)) == 20,
        what="a mail for all",
    )
    refused, taken = spamd.events("message.scanned")
    assert (refused["listener"], refused["action"], refused["reply"]) == ("milter", "reject", "550")
    assert (taken["verdict"], taken["recipients"]) == ("ham", 20)
    assert isinstance(taken["queue_id"], str)


@pytest.mark.parametrize("server", SERVERS)
def test_spam_goes_into_the_quarantine_where_that_is_set(
    server: MailServer, stack: ExitStack
) -> None:
    needs(server)
    settings = f"{REJECT}milter.quarantine = true"
    _, sink, running = started(stack, server, settings)
    assert send(running.port, made_up("spam", 11))[0] == 250
    if isinstance(running, Postfix):
        wait_until(lambda: [m["queue_name"] for m in running.queue()] == ["hold"], what="on hold")
    else:
        wait_until(lambda: list(running.directory.glob("queue/hf*")) != [], what="in quarantine")
    assert sink.mails() == []


@pytest.mark.parametrize("server", SERVERS)
def test_what_can_not_be_kept_comes_again_later(server: MailServer, stack: ExitStack) -> None:
    needs(server)
    room = "relay.memory_bytes = 200000\nrelay.spool_above_bytes = 100000\n"
    room += "relay.spool_bytes = 200000\nrelay.max_message_bytes = 200000"
    _, sink, running = started(stack, server, room)
    large = FORGED.replace(b"\n", b"\r\n") + b"text\r\n" * 100_000
    code, text = send(running.port, large)
    assert (code, text) == (452, b"4.3.1 Insufficient storage, please try again later")
    assert send(running.port, made_up("ham", 12))[0] == 250
    assert len(sink.mails(at_least=1)) == 1


@pytest.mark.parametrize("server", SERVERS)
def test_a_daemon_that_dies_in_the_middle_costs_no_mail(
    server: MailServer, stack: ExitStack
) -> None:
    needs(server)
    spamd, sink, running = started(stack, server)
    with smtplib.SMTP("127.0.0.1", running.port, timeout=60) as client:
        client.ehlo("c.test")
        client.mail("a@x.test")
        client.rcpt("b@y.test")
        assert client.docmd("DATA")[0] == 354
        os.kill(spamd.pid, signal.SIGKILL)
        client.send(made_up("ham", 11) + b".\r\n")
        code, _ = client.getreply()
    assert 400 <= code < 500
    spamd.close()
    assert send_early(running.port) in range(400, 500)  # nobody listens
    assert sink.mails() == []


def send_early(port: int) -> int:
    """Return the first code that is none of success, of a mail."""
    with smtplib.SMTP("127.0.0.1", port, timeout=60) as client:
        code, _ = client.ehlo("c.test")
        if code == 250:
            code, _ = client.mail("a@x.test")
        if code == 250:
            code, _ = client.rcpt("b@y.test")
        if code == 250:
            code, _ = client.data(made_up("ham", 12))
    return code


@pytest.mark.parametrize("server", SERVERS)
def test_a_very_large_mail_is_judged_by_its_start(server: MailServer, stack: ExitStack) -> None:
    needs(server)
    spamd, sink, running = started(stack, server)
    megabytes = 50 if server is postfix_with else 12  # Sendmail is slow
    content = (
        b"Date: Sat, 28 Nov 2026 10:00:00 +0000\r\n"
        + made_up("spam", 11)
        + (b"word " * 12 + b"\r\n") * megabytes * 16_000
    )
    assert send(running.port, content)[0] == 250
    (mail,) = sink.mails(at_least=1, deadline_s=120)
    assert below(mail.content) == content.replace(b"\r\n", b"\n")
    (scan,) = spamd.events("message.scanned")
    assert scan["verdict"] != "unscanned"
    assert 4_200_000 < int(str(scan["size_bytes"])) < 10_000_000
    assert spamd.events("session.failed") == []


def test_local_mail_of_postfix_is_judged_too(stack: ExitStack) -> None:
    require("postfix")
    spamd, port = daemon()
    stack.enter_context(spamd)
    sink = stack.enter_context(SmtpSink())
    main = {
        "relayhost": f"[127.0.0.1]:{sink.port}",
        "non_smtpd_milters": f"inet:127.0.0.1:{port}",
        **AS_IT_IS,
    }
    postfix = stack.enter_context(Postfix(PostfixOptions(main=main)))
    subprocess.run(
        ["/usr/sbin/sendmail", "-C", f"{postfix.directory}/etc", "-f", "a@x.test", "b@y.test"],
        input=made_up("spam", 11), check=True, timeout=30,
    )  # fmt: skip
    (mail,) = sink.mails(at_least=1)
    assert b"\nX-Spam-Flag: YES\n" in mail.content
    (scan,) = spamd.events("message.scanned")
    assert (scan["listener"], scan["verdict"], scan["recipients"]) == ("milter", "spam", 1)


async def ask(address: str, mails: int) -> list[Outcome]:
    """Have mails judged, each over a connection of its own, all of them at once."""

    async def one() -> Outcome:
        mta = Mta(*await asyncio.open_unix_connection(address))
        await mta.negotiate()
        await mta.client()
        await mta.envelope()
        outcome = await mta.content([(b"Subject", b" x")], b"words\r\n")
        mta.writer.close()
        return outcome

    return await asyncio.gather(*[one() for _ in range(mails)])


def test_several_workers_share_a_socket_and_go_on_after_sighup(stack: ExitStack) -> None:
    spamd, _ = daemon("relay.workers = 2")
    socket = f"{spamd.directory}/milter.sock"
    spamd._settings = f'milter.listen = ["unix:{socket}"]\n{CUTOFFS}relay.workers = 2\n'
    stack.enter_context(spamd)
    before = asyncio.run(ask(socket, 40))
    os.kill(spamd.pid, signal.SIGHUP)
    wait_until(lambda: len(spamd.events("worker.started")) >= 4, what="new workers")
    after = asyncio.run(ask(socket, 40))
    assert {outcome.verdict for outcome in [*before, *after]} == {b"c"}
    wait_until(lambda: len(spamd.events("message.scanned")) == 80, what="a line for each")
    assert len({scan["worker"] for scan in spamd.events("message.scanned")}) == 2


SCRIPT = """
mt.echo("connecting")
c = mt.connect("inet:" .. port .. "@127.0.0.1")
if c == nil then error("no connection") end
if mt.conninfo(c, "c.test", "192.0.2.7") ~= nil then error("conninfo") end
if mt.helo(c, "c.test") ~= nil then error("helo") end
for message = 1, 3 do
  mt.macro(c, SMFIC_MAIL, "i", "Q" .. message)
  if mt.mailfrom(c, "<a@x.test>") ~= nil then error("mailfrom") end
  if mt.rcptto(c, "<b@y.test>") ~= nil then error("rcptto") end
  if mt.header(c, "X-Spam-Flag", "NO") ~= nil then error("header") end
  if mt.header(c, "Subject", "x") ~= nil then error("header") end
  if mt.header(c, "x-spam-flag", "NO") ~= nil then error("header") end
  if mt.eoh(c) ~= nil then error("eoh") end
  if mt.bodystring(c, "words\\r\\n") ~= nil then error("body") end
  if mt.eom(c) ~= nil then error("eom") end
  if mt.getreply(c) ~= SMFIR_CONTINUE then error("reply") end
  if not mt.eom_check(c, MT_HDRINSERT, "X-Spam-Status") then error("status") end
  if not mt.eom_check(c, MT_HDRINSERT, "X-Spam-Id") then error("id") end
  if not mt.eom_check(c, MT_HDRDELETE, "X-Spam-Flag") then error("flag") end
  mt.abort(c)
end
mt.disconnect(c)
"""


def test_another_implementation_understands_all_we_say(stack: ExitStack, tmp_path: Path) -> None:
    require("miltertest")
    spamd, port = daemon()
    stack.enter_context(spamd)
    script = tmp_path / "talk.lua"
    script.write_text(SCRIPT)
    done = subprocess.run(
        ["/usr/bin/miltertest", "-D", f"port={port}", "-s", str(script)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout + done.stderr) == (0, "connecting\n")
    scans = spamd.events("message.scanned")
    assert [scan["queue_id"] for scan in scans] == ["Q1", "Q2", "Q3"]
