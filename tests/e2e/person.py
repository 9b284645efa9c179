"""One person with a mailbox on a real Dovecot, who treats mail as the protocol "moves" has it.

python -m tests.e2e.person INDEX [MESSAGES]: prints what came of it beside `spamd evaluate`.

Each message is judged, noted in the scan log, given its fields and delivered by LMTP; Sieve files
what is marked as spam in Junk, and some of the mail into a folder of its own. The real watcher
looks at the account with the real database. The clock is ours: twenty messages are a day.
"""

import asyncio
import os
import smtplib
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from imapclient import IMAPClient

from spamd.bayes.decision import Verdict, decide
from spamd.bayes.model import BayesOptions
from spamd.evaluation.index import LabelledMail, read_index
from spamd.evaluation.people import PeopleOptions
from spamd.evaluation.protocol import EvaluationOptions, Protocol, evaluate
from spamd.evaluation.rates import CALLED, Outcomes, rates
from spamd.evaluation.results import EvaluationResult
from spamd.feedback.account_states import AccountStates
from spamd.feedback.kept_choice import KeptChoice
from spamd.feedback.mailboxes.imap import ImapMailbox
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.teacher import Teacher
from spamd.feedback.watching.context import WatcherContext
from spamd.feedback.watching.watcher import Watcher
from spamd.message.facts import SCHEMA
from spamd.message.features import Features, extract
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.sample import Label
from spamd.scanning import Scanner
from spamd.storage.maintenance.expiry import expire
from spamd.storage.options import Ages, DatabaseOptions
from spamd.storage.store import Store
from spamd.training import TrainingOptions
from spamd.training.ports import Selection
from spamd.training.trainer import Trainer
from tests.fakes import FakeObserver
from tests.feedback.world import account_of
from tests.servers.dovecot import PASSWORD, Dovecot

DELAY = 60
"""Three days of messages: `feedback.kept_days`."""

SCRIPT = """require ["envelope", "subaddress", "fileinto", "mailbox"];
if header :is "X-Spam-Flag" "YES" { fileinto "Junk"; }
elsif envelope :detail "to" "lists" { fileinto :create "Lists"; }
"""

SETTINGS = """mail_plugins = virtual
protocol lmtp {{
  mail_plugins = virtual sieve
}}
plugin {{
  sieve_before = {script}
}}
mail_never_cache_fields = date.received imap.envelope
namespace views {{
  prefix = Views/
  separator = /
  location = virtual:{views}:INDEX=~/views
}}
"""

VIEW = "*\n-Views/*\n  all\n"

RUN_EVERY = 40
"""After so many messages a program marks all that is unread in the inbox as read."""


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.time = datetime.now(UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()


@dataclass
class Lived:
    """What came of the mail.

    lessons  those in force at the end, by source and label
    wrong    lessons with the wrong label, by source
    refused  lessons of kept mail that nobody may have taught, and why
    """

    outcomes: Outcomes
    lessons: Counter[tuple[str, Label]] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)
    untaught: Counter[str] = field(default_factory=Counter)


@contextmanager
def post_office() -> Iterator[Dovecot]:
    """Run a server with a rule and a view."""
    server = Dovecot("ann")
    script, views = server.directory / "rules.sieve", server.directory / "views" / "All"
    script.write_text(SCRIPT)
    views.mkdir(parents=True)
    (views / "dovecot-virtual").write_text(VIEW)
    server.settings = SETTINGS.format(script=script, views=views.parent)
    with server:
        yield server


