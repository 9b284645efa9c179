"""What is remembered of mail that people read and keep, on both databases."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from spamd.bayes.decision import Verdict
from spamd.feedback.ports import KeptMessage, KeptMessages, KeptScan, KeptState, Sighting
from spamd.message.features import Features
from spamd.storage.engine import Database
from spamd.storage.kept_messages import SqlKeptMessages
from spamd.storage.mailboxes import SqlMailboxes
from spamd.storage.scans import Scans
from tests.storage.mails import HAM, SPAM, FixedClock, TeachingProcess, mail
from tests.storage.test_ports import report

ANN, BOB = "ann@mail.example:993", "bob@mail.example:993"
DAY = timedelta(days=1)


@pytest.fixture
def kept(database: Database) -> KeptMessages:
    return SqlKeptMessages(database)


@pytest.fixture
def mailboxes(database: Database) -> SqlMailboxes:
    return SqlMailboxes(database)


def unread(key: str, now: datetime, folder: str = "INBOX") -> KeptMessage:
    return KeptMessage(
        folder=folder,
        key=key,
        mail=key.encode("utf-8", "surrogateescape").ljust(16),
        state=KeptState.UNREAD,
        came=now,
        since=now,
    )


def of(features: Features, now: datetime, key: str = "1", probability: float = 0.2) -> KeptMessage:
    scan = KeptScan(
        digest=features.digest,
        verdict=Verdict.UNSURE,
        probability=probability,
        sender=features.sender_domain,
    )
    return replace(unread(key, now), state=KeptState.KEPT, scan=scan, deliberate=True)


def sighting(one: KeptMessage) -> Sighting:
    return Sighting(folder=one.folder, key=one.key, mail=one.mail, delivered=0)


async def test_what_waits_is_read_as_it_was_written(kept: KeptMessages, clock: FixedClock) -> None:
    first = unread("1", clock.now())
    odd = replace(unread("\udcff:2,", clock.now(), "迷惑"), state=KeptState.READ)
    done = of(mail("done"), clock.now(), "3")
    await kept.put(ANN, [first, odd, done])
    await kept.put(BOB, [first])
    assert sorted(await kept.waiting(ANN), key=lambda row: row.folder) == [first, odd]
    later = replace(first, state=KeptState.READ, since=clock.now() + DAY)
    await kept.put(ANN, [later], [(odd.folder, odd.key)])
    assert list(await kept.waiting(ANN)) == [later]
    assert list(await kept.waiting(BOB)) == [first]


async def test_what_leaves_its_folder_before_it_is_kept_is_forgotten(
    kept: KeptMessages, mailboxes: SqlMailboxes, clock: FixedClock
) -> None:
    rows = [unread("1", clock.now()), unread("2", clock.now()), unread("3", clock.now(), "Work")]
    await kept.put(ANN, rows)
    await mailboxes.save(ANN, [], [], [("INBOX", "1")])
    assert [row.key for row in await kept.waiting(ANN)] == ["2", "3"]
    await mailboxes.rename(ANN, "INBOX", "Old")
    assert [row.folder for row in await kept.waiting(ANN)] == ["Old", "Work"]
    await mailboxes.forget(ANN, "Old")
    assert [row.key for row in await kept.waiting(ANN)] == ["3"]


async def test_only_what_lies_there_and_is_not_taught_is_teachable_the_least_sure_first(
    kept: KeptMessages,
    mailboxes: SqlMailboxes,
    teaching: TeachingProcess,
    clock: FixedClock,
) -> None:
    ham, spam = mail("ham"), mail("spam")
    rows = [
        of(mail("sure"), clock.now(), "1", 0.01),
        of(mail("unsure"), clock.now(), "2", 0.4),
        of(mail("gone"), clock.now(), "3"),
        of(ham, clock.now(), "4"),
        of(spam, clock.now(), "5"),
        of(mail("another"), clock.now(), "6"),
        replace(of(mail("taught"), clock.now(), "7"), state=KeptState.TAUGHT),
        unread("8", clock.now()),
    ]
    await kept.put(ANN, rows)
    await mailboxes.save(ANN, [], [sighting(row) for row in rows])
    await mailboxes.save(ANN, [], [replace(sighting(rows[5]), mail=b"?" * 16)])
    await mailboxes.save(ANN, [], [], [("INBOX", "3")])
    await teaching.train(HAM, ham)
    await teaching.train(SPAM, spam)
    assert await kept.teachable(9) == [(ANN, rows[1]), (ANN, rows[0])]
    assert await kept.teachable(1) == [(ANN, rows[1])]


async def test_the_standing_counts_what_people_taught_by_and_by(
    kept: KeptMessages, teaching: TeachingProcess, clock: FixedClock
) -> None:
    await teaching.train(SPAM, mail("old"), source="imap")
    clock.advance(days=31)
    since = clock.now()
    await teaching.train(SPAM, mail("a"), mail("b"), source="imap")
    await teaching.train(HAM, mail("c"), source="maildir")
    await teaching.train(SPAM, mail("d"), source="address")
    await teaching.train(HAM, mail("e"), mail("f"), source="cli")
    await teaching.train(HAM, mail("g", sender="x@shop.example"), source="kept")
    clock.advance(days=2)
    await teaching.train(HAM, mail("h", sender="y@shop.example"), mail("i"), source="kept")
    standing = await kept.standing(since, clock.now() - DAY)
    assert (standing.spam, standing.ham, standing.today) == (3, 4, 2)
    assert standing.kinds == {"shop.example": 2, "example.org": 1}


async def test_what_a_person_does_with_unsure_mail_is_known_from_moves_and_from_what_stays(
    kept: KeptMessages,
    database: Database,
    teaching: TeachingProcess,
    clock: FixedClock,
) -> None:
    scans = Scans(database, clock)
    moved, others = mail("moved"), mail("others")
    scans.record(report(moved, id="1", probability=0.6))
    scans.record(report(others, id="2", probability=0.7))
    await scans.flush()
    await teaching.train(SPAM, moved, source="imap", actor="ann")
    await teaching.train(SPAM, others, source="imap", actor="bob")
    rows = [
        replace(
            of(mail(f"{key}"), clock.now(), key, 0.1 * number), since=clock.now() - number * DAY
        )
        for number, key in enumerate("cba")
    ]
    sure = of(mail("sure"), clock.now(), "d")
    assert sure.scan is not None
    await kept.put(ANN, [*rows, replace(sure, scan=replace(sure.scan, verdict=Verdict.HAM))])
    since = clock.now() - 1.5 * DAY
    assert await kept.unsure(ANN, "ann", since) == ([0.6], [0.1, 0.0])
    assert await kept.unsure(BOB, "nobody", since) == ([], [])
