"""The database commands: nothing lost, everything said."""

import io
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Spamd
from tests.docs.blocks import block

COPY = block("docs/operations.md", "spamd database copy")


def scores(explained: Any) -> dict[str, float]:
    return {classifier["name"]: classifier["score"] for classifier in explained["classifiers"]}


def test_upgrade_makes_the_tables_once(spamd: Spamd) -> None:
    first = spamd("database", "upgrade", "--json").json
    second = spamd("database", "upgrade")

    assert first["before"] is None
    assert second.out == f"sqlite:///var/spamd.db has schema {first['after']} already\n"


def test_verify_agrees_after_training(taught: Spamd) -> None:
    ran = taught("database", "verify", "--json")

    assert (ran.code, ran.json["lessons"], ran.json["faults"]) == (0, 20, [])


def test_verify_finds_a_count_that_somebody_changed(taught: Spamd, home: Path) -> None:
    import sqlite3

    with sqlite3.connect(home / "var/spamd.db") as connection:
        connection.execute(
            "UPDATE token SET ham = ham + 1, ham_occurrences = ham_occurrences + 1"
            " WHERE id = (SELECT min(id) FROM token)"
        )
    connection.close()

    ran = taught("database", "verify")

    assert ran.code == 3
    assert "1 tokens have other counts than the journal says" in ran.out


def test_export_and_import_give_back_the_same(taught: Spamd, home: Path) -> None:
    before = taught("explain", "spam/11.eml", "--json").json
    assert taught("database", "export", "all.jsonl.gz", "--json").json["lessons"] == 20
    assert taught("database", "reset", "--yes").code == 0
    assert taught("status", "--json").json["corpus"]["tokens"] == 0

    ran = taught("database", "import", "all.jsonl.gz")

    assert ran.code == 0
    after = taught("explain", "spam/11.eml", "--json").json
    assert after["probability"] == pytest.approx(before["probability"], abs=0.01)
    assert scores(after) == scores(before)


def test_copy_makes_another_database_of_the_same_content(taught: Spamd, home: Path) -> None:
    before = taught("explain", "spam/11.eml", "--json").json

    ran = taught("database", "copy", "sqlite:///var/spamd.db", "sqlite:///var/copy.db", "--json")

    assert (ran.code, ran.json["from"], ran.json["to"], ran.json["resumed"]) == (
        0,
        "sqlite:///var/spamd.db",
        "sqlite:///var/copy.db",
        False,
    )
    assert ran.json["rows"]["lesson"] == 20
    there = ("--set", "database.url=sqlite:///var/copy.db")
    assert taught(*there, "explain", "spam/11.eml", "--json").json == before
    assert taught(*there, "database", "verify", "--json").json["faults"] == []


def test_copy_goes_to_postgresql_as_it_is_printed(taught: Spamd, postgresql_url: str) -> None:
    program, *words = COPY.split()
    there = [postgresql_url if word.startswith("postgresql:") else word for word in words]
    urls = ["sqlite:///var/spamd.db" if word.startswith("sqlite:") else word for word in there]

    ran = taught(*urls)

    assert (program, ran.code) == ("spamd", 0), ran.err
    verified = taught("--set", f"database.url={postgresql_url}", "database", "verify", "--json")
    assert (verified.code, verified.json["lessons"]) == (0, 20)


def test_copy_refuses_what_would_lose_something(taught: Spamd, home: Path) -> None:
    here, there = "sqlite:///var/spamd.db", "sqlite:///var/copy.db"
    assert taught("database", "copy", here, there).out.splitlines()[0] == (
        "sqlite:///var/copy.db holds all of sqlite:///var/spamd.db now"
    )

    again = taught("database", "copy", here, there)
    missing = taught("database", "copy", "sqlite:///var/none.db", "sqlite:///var/new.db")

    assert (again.code, "is not empty" in again.err) == (3, True)
    assert (missing.code, "there is no such file" in missing.err) == (3, True)
    assert not (home / "var/none.db").exists()
    assert taught("database", "copy", here, f"sqlite:///{home}/var/spamd.db").code == 64
    assert taught("database", "copy", here, "mysql://b/c").code == 64


def test_export_never_overwrites(taught: Spamd, home: Path) -> None:
    (home / "precious").write_text("data")

    ran = taught("database", "export", "precious")

    assert (ran.code, ran.err) == (
        3,
        "spamd: precious: the file exists already; give another name\n",
    )
    assert (home / "precious").read_text() == "data"


def test_import_of_something_else_is_refused(
    taught: Spamd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"hello\n")))

    ran = taught("database", "import", "-")

    assert (ran.code, ran.err.count("\n")) == (3, 1)


def test_import_of_half_a_file_says_so(taught: Spamd, home: Path) -> None:
    taught("database", "export", "all.jsonl")
    lines = (home / "all.jsonl").read_text().splitlines(keepends=True)
    (home / "half.jsonl").write_text("".join(lines[:11]))
    taught("database", "reset", "--yes")

    ran = taught("database", "import", "half.jsonl")

    assert ran.code == 1
    assert "the file ends early" in ran.err
    assert taught("database", "verify", "--json").json["lessons"] == 10


def test_reset_asks_first_and_leaves_a_backup(taught: Spamd, home: Path) -> None:
    assert taught("database", "reset").code == 64

    ran = taught("database", "reset", "--yes", "--json")

    assert Path(ran.json["backup"]).stat().st_size > 0
    assert taught("train", "spam", "spam/00.eml", "--json").json["learned"] == 1


def test_prune_counts_before_it_removes(taught: Spamd) -> None:
    ran = taught("database", "prune", "--floor", "0", "--dry-run", "--json")

    assert (ran.code, ran.json["dry_run"], ran.json["removed"]) == (0, True, 0)
    assert taught("database", "prune", "--seen-in", "0").code == 64


def test_each_command_says_in_words_what_it_did(taught: Spamd, home: Path) -> None:
    pruned = taught("database", "prune").out
    exported = taught("database", "export", "-").out
    (home / "all.jsonl").write_text(exported)
    reset = taught("database", "reset", "--yes").out
    imported = taught("database", "import", "all.jsonl", "--json").json
    verified = taught("database", "verify").out

    assert "tokens deleted" in pruned
    assert exported.count("\n") == 22
    assert "is empty now; backup: var/spamd.db.before-reset-" in reset
    assert (imported["learned"], imported["complete"]) == (20, True)
    assert verified.endswith("all counts agree with the lessons\n")


def test_a_missing_file_can_t_be_imported(taught: Spamd) -> None:
    ran = taught("database", "import", "missing")

    assert (ran.code, ran.err) == (3, "spamd: missing: No such file or directory\n")