class Person:
    """The person, the filter in front of the mailbox, and the watcher behind it."""

    def __init__(
        self,
        index: Sequence[LabelledMail],
        people: PeopleOptions,
        server: Dovecot,
        store: Store,
        clock: Clock,
        options: FeedbackOptions,
    ) -> None:
        self._index, self._people, self._server, self._store = index, people, server, store
        self._draws = np.random.default_rng([0, 0x6D6F76]).random((len(index), 5))
        self._bayes = BayesOptions()
        self.clock = clock
        self._options = options
        self._trainer = Trainer(
            unit_of_work=store.unit_of_work, clock=self.clock, options=TrainingOptions()
        )
        self._scanner = Scanner(
            model=lambda: store.snapshot.model,
            decision=self._bayes.decision,
            tokenizer=TokenizerOptions(),
            clock=self.clock,
            key=b"k" * 16,
            random=os.urandom,
        )
        self.watcher = self._watcher()
        self._client = IMAPClient("127.0.0.1", port=server.port, ssl=False, timeout=60)
        self._client.login("ann", PASSWORD)
        self._client.create_folder("Work")
        self._lmtp = smtplib.LMTP("127.0.0.1", server.lmtp_port)
        self._where: dict[int, tuple[str, int]] = {}
        self._moves: list[tuple[int, int, Label]] = []
        self._places: dict[bytes, int] = {}
        self._read: set[int] = set()
        self._ruled: set[int] = set()
        self._marked: set[int] = set()
        self._moved: set[int] = set()
        self._log_odds = np.zeros(len(index))
        self._called = np.zeros(len(index), dtype=np.int8)

    def _watcher(self) -> Watcher:
        store, clock, observer = self._store, self.clock, FakeObserver()
        account = account_of(self._server, "ann")
        mailbox = ImapMailbox(account, self._options, clock, login="ann", actor="ann")
        context = WatcherContext(
            mailboxes=store.mailboxes,
            kept=store.kept,
            choice=KeptChoice(store.kept, store.scans, self._judge, clock, self._options),
            history=store.scans,
            teacher=Teacher(self._trainer, store.held, clock, self._options, observer),
            extract=extract,
            clock=clock,
            observer=observer,
        )
        states = AccountStates(store.accounts, clock, observer)
        self.mailbox = mailbox
        return Watcher(mailbox, context, self._options, source="imap", states=states)

    def _judge(self, features: Features) -> float:
        model = self._store.snapshot.model
        probability = model.weigh(features.sample).probability
        return decide(probability, model.totals, self._bayes.decision).probability

    async def live(self) -> Lived:
        """Receive all mail; return what came of it."""
        await self._store.refresh()
        await self.mailbox.open()
        try:
            await self.watcher.poll()
            for place, mail in enumerate(self._index):
                await self._receive(place, mail)
        finally:
            await self.mailbox.close()
            self._client.logout()
            self._lmtp.quit()
        return await self._lived()

    async def _receive(self, place: int, mail: LabelledMail) -> None:
        a_day = self._people.a_day
        while self._moves and self._moves[0][0] <= place:
            _, moved, label = heappop(self._moves)
            await self._move(moved, "Junk" if label is Label.SPAM else "INBOX")
        if place % a_day == 0:
            await expire(self._store.database, self.clock, AGES, dry_run=False)
        await self._store.refresh()  # as the daemon does each second
        features = self._scanner.extract(mail.read(), arriving=True)
        report = self._scanner.judge(features, 0.0)
        self._log_odds[place] = self._store.snapshot.model.weigh(features.sample).log_odds
        self._called[place] = CALLED.index(report.verdict)
        self._places[features.digest] = place
        if place < self._people.taught:
            await self._trainer.train([features], mail.label, source="cli", actor="root")
            self._moved.add(place)
            return
        self._store.scans.record(report)
        await self._store.scans.flush()
        head = "".join(f"{name}: {value}\r\n" for name, value in report.fields()).encode()
        body = mail.read().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        is_read = bool(self._draws[place, 0] < self._people.reads)
        ruled = not is_read and self._draws[place, 1] < 0.5
        self._deliver(place, head + body, report.verdict, ruled=ruled)
        await self._later(0.5)
        if is_read:
            await self._open(place)
        elif ruled and report.verdict is not Verdict.SPAM:
            self._ruled.add(place)
            self._mark([place], "\\Seen")
        if (place + 1) % RUN_EVERY == 0:
            self._mark_all()
        self.clock.time += timedelta(days=0.5 / a_day)

    async def _later(self, share: float) -> None:
        self.clock.time += timedelta(days=share / self._people.a_day)
        await self.watcher.poll()

    # ── what happens to mail ────────────────────────────────────────────────────────────────────

    def _deliver(self, place: int, content: bytes, verdict: Verdict, *, ruled: bool) -> None:
        folder = "Junk" if verdict is Verdict.SPAM else "Lists" if ruled else "INBOX"
        address = "ann+lists@our.test" if ruled else "ann@our.test"
        self._lmtp.sendmail("a@sender.test", [address], content)
        root = self._server.maildir("ann")
        box = root if folder == "INBOX" else root / f".{folder}"
        now = self.clock.now().timestamp()
        for path in (box / "new").iterdir():
            os.utime(path, (now, now))
        self._where[place] = folder, self._last(folder)

    def _last(self, folder: str) -> int:
        self._client.select_folder(folder)
        return int(self._client.search(["UID", "*"])[-1])

    def _mark(self, places: Sequence[int], flag: str) -> None:
        """Mark mails of one folder by one command."""
        self._client.select_folder(self._where[places[0]][0])
        self._client.add_flags([self._where[place][1] for place in places], [flag])

    def _mark_all(self) -> None:
        self._client.select_folder("INBOX")
        unread = set(self._client.search(["UNSEEN"]))
        if len(unread) > 1:
            self._client.add_flags(sorted(unread), ["\\Seen"])
        marked = {
            place for place, lies in self._where.items() if lies[0] == "INBOX" and lies[1] in unread
        }
        self._marked |= marked

    async def _move(self, place: int, folder: str) -> None:
        source, uid = self._where[place]
        if source != folder:
            self._client.select_folder(source)
            self._client.move([uid], folder)
            self._where[place] = folder, self._last(folder)
            self._moved.add(place)
            await self.watcher.poll()

    async def _open(self, place: int) -> None:
        """Read a mail, and decide about it."""
        label, verdict = self._index[place].label, CALLED[int(self._called[place])]
        if verdict is not Verdict.SPAM:
            self._mark([place], "\\Seen")
            self._read.add(place)
            await self._later(0.0)
        _, chance, later, slip, files = self._draws[place]
        spam = label is Label.SPAM
        share = self._people.corrects
        if verdict is Verdict.UNSURE:
            share = self._people.unsure_moved if spam else 0.0
        elif spam is (verdict is Verdict.SPAM):
            share = 0.0
        if chance >= share:
            if not spam and verdict is not Verdict.SPAM and files < self._people.files:
                await self._act(place)
            return
        due = place + 1 + int(later * DELAY)
        heappush(self._moves, (due, place, label))
        beside = self._beside(place, label) if slip < self._people.slips else None
        if beside is not None:
            heappush(self._moves, (due, beside, label))

    async def _act(self, place: int) -> None:
        """Answer, flag or file a mail."""
        if place % 3 == 2:
            await self._move(place, "Work")
            self._moved.discard(place)
        else:
            self._mark([place], ("\\Answered", "\\Flagged")[place % 3])
            await self._later(0.0)

    def _beside(self, place: int, label: Label) -> int | None:
        folder = "Junk" if CALLED[int(self._called[place])] is Verdict.SPAM else "INBOX"
        for before in range(place - 1, max(self._people.taught, place - 50) - 1, -1):
            lies = self._where[before][0] == folder and before not in self._moved
            if lies and self._index[before].label is not label:
                return before
        return None

    # ── what came of it ─────────────────────────────────────────────────────────────────────────

    async def _lived(self) -> Lived:
        start = self._people.taught
        spam = np.array([mail.label is Label.SPAM for mail in self._index])
        lived = Lived(
            outcomes=Outcomes(
                spam=spam[start:], log_odds=self._log_odds[start:], called=self._called[start:]
            )
        )
        for lesson in await self._store.lessons(Selection()):
            place = self._places[lesson.digest]
            lived.lessons[lesson.source, lesson.label] += 1
            lived.wrong[lesson.source] += lesson.label is not self._index[place].label
            if lesson.source == "kept" and (why := self._why_not(place, lesson.label)):
                lived.refused.append(f"{place}: {why}")
        lived.untaught.update(
            read=len(self._read), ruled=len(self._ruled), marked=len(self._marked)
        )
        return lived

    def _why_not(self, place: int, label: Label) -> str:
        if label is Label.SPAM:
            return "kept mail is ham"
        if place in self._ruled:
            return "a rule had filed it"
        if place not in self._read:
            return "nobody has read it"
        folder = self._where[place][0]
        return "" if folder in {"INBOX", "Work"} else f"it lies in {folder}"


