"""Moves on a real Dovecot with Sieve rules, virtual folders and two clients: only people teach."""

import random
import smtplib
from collections.abc import Iterator

import pytest

from spamd.bayes.decision import Verdict
from spamd.sample import Label
from tests.feedback.world import Owner, World, world_at
from tests.servers.base import require
from tests.servers.dovecot import Dovecot

HISTORIES = 100
"""Of one mail each; ten at a time share the looks."""

AT_A_TIME = 10

RULE = """require ["fileinto", "copy", "imap4flags"];
if header :contains "subject" "ruled" { fileinto "Junk"; }
elsif header :contains "subject" "copied" { fileinto :copy "Junk"; }
elsif header :contains "subject" "marked" { fileinto :flags "$Junk" "INBOX"; }
"""

VIEWS = {"Toate": "all", "Starred": "flagged", "Unread": "unseen"}


@pytest.fixture
def server() -> Iterator[Dovecot]:
    """Start a Dovecot whose folders All … show mail of the others, and that files by a rule."""
    require("dovecot")
    require("sieve")
    server = Dovecot("alice")
    script = server.directory / "before.sieve"
    script.write_text(RULE)
    views = server.directory / "views"
    for name, wanted in VIEWS.items():
        (views / name).mkdir(parents=True)
        (views / name / "dovecot-virtual").write_text(f"INBOX\nJunk\nTrash\nWork\n  {wanted}\n")
    server.settings = (
        "mail_plugins = virtual\nprotocol lmtp {\n  mail_plugins = virtual sieve\n}\n"
        f"plugin {{\n  sieve_before = {script}\n}}\n"
        "namespace views {\n  prefix = Views/\n  separator = /\n"
        f"  location = virtual:{views}:INDEX=~/views\n}}\n"
    )
    with server:
        yield server


ENDS = {"move": Label.SPAM, "copy_and_remove": Label.SPAM, "copy": None, "remove": None}


async def test_h1_k4_a_hundred_histories_on_a_dovecot_with_views_and_rules_teach_what_people_did(
    server: Dovecot,
) -> None:
    dice = random.Random(13)
    async with world_at(server) as world:
        with server.login() as session:
            second = Owner(session)
            world.owner.create("Work")
            await world.poll()
            watched = {folder.name for folder in await world.mailbox.folders()}
            assert {f"Views/{name}" for name in VIEWS} <= watched
            meant: set[tuple[str, Label]] = set()
            for start in range(0, HISTORIES, AT_A_TIME):
                meant |= await ten(world, second, dice, start)
        assert set(world.taught()) == meant
        assert {label for _, label in meant} == set(Label)


async def ten(
    world: World, second: Owner, dice: random.Random, start: int
) -> set[tuple[str, Label]]:
    """Play ten histories side by side; return what people meant to teach."""
    meant: set[tuple[str, Label]] = set()
    kinds = {}
    for number in range(start, start + AT_A_TIME):
        kind = dice.choice(["plain", "plain", "plain", "ruled", "copied", "marked"])
        subject = f"{kind} {number:03}"
        kinds[subject] = kind
        with smtplib.LMTP("127.0.0.1", world.server.lmtp_port) as lmtp:
            verdict = Verdict.SPAM if kind == "ruled" and number % 2 else Verdict.HAM
            content = world.judged(subject, verdict)
            lmtp.sendmail("ann@sender.test", [f"{world.user}@our.test"], content)
    await world.poll()
    for subject, kind in kinds.items():
        who = dice.choice([world.owner, second])
        if dice.random() < 0.5:
            folder = "Junk" if kind == "ruled" else "INBOX"
            who.flag(subject, folder, dice.choice(["\\Seen", "\\Flagged"]))
        if kind == "ruled" and dice.random() < 0.5:
            who.move(subject, "Junk", "INBOX")
            meant.add((subject, Label.HAM))
        elif kind in {"plain", "marked"}:
            way = dice.choice(list(ENDS))
            args = (subject, "INBOX") if way == "remove" else (subject, "INBOX", "Junk")
            getattr(who, way)(*args)
            if label := ENDS[way]:
                meant.add((subject, label))
    await world.poll()
    await world.poll()
    return meant
