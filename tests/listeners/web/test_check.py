"""What a client of rspamd reads about a mail, and what of its request becomes the envelope."""

import asyncio
import json
from pathlib import Path

import pytest

from spamd.bayes.decision import Action, Verdict
from spamd.errors import Overloaded, StorageUnavailable
from spamd.listeners.web.envelope import envelope_of, fields_of
from spamd.message.envelope import Client
from spamd.network.judge import OnFault
from tests.fakes import HAM, REJECT, SPAM, FakeInspector, fake_report
from tests.listeners.web.clients import MAIL, request, running

SAID = ("is_skipped", "score", "required_score", "action")


async def test_ham_is_no_action_and_our_fields_are_named_in_their_order() -> None:
    async with running(FakeInspector(HAM)) as here:
        answer = await here.post("/checkv2")
    assert (answer.status, answer.fields["content-type"]) == (200, "application/json")
    assert [answer.json[key] for key in SAID] == [False, -1.8, 5.0, "no action"]
    assert answer.json["message-id"] == "1@x.test"
    fields = answer.json["milter"]["add_headers"]
    assert list(fields) == ["X-Spam-Status", "X-Spam-Probability", "X-Spam-Id"]
    assert [field["order"] for field in fields.values()] == [0, 1, 2]
    assert fields["X-Spam-Id"]["value"] == "fake-id"
    assert answer.json["milter"]["remove_headers"] == {}
    assert (answer.json["urls"], answer.json["emails"], answer.json["messages"]) == ([], [], {})
    assert here.inspector.seen[0][0] == MAIL


async def test_spam_is_add_header_and_its_flag_is_among_the_fields() -> None:
    async with running(FakeInspector(SPAM)) as here:
        answer = await here.post("/checkv2")
    assert answer.json["action"] == "add header"
    assert answer.json["score"] > answer.json["required_score"] == 5.0
    assert answer.json["milter"]["add_headers"]["X-Spam-Flag"] == {"value": "YES", "order": 1}
    assert answer.json["thresholds"] == {"add header": 5.0, "reject": 9.7}


async def test_a_mail_to_be_rejected_says_what_its_sender_reads() -> None:
    async with running(FakeInspector(REJECT)) as here:
        answer = await here.post("/checkv2")
    assert answer.json["action"] == "reject"
    assert answer.json["messages"] == {"smtp_message": "Rejected as spam"}


async def test_unsure_is_no_action_below_the_border() -> None:
    report = fake_report(Verdict.UNSURE, Action.ACCEPT, probability=0.95)
    async with running(FakeInspector(report)) as here:
        answer = await here.post("/checkv2")
    assert (answer.json["action"], answer.json["score"]) == ("no action", 4.9)


async def test_what_could_not_be_judged_is_skipped_or_comes_again_as_the_setting_says() -> None:
    broken = FakeInspector(fault=ZeroDivisionError("of ours"))
    async with running(broken) as here:
        accepted = await here.post("/checkv2")
    async with running(broken, on_fault=OnFault.DEFER) as here:
        deferred = await here.post("/checkv2")
    assert [accepted.json[key] for key in SAID] == [True, 0.0, 5.0, "no action"]
    assert "unscanned" in accepted.json["milter"]["add_headers"]["X-Spam-Status"]["value"]
    assert [deferred.json[key] for key in SAID] == [True, 0.0, 5.0, "soft reject"]
    assert b"ours" not in accepted.body + deferred.body


@pytest.mark.parametrize("fault", [Overloaded("full"), StorageUnavailable("away")])
async def test_what_passes_is_a_soft_reject(fault: Exception) -> None:
    async with running(FakeInspector(fault=fault), on_fault=OnFault.DEFER) as here:
        answer = await here.post("/checkv2")
    assert (answer.status, answer.json["action"]) == (200, "soft reject")
    assert answer.json["messages"] == {"smtp_message": "Try again later"}
    assert not here.observer.scans


@pytest.mark.parametrize("path", ["/check", "/symbols", "/scan"])
async def test_the_older_paths_answer_both_ways(path: str) -> None:
    report = fake_report(Verdict.SPAM, Action.TAG, probability=0.999)
    async with running(FakeInspector(report)) as here:
        answer = await here.post(path)
    assert answer.json["action"] == answer.json["default"]["action"] == "add header"
    assert answer.json["default"]["is_spam"] is True


async def test_each_scan_is_told_once_with_its_recipients() -> None:
    async with running() as here:
        await here.post("/checkv2", fields=["Rcpt: a@y.test", "Rcpt: b@y.test"])
    ((_, reply, recipients),) = here.observer.scans
    assert (reply[:3], recipients) == (b"200", 2)


async def test_every_classifier_is_a_symbol_that_clients_can_read() -> None:
    report = fake_report()
    object.__setattr__(report, "scores", {"graham": 2.0, "fisher": -800.0, "new": 800.0})
    async with running(FakeInspector(report)) as here:
        answer = await here.post("/checkv2")
    symbols = answer.json["symbols"]
    assert list(symbols) == ["SPAMD_GRAHAM", "SPAMD_FISHER", "SPAMD_NEW"]
    for name, symbol in symbols.items():
        assert symbol["name"] == name
        assert isinstance(symbol["score"], float)
        assert symbol["metric_score"] == symbol["score"]
    assert symbols["SPAMD_GRAHAM"]["options"] == ["88.08%"]
    assert symbols["SPAMD_FISHER"]["options"] == ["0.00%"]
    assert symbols["SPAMD_NEW"]["options"] == ["100.00%"]


