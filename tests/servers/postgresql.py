"""PostgreSQL 15 in a folder of its own: one server per run, one database per test.

`postgresql` is the running server, `postgresql_url` the URL of an empty database in it that is
dropped when the test ends. Nothing waits for a disk (fsync off): what a crash of the machine would
do isn't tested here, a crash of the server's processes is.
"""

import itertools
import os
import pwd
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.base import Server, ServerError, postgresql_programs, require
from tests.storage.migrated import bring_up
from tests.waiting import wait_until

SETTINGS = (
    "listen_addresses=127.0.0.1", "fsync=off", "synchronous_commit=off", "full_page_writes=off",
    "shared_buffers=32MB", "max_connections=60", "autovacuum=off", "jit=off",
    "log_min_messages=warning",
)  # fmt: skip

NUMBERS = itertools.count()


class Postgresql(Server):
    """One PostgreSQL server."""

    name = "postgresql"
    account = "postgres"  # it refuses to run as root
    stop_signal = signal.SIGQUIT  # at once; SIGTERM would wait for clients

    @property
    def _programs(self) -> Path:
        programs = postgresql_programs()
        if programs is None:
            raise ServerError("no PostgreSQL here")
        return programs

    def configure(self) -> None:
        """Make the data folder, the first time."""
        data = self.directory / "data"
        if data.exists():
            return
        if os.geteuid() == 0:
            user = pwd.getpwnam(self.account)
            os.chown(self.directory, user.pw_uid, user.pw_gid)
        self.make(data)

    def make(self, data: Path) -> None:
        """Make the data folder."""
        self.call(
            "initdb", "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8",
            "--locale=C.UTF-8", "--no-sync", "--no-instructions",
        )  # fmt: skip

    def call(self, program: str, *arguments: str) -> str:
        """Run a program of PostgreSQL as its user; return what it says."""
        root = os.geteuid() == 0
        done = subprocess.run(
            [str(self._programs / program), *arguments],
            cwd=self.directory, env=self.environment(), check=False, capture_output=True, text=True,
            user=self.account if root else None, group=self.account if root else None,
            extra_groups=[] if root else None,
        )  # fmt: skip
        if done.returncode:
            raise ServerError(f"{program} failed: {done.stdout}{done.stderr}")
        return done.stdout

    def command(self) -> list[str]:
        """Run in the foreground, with its socket in our folder."""
        settings = (*SETTINGS, f"port={self.port}", f"unix_socket_directories={self.directory}")
        return [
            str(self._programs / "postgres"),
            "-D",
            str(self.directory / "data"),
            *itertools.chain.from_iterable(("-c", setting) for setting in settings),
        ]

    def is_ready(self) -> bool:
        """Ask whether it takes connections."""
        asked = subprocess.run(
            [str(self._programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)],
            env=self.environment(),
            check=False,
        )
        return asked.returncode == 0

    def url(self, database: str) -> str:
        """Return the URL of a database as `database.url` names it."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def do(self, *statements: str, database: str = "postgres") -> None:
        """Run statements as administrator, each in a transaction of its own."""

        for statement in statements:
            done = subprocess.run(
                [str(self._programs / "psql"), "-q", "-d", self.url(database), "-c", statement],
                env=self.environment(),
                check=False,
                capture_output=True,
                text=True,
            )
            if done.returncode:
                raise ServerError(f"{statement}: {done.stderr}")

    def ask(self, query: str, database: str = "postgres") -> str:
        """Return the value that a query finds, as text."""
        return self.call("psql", "-qAt", "-d", self.url(database), "-c", query).strip()


class Standby(Postgresql):
    """A server that follows another (streaming replication) until it is promoted."""

    def __init__(self, primary: Postgresql) -> None:
        self.primary = primary
        super().__init__()

    def make(self, data: Path) -> None:
        """Copy the primary, and follow it."""
        self.call(
            "pg_basebackup", "-D", str(data), "-R", "-X", "stream", "-c", "fast", "--no-sync",
            "-d", self.primary.url("postgres"),
        )  # fmt: skip

    def follows(self) -> None:
        """Wait until it has all that the primary has committed."""
        there = self.primary.ask("SELECT pg_current_wal_lsn()")
        query = f"SELECT pg_last_wal_replay_lsn() >= '{there}'"
        wait_until(lambda: self.ask(query) == "t", what="the standby has followed")

    def promote(self) -> None:
        """Make it the primary."""
        self.call("pg_ctl", "promote", "-D", str(self.directory / "data"))


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Postgresql]:
    """A PostgreSQL server for the whole run."""
    require("postgresql")
    with Postgresql() as server:
        yield server


@pytest.fixture
def postgresql_url(postgresql: Postgresql) -> Iterator[str]:
    """The URL of an empty database."""
    yield from _copied(postgresql, "template0")


@pytest.fixture(scope="session")
def template(postgresql: Postgresql) -> str:
    """The name of a database with the tables of this version, to be copied."""
    postgresql.do("CREATE DATABASE migrated TEMPLATE template0")
    bring_up(postgresql.url("migrated"))
    return "migrated"


@pytest.fixture
def migrated_postgresql_url(postgresql: Postgresql, template: str) -> Iterator[str]:
    """The URL of a database with the tables of this version."""
    yield from _copied(postgresql, template)


def _copied(postgresql: Postgresql, template: str) -> Iterator[str]:
    name = f"t{os.getpid()}_{next(NUMBERS)}"
    postgresql.do(f"CREATE DATABASE {name} TEMPLATE {template}")
    yield postgresql.url(name)
    if postgresql.running:
        postgresql.do(f"DROP DATABASE {name} WITH (FORCE)")
