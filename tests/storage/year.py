"""A year of a daemon, by a clock that is set on: what grows, and what doesn't.

    python -m tests.storage.year [SHARE]     of 2,000,000 mails, 20,000 lessons and 400 accounts

Each day mail is scanned, comes into the accounts and leaves them a month later; some is taught,
some is held, some can't be learned and is given up; now and then a person leaves and another one
comes. The hourly job runs once a day. Lessons and their samples grow, for they are the truth; rows
of changes go once the gram table has taken them in (`parts.GRAMS_EVERY`).
"""

import asyncio
import os
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

from sqlalchemy import func, select

from spamd.bayes.model import BayesOptions
from spamd.feedback.ports import (
    AccountState,
    Cursor,
    Held,
    KeptMessage,
    KeptState,
    Parked,
    Sighting,
    WatchedAccount,
)
from spamd.message.facts import SCHEMA
from spamd.message.features import Features
from spamd.sample import Label
from spamd.settings import Settings
from spamd.storage import tables
from spamd.storage.maintenance.expiry import expire
from spamd.storage.options import DatabaseOptions
from spamd.storage.store import Store
from spamd.training import TrainingOptions
from spamd.training.trainer import Trainer
from tests.memory import settled_bytes
from tests.storage.mails import FixedClock, mail
from tests.storage.test_ports import report

MAILS, LESSONS, ACCOUNTS, DAYS = 2_000_000, 20_000, 400, 365
KEPT_DAYS = 30
"""How long people keep a mail."""

LEAVE_DAYS = 15
"""One person leaves in so many days, and another comes."""

FLAT = ("scan", "sighting", "kept", "cursor", "account", "parked", "held")
GROWING = ("change", "lesson", "token")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarter:
    """What there was at the end of a quarter."""

    rows: dict[str, int]
    memory_bytes: int
    files: int


