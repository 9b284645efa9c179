"""Commands that only read wait for no writer: somebody else holds the write lock all the time."""

import sqlite3
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Ran, Spamd

NO_WAITING = ("--set", "database.busy_timeout_s=0.1")


@pytest.fixture
def id_of_a_mail(taught: Spamd) -> str:
    name: str = taught("scan", "spam/00.eml", "--json").json["id"]
    return name


@pytest.fixture
def locked(taught: Spamd, id_of_a_mail: str) -> Iterator[Spamd]:
    """Return the command line while another process writes."""
    writer = sqlite3.connect("var/spamd.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")

    def call(*arguments: object) -> Ran:
        return taught(*NO_WAITING, *map(str, arguments))

    yield call
    writer.execute("ROLLBACK")
    writer.close()


@pytest.mark.parametrize(
    "command",
    [
        "scan spam/01.eml ham/01.eml",
        "explain spam/01.eml",
        "explain ID",
        "status",
        "rollback --since 1h --dry-run",
        "database prune --floor 0 --dry-run",
        "database verify",
        "database export -",
        "lessons held",
        "feedback parked",
        "config show",
        "config check",
    ],
)
def test_i5_a_command_that_only_reads_takes_no_write_lock(
    locked: Spamd, id_of_a_mail: str, command: str
) -> None:
    ran = locked(*command.replace("ID", id_of_a_mail).split())
    assert (ran.code, "refused" in ran.err) == (0, False), ran.err


def test_i5_a_command_that_writes_says_that_it_can_t(locked: Spamd) -> None:
    ran = locked("--set", "training.attempts=1", "forget", "spam/00.eml")
    assert (ran.code, "database is locked" in ran.err) == (75, True), ran.err
