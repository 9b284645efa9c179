"""What is too old goes by itself, in small batches; what is watched stays."""

from dataclasses import replace

import pytest
from sqlalchemy import event, func, select

from spamd.feedback.ports import AccountState, Cursor, Held, Parked, Sighting, WatchedAccount
from spamd.storage import tables
from spamd.storage.corpus.held_lessons import SqlHeldLessons
from spamd.storage.engine import Database
from spamd.storage.mailboxes import SqlMailboxes
from spamd.storage.maintenance.expiry import Expired, expire
from spamd.storage.options import Ages
from spamd.storage.scans import Scans
from spamd.storage.watched_accounts import SqlAccounts
from tests.storage.mails import SPAM, FixedClock, TeachingProcess, mail
from tests.storage.test_ports import report

AGES = Ages(scans_days=14, changes_hours=24, seen_days=90, parked_days=30, held_days=90, attempts=3)
TABLES = (
    tables.account, tables.cursor, tables.sighting, tables.parked, tables.held, tables.scan,
    tables.change,
)  # fmt: skip
NOTHING = Expired(scans=0, changes=0, accounts=0, sightings=0, kept=0, parked=0, held=0)


class Bench:
    """All that grows old, filled as the daemon does it."""

    def __init__(self, database: Database, clock: FixedClock) -> None:
        self.database, self.clock = database, clock
        self.accounts = SqlAccounts(database)
        self.boxes = SqlMailboxes(database)
        self.held = SqlHeldLessons(database)
        self.scans = Scans(database, clock)
        self.teaching = TeachingProcess(database, clock)

    async def watch(self, *names: str, state: AccountState = AccountState.WATCHING) -> None:
        rows = [
            WatchedAccount(name=name, state=state, since=self.clock.now(), reason="", silent=False)
            for name in names
        ]
        await self.accounts.write(rows, self.clock.now())

    async def sees(self, account: str, mails: int = 3) -> None:
        cursor = Cursor(
            account=account, folder="INBOX", validity=1, next_uid=mails + 1, modseq=0,
            messages=mails, baseline=1, marked="/", time=self.clock.now(),
        )  # fmt: skip
        seen = [
            Sighting(folder="INBOX", key=str(number), mail=b"%16d" % number, delivered=0)
            for number in range(1, mails + 1)
        ]
        await self.boxes.save(account, [cursor], seen)

    async def parks(self, account: str, uid: str, attempts: int) -> None:
        parked = Parked(
            account=account, folder="INBOX", validity=1, uid=uid, attempts=attempts,
            reason="too much", time=self.clock.now(),
        )  # fmt: skip
        await self.boxes.park(parked)

    async def holds(self, subject: str) -> None:
        one = Held(
            number=0, features=mail(subject), label=SPAM, source="imap", actor="anna",
            probability=0.02, reason="a burst", time=self.clock.now(),
        )  # fmt: skip
        await self.held.hold([one])

    async def expire(self, *, dry_run: bool = False, ages: Ages = AGES) -> Expired:
        return await expire(self.database, self.clock, ages, dry_run=dry_run)

    async def rows(self) -> dict[str, int]:
        async with self.database.reading() as connection:
            return {
                table.name: (
                    await connection.execute(select(func.count()).select_from(table))
                ).scalar_one()
                for table in TABLES
            }


@pytest.fixture
def bench(database: Database, clock: FixedClock) -> Bench:
    return Bench(database, clock)


async def test_i4_what_an_account_held_that_nobody_watches_any_more_is_forgotten(
    bench: Bench,
) -> None:
    for name in ("left@b:1", "stays@b:1", "lost@b:1"):
        await bench.watch(name)
        await bench.sees(name)
    await bench.accounts.leave({"stays@b:1", "lost@b:1"})
    bench.clock.advance(days=91)
    await bench.watch("stays@b:1")
    await bench.watch("lost@b:1", state=AccountState.LOST)
    wanted = replace(NOTHING, accounts=1, sightings=3)
    assert await bench.expire(dry_run=True) == wanted
    assert (await bench.rows())["sighting"] == 9
    assert await bench.expire() == wanted
    assert await bench.boxes.cursors("left@b:1") == {}
    for name in ("stays@b:1", "lost@b:1"):
        assert len(await bench.boxes.lying(name, "INBOX")) == 3
        assert len(await bench.boxes.cursors(name)) == 1


async def test_i4_old_mail_of_a_watched_account_never_expires(bench: Bench) -> None:
    await bench.watch("anna@b:1")
    await bench.sees("anna@b:1")
    for _ in range(40):
        bench.clock.advance(days=30)
        await bench.watch("anna@b:1")
        assert await bench.expire() == NOTHING
    assert len(await bench.boxes.lying("anna@b:1", "INBOX")) == 3


