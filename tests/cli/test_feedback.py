"""`spamd feedback`, `spamd lessons` and `spamd bootstrap` at the command line."""

import asyncio
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from spamd.bayes.model import BayesOptions
from spamd.cli.commands.doctor import somebody
from spamd.clock import WallClock
from spamd.feedback.options import AccountOptions
from spamd.feedback.ports import AccountState, Held, Parked, WatchedAccount
from spamd.message.facts import SCHEMA
from spamd.message.features import extract
from spamd.sample import Label
from spamd.storage.options import DatabaseOptions
from spamd.storage.store import Store
from tests.cli.conftest import Spamd, made_up
from tests.e2e.feedback_daemon import settled
from tests.feedback.test_maildir import Box
from tests.rights import needs_root
from tests.waiting import wait_until


@pytest.fixture
def box(home: Path) -> Box:
    return Box(home / "Maildir")


def accounts(box: Box) -> tuple[str, str]:
    return "--set", f'feedback.accounts=[{{ maildir = "{box.root}", user = "alice" }}]'


async def _fill(url: str) -> None:
    """Hold two lessons and park a mail, as the watchers do."""
    store = await Store.open(
        DatabaseOptions(url=url), schema=SCHEMA, bayes=BayesOptions(), clock=WallClock()
    )
    try:
        for number in (1, 2):
            held = Held(
                number=0,
                features=extract(made_up("spam", number)),
                label=Label.SPAM,
                source="imap",
                actor="alice",
                probability=0.02,
                reason="a burst",
                time=WallClock().now(),
            )
            await store.held.hold([held])
        parked = Parked(
            account="alice@mail.test:993",
            folder="Junk",
            validity=1,
            uid="7",
            attempts=3,
            reason="ValueError: too much",
            time=WallClock().now(),
        )
        await store.mailboxes.park(parked)
    finally:
        await store.close()


@pytest.fixture
def filled(spamd: Spamd, home: Path) -> Spamd:
    assert spamd("status").code == 0  # makes the database
    asyncio.run(_fill(f"sqlite:///{home}/var/spamd.sqlite"))
    return spamd


def database(home: Path) -> tuple[str, str]:
    return "--set", f"database.url=sqlite:///{home}/var/spamd.sqlite"


def test_f6_a_look_says_what_became_of_the_mail(spamd: Spamd, box: Box) -> None:
    box.deliver(made_up("ham", 1))
    first = spamd("feedback", "once", *accounts(box), "--json")
    assert first.code == 0
    assert first.json["examined"] == 1
    assert first.json["skipped"] == {"teach nothing": 1}
    base = box.deliver(made_up("spam", 1))
    spamd("feedback", "once", *accounts(box))
    box.move(base, "Junk")
    second = spamd("feedback", "once", *accounts(box))
    assert "learned               1  1 spam" in second.out
    assert "1 spam and 0 ham now" in second.out


@pytest.mark.parametrize("command", ["once", "watch"])
def test_j15_without_accounts_the_settings_are_wrong_and_it_says_what_to_set(
    spamd: Spamd, command: str
) -> None:
    ran = spamd("feedback", command)
    assert (ran.code, ran.out) == (78, "")
    assert ran.err.startswith("spamd: feedback.accounts is empty: say where people keep their mail")


def test_h9_watching_logs_each_lesson_as_the_daemon_does(box: Box, tmp_path: Path) -> None:
    log = tmp_path / "log"
    set_here = [
        f'feedback.accounts=[{{ maildir = "{box.root}" }}]',
        f"database.url=sqlite:///{tmp_path}/watch.db",
    ]
    command = [sys.executable, "-m", "spamd", "feedback", "watch"]
    for one in set_here:
        command += ["--set", one]
    checkout = Path(__file__).resolve().parents[2]
    with log.open("wb") as output:
        watching = subprocess.Popen(command, cwd=checkout, stdout=output, stderr=output)
        try:
            base = box.deliver(made_up("spam", 1))
            database = tmp_path / "watch.db"
            wait_until(lambda: settled(database, 1), what="the mail is seen", deadline_s=60)
            box.move(base, "Junk")
            wait_until(lambda: b"lesson.learned" in log.read_bytes(), what="the lesson is logged")
        finally:
            watching.terminate()
            watching.wait(20)


def test_f4_an_account_out_of_reach_is_trouble(spamd: Spamd, home: Path) -> None:
    lost = f'feedback.accounts=[{{ maildir = "{home}/nowhere" }}]'
    ran = spamd("feedback", "once", "--set", lost)
    assert ran.code == 3
    assert "nowhere is no Maildir" in ran.err


