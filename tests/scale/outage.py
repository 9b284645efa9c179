"""The database goes away for a minute under load, and comes back: the same server, or another.

    restart    stopped at once (SIGQUIT) and started again
    promote    killed; the standby is promoted, daemons know both servers (`@a,b/spamd`)
    pooler     the same behind PgBouncer in transaction mode, which is led to the standby

Two daemons take mail at a steady rate, and lessons by HTTP (some of which the other daemon is
told to be the opposite a moment later), by reports and by moves in IMAP accounts, before,
meanwhile and after. What must come out: each mail was taken at the first try within its deadline
(`relay.deadline_s`, 30 s) and lies in the Maildir once; each lesson that was answered is in the
database once, with the label that was told last; each move is one lesson; and status, metrics and
log of both daemons said so.
"""

import itertools
import json
import random
import smtplib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from email.parser import BytesHeaderParser
from http.client import HTTPException
from typing import Any

from spamd.message.features import extract
from tests.feedback.test_report_address import report
from tests.scale.accounts import Accounts, accounts, alone
from tests.scale.site import Client, Member, lesson
from tests.servers.pgbouncer import Pgbouncer
from tests.servers.postgresql import Postgresql, Standby
from tests.waiting import wait_until

DEADLINE_S = 30.0
"""`relay.deadline_s`: what a mail may take."""

PEOPLE, MAILS = 12, 20
SENDERS = 2
LESSON_S, REPORT_S, MOVE_S = 0.5, 3.0, 5.0
FIRST_LESSON, FIRST_REPORT = 10_000_000, 20_000_000
"""Lessons are other mails than those that are sent, and than those that are reported."""

SETTINGS = 'spam_addresses = ["spam@example.org"]\n'
TOP = 'relay.report_networks = ["127.0.0.1"]\n'
OTHER = {"spam": "ham", "ham": "spam"}


