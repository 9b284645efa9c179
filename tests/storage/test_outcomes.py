"""What became of judged mail, counted on both databases, and what that says of all mail."""

from dataclasses import replace
from datetime import timedelta
from time import process_time

import pytest

from spamd.bayes.decision import Verdict
from spamd.feedback.ports import KeptMessage, KeptScan, KeptState
from spamd.message.features import Features
from spamd.observe.error_rates import error_rates, span
from spamd.storage import tables
from spamd.storage.engine import Database
from spamd.storage.kept_messages import SqlKeptMessages
from spamd.storage.outcomes import Judged, Outcomes, outcomes
from spamd.storage.scans import Scans
from spamd.storage.times import to_number
from tests.storage.mails import HAM, SPAM, FixedClock, TeachingProcess, mail
from tests.storage.test_ports import report

DAY = timedelta(days=1)


def kept_row(features: Features, clock: FixedClock, state: KeptState) -> KeptMessage:
    scan = KeptScan(
        digest=features.digest, verdict=Verdict.HAM, probability=0.1, sender="x.example"
    )
    return KeptMessage(
        folder="INBOX",
        key=features.digest.hex(),
        mail=b"a" * 16,
        state=state,
        came=clock.now(),
        since=clock.now(),
        scan=scan,
    )


async def test_judged_mail_is_counted_by_what_people_did_with_it(
    database: Database, teaching: TeachingProcess, clock: FixedClock
) -> None:
    scans, kept = Scans(database, clock), SqlKeptMessages(database)
    mails = {f"{verdict} {n}": mail(f"{verdict} {n}") for verdict in Verdict for n in range(5)}
    old = mail("old")
    scans.record(replace(report(old, id="old"), verdict=Verdict.HAM))
    await scans.flush()
    clock.advance(days=2)
    since = clock.now()
    for name, features in mails.items():
        scans.record(replace(report(features, id=name), verdict=Verdict(name.split()[0])))
    scans.record(replace(report(mails["ham 0"], id="twice"), verdict=Verdict.HAM))
    await scans.flush()
    clock.advance(days=1)
    until = clock.now()
    scans.record(replace(report(mail("new"), id="new"), verdict=Verdict.HAM))
    await scans.flush()
    await teaching.train(SPAM, old, mails["ham 0"], mails["unsure 0"], source="imap")
    await teaching.train(HAM, mails["spam 0"], mails["ham 1"], source="address")
    await teaching.train(SPAM, mails["ham 2"], source="cli")
    await teaching.train(HAM, mails["ham 3"], source="kept")
    await kept.put(
        "ann",
        [
            kept_row(mails["ham 0"], clock, KeptState.KEPT),  # moved to Junk since
            kept_row(mails["ham 3"], clock, KeptState.TAUGHT),
            kept_row(mails["ham 4"], clock, KeptState.KEPT),
            kept_row(mails["ham 1"], clock, KeptState.READ),
        ],
    )
    await kept.put("bob", [kept_row(mails["ham 4"], clock, KeptState.KEPT)])
    async with database.reading() as connection:
        counts = await outcomes(connection, since, until)
    assert counts.ham == Judged(scanned=5, spam=1, ham=1, kept=2)
    assert counts.unsure == Judged(scanned=5, spam=1, ham=0, kept=0)
    assert counts.spam == Judged(scanned=5, spam=0, ham=1, kept=0)


def counted(ham: Judged, spam: Judged) -> Outcomes:
    since, until = span(FixedClock().now(), scans_days=14, kept_days=3)
    return Outcomes(since=since, until=until, ham=ham, unsure=Judged(scanned=7, ham=2), spam=spam)


def test_the_share_of_the_wrong_is_that_of_the_mail_that_somebody_looked_at() -> None:
    found = error_rates(counted(Judged(scanned=1000, spam=5, kept=195), Judged(scanned=400, ham=2)))
    passed, lost = found.spam_passed, found.ham_lost
    assert (found.corrected, found.unsure, found.settled) == (7, 7, 2)
    assert (passed.rate, passed.untouched, passed.least) == (2.5, 800, False)
    assert passed.interval.low == pytest.approx(0.82, abs=0.01)  # Clopper and Pearson, 5 of 200
    assert passed.interval.high == pytest.approx(5.74, abs=0.01)
    assert passed.messages == pytest.approx((25.0, 8.2, 57.4), abs=0.1)
    assert (lost.rate, lost.untouched, lost.least) == (0.5, 398, True)
    assert found.until - found.since == 11 * DAY


def test_where_nothing_is_kept_only_the_least_is_known() -> None:
    found = error_rates(counted(Judged(scanned=1000, spam=5), Judged()))
    assert (found.spam_passed.rate, found.spam_passed.least) == (0.5, True)
    assert (found.ham_lost.rate, found.ham_lost.interval.high) == (0.0, 100.0)


async def test_counting_takes_no_more_than_linear_time(
    database: Database, clock: FixedClock
) -> None:
    """Of a busy site tens of thousands of scans are known, and as many mails that were kept."""
    took = [await counting_s(database, clock, rows) for rows in (1_000, 4_000)]
    assert took[1] < 8 * took[0] + 0.05


async def counting_s(database: Database, clock: FixedClock, rows: int) -> float:
    """Return the CPU time of counting so many rows, the best of three."""
    now = to_number(clock.now())
    digests = [number.to_bytes(16, "big") for number in range(rows)]
    async with database.writing() as connection:
        for table in (tables.kept, tables.lesson, tables.scan):
            await connection.execute(table.delete())
        await connection.execute(
            tables.scan.insert(),
            [
                {
                    "id": digest.hex(), "digest": digest, "time": now, "verdict": "ham",
                    "action": "accept", "probability": 0.1, "content": b"",
                }
                for digest in digests
            ],
        )  # fmt: skip
        await connection.execute(
            tables.kept.insert(),
            [
                {
                    "account": "ann", "folder": "INBOX", "mail_key": digest, "mail": digest,
                    "state": "kept", "came": now, "since": now, "deliberate": False,
                    "digest": digest, "verdict": "ham", "probability": 0.1, "sender": "x",
                }
                for digest in digests
            ],
        )  # fmt: skip
    times = []
    for _ in range(3):
        began = process_time()
        async with database.reading() as connection:
            counts = await outcomes(connection, clock.now() - DAY, clock.now() + DAY)
        times.append(process_time() - began)
        assert counts.ham == Judged(scanned=rows, kept=rows)
    return min(times)