AGES = Ages(
    scans_days=DatabaseOptions().scans_days,
    changes_hours=24,
    seen_days=90,
    parked_days=30,
    held_days=90,
    attempts=3,
)


@asynccontextmanager
async def opened(folder: Path, clock: Clock) -> AsyncIterator[Store]:
    """Open a new database."""
    options = DatabaseOptions(url=f"sqlite:///{folder}/spamd.db")
    store = await Store.open(options, schema=SCHEMA, bayes=BayesOptions(), clock=clock)
    try:
        yield store
    finally:
        await store.close()


async def lived(
    index: Sequence[LabelledMail],
    people: PeopleOptions,
    options: FeedbackOptions = FeedbackOptions(),  # noqa: B008 - frozen value
) -> Lived:
    """Return what came of a person's mail on a Dovecot."""
    with post_office() as server, TemporaryDirectory() as folder:
        clock = Clock()
        async with opened(Path(folder), clock) as store:
            return await Person(index, people, server, store, clock, options).live()


def evaluated(index: Sequence[LabelledMail], people: PeopleOptions) -> EvaluationResult:
    """Return what `spamd evaluate --protocol moves` says of the same person."""
    options = EvaluationOptions(protocol=Protocol.MOVES, people=people, delay=DELAY)
    return evaluate(index, options, BayesOptions(), TokenizerOptions())


def main(index: Path, messages: int) -> int:
    """Print both; fail when something was taught that nobody taught."""
    mails, people = read_index(index)[:messages], PeopleOptions()
    told = evaluated(mails, people)
    found = asyncio.run(lived(mails, people))
    print(f"{'':14}{'1-ROCA %':>10}{'hm %':>8}{'sm %':>8}{'unsure %':>10}{'ECE':>8}")
    for name, each in (("on a Dovecot", rates(found.outcomes)), ("evaluate", told.rates)):
        print(
            f"{name:14}{each.roca:10.4f}{each.ham_misclassified:8.3f}"
            f"{each.spam_misclassified:8.3f}{each.unsure:10.2f}{each.calibration_error:8.4f}"
        )
    for (source, label), number in sorted(found.lessons.items()):
        print(f"{number:6,} lessons of {label} by {source}")
    print(f"       wrong: {dict(found.wrong)}, in evaluate: {told.to_json()['lessons']}")
    print(f"       mail: {dict(found.untaught)}")
    for line in found.refused:
        print(f"WRONG  {line}")
    return bool(found.refused)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2_000))
