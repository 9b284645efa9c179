"""A server that lies about what was read costs lessons and makes none."""

import re
from dataclasses import replace

import pytest

from spamd.bayes.decision import Verdict
from spamd.feedback.options import AccountOptions, Tls
from tests.feedback.people import OPTIONS
from tests.feedback.player import Player
from tests.feedback.readers import KEPT_S
from tests.feedback.test_kept import Room
from tests.feedback.test_move_verifier import PLAIN
from tests.feedback.wire import Spoil, honest, spoken
from tests.feedback.world import bench_at


def all_are_read(command: str, lines: list[str]) -> list[str]:
    return ["* SEARCH 1 2 3 4 5"] if re.search(r"\bSEEN\b", command) else lines


def one_more_is_read(command: str, lines: list[str]) -> list[str]:
    return ["* SEARCH 3"] if re.search(r"\bSEEN\b", command) else lines


def all_are_answered(command: str, lines: list[str]) -> list[str]:
    return ["* SEARCH 1 2 3 4 5"] if "ANSWERED" in command else lines


def numbers_are_zero(command: str, lines: list[str]) -> list[str]:
    return [re.sub(r"MODSEQ \(\d+\)", "MODSEQ (0)", line) for line in lines]


def numbers_are_huge(command: str, lines: list[str]) -> list[str]:
    return [re.sub(r"MODSEQ \(\d+\)", "MODSEQ (99999999999999999999)", line) for line in lines]


def numbers_are_left_out(command: str, lines: list[str]) -> list[str]:
    return [] if "(MODSEQ)" in command else lines


def answers_are_broken(command: str, lines: list[str]) -> list[str]:
    return ["* SEARCH x (1", *lines] if re.search(r"\bSEEN\b", command) else lines


def nothing_was_changed_since(command: str, lines: list[str]) -> list[str]:
    return ["* SEARCH"] if "MODSEQ" in command and "SEARCH" in command else lines


LIES = [
    all_are_read, one_more_is_read, all_are_answered, numbers_are_zero, numbers_are_huge,
    numbers_are_left_out, answers_are_broken, nothing_was_changed_since,
]  # fmt: skip


async def taught_over_the_wire(spoil: Spoil, *acts: str) -> list[int]:
    """Have mails 1 to 4 come, do what is said to them, and return what is taught as kept."""
    here = Room(Player(PLAIN))
    player = here.player
    with spoken(player.server, spoil) as server:
        account = AccountOptions(
            host="127.0.0.1", port=server.port, tls=Tls.NONE, user="a", password="x"
        )
        async with bench_at(
            account, options=replace(OPTIONS, timeout_s=5), journal=player.journal,
            mailboxes=player.mailboxes, clock=player.clock,
        ) as bench:  # fmt: skip
            await bench.watcher.poll()
            here.come(1, 2, 3, 4, verdict=Verdict.UNSURE)
            for seconds in (60.0, 1000.0):
                player.clock.seconds += seconds
                await bench.watcher.poll()
            for act in acts:
                name, _, number = act.partition(" ")
                here.do(name, int(number or 0))
            for seconds in (60.0, KEPT_S, 60.0):
                player.clock.seconds += seconds
                await bench.watcher.poll()
    return here.kept()


async def test_an_honest_server_tells_over_the_wire_what_was_read() -> None:
    assert await taught_over_the_wire(honest, "read 1") == [1]
    assert await taught_over_the_wire(honest, "readall") == []


@pytest.mark.parametrize("lie", LIES)
async def test_what_nobody_has_read_is_not_taught_whatever_the_server_says(lie: Spoil) -> None:
    assert await taught_over_the_wire(lie) == []


@pytest.mark.parametrize("lie", LIES)
async def test_beside_lies_no_more_is_taught_than_was_read(lie: Spoil) -> None:
    assert set(await taught_over_the_wire(lie, "read 1")) <= {1}


@pytest.mark.parametrize("lie", [all_are_read, all_are_answered, *LIES[3:7]])
async def test_what_one_command_marked_is_not_taught_whatever_numbers_it_gets(lie: Spoil) -> None:
    assert await taught_over_the_wire(lie, "readall") == []
