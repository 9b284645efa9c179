"""The database goes away under a site: verdicts go on, no lesson is lost, none counts twice."""

import json
import smtplib
from collections.abc import Iterator

import pytest

from tests.cli.conftest import made_up
from tests.scale.site import Client, Member, site
from tests.servers.postgresql import Postgresql
from tests.waiting import wait_until

Site = tuple[Postgresql, list[Member]]


@pytest.fixture
def one() -> Iterator[Site]:
    with site(1) as running:
        yield running


def learn(member: Member, numbers: range) -> None:
    client = Client(member)
    for number in numbers:
        assert client.post("/learnspam", made_up("spam", number))["success"]
    client.close()


def deliver(member: Member) -> object:
    """Send a mail through; return its verdict."""
    seen = len(member.events("message.scanned"))
    with smtplib.SMTP("127.0.0.1", member.port, timeout=60) as client:
        client.sendmail("a@x.test", ["you@x.test"], made_up("spam", 999))
    wait_until(lambda: len(member.events("message.scanned")) > seen, what="it is logged")
    return member.events("message.scanned")[-1]["verdict"]


def test_lessons_given_while_the_database_is_away_are_learned_once_also_after_kill_9(
    one: Site,
) -> None:
    server, (member,) = one
    learn(member, range(5))
    client = Client(member)
    assert client.post("/learnham", made_up("ham", 0))["success"]
    client.close()
    wait_until(lambda: deliver(member) != "unsure", what="what was learned is in the verdicts")
    verdict = deliver(member)
    server.do("CHECKPOINT")  # it loses what it has not written when it is stopped at once
    server.stop()

    learn(member, range(3, 8))
    assert deliver(member) == verdict
    assert member.metrics()["spamd_lessons_waiting_bytes"] > 0
    away = json.loads(member.run("status", "--json", codes=(75,)))
    assert (away["waiting"], away["database"]) == (5, None)
    wait_until(lambda: member.events("storage.lost"), what="the log says so")

    member.kill()
    member.start()
    learn(member, range(8, 10))
    server.start()
    wait_until(lambda: member.events("lessons.caught_up"), what="they are learned")

    status = json.loads(member.run("status", "--json"))
    assert (status["corpus"]["spam"], status["corpus"]["ham"]) == (10, 1)
    assert (status["lessons"]["total"], status["waiting"]) == (11, 0)
    assert json.loads(member.run("database", "verify", "--json"))["faults"] == []
    assert member.metrics()["spamd_lessons_waiting_bytes"] == 0
