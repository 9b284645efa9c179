"""Many IMAP accounts on a real Dovecot, watched by two daemons that share one PostgreSQL.

Each account has a Maildir of its own; a master user logs in for all (`users_file`). Mails are moved
by IMAP, as mail programs do; each move must become one lesson. In the middle one daemon is
stopped (SIGSTOP) or killed, and the other watches its accounts too.
"""

import asyncio
import imaplib
import os
import pwd
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from tests.scale.site import QUICK, Member
from tests.servers.base import require
from tests.servers.dovecot import MASTER, MASTER_PASSWORD, PASSWORD, Dovecot
from tests.servers.postgresql import Postgresql
from tests.waiting import wait_until

OLD_S = 10 * 86_400
"""Age of the mail: no rule of a mail program has just moved it."""

MANY = """
default_process_limit = 10000
default_client_limit = 40000
default_vsz_limit = 0
service imap {
  process_limit = 8000
}
service imap-login {
  service_count = 0
  client_limit = 20000
  process_min_avail = 2
}
protocol imap {
  mail_max_userip_connections = 100
}
"""

WORDS = [f"word{number}" for number in range(3000)]

MOVERS = 8
"""People who move mail at the same time."""


def mail(account: int, number: int) -> bytes:
    """Return a mail: each another one."""
    words = " ".join(random.Random(account * 100_003 + number).sample(WORDS, 30))
    return (
        f"From: a{number}@sender{number % 70}.example\nTo: user{account}@example.org\n"
        f"Subject: {words[:30]}\nDate: Mon, 2 Mar 2026 10:00:00 +0000\n"
        f"Message-ID: <{account}.{number}@sender.example>\n\n{words}\n"
    ).encode()


@dataclass(frozen=True, slots=True)
class Use:
    """What the daemons use: PSS in MiB, descriptors, threads, IMAP connections, of each."""

    memory_mib: list[int]
    files: list[int]
    threads: list[int]
    connections: int


class Accounts:
    """The running site."""

    def __init__(
        self, dovecot: Dovecot, server: Postgresql, daemons: Sequence[Member], number: int
    ) -> None:
        self.dovecot = dovecot
        self.server = server
        self.daemons = daemons
        self.number = number

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows that a query finds."""

        async def asked() -> list[tuple[Any, ...]]:
            connection = await asyncpg.connect(self.server.url("spamd"))
            try:
                return [tuple(row) for row in await connection.fetch(query)]
            finally:
                await connection.close()

        return asyncio.run(asked())

    def ask(self, query: str) -> int:
        """Return the number that a query finds."""
        return int(self.rows(query)[0][0])

    @property
    def lessons(self) -> int:
        return self.ask("SELECT count(*) FROM lesson WHERE source = 'imap'")

    @property
    def holders(self) -> int:
        """Return how many daemons hold shares now."""
        now = int(time.time() * 1_000_000)
        held = f"name LIKE 'feedback:%' AND expires > {now}"
        return self.ask(f"SELECT count(DISTINCT holder) FROM lease WHERE {held}")

    @property
    def watched(self) -> int:
        return self.ask("SELECT count(*) FROM account WHERE state = 'watching'")

    def move(self, account: int, uid: int) -> float:
        """Move a mail of an account from the inbox to Junk; return when that was."""
        with imaplib.IMAP4("127.0.0.1", self.dovecot.port, timeout=120) as session:
            session.login(f"user{account}", PASSWORD)
            session.select("INBOX")
            moved = time.time()
            answer, _ = session.uid("MOVE", str(uid), "Junk")
            assert answer == "OK"
        return moved

    def moves(self, accounts: Sequence[int], uid: int) -> list[float]:
        """Move a mail of each of some accounts; return how many seconds each took to be learned.

        Each is one lesson, and there is no other.
        """
        before = self.lessons
        began = time.time()
        with ThreadPoolExecutor(MOVERS) as threads:
            moved = dict(
                zip(accounts, threads.map(lambda each: self.move(each, uid), accounts), strict=True)
            )
        wanted = before + len(accounts)
        wait_until(lambda: self.lessons >= wanted, what="lessons", deadline_s=300, pause_s=0.2)
        rows = self.rows(
            "SELECT actor, max(time) FROM lesson WHERE source = 'imap'"
            f" AND time >= {int(began * 1_000_000)} GROUP BY actor"
        )
        learned = {actor: number / 1_000_000 for actor, number in rows}
        assert self.lessons == wanted
        return sorted(learned[f"user{each}"] - time_ for each, time_ in moved.items())

    def freeze(self, daemon: Member) -> None:
        """Have a daemon stand still, as a machine that hangs."""
        os.killpg(daemon.pid, signal.SIGSTOP)

    def thaw(self, daemon: Member) -> None:
        """Have it go on, and take shares again."""
        os.killpg(daemon.pid, signal.SIGCONT)
        wait_until(lambda: self.holders == len(self.daemons), what="it has shares again")

    def use(self) -> Use:
        """Return what the daemons use now."""
        running = [Path(f"/proc/{each.pid}") for each in self.daemons if each.running]
        rollups = [(each / "smaps_rollup").read_text() for each in running]
        return Use(
            memory_mib=[int(text.split("\nPss:")[1].split()[0]) // 1024 for text in rollups],
            files=[len(list((each / "fd").iterdir())) for each in running],
            threads=[len(list((each / "task").iterdir())) for each in running],
            connections=_connections(self.dovecot.port),
        )


def _connections(port: int) -> int:
    """Return how many connections to a port of this machine are established."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    return sum(each[2].endswith(f":{port:04X}") and each[3] == "01" for each in fields)


