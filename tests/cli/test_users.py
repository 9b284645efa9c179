"""`spamd user`: who people are, and what they wish."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spamd.message.features import extract
from spamd.sample import Label
from spamd.storage.local.waiting_lessons import JournalOnDisk
from spamd.training.ports import WaitingLesson
from tests.cli.conftest import Spamd
from tests.docs.blocks import block

LESSONS = block("docs/users.md", "spamd train spam FILE --user")
ON = ("--set", "users.enabled=true")
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_who_is_behind_a_name_is_told_as_it_is_for_mail(home: Path, spamd: Spamd) -> None:
    (home / "virtual").write_text("info@example.org anna@example.org\n")
    (home / "users").write_text("anna\n")
    here = (
        *ON, "--set", "users.aliases_file=virtual", "--set", "users.users_file=users",
        "--set", "users.domain=example.org",
    )  # fmt: skip
    ran = spamd("user", "find", "Info+x@Example.org", "anna", "dora@example.org", *here)
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "Info+x@Example.org  anna@example.org  by users.aliases",
        "anna  anna@example.org  by the rules",
        "dora@example.org  @example.org, no user  by users.users_file",
    ]
    (found,) = spamd("user", "find", "info", "--json", *here).json["users"]
    assert found == {
        "name": "info", "user": "anna@example.org", "domain": "example.org", "by": "aliases",
        "missing": "",
    }  # fmt: skip


def test_what_does_not_answer_is_named(home: Path, spamd: Spamd) -> None:
    away = ("--set", 'users.command=["/nowhere/whose"]')
    ran = spamd("user", "find", "anna@example.org", *away)
    assert (ran.code, ran.out) == (75, "anna@example.org  anna@example.org  by the rules\n")
    assert "/nowhere/whose: No such file" in ran.err
    ran = spamd("user", "set", "anna@example.org", "--never-tag", *away)
    assert (ran.code, "try again later" in ran.err) == (75, True)


def test_wishes_are_set_one_by_one_and_taken_back(home: Path, spamd: Spamd) -> None:
    ran = spamd("user", "set", "Anna+x@Example.org", "--tag-from", "0.8", "--never-reject", *ON)
    assert (ran.out, ran.err) == ("anna@example.org  tag from 0.8, never reject\n", "")
    ran = spamd("user", "set", "anna@example.org", "--reject-from", "0.99", "--json", *ON)
    assert ran.json == {
        "owner": "anna@example.org",
        "wishes": {"tag_from": 0.8, "reject_from": 0.99, "tag": None, "reject": False},
    }
    assert "decision.reject is off" in ran.err
    ran = spamd("user", "unset", "anna@example.org", "reject", "reject_from", *ON)
    assert ran.out == "anna@example.org  tag from 0.8\n"
    assert spamd("user", "unset", "anna@example.org", *ON).out == "anna@example.org  no wishes\n"
    assert "@example.org  never tag" in spamd("user", "set", "@Example.org", "--never-tag", *ON).out


def test_wishes_while_all_are_judged_alike_are_kept_and_told(home: Path, spamd: Spamd) -> None:
    ran = spamd("user", "set", "anna@example.org", "--never-tag")
    assert (ran.code, "users.enabled is off" in ran.err) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("set", "anna@example.org"), "give what is wished"),
        (("set", "anna@example.org", "--tag-from", "2"), "tag_from must lie above 0"),
        (("set", "a@b.c", "--tag-from", "0.9", "--reject-from", "0.5"), "must not be below"),
        (("set", "@", "--never-tag"), "is no domain"),
        (("set", "nobody@example.org", "--never-tag"), "is no user"),
        (("unset", "anna@example.org", "colour"), "'colour' is none of tag_from"),
    ],
)
def test_what_can_not_be_wished_is_a_wrong_argument(
    home: Path, spamd: Spamd, arguments: tuple[str, ...], says: str
) -> None:
    (home / "users").write_text("anna@example.org\na@b.c\n")
    ran = spamd("user", *arguments, "--set", "users.users_file=users")
    assert (ran.code, says in ran.err) == (64, True), ran.err


def test_wishes_go_with_an_export_and_come_with_an_import(home: Path, spamd: Spamd) -> None:
    spamd("user", "set", "anna@example.org", "--tag-from", "0.8", "--never-reject")
    spamd("user", "set", "@example.org", "--never-tag")
    spamd("database", "export", "all.jsonl")
    other = ("--set", "database.url=sqlite:///other.db")
    spamd("database", "upgrade", *other)
    assert spamd("database", "import", "all.jsonl", *other).code == 0
    spamd("database", "export", "again.jsonl", *other)
    assert (home / "again.jsonl").read_text() == (home / "all.jsonl").read_text()
    assert (home / "all.jsonl").read_text().count('"wish"') == 2


def test_a_list_entry_for_an_alias_is_the_users(home: Path, spamd: Spamd) -> None:
    here = ("--set", 'users.aliases={"info@example.org" = "anna@example.org"}')
    ran = spamd("deny", "add", "a@b.example", "--user", "info@example.org", "--json", *here)
    assert [each["user"] for each in ran.json["entries"]] == ["anna@example.org"]


def test_a_users_lessons_count_for_them_and_all_of_a_user_is_forgotten(
    home: Path, spamd: Spamd
) -> None:
    name = "zelda@example.org"
    for number in (1, 2):
        (home / f"{number}.eml").write_text(
            f"From: news@shop.example\nSubject: offer {number}\n\nbuy these shoes now\n"
        )
    ran = spamd("train", "spam", "1.eml", "--user", name, *ON)
    assert ran.code == 0
    own = spamd("scan", "2.eml", "--json", "--user", name, *ON).json
    other = spamd("scan", "2.eml", "--json", "--user", "bob@example.org", *ON).json
    assert (own["user"], other["user"]) == (name, "")
    assert own["probability"] > 0.99
    assert "own lessons on such mail: 1 spam, 0 ham" in own["reason"]
    assert "own lessons" not in other["reason"]
    spamd("retrain", "ham", "1.eml", "--user", name, *ON)
    spamd("forget", "1.eml", "--user", name, *ON)
    assert spamd("user", "show", name, "--json", *ON).json["user"] == name
    spamd("train", "spam", "1.eml", "2.eml", "--user", name, *ON)
    spamd("user", "set", name, "--never-tag", *ON)
    assert spamd("user", "list", *ON).out == f"{name}  2 lessons, 1 wishes\n"
    assert spamd("user", "show", name, *ON).out == f"{name}  2 lessons, 1 wishes\n"
    (found,) = spamd("user", "list", "--json", *ON).json["users"]
    assert (found["user"], found["lessons"]) == (name, 2)
    ran = spamd("user", "forget", name, "--yes", *ON)
    assert (ran.code, ran.out) == (0, "forgotten: 2 lessons, 1 wishes\n")
    assert spamd("user", "forget", name, "--yes", "--json", *ON).json["forgotten"]["lessons"] == 0
    assert spamd("database", "export", "all.jsonl", *ON).code == 0
    export = (home / "all.jsonl").read_text()
    assert "zelda" not in export
    assert '{"lessons": 0}' in export
    assert spamd("database", "verify", *ON).code == 0


def test_lessons_that_wait_for_the_database_go_with_their_user(home: Path, spamd: Spamd) -> None:
    spamd("train", "spam", "spam/00.eml", *ON)
    mail = extract((home / "spam/01.eml").read_bytes())
    waiting = JournalOnDisk(home / "local", 1024 * 1024)
    lessons = [
        WaitingLesson(features=mail, label=Label.SPAM, source="address", actor=actor, given=NOW)
        for actor in ("Zelda+Shop@example.org", "bob@example.org")
    ]
    asyncio.run(waiting.keep(lessons))
    ran = spamd(
        "user", "forget", "zelda@example.org", "--yes", *ON, "--set", "database.local=local"
    )
    assert (ran.code, ran.out) == (0, "forgotten: 1 lessons that waited\n")
    assert waiting.names() == {"bob@example.org"}
    assert b"Zelda" not in (home / "local/lessons.waiting").read_bytes()


def test_lessons_of_a_user_are_given_and_taken_back_as_printed(home: Path, spamd: Spamd) -> None:
    (home / "FILE").write_bytes((home / "spam/00.eml").read_bytes())
    known = spamd("scan", "FILE", "--json", *ON).json["id"]
    printed = [words.split() for words in LESSONS.splitlines()]
    codes = [
        spamd(*(known if word == "ID" else word for word in words[1:]), *ON).code
        for words in printed
    ]
    assert [words[:2] for words in printed] == [
        ["spamd", "train"], ["spamd", "retrain"], ["spamd", "forget"], ["spamd", "scan"],
        ["spamd", "explain"],
    ]  # fmt: skip
    assert codes == [0, 0, 0, 2, 0]


def test_explain_tells_what_a_mail_is_for_a_user_and_a_copied_user_has_it_too(
    home: Path, spamd: Spamd
) -> None:
    anna, bob = "anna@example.org", "bob@example.org"
    spamd("train", "spam", "spam/00.eml", "--user", anna, *ON)
    spamd("user", "set", anna, "--tag-from", "0.8", *ON)
    spamd("deny", "add", "shop.example", "--user", anna, *ON)
    ran = spamd("explain", "spam/00.eml", "--user", anna, *ON)
    assert ran.out.startswith("For anna@example.org it is "), ran.out
    assert "own lessons on such mail: 1 spam, 0 ham" in ran.out.splitlines()[0]
    assert spamd("explain", "spam/00.eml", "--json", *ON).json["own"] is None
    own = spamd("explain", "spam/00.eml", "--json", "--user", bob, *ON).json["own"]
    assert "own lessons" not in own["reason"]
    ran = spamd("user", "copy", anna, bob, "--json", *ON)
    assert ran.json["copied"] == {"lessons": 1, "list_entries": 1, "wishes": 1}
    own = spamd("explain", "spam/00.eml", "--json", "--user", bob, *ON).json["own"]
    assert own["user"] == bob
    assert own["probability"] > 0.99
    assert "own lessons on such mail: 1 spam, 0 ham" in own["reason"]
    assert spamd("user", "copy", anna, bob, *ON).out == "copied: nothing\n"
    assert spamd("user", "copy", anna, anna, *ON).code == 64
    assert spamd("database", "verify", *ON).code == 0
