"""Three daemons on one PostgreSQL are one site: what one learns all know, and nothing is lost."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spamd.message.facts import SCHEMA
from spamd.message.features import extract
from spamd.storage.engine import Database
from spamd.storage.maintenance.verify import verify
from spamd.storage.migrate import upgrade
from spamd.storage.options import DatabaseOptions
from tests.cli.conftest import made_up
from tests.scale.site import Client, Member, lesson, site, teach_from_all
from tests.servers.postgresql import Postgresql
from tests.storage.mails import HAM, SPAM, FixedClock, TeachingProcess, counts
from tests.waiting import wait_until

LESSONS = 60

Site = tuple[Postgresql, list[Member]]


@pytest.fixture(scope="module")
def three() -> Iterator[Site]:
    with site(3) as running:
        yield running


def test_a_lesson_given_to_one_changes_the_verdicts_of_all_within_2_s(three: Site) -> None:
    _, members = three
    clients = [Client(member) for member in members]
    for number in range(3):
        assert clients[0].post("/learnham", made_up("ham", number))["success"]
    asked = made_up("spam", 99)

    def scores() -> list[float]:
        return [client.post("/checkv2", asked)["score"] for client in clients]

    wait_until(lambda: len(set(scores())) == 1, what="all have heard of the first lessons")
    before = scores()
    assert clients[0].post("/learnspam", made_up("spam", 1))["success"]
    told = time.monotonic()
    waited = []
    for client, score in zip(clients, before, strict=True):
        while client.post("/checkv2", asked)["score"] == score:
            assert time.monotonic() - told < 30, "it never hears of it"
        waited.append(time.monotonic() - told)

    assert max(waited) < 2
    assert len(set(scores())) == 1
    for client, member in zip(clients, members, strict=True):
        client.close()
        assert member.metrics()["spamd_corpus_behind_seconds"] < 2


async def test_lessons_from_all_at_once_come_to_what_one_process_learns(
    three: Site, tmp_path: Path
) -> None:
    server, members = three
    taught = Database(DatabaseOptions(url=server.url("spamd")))
    alone = Database(DatabaseOptions(url=f"sqlite:///{tmp_path}/alone.db"))
    await upgrade(alone)
    before = {digest for digest, _ in (await counts(taught))["lesson"]}

    teach_from_all(members, range(LESSONS))

    process = TeachingProcess(alone, FixedClock())
    told = [(HAM, extract(made_up("ham", number))) for number in range(3)]
    told.append((SPAM, extract(made_up("spam", 1))))
    for label, mail in told:  # by the other test, if it ran first
        if mail.digest in before:
            await process.train(label, mail)
    for number in range(LESSONS):
        kind, content = lesson(number)
        await process.train(SPAM if kind == "spam" else HAM, extract(content))
    assert await counts(taught) == await counts(alone)
    assert (await verify(taught, SCHEMA)).faults == ()
    await taught.close()
    await alone.close()
