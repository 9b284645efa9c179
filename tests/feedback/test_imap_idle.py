"""The watcher on its own: how soon it notices, and what becomes of it when the line breaks."""

import asyncio
import time
from dataclasses import replace

import pytest

from spamd.bayes.decision import Verdict
from spamd.feedback.mailboxes.mailbox import Folder, Place
from spamd.feedback.options import AccountOptions, FeedbackOptions, Tls
from spamd.feedback.watching.move_verifier import DATE_S
from spamd.sample import Label
from tests.feedback.conftest import Account
from tests.feedback.scripted import ScriptedImap, plain
from tests.feedback.tap import Tap
from tests.feedback.world import Bench, account_of, bench_at, only, running, world_at
from tests.servers.dovecot import DovecotFactory
from tests.waiting import until, within_s

RARE = FeedbackOptions(
    poll_s=600, timeout_s=2, retry_first_s=0.05, retry_most_s=0.2, rule_window_s=0
)
"""Polls so rarely that only IDLE can be what noticed."""


def polled(bench: Bench, times: int = 1) -> bool:
    """Return whether the watcher finished that many polls that read something."""
    return sum(name == "account.examined" for name, _ in bench.observer.events) >= times


def opened(bench: Bench) -> int:
    """Return how often the watcher connected."""
    return sum(name == "account.opened" for name, _ in bench.observer.events)


async def test_a_move_to_junk_is_a_lesson_within_two_seconds(account: Account) -> None:
    async with world_at(*account, options=RARE) as world:
        world.arrives("offer", Verdict.HAM)
        async with running(world):
            await until(lambda: polled(world))
            world.owner.move("offer", "INBOX", "Junk")
            took_s = await until(world.taught)
        assert only(world.taught()) == ("offer", Label.SPAM)
        assert took_s < within_s(2)


async def test_mail_that_came_just_before_the_first_poll_may_be_moved_soon_after(
    account: Account,
) -> None:
    """Else nothing looks at it again until the folder changes, and the move seems too quick."""
    options = replace(RARE, rule_window_s=1)
    async with world_at(*account, options=options) as world:
        world.arrives("offer", Verdict.HAM)
        delivered_s = time.time()
        async with running(world):
            await until(lambda: polled(world))
            await asyncio.sleep(max(0.0, delivered_s + 2 + DATE_S + 1 - time.time()))
            world.owner.move("offer", "INBOX", "Junk")
            await until(world.taught, deadline_s=within_s(5))
        assert only(world.taught()) == ("offer", Label.SPAM)


async def test_a_rescue_from_junk_is_a_lesson_within_two_seconds(account: Account) -> None:
    async with world_at(*account, options=RARE) as world:
        world.arrives("invoice", Verdict.SPAM, "Junk")
        async with running(world):
            await until(lambda: polled(world))
            world.owner.move("invoice", "Junk", "INBOX")
            took_s = await until(world.taught)
        assert only(world.taught()) == ("invoice", Label.HAM)
        assert took_s < within_s(2)


async def test_a_move_to_another_junk_folder_is_a_lesson_within_the_poll_interval(
    account: Account,
) -> None:
    often = replace(RARE, poll_s=1)
    async with world_at(*account, options=often) as world:
        world.owner.create("Archive")
        world.owner.create("Junk/2026")  # IDLE tells of one folder, and that is the inbox
        world.arrives("offer", Verdict.HAM, "Archive")
        async with running(world):
            await until(lambda: polled(world))
            world.owner.move("offer", "Archive", "Junk/2026")
            took_s = await until(world.taught)
        assert only(world.taught()) == ("offer", Label.SPAM)
        assert took_s < within_s(1 + 2)


async def test_a_server_without_idle_is_polled() -> None:
    def answer(tag: str, rest: str) -> list[str] | None:
        return plain(tag, rest, capabilities="IMAP4rev1")

    with ScriptedImap(answer) as server:
        options = FeedbackOptions(poll_s=0.05)
        async with bench_at(scripted(server), options=options) as bench, running(bench):
            await until(lambda: sum("LIST" in line for line in server.lines) > 3)
        assert not any("IDLE" in line for line in server.lines)


def idling(line: str) -> ScriptedImap:
    """Return a server that tells one thing within each IDLE."""
    tags: list[str] = []

    def answer(tag: str, rest: str) -> list[str] | None:
        if rest == "IDLE":
            tags.append(tag)
            return ["+ idling", line]
        return [f"{tags[-1]} OK done"] if tag == "DONE" else plain(tag, rest)

    return ScriptedImap(answer)


INBOX = Folder(name="INBOX", raw="INBOX", place=Place.INBOX)


@pytest.mark.parametrize(
    "line",
    [
        "* 3 FETCH (MODSEQ (7) UID 9 FLAGS (\\Answered $Forwarded $Junkyard NonJunk))",
        "* 3 fetch (flags ())",
        "* OK Still here",
        "* 0 RECENT",
    ],
)
async def test_j3_what_says_nothing_of_a_mail_starts_no_poll(line: str) -> None:
    with idling(line) as server:
        async with bench_at(scripted(server)) as bench:
            started = time.monotonic()
            await bench.mailbox.wait(INBOX, 0.4)
            assert time.monotonic() - started >= 0.4


