"""What programs read: lists, mails, words; and what is refused in one form."""

import json
from pathlib import Path

import pytest

from spamd.admin.roles import Role
from spamd.errors import StorageUnavailable
from spamd.sample import Label
from tests.admin.office import HAM_WORDS, SPAM_WORDS, mail
from tests.listeners.web.api.asking import api


async def test_a_mail_is_found_in_the_history_and_shown_with_its_words_to_teachers(
    tmp_path: Path,
) -> None:
    async with api(tmp_path) as there:
        name = await there.office.scanned(mail(500, SPAM_WORDS), "Q77")
        found = await there.get("/api/mails", queue_id="Q77", verdict="spam")
        (row,) = found["rows"]
        assert (row["id"], row["verdict"], row["listener"]) == (name, "spam", "smtp")
        assert "place" not in row
        shown = await there.get(f"/api/mails/{name}")
        assert shown["open"]
        assert "pills" in {each["token"] for each in shown["words"]}
        reader = await there.ask("GET", f"/api/mails/{name}", role=Role.READER)
        assert reader.status == 200
        assert not reader.json["open"]
        assert b"pills" not in reader.body
        found = await there.get(f"/api/mails/{name}/basis")
        assert found["words"][0]["lessons"]["found"]
        assert (await there.ask("GET", "/api/mails/unknown")).status == 404


async def test_a_list_goes_on_where_it_says(tmp_path: Path) -> None:
    async with api(tmp_path) as there:
        names = [await there.office.scanned(mail(n, SPAM_WORDS)) for n in range(500, 505)]
        first = await there.get("/api/mails", limit=3)
        second = await there.get("/api/mails", limit=3, at=first["older"])
        assert [row["id"] for row in first["rows"] + second["rows"]] == names[::-1]
        again = await there.get("/api/mails", limit=3, at=second["newer"])
        assert again["rows"] == first["rows"]


async def test_people_are_named_only_where_the_log_may_name_them(tmp_path: Path) -> None:
    async with api(tmp_path) as there:
        found = await there.get("/api/lessons")
        assert {(row["actor"], row["sender_domain"]) for row in found["rows"]} == {("", "")}
        answer = await there.ask("GET", "/api/lessons", {"actor": "ann"})
        assert answer.status == 403
        preview = await there.ask("GET", "/api/lessons/rollback", {"sender_domain": "example.org"})
        assert preview.status == 403
    folder = tmp_path / "full"
    folder.mkdir()
    async with api(folder, full=True) as there:
        found = await there.get("/api/lessons", actor="bob", label="ham")
        assert {row["actor"] for row in found["rows"]} == {"bob"}


async def test_the_status_says_what_was_learned_and_the_settings_where_they_come_from(
    tmp_path: Path,
) -> None:
    async with api(tmp_path) as there:
        found = await there.get("/api/status")
        assert (found["learned"]["ham"], found["learned"]["spam"]) == (12, 12)
        settings = await there.get("/api/settings")
        rows = {row["key"]: row for row in settings["settings"]}
        assert rows["decision.reject"]["origin"] == "default"
        assert set(settings["thresholds"]) >= {"unsure", "tag"}
        assert (await there.get("/api/lessons/rollback", label="ham"))["ham_left"] == 0
        assert (await there.get("/api/words", word="PILLS"))["forms"][0]["spam"] == 12
        assert (await there.get("/api/accounts"))["accounts"] == []
        assert (await there.ask("GET", "/api/account", {"name": "x"})).status == 404