def test_f4_one_account_of_two_is_partly_done(spamd: Spamd, box: Box, home: Path) -> None:
    box.deliver(made_up("ham", 1))
    both = f'feedback.accounts=[{{ maildir = "{home}/nowhere" }}, {{ maildir = "{box.root}" }}]'
    assert spamd("feedback", "once", "--set", both).code == 1


def test_parked_mail_is_listed(filled: Spamd, home: Path) -> None:
    assert (
        "tried 3, no longer tried: ValueError: too much"
        in filled("feedback", "parked", *database(home)).out
    )
    shown = filled("feedback", "parked", "--json", *database(home)).json["parked"]
    assert [(row["folder"], row["uid"]) for row in shown] == [("Junk", "7")]


def test_held_lessons_are_listed_released_and_dropped(filled: Spamd, home: Path) -> None:
    rows = filled("lessons", "held", "--json", *database(home)).json["held"]
    assert [row["label"] for row in rows] == ["spam", "spam"]
    assert "alice" in filled("lessons", "held", *database(home)).out
    first, second = (str(row["number"]) for row in rows)
    assert filled("lessons", "release", first, *database(home)).code == 0
    assert filled("lessons", "drop", first, second, *database(home)).code == 1
    assert "no lesson is held" in filled("lessons", "held", *database(home)).out
    assert filled("status", "--json", *database(home)).json["corpus"]["spam"] == 1


def test_j11_a_held_lesson_is_shown_with_its_sender_id_and_what_we_said(
    filled: Spamd, home: Path
) -> None:
    shown = filled("lessons", "held", *database(home)).out
    row = filled("lessons", "held", "--json", *database(home)).json["held"][0]
    assert row["id"] == extract(made_up("spam", 1)).digest.hex()
    assert (row["sender_domain"], row["verdict"]) == ("prizes.example", "ham")
    assert row["subject_words"] is None
    for part in ("prizes.example", row["id"], "ham, probability of spam 0.0200", "a burst"):
        assert part in shown
    assert "winner" not in shown


def test_j11_the_words_of_its_subject_are_shown_with_full_privacy(
    filled: Spamd, home: Path
) -> None:
    full = (*database(home), "--set", "log.privacy=full")
    assert "winner (its words, unordered)" in filled("lessons", "held", *full).out
    rows = filled("lessons", "held", "--json", *full).json["held"]
    assert [row["subject_words"] for row in rows] == [["winner"], ["claim"]]


def test_f4_lessons_without_a_number_are_a_wrong_command_line(filled: Spamd, home: Path) -> None:
    assert filled("lessons", "release", *database(home)).code == 64
    assert filled("lessons", "drop", "99", "9" * 20, *database(home)).code == 3
    assert filled("lessons", "drop", "--all", *database(home)).code == 0


def test_bootstrap_shows_what_it_found_and_learns_when_told(spamd: Spamd, box: Box) -> None:
    for number in range(4):
        box.deliver(made_up("spam", number), "Junk")
        box.deliver(made_up("ham", number), "Archive.2026")
    looked = spamd("bootstrap", box.root, "--dry-run", "--json")
    assert {(row["folder"], row["label"], row["found"]) for row in looked.json["plan"]} == {
        ("Junk", "spam", 4),
        ("Archive.2026", "ham", 4),
    }
    assert spamd("status", "--json").json["corpus"]["spam"] == 0
    learned = spamd("bootstrap", box.root, "--yes", "--limit", "3")
    assert learned.code == 0
    assert "3 spam and 3 ham to learn" in learned.out
    corpus = spamd("status", "--json").json["corpus"]
    assert (corpus["spam"], corpus["ham"]) == (3, 3)


def examined(spamd: Spamd, *settings: str) -> dict[str, str]:
    """Return what the doctor sees at each step."""
    port = "127.0.0.1:9"  # nobody is there: whom it would write to stands in the settings
    found = spamd("doctor", "--json", "--wait", "1", "--set", f"relay.listen={port}", *settings)
    return {each["step"]: each["seen"] for each in found.json["findings"]}


def test_j9_the_doctor_writes_to_a_user_of_the_list_not_to_the_master_user(tmp_path: Path) -> None:
    listed = tmp_path / "users"
    listed.write_text("# people\nanna\nbert\n")
    account = AccountOptions(host="a.test", user="filter", password="x", users_file=listed)
    assert somebody(account) == "anna"
    assert somebody(replace(account, users=("carl",))) == "carl"
    assert somebody(replace(account, users_file=None)) == "filter"


