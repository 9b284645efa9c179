"""Commands that only read wait for no writer and write nothing themselves, on both databases.

On SQLite somebody else holds the write lock all the time; on PostgreSQL every transaction is
read-only.
"""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Ran, Spamd, made_up
from tests.docs.manual import ROOT, _each
from tests.servers.postgresql import Postgresql

ANNA = "anna@example.org"
SQLITE = "sqlite:///var/spamd.db"

READING = {
    "scan": "spam/01.eml ham/01.eml",
    "filter": "",
    "explain": "ID",
    "status": "--json",
    "rollback": "--since 1h --dry-run",
    "bootstrap": "Maildir --dry-run",
    "feedback parked": "",
    "lessons held": "",
    "allow list": "",
    "deny list": "",
    "user find": ANNA,
    "user list": "",
    "user show": ANNA,
    "database verify": "",
    "database prune": "--floor 0 --dry-run",
    "database export": "-",
    "database copy": "DATABASE sqlite:///var/copy.db",
    "config show": "",
    "config check": "",
}
"""Each that reads, with what it is asked here."""

WRITING = {
    "train", "retrain", "forget", "feedback once", "feedback watch", "lessons release",
    "lessons drop", "allow add", "allow remove", "deny add", "deny remove", "user set",
    "user unset", "user forget", "user copy", "database upgrade", "database import",
    "database reset", "serve",
}  # fmt: skip

ELSEWHERE = {
    "evaluate": "it neither reads nor changes the database",
    "password": "it knows no database",
    "doctor": "it sends a mail through the whole installation (tests/e2e/test_doctor.py)",
}


def test_every_command_is_known_to_read_or_to_write() -> None:
    each = [(words, command) for name, top in ROOT.commands.items()
            for words, command in _each(name, top)]  # fmt: skip
    assert {words for words, _ in each} == {*READING, *WRITING, *ELSEWHERE}
    for words, command in each:
        if any("--dry-run" in parameter.opts for parameter in command.params):
            assert "--dry-run" in READING[words]


def ask_all(spamd: Spamd, url: str) -> dict[str, str]:
    """Run all commands that read; return what those said that failed."""
    database = ("--set", f"database.url={url}", "--set", "database.busy_timeout_s=0.1")
    id_of_a_mail = "f" * 16
    failed = {}
    for words, rest in READING.items():
        given = rest.replace("ID", id_of_a_mail).replace("DATABASE", url).split()
        command = (*database, *words.split(), *given)
        ran = filtered(*database) if words == "filter" else spamd(*command)
        if words == "scan":
            id_of_a_mail = spamd(*database, "scan", "spam/01.eml", "--json").json["id"]
        if ran.code or "refused" in ran.err:
            failed[words] = f"{ran.code}: {ran.out[-300:]}{ran.err[-300:]}"
    return failed


def filtered(*options: str) -> Ran:
    done = subprocess.run(
        [sys.executable, "-m", "spamd", *options, "filter"],
        input=made_up("spam", 1), capture_output=True, check=False,
    )  # fmt: skip
    judged = b"X-Spam-Status" in done.stdout and b"unscanned" not in done.stdout
    return Ran(code=0 if judged else 1, out=done.stdout.decode(), err=done.stderr.decode())


@pytest.fixture
def maildir(home: Path) -> None:
    for folder in ("cur", "new", "tmp", ".Junk/cur", ".Junk/new", ".Junk/tmp"):
        (home / "Maildir" / folder).mkdir(parents=True)
    (home / "Maildir/.Junk/cur/1.mail:2,S").write_bytes(made_up("spam", 1))


@pytest.fixture
def locked(taught: Spamd) -> Iterator[None]:
    """Another process writes."""
    writer = sqlite3.connect("var/spamd.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    yield
    writer.execute("ROLLBACK")
    writer.close()


@pytest.mark.usefixtures("maildir", "locked")
def test_i5_commands_that_only_read_take_no_write_lock(spamd: Spamd) -> None:
    assert ask_all(spamd, SQLITE) == {}


@pytest.mark.usefixtures("locked")
def test_i5_a_command_that_writes_says_that_it_can_t(spamd: Spamd) -> None:
    at_once = ("--set", "database.busy_timeout_s=0.1", "--set", "training.attempts=1")
    ran = spamd(*at_once, "forget", "spam/00.eml")
    assert (ran.code, "database is locked" in ran.err) == (75, True), ran.err


@pytest.mark.usefixtures("maildir")
def test_i5_commands_that_only_read_write_nothing_into_postgresql(
    spamd: Spamd, postgresql: Postgresql, postgresql_url: str
) -> None:
    here = ("--set", f"database.url={postgresql_url}")
    assert spamd(*here, "database", "upgrade").code == 0
    for label in ("spam", "ham"):
        assert spamd(*here, "train", label, label).code == 0
    name = postgresql_url.rsplit("/", 1)[1]
    postgresql.do(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    assert ask_all(spamd, postgresql_url) == {}
    ran = spamd(*here, "forget", "spam/00.eml")
    assert (ran.code, "read-only" in ran.err) == (75, True), ran.err
