"""The rule that every test of storage and of teaching runs on both databases, and its exceptions.

It looks at the tests of this run: those that take the fixture `options`, by whatever way, run on
SQLite and on PostgreSQL. Each that does not is named here with the reason.
"""

from fnmatch import fnmatch
from pathlib import Path

import pytest

HERE = Path(__file__).parent
AREA = (HERE, HERE.parent / "test_training.py")

NONE = "it knows no database"
FILE = "only a file has such faults"
BACKUP = "PostgreSQL's backup is its administrator's"
SERVER = "only a server has such faults"
FAKE = "rules of teaching on a store in memory, which test_training.py here holds against both"

EXCEPTIONS = {
    "storage/test_both_databases.py::*": NONE,
    "storage/test_codec.py::*": NONE,
    "storage/test_foreign_exports.py::test_a_csv_*": NONE,
    "storage/test_foreign_exports.py::test_a_dump_of_bogofilter_gives_*": NONE,
    "storage/test_foreign_exports.py::test_a_number_*": NONE,
    "storage/test_foreign_exports.py::test_d28_words_*": NONE,
    "storage/test_foreign_exports.py::test_what_*": NONE,
    "storage/test_forgetting.py::test_no_line_*": "the line is made before any database",
    "storage/test_growth.py::test_every_table_has_a_bound": NONE,
    "storage/test_engine.py::test_a_url_names_*": NONE,
    "storage/test_engine.py::test_impossible_options_are_refused": NONE,
    "storage/test_engine.py::test_a_connection_that_breaks_*": SERVER,
    "storage/test_engine.py::test_a_database_that_the_server_*": SERVER,
    "storage/test_engine.py::test_a_server_that_*": SERVER,
    "storage/test_engine.py::test_a_folder_is_no_database": FILE,
    "storage/test_engine.py::test_a_missing_folder_*": FILE,
    "storage/test_engine.py::test_another_file_*": FILE,
    "storage/test_engine.py::test_d16_*": FILE,
    "storage/test_engine.py::test_f8_*": FILE,
    "storage/test_engine.py::test_f9_*": FILE,
    "storage/test_engine.py::test_f11_*": FILE,
    "storage/test_engine.py::test_k9_*": "PostgreSQL's waits are its driver's, which can be left",
    "storage/test_engine.py::test_sqlite_*": FILE,
    "storage/test_directory.py::test_a_database_that_is_not_there_*": SERVER,
    "storage/test_migrate.py::test_f7_a_sqlite_file_*": BACKUP,
    "storage/test_migrate.py::test_i2_a_copy_*": BACKUP,
    "storage/test_migrate.py::test_the_code_knows_*": NONE,
    "storage/test_outcomes.py::test_the_share_*": NONE,
    "storage/test_outcomes.py::test_where_nothing_*": NONE,
    "storage/test_ports.py::test_k10_*": "PostgreSQL's waits are its driver's, which can be left",
    "storage/test_senders.py::test_a_line_*": NONE,
    "storage/test_senders.py::test_what_waits_to_be_*": NONE,
    "storage/test_servers_of_postgresql.py::*": "several servers, and poolers, are PostgreSQL's",
    "storage/test_shared_tables.py::test_a_file_holds_*": NONE,
    "storage/test_shared_tables.py::test_a_file_with_*": NONE,
    "storage/test_shared_tables.py::test_a_full_disk_*": NONE,
    "storage/test_shared_tables.py::test_a_link_*": NONE,
    "storage/test_shared_tables.py::test_who_is_killed_while_*": NONE,
    "storage/test_sqlite_lookup.py::*": "how a SQLite file is read without SQLAlchemy",
    "storage/test_store.py::test_a_new_sqlite_*": "PostgreSQL is refused: the test after it",
    "storage/test_store.py::test_an_empty_postgresql_*": "SQLite is set up: the test before it",
    "storage/test_store.py::test_d27_*": SERVER,
    "storage/test_user_lessons.py::test_a_line_*": NONE,
    "storage/test_waiting_lessons.py::*": "a file of the machine, whatever the database",
    "storage/test_wishes.py::test_a_row_*": NONE,
    "storage/test_year.py::*": "its length; test_growth.py looks at the tables of both",
    "test_training.py::*": FAKE,
}


def test_every_test_of_storage_runs_on_both_databases_or_is_named_with_the_reason(
    request: pytest.FixtureRequest,
) -> None:
    databases: dict[str, set[str]] = {}
    for item in request.session.items:
        assert isinstance(item, pytest.Function)
        if item.path in AREA or item.path.parent == HERE:
            name = f"{item.path.relative_to(HERE.parent)}::{item.originalname}"
            parameters = item.callspec.params if hasattr(item, "callspec") else {}
            with_options = "options" in item.fixturenames
            chosen = str(parameters.get("options", "none")) if with_options else "none"
            databases.setdefault(name, set()).add(chosen)
    whole = not request.config.getoption("keyword") and all(
        "::" not in given for given in request.config.args
    )
    for name, found in databases.items():
        excepted = any(fnmatch(name, pattern) for pattern in EXCEPTIONS)
        if whole:
            assert excepted or found == {"sqlite", "postgresql"}, name
        else:
            assert excepted or "none" not in found, name
    for pattern in EXCEPTIONS:
        files = {name.partition("::")[0] for name in databases}
        if whole and pattern.partition("::")[0] in files:
            assert any(fnmatch(name, pattern) for name in databases), f"{pattern} is no exception"
            both = [name for name, found in databases.items()
                    if fnmatch(name, pattern) and found == {"sqlite", "postgresql"}]  # fmt: skip
            assert not both, pattern
