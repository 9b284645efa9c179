"""What programs change: before → after, and forgetting restores exactly."""

from pathlib import Path

import pytest

from spamd.admin.roles import Role
from spamd.bayes.decision import Verdict
from spamd.sample import Label
from tests.admin.office import SPAM_WORDS, mail
from tests.admin.test_lessons import held as hold
from tests.fakes import FakeInspector, fake_report
from tests.listeners.web.api.asking import Api, api
from tests.listeners.web.api.test_table import check

STRANGE = "zebra giraffe okapi tapir"


async def test_a_scanned_mail_is_taught_and_forgotten_by_its_id(tmp_path: Path) -> None:
    async with api(tmp_path) as there:
        document = await there.get("/api/openapi.json")
        name = await there.office.scanned(mail(500, STRANGE))
        path = f"/api/mails/{name}/lesson"
        taught = await there.ask("PUT", path, body={"label": "spam"})
        check(document, "/api/mails/{mail}/lesson", taught.json, "put")
        found = taught.json
        assert (found["outcome"], found["label"]) == ("learned", "spam")
        assert found["after"]["probability"] > found["before"]["probability"]
        (row,) = (await there.get("/api/lessons", source="api"))["rows"]
        assert row["label"] == "spam"
        gone = await there.ask("DELETE", path)
        check(document, "/api/mails/{mail}/lesson", gone.json, "delete")
        assert (gone.json["outcome"], gone.json["label"]) == ("forgotten", None)
        assert gone.json["after"] == found["before"]
        assert (await there.ask("DELETE", path)).json["outcome"] == "unknown"
        assert (await there.ask("PUT", "/api/mails/no/lesson", body={"label": "ham"})).status == 404


async def test_a_mail_that_nobody_scanned_is_taught_and_forgotten_by_itself(tmp_path: Path) -> None:
    content = mail(500, STRANGE)
    async with api(tmp_path, full=True) as there:
        document = await there.get("/api/openapi.json")
        taught = await there.ask("POST", "/api/teach", {"label": "ham"}, mail=content)
        check(document, "/api/teach", taught.json, "post")
        assert taught.json["outcome"] == "learned"
        assert taught.json["after"]["probability"] < taught.json["before"]["probability"]
        again = await there.ask("POST", "/api/teach", {"label": "ham"}, mail=content)
        assert again.json["outcome"] == "known"
        (row,) = (await there.get("/api/lessons", source="api"))["rows"]
        assert row["actor"] == "teacher"
        gone = await there.ask("POST", "/api/forget", mail=content)
        assert gone.json["after"] == taught.json["before"]
        assert (await there.get("/api/mails"))["rows"] == []


async def test_a_rollback_takes_back_what_its_preview_counts(tmp_path: Path) -> None:
    async with api(tmp_path) as there:
        document = await there.get("/api/openapi.json")
        preview = await there.get("/api/lessons/rollback", label="spam", source="imap")
        assert (preview["lessons"], preview["spam_left"], preview["ham_left"]) == (12, 0, 12)
        body = {"label": "spam", "source": "imap"}
        done = await there.ask("POST", "/api/lessons/rollback", body=body)
        check(document, "/api/lessons/rollback", done.json, "post")
        assert done.json == {"taken_back": 12, "left": 0}
        for nothing, says in (({}, "say which lessons"), ({"label": None}, "what is not meant")):
            answer = await there.ask("POST", "/api/lessons/rollback", body=nothing)
            assert answer.status == 400
            assert answer.json["error"].startswith(says)
        assert (await there.get("/api/status"))["learned"]["ham"] == 12


async def test_held_lessons_are_released_and_dropped_by_number(tmp_path: Path) -> None:
    async with api(tmp_path) as there:
        for number in (700, 701, 702):
            await hold(there.office, number)
        document = await there.get("/api/openapi.json")
        held = await there.get("/api/lessons/held")
        check(document, "/api/lessons/held", held)
        first, second, *_ = (row["number"] for row in held["held"])
        done = await there.ask("POST", "/api/lessons/release", body={"numbers": [float(first)]})
        assert done.json == {"done": 1, "missing": 0}
        gone = await there.ask("POST", "/api/lessons/drop", body={"numbers": [second, second]})
        assert gone.json == {"done": 1, "missing": 0}
        left = await there.get("/api/lessons/held")
        assert len(left["held"]) == len(held["held"]) - 2
        again = await there.ask("POST", "/api/lessons/drop", body={"numbers": [second]})
        assert again.json == {"done": 0, "missing": 1}