class Year:
    """One store, and all that happens to it; `share` is the share of the whole load."""

    def __init__(self, store: Store, clock: FixedClock, share: float) -> None:
        self._store, self._clock, self._share = store, clock, share
        self._trainer = Trainer(
            unit_of_work=store.unit_of_work, clock=clock, options=TrainingOptions()
        )
        self._pool = [mail(f"mail {n}", f"word{n % 97} word{n % 89} word{n}") for n in range(200)]
        self._names = deque(f"user{n}@b:1" for n in range(max(4, int(ACCOUNTS * share))))
        self._lying: deque[tuple[int, str, str]] = deque()
        self._made = self._mails = self._lessons = 0

    async def run(self, step: int) -> list[Quarter]:
        """Live the year, `step` days at a time; return its quarters."""
        quarters: list[Quarter] = []
        for day in range(step, DAYS + 1, step):
            await self._day(day)
            self._clock.advance(days=step)
            await expire(self._store.database, self._clock, Settings().ages, dry_run=False)
            if day + step > DAYS * (len(quarters) + 1) // 4:
                quarters.append(await self._quarter())
        return quarters

    def _features(self) -> Features:
        """Return a mail that was never there before."""
        self._made += 1
        return replace(self._pool[self._made % len(self._pool)], digest=_hash(str(self._made)))

    async def _day(self, day: int) -> None:
        new = int(MAILS * self._share * day / DAYS) - self._mails
        self._mails += new
        came = [self._features() for _ in range(new)]
        for number, features in enumerate(came):
            self._store.scans.record(report(features, id=f"{day}-{number}"))
            if number % 1000 == 999:
                await self._store.scans.flush()
        await self._store.scans.flush()
        await self._lie(day, len(came))
        due = int(LESSONS * self._share * day / DAYS) - self._lessons
        self._lessons += due
        for label in Label:
            taught = came[label is Label.SPAM : 2 * due : 2][:due]
            await self._trainer.train(taught, label, source="imap", actor="anna")
        await self._go_wrong(day)
        await self._watch(day)

    async def _lie(self, day: int, mails: int) -> None:
        """Have mail come into the accounts, and that of a month ago leave them."""
        left: dict[str, list[tuple[str, str]]] = {}
        while self._lying and self._lying[0][0] <= day - KEPT_DAYS:
            _, name, key = self._lying.popleft()
            left.setdefault(name, []).append(("INBOX", key))
        for index, name in enumerate(self._names):
            keys = [f"{day}{n:07}" for n in range(index, mails, len(self._names))]
            self._lying.extend((day, name, key) for key in keys)
            seen = [Sighting(folder="INBOX", key=key, mail=_hash(key), delivered=0) for key in keys]
            cursor = self._cursor(name, day)
            await self._store.mailboxes.save(name, [cursor], seen, left.get(name, ()))
            await self._store.kept.put(name, [self._unread(one) for one in seen])

    def _unread(self, one: Sighting) -> KeptMessage:
        now = self._clock.now()
        return KeptMessage(
            folder=one.folder, key=one.key, mail=one.mail, state=KeptState.UNREAD, came=now,
            since=now,
        )  # fmt: skip

    def _cursor(self, name: str, day: int) -> Cursor:
        return Cursor(
            account=name, folder="INBOX", validity=1, next_uid=day, modseq=day, messages=1,
            baseline=1, marked="/", time=self._clock.now(),
        )  # fmt: skip

    async def _go_wrong(self, day: int) -> None:
        now, name = self._clock.now(), self._names[0]
        parked = Parked(
            account=name, folder="INBOX", validity=1, uid=str(day), attempts=3, reason="too much",
            time=now,
        )  # fmt: skip
        held = Held(
            number=0, features=self._features(), label=Label.SPAM, source="imap", actor="anna",
            probability=0.02, reason="a burst", time=now,
        )  # fmt: skip
        await self._store.mailboxes.park(parked)
        await self._store.held.hold([held])

    async def _watch(self, day: int) -> None:
        if day % LEAVE_DAYS == 0:
            self._names.popleft()
            self._names.append(f"new{day}@b:1")
        now = self._clock.now()
        await self._store.accounts.leave(set(self._names))
        rows = [
            WatchedAccount(
                name=name, state=AccountState.WATCHING, since=now, reason="", silent=False
            )
            for name in self._names
        ]
        await self._store.accounts.write(rows, now)

    async def _quarter(self) -> Quarter:
        rows = {}
        async with self._store.database.reading() as connection:
            for name in (*FLAT, *GROWING):
                wanted = select(func.count()).select_from(tables.metadata.tables[name])
                rows[name] = (await connection.execute(wanted)).scalar_one()
        files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names of the kernel's
        return Quarter(rows=rows, memory_bytes=settled_bytes(), files=files)


def _hash(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()


async def lived(folder: Path, share: float, step: int = 1) -> list[Quarter]:
    """Live a year with a share of the whole load, `step` days at a time; return its quarters."""
    clock = FixedClock()
    options = DatabaseOptions(url=f"sqlite:///{folder}/year.db")
    store = await Store.open(options, schema=SCHEMA, bayes=BayesOptions(), clock=clock)
    try:
        return await Year(store, clock, share).run(step)
    finally:
        await store.close()


def table(quarters: Sequence[Quarter]) -> Iterator[str]:
    """Yield the lines of a table for people."""
    yield f"{'':<16}" + "".join(f"{f'quarter {n}':>14}" for n in range(1, len(quarters) + 1))
    for name in (*FLAT, *GROWING):
        yield f"{name:<16}" + "".join(f"{each.rows[name]:>14,}" for each in quarters)
    yield f"{'memory, MiB':<16}" + "".join(f"{q.memory_bytes / 2**20:>14.1f}" for q in quarters)
    yield f"{'open files':<16}" + "".join(f"{each.files:>14}" for each in quarters)


def main(share: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for line in table(asyncio.run(lived(Path(folder), share))):
            print(line)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