def test_j9_users_that_are_not_there_are_told_in_a_sentence(spamd: Spamd, home: Path) -> None:
    keys = f'host = "127.0.0.1", user = "filter", password = "x", users_file = "{home}/users"'
    found = examined(spamd, "--set", f"feedback.accounts=[{{ {keys} }}]")
    assert f"{home}/users, the users_file of filter" in found["settings"]
    (home / "users").write_text("# nobody yet\n")
    found = examined(spamd, "--set", f"feedback.accounts=[{{ {keys} }}]")
    assert "names nobody whom the master user filter could watch" in found["settings"]


@needs_root
def test_j9_the_doctor_does_not_warn_of_root_whose_files_are_given_to_the_owner(
    spamd: Spamd, home: Path
) -> None:
    assert spamd("status").code == 0
    for each in (home / "var", *(home / "var").iterdir()):
        os.chown(each, 65534, 65534)
    assert "rights" not in examined(spamd)


def test_bootstrap_asks_nobody_where_nobody_is(
    spamd: Spamd, box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    ran = spamd("bootstrap", box.root)
    assert ran.code == 64
    assert "--yes" in ran.err


def test_bootstrap_says_when_one_label_has_no_mail(spamd: Spamd, box: Box) -> None:
    box.deliver(made_up("spam", 1), "Junk")
    ran = spamd("bootstrap", box.root, "--yes")
    assert ran.code == 0
    assert "--unbalanced" in ran.out
    alone = spamd("bootstrap", box.root, "--yes", "--unbalanced", "--json")
    assert json.loads(alone.out)["learned"] == {"spam": 1}


def test_f5_bootstrap_of_an_empty_maildir_learns_nothing(spamd: Spamd, box: Box) -> None:
    ran = spamd("bootstrap", box.root, "--yes")
    assert ran.code == 0
    assert "no sorted mail was found" in ran.out


def test_bootstrap_of_a_folder_that_is_not_there_is_trouble(spamd: Spamd, home: Path) -> None:
    ran = spamd("bootstrap", home / "missing", "--dry-run")
    assert ran.code == 3
    assert "missing is no Maildir" in ran.err


def test_f3_the_doctor_without_a_daemon_says_what_to_start(spamd: Spamd, box: Box) -> None:
    ran = spamd("doctor", "--json", *accounts(box), "--set", "relay.listen=127.0.0.1:9")
    assert ran.code == 3
    broken = [row for row in ran.json["findings"] if row["state"] == "broken"]
    assert [row["step"] for row in broken] == ["sending"]
    assert "start spamd serve" in broken[0]["cure"]


async def _lose(url: str) -> None:
    """Write down how two accounts fare, as a daemon that watches them does."""
    clock = WallClock()
    store = await Store.open(
        DatabaseOptions(url=url), schema=SCHEMA, bayes=BayesOptions(), clock=clock
    )
    try:
        lost = WatchedAccount(
            name="anna@mail.test:993",
            state=AccountState.LOST,
            since=clock.now(),
            reason="the IMAP server mail.test:993 can't be reached: Connection refused",
            silent=False,
        )
        deaf = replace(
            lost, name="bert@mail.test:993", state=AccountState.WATCHING, reason="", silent=True
        )
        await store.accounts.write([lost, deaf], clock.now())
        names = ["feedback", *(f"feedback:{share}" for share in range(1, 64))]
        assert await store.leases.acquire_all(names[:20], "host:1", 600)  # anna's among them
        assert await store.leases.acquire_all(names[20:], "host:2", 600)  # bert's
    finally:
        await store.close()


def test_j6_status_names_the_accounts_that_are_lost_and_why(
    filled: Spamd, home: Path, box: Box
) -> None:
    settings = (*database(home), *accounts(box))
    assert "not watched now" in filled("status", *settings).out
    asyncio.run(_lose(f"sqlite:///{home}/var/spamd.sqlite"))
    shown = filled("status", *settings).out
    assert "accounts     1 lost, 1 watching" in shown
    assert "1 by host:1" in shown
    assert "1 by host:2" in shown
    assert "anna@mail.test:993 lost since" in shown
    assert "mail.test:993 can't be reached: Connection refused" in shown
    assert "IDLE is silent in 1 account" in shown
    found = filled("status", "--json", *settings).json
    assert found["watched_by"] in found["watchers"]
    assert found["watchers"] == {"host:1": 1, "host:2": 1}
    assert [one["state"] for one in found["accounts"]] == ["lost", "watching"]


def test_i4_prune_says_what_goes_besides_words(filled: Spamd, home: Path) -> None:
    ran = filled("database", "prune", "--dry-run", "--json", *database(home))
    expected = {"scans", "changes", "accounts", "sightings", "parked", "held"}
    assert expected <= ran.json.keys()
    assert "0 held lessons, 0 parked messages" in filled("database", "prune", *database(home)).out