async def test_i4_of_an_account_that_expires_the_cursors_go_first(bench: Bench) -> None:
    await bench.watch("left@b:1")
    await bench.sees("left@b:1")
    bench.clock.advance(days=91)
    removed: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        if statement.startswith("DELETE FROM "):
            removed.append(statement.split()[2])

    event.listen(bench.database.engine.sync_engine, "before_cursor_execute", note)
    await bench.expire()
    assert removed.index("cursor") < removed.index("sighting") < removed.index("account")


async def test_i4_mail_that_was_given_up_goes_and_what_is_tried_again_stays(bench: Bench) -> None:
    await bench.watch("anna@b:1")
    await bench.parks("anna@b:1", "1", attempts=3)
    await bench.parks("anna@b:1", "2", attempts=1)
    bench.clock.advance(days=31)
    await bench.watch("anna@b:1")
    await bench.parks("anna@b:1", "3", attempts=3)
    assert await bench.expire(dry_run=True) == replace(NOTHING, parked=1)
    assert await bench.expire() == replace(NOTHING, parked=1)
    assert [one.uid for one in await bench.boxes.parked()] == ["2", "3"]


async def test_i4_held_lessons_that_nobody_looked_at_go(bench: Bench) -> None:
    await bench.holds("old")
    bench.clock.advance(days=91)
    await bench.holds("new")
    assert await bench.expire(dry_run=True) == replace(NOTHING, held=1)
    assert await bench.expire() == replace(NOTHING, held=1)
    [left] = await bench.held.held()
    assert left.features.digest == mail("new").digest


async def test_i4_scans_expire_and_a_dry_run_only_counts_them(bench: Bench) -> None:
    bench.scans.record(report(mail("old"), id="old"))
    bench.clock.advance(days=15)
    bench.scans.record(report(mail("new"), id="new"))
    await bench.scans.flush()
    assert await bench.expire(dry_run=True) == replace(NOTHING, scans=1)
    assert await bench.expire() == replace(NOTHING, scans=1)
    assert set(await bench.scans.by_id(["old", "new"])) == {"new"}


async def test_i4_changes_that_no_process_needs_go_and_others_stay(bench: Bench) -> None:
    await bench.teaching.train(SPAM, mail("a"))
    before = (await bench.rows())["change"]
    bench.clock.advance(hours=25)
    gone = await bench.expire()
    assert (await bench.rows())["change"] == before - gone.changes
    await TeachingProcess(bench.database, bench.clock).train(SPAM, mail("b"))


async def test_i6_rows_expire_in_small_batches_between_which_others_write(bench: Bench) -> None:
    for number in range(1_200):
        bench.scans.record(report(mail("old"), id=f"old {number}"))
    await bench.scans.flush()
    await bench.watch("left@b:1")
    await bench.sees("left@b:1", mails=1_200)
    bench.clock.advance(days=91)
    bench.scans.record(report(mail("new"), id="new"))
    await bench.scans.flush()
    commits: list[object] = []
    event.listen(bench.database.engine.sync_engine, "commit", commits.append)
    gone = await bench.expire()
    assert (gone.scans, gone.sightings) == (1_200, 1_200)
    assert len(commits) >= 3 + 3
    assert set(await bench.scans.by_id(["old 0", "old 1199", "new"])) == {"new"}


async def test_d23_an_expiry_that_is_killed_half_way_goes_on_at_the_next_run(bench: Bench) -> None:
    for number in range(1_200):
        bench.scans.record(report(mail("old"), id=f"old {number}"))
    await bench.scans.flush()
    bench.clock.advance(days=15)
    deleted: list[str] = []

    def dies(_: object, __: object, statement: str, *___: object) -> None:
        if statement.startswith("DELETE FROM scan"):
            deleted.append(statement)
            if len(deleted) == 2:
                raise KeyboardInterrupt

    engine = bench.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", dies)
    with pytest.raises(KeyboardInterrupt):
        await bench.expire()
    event.remove(engine, "before_cursor_execute", dies)
    left = (await bench.rows())["scan"]
    assert 0 < left < 1_200
    assert (await bench.expire()).scans == left
    assert (await bench.rows())["scan"] == 0


async def test_j6_the_states_of_accounts_are_seen_by_others(bench: Bench) -> None:
    lost = WatchedAccount(
        name="anna@b:1",
        state=AccountState.LOST,
        since=bench.clock.now(),
        reason="the IMAP server b:1 can't be reached: no answer in time",
        silent=True,
    )
    await bench.watch("anna@b:1", "bert@b:1", "left@b:1")
    await bench.accounts.write([lost], bench.clock.now())
    await bench.accounts.leave({"anna@b:1", "bert@b:1"})
    seen = await bench.accounts.accounts()
    assert [one.name for one in seen] == ["anna@b:1", "bert@b:1"]
    assert seen[0] == lost