@pytest.mark.parametrize(
    ("mail", "names"),
    [
        (b"X-Spam-Flag: NO\r\nx-spam-flag: no\r\nX-SPAM-Status: No\r\n" + MAIL,
         ["X-Spam-Flag", "x-spam-flag", "X-SPAM-Status"]),
        (b"From a@x Sat Nov 28\r\nX-Spam-Id: 1\n" + MAIL, ["X-Spam-Id"]),
        (b"Subject: a\r\n X-Spam-Flag: NO\r\n\r\nX-Spam-Flag: NO\r\n", []),
        (b"X-Spam\x00-Flag: NO\r\n\r\n", []),
        (b"", []),
    ],
)  # fmt: skip
async def test_forged_fields_are_to_be_removed_by_the_name_they_have(
    mail: bytes, names: list[str]
) -> None:
    async with running() as here:
        answer = await here.post("/checkv2", mail)
    assert answer.json["milter"]["remove_headers"] == dict.fromkeys(names, 0)


async def test_forged_fields_of_a_mail_on_disk_are_found_too() -> None:
    mail = b"X-Spam-Flag: NO\r\n" + MAIL + b"line\r\n" * 100_000
    async with running(spool_above_bytes=1000) as here:
        answer = await here.post("/checkv2", mail)
    assert answer.json["milter"]["remove_headers"] == {"X-Spam-Flag": 0}
    assert answer.json["message-id"] == "1@x.test"
    assert here.inspector.seen[0][0] == mail


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (b"Message-ID: <a@b.test>", "a@b.test"),
        (b"message-id:\r\n <a@b.test>", "a@b.test"),
        (b"Message-ID: a@b.test", "a@b.test"),
        (b"Message-ID: <\xff@b.test>", "undef"),
        (b"Subject: none", "undef"),
    ],
)
async def test_the_message_id_is_what_the_field_says(field: bytes, said: str) -> None:
    async with running() as here:
        answer = await here.post("/checkv2", field + b"\r\n\r\nMessage-ID: <not@this>\r\n")
    assert answer.json["message-id"] == said


def test_the_fields_of_a_request_become_the_envelope() -> None:
    fields = fields_of(
        [
            (b"from", b"<a@x.test>"),
            (b"rcpt", b"<b@y.test>"),
            (b"rcpt", b'c@y.test, <"d,e"@y.test>,,'),
            (b"ip", b"2001:db8::1"),
            (b"helo", b"mail.x.test"),
            (b"hostname", b"mx.x.test"),
            (b"user", b"ann"),
            (b"tls-version", b"TLSv1.3"),
            (b"file", b"/etc/passwd"),
        ]
    )
    envelope = envelope_of(fields, "127.0.0.1")
    assert envelope.sender == b"a@x.test"
    assert envelope.recipients == (b"b@y.test", b"c@y.test", b'"d,e"@y.test')
    assert envelope.client == Client(
        address="2001:db8::1", port=0, helo="mail.x.test", name="mx.x.test",
        tls=True, login="ann", protocol="HTTP",
    )  # fmt: skip


def test_without_fields_the_client_itself_is_all_that_is_known() -> None:
    envelope = envelope_of(fields_of([(b"ip", b"no address"), (b"from", b"<>")]), "192.0.2.1")
    assert (envelope.sender, envelope.recipients) == (b"", ())
    assert envelope.client.address == "192.0.2.1"
    assert envelope.client.login is None


async def test_over_a_unix_socket_it_is_the_same(tmp_path: Path) -> None:
    async with running(FakeInspector(SPAM), address=f"unix:{tmp_path}/s") as here:
        answer = await here.post("/checkv2")
    assert answer.json["action"] == "add header"


async def test_statistics_count_what_was_answered() -> None:
    async with running(FakeInspector(SPAM)) as here:
        await here.post("/checkv2")
        answer = await here.get("/stat")
    assert (answer.json["scanned"], answer.json["actions"]["add header"]) == (1, 1)
    assert (answer.json["spam_count"], answer.json["learned"]) == (1, 14)


async def test_a_ping_is_answered_as_rspamd_does() -> None:
    async with running() as here:
        answer = await here.get("/ping")
    assert (answer.body, answer.fields["content-type"]) == (b"pong\r\n", "text/plain")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nothing", 404), ("GET", "/checkv2", 405), ("PUT", "/learnspam", 405)],
)
async def test_what_is_not_there_is_said_as_json(method: str, path: str, status: int) -> None:
    async with running() as here:
        raw = await here.ask(request(path, b"", method=method))
    head, _, body = raw.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert json.loads(body)["error"]


async def test_a_fault_of_ours_ends_its_request_only_and_is_told_without_its_text() -> None:
    async with running() as here:
        here.shared.judge = None  # type: ignore[assignment]  # a bug
        raw = await here.ask(request("/checkv2", MAIL))
        assert (await here.get("/ping")).status == 200
    assert raw.startswith(b"HTTP/1.1 500 temporary internal error\r\n")
    assert b"NoneType" not in raw
    assert [name for name, _ in here.observer.faults] == ["session.failed"]


async def test_several_requests_of_one_connection_are_answered_in_their_order() -> None:
    gate = asyncio.Event()
    async with running(FakeInspector(SPAM, gate=gate)) as here:
        asking = asyncio.ensure_future(
            here.ask(
                request("/checkv2", last=False) + request("/ping", None, method="GET", last=False),
                request("/checkv2", MAIL + b"2"),
            )
        )
        await here.inspector.begun.wait()
        gate.set()
        raw = await asking
    assert [raw.index(b"add header") < raw.index(b"pong"), raw.count(b"HTTP/1.1 200")] == [True, 3]
    assert [content for content, _ in here.inspector.seen] == [MAIL, MAIL + b"2"]
