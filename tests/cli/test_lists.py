"""`spamd allow` and `spamd deny`, and what they do to a mail that is scanned."""

from pathlib import Path

import pytest

from tests.cli.conftest import Spamd

TRUST = ("--set", 'auth.trusted=["mx.example.org"]')
PROVEN = """\
Authentication-Results: mx.example.org; dmarc=pass header.from=prizes.example
Received: from mail.prizes.example (mail.prizes.example [203.0.113.9]) by mx.example.org
From: Prizes <news@prizes.example>
To: anna@example.org
Subject: lottery winner

lottery winner claim prize million dollars transfer urgent offer pills casino
"""
FORGED = PROVEN.replace("dmarc=pass", "dmarc=fail")


@pytest.fixture
def mails(home: Path, spamd: Spamd) -> Path:
    spamd("train", "--spam", "spam", "--ham", "ham")
    (home / "proven.eml").write_text(PROVEN)
    (home / "forged.eml").write_text(FORGED)
    return home


@pytest.mark.usefixtures("mails")
def test_an_entry_lets_in_what_is_proven_and_nothing_else(spamd: Spamd) -> None:
    before = spamd("scan", "proven.eml", "forged.eml", "--json", *TRUST)
    assert '"verdict": "spam"' in before.out
    added = spamd("allow", "add", "prizes.example", "--json", *TRUST).json["entries"]
    assert [(each["name"], each["kind"], each["user"]) for each in added] == [
        ("prizes.example", "domain", "")
    ]
    proven = spamd("scan", "proven.eml", "--json", *TRUST).json
    assert (proven["verdict"], proven["action"]) == ("ham", "accept")
    assert proven["listed"] == f"allow {added[0]['number']}"
    forged = spamd("scan", "forged.eml", "--json", *TRUST).json
    assert (forged["verdict"], forged["listed"]) == ("spam", "")
    assert "does not count" in forged["reason"]


@pytest.mark.usefixtures("mails")
def test_explain_tells_which_entry_decided_or_why_it_does_not_count(spamd: Spamd) -> None:
    spamd("allow", "add", "news@prizes.example", *TRUST)
    let_in = spamd("explain", "proven.eml", *TRUST).out
    assert "let in by a list" in let_in
    assert "news@prizes.example is proven by dmarc" in let_in
    forged = spamd("explain", "forged.eml", *TRUST).out
    assert "does not count: news@prizes.example is not proven: dmarc=fail" in forged
    assert spamd("explain", "forged.eml", "--json", *TRUST).json["sender"]["refused"] == [1]


@pytest.mark.usefixtures("mails")
def test_an_entry_keeps_out_and_can_be_removed(spamd: Spamd) -> None:
    spamd("deny", "add", "203.0.113.0/24", "--expires", "30d", *TRUST)
    kept_out = spamd("scan", "proven.eml", "--json", *TRUST).json
    assert (kept_out["verdict"], kept_out["probability"]) == ("spam", 1.0)
    (entry,) = spamd("deny", "list", "--json").json["entries"]
    assert entry["expires"]
    assert spamd("deny", "remove", "203.0.113.0/24", "--json").json == {"removed": 1}
    again = spamd("deny", "remove", "203.0.113.0/24")
    assert (again.code, "no such entry" in again.err) == (3, True)
    assert spamd("deny", "list").out == "no entries\n"


@pytest.mark.usefixtures("mails")
def test_entries_of_a_user_and_of_a_domain_are_theirs(spamd: Spamd) -> None:
    spamd("allow", "add", "prizes.example", "--user", "Anna@Example.org", *TRUST)
    spamd("deny", "add", "prizes.example", "--domain", "example.org", *TRUST)
    assert spamd("scan", "proven.eml", "--json", *TRUST).json["listed"] == ""
    listed = spamd("allow", "list", "--user", "anna@example.org", "--json").json["entries"]
    assert [each["user"] for each in listed] == ["anna@example.org"]
    assert spamd("deny", "list", "--domain", "example.org").out.count("prizes.example") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("allow", "add", "to:abuse@example.org"), "--unproven"),
        (("allow", "add", "shop"), "no address, domain, network"),
        (("allow", "add", "0.0.0.0/0"), "all clients"),
        (("deny", "add", "a@b.example", "--expires", "soon"), "neither 12h"),
        (("deny", "add", "a@b.example", "--user", "a", "--domain", "b.example"), "not both"),
    ],
)
def test_what_can_not_be_an_entry_is_a_wrong_argument(
    home: Path, spamd: Spamd, arguments: tuple[str, ...], says: str
) -> None:
    ran = spamd(*arguments)
    assert ran.code == 64
    assert says in ran.err


@pytest.mark.usefixtures("mails")
def test_entries_go_with_an_export_and_come_with_an_import(spamd: Spamd) -> None:
    spamd("allow", "add", "prizes.example", "--user", "anna@example.org", *TRUST)
    spamd("deny", "add", "list:news.prizes.example", *TRUST)
    spamd("database", "export", "all.jsonl")
    other = ("--set", "database.url=sqlite:///other.db")
    spamd("database", "upgrade", *other)
    assert spamd("database", "import", "all.jsonl", *other).code == 0
    for effect in ("allow", "deny"):
        mine = spamd(effect, "list", "--json").json["entries"]
        theirs = spamd(effect, "list", "--json", *other).json["entries"]
        assert [{**each, "number": 0} for each in mine] == [
            {**each, "number": 0} for each in theirs
        ]