def alone(stack: ExitStack) -> tuple[Postgresql, str]:
    """Start a PostgreSQL; return it and the URL of its database."""
    server = stack.enter_context(Postgresql())
    server.do("CREATE DATABASE spamd TEMPLATE template0")
    return server, server.url("spamd")


@contextmanager
def accounts(
    number: int,
    mails: int,
    *,
    settings: str = "",
    top: str = "",
    serve: Callable[[ExitStack], tuple[Postgresql, str]] = alone,
) -> Iterator[Accounts]:
    """Give a site whose accounts are all watched."""
    require("dovecot")
    require("postgresql")
    with ExitStack() as stack:
        dovecot = Dovecot(*(f"user{each}" for each in range(number)))
        dovecot.settings = MANY
        dovecot.configure()
        for account in range(number):
            _fill(dovecot.maildir(f"user{account}"), account, mails)
        stack.enter_context(dovecot)
        server, url = serve(stack)
        daemons = [Member(url) for _ in range(2)]
        for each in daemons:
            stack.callback(each.close)
            each.at_the_top(top)
            each.also(_feedback(each, dovecot, number, settings))
        daemons[0].run("database", "upgrade")
        for each in daemons:
            each.start()
        running = Accounts(dovecot, server, daemons, number)
        wait_until(
            lambda: running.watched == number, what="all watched", deadline_s=1800, pause_s=0.5
        )
        yield running


def _feedback(daemon: Member, dovecot: Dovecot, number: int, settings: str) -> str:
    users = daemon.directory / "users"
    users.write_text("".join(f"user{each}\n" for each in range(number)))
    return (
        f"{QUICK}[feedback]\n{settings}\nkept_days = 0\nhold_after = 0\n"
        f'[[feedback.accounts]]\nhost = "127.0.0.1"\nport = {dovecot.port}\ntls = "none"\n'
        f'user = "{MASTER}"\npassword = "{MASTER_PASSWORD}"\nusers_file = "{users}"\n'
    )


def _fill(maildir: Path, account: int, mails: int) -> None:
    """Make a Maildir with mails, as they lie after days."""
    old = time.time() - OLD_S
    for folder in ("cur", "new", "tmp"):
        (maildir / folder).mkdir(parents=True)
    for number in range(mails):
        file = maildir / "cur" / f"{int(old) + number}.M{number}.host:2,S"
        file.write_bytes(mail(account, number))
        os.utime(file, (old, old))
    if os.geteuid() == 0:
        owner = pwd.getpwnam("nobody")
        for each in (maildir.parent, maildir, *maildir.rglob("*")):
            os.chown(each, owner.pw_uid, owner.pw_gid)