@pytest.mark.parametrize(
    "line",
    [
        "* 3 EXISTS",
        "* 3 EXPUNGE",
        "* VANISHED 3:5",
        "* 3 FETCH (FLAGS (\\Seen))",
        "* 3 FETCH (FLAGS (\\Seen $Junk))",
        "* 3 FETCH (UID 9 FLAGS ($notjunk \\Seen) MODSEQ (7))",
        "* 3 FETCH (MODSEQ (7))",
    ],
)
async def test_j3_news_of_mail_a_keyword_and_a_reader_start_a_look_at_once(line: str) -> None:
    with idling(line) as server:
        async with bench_at(scripted(server)) as bench:
            started = time.monotonic()
            await bench.mailbox.wait(INBOX, 60)
            assert time.monotonic() - started < 30


def scripted(server: ScriptedImap) -> AccountOptions:
    return AccountOptions(host="127.0.0.1", port=server.port, tls=Tls.NONE, user="a", password="x")


async def test_e11_idle_is_issued_anew_before_its_time_is_up(account: Account) -> None:
    server, user = account
    options = FeedbackOptions(poll_s=600, idle_s=0.1)
    with Tap(server.port) as tap:
        async with (
            world_at(server, user, port=tap.port, options=options) as world,
            running(world),
        ):
            await until(lambda: tap.sent.count(b" IDLE\r\n") >= 3)
        assert tap.sent.count(b"DONE\r\n") >= 2


async def test_e11_a_server_that_says_bye_to_idle_is_connected_to_again() -> None:
    def answer(tag: str, rest: str) -> list[str] | None:
        if rest == "IDLE":
            return ["+ idling", "* BYE Disconnected for inactivity"]
        return plain(tag, rest)

    with ScriptedImap(answer) as server:
        options = FeedbackOptions(poll_s=600, retry_first_s=0.02, retry_most_s=0.05)
        async with bench_at(scripted(server), options=options) as bench, running(bench):
            await until(lambda: server.connections >= 4)
        assert {name for name, _ in bench.observer.faults} == {"account.lost"}


async def test_e11_a_server_killed_during_idle_is_caught_up_with(dovecot: DovecotFactory) -> None:
    server = dovecot()
    async with world_at(server, options=RARE) as world:
        world.arrives("offer", Verdict.HAM)
        world.arrives("second", Verdict.HAM)
        async with running(world):
            await until(lambda: polled(world))
            world.owner.move("offer", "INBOX", "Junk")
            await until(world.taught)
            world.owner.move("second", "INBOX", "Junk")
            server.kill()
            await until(lambda: world.observer.faults)
            server.start()
            await until(lambda: len(world.taught()) == 2)
        assert world.taught() == [("offer", Label.SPAM), ("second", Label.SPAM)]


async def test_e11_a_line_that_fell_silent_is_noticed_and_caught_up_with(
    account: Account,
) -> None:
    server, user = account
    options = FeedbackOptions(
        poll_s=600,
        idle_s=0.5,
        timeout_s=0.5,
        retry_first_s=0.05,
        retry_most_s=0.2,
        rule_window_s=0,
    )
    with Tap(server.port) as tap:
        async with world_at(server, user, port=tap.port, options=options) as world:
            world.arrives("offer", Verdict.HAM)
            async with running(world):
                await until(lambda: polled(world))
                tap.mute()
                world.owner.move("offer", "INBOX", "Junk")
                await until(lambda: world.observer.faults)
                tap.unmute()
                tap.hang_up()
                await until(world.taught)
            assert only(world.taught()) == ("offer", Label.SPAM)


async def test_e11_a_line_that_breaks_is_connected_again(account: Account) -> None:
    server, user = account
    with Tap(server.port) as tap:
        async with world_at(server, user, port=tap.port, options=RARE) as world:
            world.arrives("offer", Verdict.HAM)
            async with running(world):
                await until(lambda: polled(world))
                for breaks in (1, 2, 3):
                    await until(lambda: opened(world) == breaks)  # noqa: B023
                    tap.hang_up()
                await until(lambda: opened(world) == 4)
                world.owner.move("offer", "INBOX", "Junk")
                await until(world.taught)
            assert only(world.taught()) == ("offer", Label.SPAM)


async def test_the_pause_between_connections_grows_to_its_limit() -> None:
    def hang_up(tag: str, rest: str) -> list[str] | None:
        return None

    options = FeedbackOptions(retry_first_s=0.01, retry_most_s=0.08)
    started = time.monotonic()
    with ScriptedImap(hang_up) as server:
        async with (
            bench_at(scripted(server), options=options, reachable=False) as bench,
            running(bench),
        ):
            await until(lambda: server.connections >= 6)
    # 0.01 + 0.02 + 0.04 + 0.08 + 0.08 seconds lie between six attempts.
    assert time.monotonic() - started >= 0.23
    assert len(bench.observer.faults) < 6


async def test_a_wrong_password_is_said_plainly(account: Account) -> None:
    server, user = account
    wrong = replace(account_of(server, user), password="wrong")
    async with bench_at(wrong, reachable=False) as bench:
        summary = await bench.watcher.once()
    assert "refuses the login" in summary.faults[0]
    assert "check user and password" in summary.faults[0]