@dataclass
class Load:
    """What people do meanwhile, and what they were answered.

    sent     mails that were answered with 250, and how long each took
    told     of each mail's digest the label that was answered for last
    moved    accounts whose mail was moved
    again    what had to be tried again
    """

    site: Accounts
    rate: float
    sent: dict[int, float] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    moved: list[int] = field(default_factory=list)
    again: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def begin(self) -> None:
        self._over = threading.Event()
        self._began = time.monotonic()
        numbers = itertools.count()
        jobs: list[Callable[[], None]] = [self._report, self._move]
        for member in self.site.daemons:
            jobs += [lambda each=member: self._send(each, numbers)] * SENDERS  # type: ignore[misc] # bound now
        for place, member in enumerate(self.site.daemons):
            jobs.append(lambda place=place, each=member: self._teach(place, each))  # type: ignore[misc] # likewise
        self._threads = [threading.Thread(target=self._guarded, args=(job,)) for job in jobs]
        for each in self._threads:
            each.start()

    def end(self) -> None:
        self._over.set()
        for each in self._threads:
            each.join()

    def _guarded(self, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as error:  # noqa: BLE001 - told at the end
            self.faults.append(repr(error))

    def _until_taken(self, what: str, taken: Callable[[], bool]) -> None:
        while not taken():
            self.again[what] += 1
            time.sleep(0.2)

    def _send(self, member: Member, numbers: Iterator[int]) -> None:
        for number in numbers:
            wait_s = number / self.rate - (time.monotonic() - self._began)
            if self._over.wait(max(0.0, wait_s)):
                return
            began = time.monotonic()
            self._until_taken("mail", lambda n=number: mailed(member, lesson(n)[1]))  # type: ignore[misc] # bound now
            self.sent[number] = time.monotonic() - began

    def _teach(self, place: int, member: Member) -> None:
        """Teach mails; a third of them the other daemon is told to be the opposite."""
        other = self.site.daemons[place - 1]
        for number in itertools.count(FIRST_LESSON + place, 2):
            if self._over.wait(LESSON_S):
                return
            label, content = lesson(number)
            self._until_taken("lesson", lambda d=(label, content): taught(member, *d))  # type: ignore[misc] # likewise
            if number % 3 == 0:
                label = OTHER[label]
                self._until_taken("lesson", lambda d=(label, content): taught(other, *d))  # type: ignore[misc] # likewise
            self.told[extract(content).digest.hex()] = label

    def _report(self) -> None:
        for number in itertools.count(FIRST_REPORT):
            if self._over.wait(REPORT_S):
                return
            content = lesson(number)[1]
            member = self.site.daemons[number % 2]
            whole = report(content)
            self._until_taken("report", lambda m=member, w=whole: mailed(m, w, "spam"))  # type: ignore[misc] # likewise
            self.told[extract(content).digest.hex()] = "spam"

    def _move(self) -> None:
        for account in itertools.islice(itertools.count(), PEOPLE):
            if self._over.wait(MOVE_S):
                return
            self.site.move(account, 1)
            self.moved.append(account)


def mailed(member: Member, content: bytes, to: str = "you") -> bool:
    """Send a mail; return whether it was taken."""
    try:
        with smtplib.SMTP("127.0.0.1", member.port, timeout=120) as client:
            client.sendmail("a@example.org", [f"{to}@example.org"], content)
    except (smtplib.SMTPException, OSError):
        return False
    return True


def taught(member: Member, label: str, content: bytes) -> bool:
    """Give a lesson by HTTP; return whether it is said to be kept."""
    client = Client(member)
    try:
        return client.post(f"/learn{label}", content)["status"] in (200, 208)
    except (HTTPException, OSError, ValueError):
        return False
    finally:
        client.close()


class Servers:
    """PostgreSQL, its standby where there is one, and how the database comes back."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.standby: Standby | None = None
        self.pooler: Pgbouncer | None = None

    def start(self, stack: ExitStack) -> tuple[Postgresql, str]:
        """Start them; return the primary, and the URL that daemons use."""
        self.primary, url = alone(stack)
        # What the tests' server leaves out for speed: a commit is written when it is answered.
        self.primary.do("ALTER DATABASE spamd SET synchronous_commit = on")
        if self.kind == "restart":
            return self.primary, url
        self.standby = stack.enter_context(Standby(self.primary))
        self.primary.do(
            "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"
        )
        if self.kind == "promote":
            both = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
            return self.primary, f"postgresql://postgres@{both}/spamd"
        self.pooler = stack.enter_context(Pgbouncer(self.primary, pool=10))
        return self.primary, self.pooler.url("spamd")

    def go(self) -> None:
        """Take the database away."""
        if self.standby is None:
            self.primary.stop()
        else:
            self.primary.kill()

    def come_back(self) -> Postgresql:
        """Bring it back; return the server that has it."""
        if self.standby is None:
            return self.primary.start()
        self.standby.do("ALTER SYSTEM SET synchronous_standby_names = ''")
        self.standby.promote()
        if self.pooler is not None:
            self.pooler.lead_to(self.standby)
        return self.standby


def outage(kind: str, *, away_s: float, quiet_s: float, rate: float = 20.0) -> dict[str, Any]:
    """Play one outage; return what came of it."""
    servers = Servers(kind)
    with accounts(PEOPLE, MAILS, settings=SETTINGS, top=TOP, serve=servers.start) as site:
        first = [lesson(number) for number in random.Random(7).sample(range(5_000_000), 20)]
        for label, content in first:
            assert taught(site.daemons[0], label, content)
        load = Load(site, rate)
        load.begin()
        time.sleep(quiet_s)
        servers.go()
        time.sleep(away_s)
        said = [seen(member) for member in site.daemons]
        site.server = servers.come_back()
        back = time.monotonic()
        time.sleep(quiet_s)
        load.end()
        for member in site.daemons:
            wait_until(
                lambda each=member: caught_up(each),  # type: ignore[misc] # bound now
                what="nothing waits",
                deadline_s=900,
                pause_s=0.2,
            )
        wait_until(
            lambda: site.lessons >= len(load.moved), what="moves", deadline_s=900, pause_s=0.2
        )
        settled_s = time.monotonic() - back
        told = load.told | {extract(mail).digest.hex(): label for label, mail in first}
        return {**ledger(site, load, told), "settled_s": round(settled_s), "said": said}


def seen(member: Member) -> dict[str, Any]:
    """Return what a daemon says while the database is away."""
    status = json.loads(member.run("status", "--json", codes=(0, 75)))
    metrics = member.metrics()
    return {
        "status": status["waiting"],
        "bytes": metrics["spamd_lessons_waiting_bytes"],
        "behind_s": round(metrics["spamd_corpus_behind_seconds"]),
        "lost": len(member.events("storage.lost")),
    }


def caught_up(member: Member) -> bool:
    """Return whether nothing waits at a daemon."""
    return member.metrics()["spamd_lessons_waiting_bytes"] == 0


def ledger(site: Accounts, load: Load, told: dict[str, str]) -> dict[str, Any]:
    """Return what is there beside what was answered."""
    found: Counter[str] = Counter()
    for member in site.daemons:
        for file in (member.directory / "mail").rglob("*"):
            if file.is_file() and file.parent.name in {"new", "cur"}:
                found[str(BytesHeaderParser().parsebytes(file.read_bytes())["Message-ID"])] += 1
    wanted = {
        str(BytesHeaderParser().parsebytes(lesson(number)[1])["Message-ID"]) for number in load.sent
    }
    rows = site.rows("SELECT encode(digest, 'hex'), label, source FROM lesson")
    there = {digest: label for digest, label, source in rows if source != "imap"}
    findings = json.loads(site.daemons[0].run("database", "verify", "--json"))
    late = [each for each in load.sent.values() if each > DEADLINE_S]
    events = Counter(
        event
        for member in site.daemons
        for event in ("storage.lost", "storage.regained", "lessons.caught_up", "lesson.failed")
        for _ in member.events(event)
    )
    return {
        "mails": len(load.sent),
        "lost": len(wanted - found.keys()),
        "twice": sum(found[each] - 1 for each in wanted & found.keys()),
        "late": len(late),
        "slowest_s": round(max(load.sent.values()), 1),
        "again": dict(load.again),
        "lessons": len(told),
        "missing": len(told.keys() - there.keys()),
        "unasked": len(there.keys() - told.keys()),
        "other_label": sum(there.get(digest, label) != label for digest, label in told.items()),
        "rows": len(rows) - len(load.moved),
        "moves": (len(load.moved), site.lessons),
        "faults": [*load.faults, *findings["faults"]],
        "events": dict(events),
    }


def at_size(away_s: int = 60, quiet_s: int = 20) -> None:
    """Play all three kinds, and say whether each came out as it must."""
    failed = False
    for kind in ("restart", "promote", "pooler"):
        done = outage(kind, away_s=away_s, quiet_s=quiet_s)
        print(f"{kind}: {done}", flush=True)
        failed |= bool(wrong(done))
        print(f"{kind}: {wrong(done) or 'as it must'}", flush=True)
    if failed:
        raise SystemExit(1)


def wrong(done: dict[str, Any]) -> list[str]:
    """Return what did not come out as it must."""
    bad = [name for name in ("lost", "twice", "late", "missing", "unasked", "other_label", "faults")
           if done[name]]  # fmt: skip
    moved, learned = done["moves"]
    if moved != learned:
        bad.append("moves")
    if done["rows"] != done["lessons"]:
        bad.append("rows")
    if done["again"]:
        bad.append("again")
    return bad