async def scanned_by(there: Api, path: str, content: bytes, role: Role = Role.TEACHER) -> object:
    query = {"sender": "a@x.test", "recipients": "b@y.test, c@y.test", "client": "192.0.2.1"}
    answer = await there.ask("POST", path, query, mail=content, role=role)
    assert answer.status == 200, answer.body
    check(await there.get("/api/openapi.json"), path, answer.json, "post")
    return answer.json


async def test_a_mail_is_judged_by_what_smtp_said_of_it(tmp_path: Path) -> None:
    content = mail(500, SPAM_WORDS)
    async with api(tmp_path) as there:
        found = await scanned_by(there, "/api/scan", content, Role.READER)
        ((seen, envelope),) = there.here.inspector.seen
        assert seen == content
        assert envelope.sender == b"a@x.test"
        assert envelope.recipients == (b"b@y.test", b"c@y.test")
        assert envelope.client.address == "192.0.2.1"
    assert isinstance(found, dict)
    assert found["verdict"] in set(Verdict)
    assert found["fields"][0]["name"] == "X-Spam-Status"


async def test_a_mail_is_explained_with_its_words_to_teachers(tmp_path: Path) -> None:
    content = mail(500, SPAM_WORDS)
    async with api(tmp_path) as there:
        report = there.office.scanner.judge(there.office.features(content), 0.0)
        there.here.shared.judge.inspector = FakeInspector(report)
        found = await scanned_by(there, "/api/explain", content)
        assert isinstance(found, dict)
        assert found["scan"]["id"] == report.id
        assert "pills" in {each["token"] for each in found["words"]}
        reader = await scanned_by(there, "/api/explain", content, Role.READER)
        assert isinstance(reader, dict)
        assert (reader["open"], reader["words"]) == (False, [])
        unscanned = fake_report(Verdict.UNSCANNED, probability=None)
        there.here.shared.judge.inspector = FakeInspector(unscanned)
        assert (await there.ask("POST", "/api/explain", mail=content)).status == 503


@pytest.mark.parametrize(
    ("path", "query", "mail", "body", "status"),
    [
        ("/api/scan", {}, b"", None, 400),
        ("/api/scan", {}, None, {"a": 1}, 415),
        ("/api/teach", {}, b"x", None, 400),
        ("/api/teach", {"label": "unsure"}, b"x", None, 400),
        ("/api/scan", {"helo": "\0"}, b"x", None, 400),
        ("/api/lessons/drop", {}, None, {"numbers": []}, 400),
        ("/api/lessons/drop", {}, None, {"numbers": [0]}, 400),
        ("/api/lessons/drop", {}, None, {"numbers": [2**63]}, 400),
        ("/api/lessons/drop", {}, None, {"numbers": ["1"]}, 400),
        ("/api/lessons/drop", {"numbers": 1}, None, {"numbers": [1]}, 400),
        ("/api/lessons/drop", {}, None, [1], 400),
        ("/api/lessons/drop", {}, b"x", None, 415),
    ],
)
async def test_a_body_that_makes_no_sense_is_refused(
    tmp_path: Path,
    path: str,
    query: dict[str, object],
    mail: bytes | None,
    body: object,
    status: int,
) -> None:
    async with api(tmp_path, learned=0) as there:
        answer = await there.ask("POST", path, query, mail=mail, body=body)
        assert (answer.status, answer.json["error_domain"]) == (status, "request")
        both = {"label": "spam", "mail": "other"}
        assert (await there.ask("PUT", "/api/mails/x/lesson", body=both)).status == 400
        assert (await there.get("/api/lessons"))["rows"] == []


async def test_a_lesson_has_its_label_of_the_two(tmp_path: Path) -> None:
    async with api(tmp_path) as there:
        for label in Label:
            name = await there.office.scanned(mail(500, STRANGE))
            answer = await there.ask("PUT", f"/api/mails/{name}/lesson", body={"label": label})
            assert answer.json["label"] == label
