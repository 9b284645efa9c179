"""A month at a made-up office, for pictures of the page: mail, lessons, accounts, all by us."""

import random
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from spamd.admin.measured import note
from spamd.feedback.ports import AccountState, WatchedAccount
from spamd.observe.error_rates import error_rates, span
from spamd.sample import Label
from spamd.storage.outcomes import Judged, Outcomes
from spamd.storage.times import to_number
from tests.admin.office import Office, office

LESSONS = 60
SCANS = 200
DAYS = 30

_HAM = (
    ("Minutes of Thursday's meeting", "The minutes. The budget of the spring fair was agreed."),
    ("Lunch on Friday?", "Shall we have lunch at the harbour on Friday? Bring the drawings."),
    ("Invoice 2207 for the roof", "Here is the invoice for the repair of the roof, as agreed."),
    ("Re: the new timetable", "The timetable looks right. Please print it for the staff room."),
    ("Your order of printer paper", "Your order has been sent and arrives within three days."),
    ("Keys of the rehearsal room", "I left the keys of the rehearsal room with the caretaker."),
    ("Draft of the annual report", "Could you read chapter two of the draft before Monday?"),
    ("Holiday plans of the team", "Please enter your holiday in the calendar by the end of May."),
    ("Backup of the file server", "The backup of last night has finished. Nothing is missing."),
)  # fmt: skip
_SPAM = (
    ("You have been chosen", "Claim your prize of five million dollars, the offer ends soon."),
    ("Cheap watches, free shipping", "Watches at a discount. Order now, free shipping worldwide."),
    ("Your mailbox is full", "Verify your account within a day or it will be closed. Click here."),
    ("Lose weight in a week", "Doctors hate this miracle pill. Order a free sample tonight."),
    ("Loan approved", "Your loan was approved without any check. Reply with your bank details."),
    ("Casino bonus", "Claim your welcome bonus of 500 free spins at our online casino now."),
    ("Crypto doubles overnight", "Invest today, our robot doubles your crypto. Guaranteed profit."),
)  # fmt: skip
_DOUBTFUL = (
    ("A free offer from your bank", "The bank agreed a discount on your loan; see the calendar."),
    ("Newsletter of the harbour club", "Free lunch for members, an offer of watches. Order now."),
)  # fmt: skip
_PEOPLE = ("anna", "bruno", "carla", "dmitri", "elin")


def ham(number: int) -> bytes:
    """Return a mail that somebody wishes; another number is another mail."""
    return _mail(number, _HAM, f"{_PEOPLE[number % 5]}@office.example", "Best regards")


def spam(number: int) -> bytes:
    """Return a mail that nobody wishes."""
    words = f"http://win{number % 7}.prizes.example/{number} unsubscribe"
    return _mail(number, _SPAM, f"offer{number}@prizes.example", words)


def doubtful(number: int) -> bytes:
    """Return a mail of which a filter can't be sure."""
    return _mail(number, _DOUBTFUL, f"news{number}@letters.example", "Regards")


def _mail(number: int, kinds: tuple[tuple[str, str], ...], sender: str, end: str) -> bytes:
    subject, text = kinds[number % len(kinds)]
    other = kinds[(number * 7 + 3) % len(kinds)][1] if number % 3 else ""
    head = f"From: {sender}\r\nTo: you@office.example\r\nSubject: {subject}\r\n"
    head += f"Message-ID: <{number}.{sender}>\r\nMIME-Version: 1.0\r\n"
    body = f"Hello,\r\n\r\n{text} {other}\r\n\r\n{end}\r\n"
    return f"{head}Content-Type: text/plain; charset=utf-8\r\n\r\n{body}".encode()


@asynccontextmanager
async def month(folder: Path) -> AsyncIterator[tuple[Office, list[str]]]:
    """Give the office with what it learned, and the ids of what it judged, newest last."""
    chance = random.Random(22)
    async with office(folder, learned=0) as here:
        for number in range(LESSONS):
            actor = _PEOPLE[number % 5]
            await here.taught(Label.SPAM, [spam(number)], actor)
            await here.taught(Label.HAM, [ham(number)], actor)
        ids = []
        for number in range(1_000, 1_000 + SCANS):
            kind = chance.choices((ham, spam, doubtful), (49, 45, 6))[0]
            queue_id = f"4b{number * 7919 % 99991:05d}Zq"
            ids.append(await here.scanned(kind(number), queue_id))
        now = datetime.now(UTC)
        await here.store.accounts.write(_accounts(now), now)
        with sqlite3.connect(folder / "spamd.db") as database:
            _spread(database, now, ids, chance)
        await note(here.store.records, now - timedelta(minutes=12), _measured(now))
        yield here, ids


def _measured(now: datetime) -> dict[str, object]:
    """Return how often people found verdicts wrong."""
    since, until = span(now, scans_days=30, kept_days=2)
    rates = error_rates(
        Outcomes(
            since=since,
            until=until,
            ham=Judged(scanned=31_402, spam=93, ham=0, kept=22_871),
            spam=Judged(scanned=33_118, spam=0, ham=4, kept=0),
            unsure=Judged(scanned=1_204, spam=611, ham=102, kept=203),
        )
    )
    return rates.to_json()


def _accounts(now: datetime) -> list[WatchedAccount]:
    return [
        WatchedAccount(
            name=name,
            state=AccountState.LOST if name == "dmitri" else AccountState.WATCHING,
            since=now - timedelta(days=1 + place),
            reason="connection refused by imap.office.example" if name == "dmitri" else "",
            silent=False,
        )
        for place, name in enumerate(_PEOPLE)
    ]


def _spread(
    database: sqlite3.Connection, now: datetime, ids: list[str], chance: random.Random
) -> None:
    """Have what was done in a moment happen over days, busy by day and quiet by night."""
    for age, name in enumerate(reversed(ids)):
        time = to_number(now - timedelta(minutes=4 + 7.3 * age))
        database.execute("UPDATE scan SET time = ? WHERE id = ?", (time, name))
    lessons = [row[0] for row in database.execute("SELECT id FROM lesson ORDER BY id DESC")]
    for age, number in enumerate(lessons):
        time = to_number(now - timedelta(hours=1 + 2.7 * age))
        source = ("imap", "imap", "address", "kept", "page")[number % 5]
        database.execute(
            "UPDATE lesson SET time = ?, source = ? WHERE id = ?", (time, source, number)
        )
    database.execute("DELETE FROM mail_hour")
    insert = "INSERT INTO mail_hour VALUES (?, 'smtp', ?, ?, ?)"
    database.executemany(insert, _hours(now, chance))


def _hours(now: datetime, chance: random.Random) -> Iterator[tuple[int, str, str, int]]:
    top = now.replace(minute=0, second=0, microsecond=0)
    for age in range(DAYS * 24):
        hour = top - timedelta(hours=age)
        busy = 1.0 if 7 <= hour.hour <= 18 and hour.weekday() < 5 else 0.25
        for verdict, action, mails in (("ham", "accept", 90), ("spam", "tag", 70)):
            weight = busy if verdict == "ham" else 0.6 + busy / 3
            yield to_number(hour), verdict, action, int(mails * weight * chance.uniform(0.7, 1.2))
        yield to_number(hour), "unsure", "accept", chance.randrange(5)