@pytest.mark.parametrize(
    ("path", "query", "says"),
    [
        ("/api/mails", {"limit": 0}, "limit: "),
        ("/api/mails", {"limit": "ten"}, "limit: "),
        ("/api/mails", {"verdict": "perhaps"}, "verdict: "),
        ("/api/mails", {"at": "nowhere"}, "at: "),
        ("/api/mails", {"at": "-1.\0"}, "at: "),
        ("/api/mails", {"id": "\0"}, "id: "),
        ("/api/mails", {"since": "yesterday"}, "since: "),
        ("/api/mails", {"until": 0.5}, "until: "),
        ("/api/mails", {"until": -5}, "until: "),
        ("/api/mails", {"since": "2026-01-02T03:04:05"}, "since: "),
        ("/api/mails", {"color": "red"}, "color: "),
        ("/api/mails", {"x\r\nSet-Cookie: a=b\x1b[31mé\u202e": "1"}, "x\\r\\nSet-Cookie: a=b"),
        ("/api/mails?limit=1&limit=2", {}, "a name stands twice"),
        ("/api/words", {"behind": -1, "word": "x"}, "behind: "),
        ("/api/words", {"behind": 2**63, "word": "x"}, "behind: "),
        ("/api/words", {}, "word: "),
        ("/api/status", {"hours": 10**30}, "hours: "),
    ],
)
async def test_what_makes_no_sense_is_refused_in_one_ascii_sentence(
    tmp_path: Path, path: str, query: dict[str, object], says: str
) -> None:
    async with api(tmp_path, learned=0) as there:
        answer = await there.ask("GET", path, query)
    assert answer.status == 400
    assert answer.json["error_domain"] == "request"
    assert answer.json["error"].startswith(says)
    assert answer.phrase == answer.json["error"]
    assert answer.body.isascii()
    assert "set-cookie" not in answer.fields


async def test_times_at_the_end_of_all_time_are_times(tmp_path: Path) -> None:
    async with api(tmp_path, learned=0) as there:
        for time in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
            assert (await there.get("/api/mails", since=time))["rows"] == []
            assert (await there.get("/api/lessons", until=time))["rows"] == []


async def test_another_method_is_told_which_ones_there_are(tmp_path: Path) -> None:
    async with api(tmp_path, learned=0) as there:
        answer = await there.ask("DELETE", "/api/status")
        assert answer.status == 405
        assert set(answer.fields["allow"].split(", ")) == {"GET", "HEAD"}
        assert answer.json["error_domain"] == "request"
        assert (await there.ask("GET", "/api/nothing")).json["error"] == "Not Found"


async def test_while_the_database_is_away_that_is_said(tmp_path: Path) -> None:
    async with api(tmp_path, learned=0) as there:

        async def away(*_: object, **__: object) -> None:
            raise StorageUnavailable("secret host")

        there.office.store.records.lessons = away  # type: ignore[method-assign, assignment]  # a database that is away
        answer = await there.ask("GET", "/api/lessons")
    assert (answer.status, answer.json["error_domain"]) == (503, "spamd")
    assert b"secret" not in answer.body


HOSTILE = "<script>alert(1)</script>\x1b[31mred\u202eevil\u2028"


async def test_words_of_a_hostile_mail_are_text_of_plain_ascii(tmp_path: Path) -> None:
    word = "x" * 10_000
    content = (
        f"From: {HOSTILE} <a@b.example>\r\nSubject: {HOSTILE} {word}\r\n"
        "Content-Type: text/html; charset=utf-8\r\n\r\n"
        f"<style>p{{color:red}}</style><p>{HOSTILE} {HAM_WORDS} {word} a\u202eb</p>\r\n"
    ).encode()
    async with api(tmp_path, full=True) as there:
        name = await there.office.scanned(content, HOSTILE)
        await there.office.taught(Label.SPAM, [content], HOSTILE)
        bodies = [
            (await there.ask("GET", path, query)).body
            for path, query in (
                ("/api/mails", {}),
                (f"/api/mails/{name}", {}),
                (f"/api/mails/{name}/basis", {}),
                ("/api/lessons", {}),
                ("/api/status", {}),
                ("/api/words", {"word": HOSTILE}),
            )
        ]
    for body in bodies:
        assert all(0x20 <= octet < 0x7F for octet in body)
        json.loads(body)
