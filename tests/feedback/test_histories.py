"""Random histories of mailboxes: no lesson that nobody gave, none lost without a reason."""

from dataclasses import replace

import pytest

from tests.feedback.histories import Plan, Result, plan, shown, shrunk
from tests.feedback.player import play, play_on_the_wire
from tests.sizes import sized

IN_PROCESS = 300
ON_THE_WIRE = sized(4, 10)
PARTS = 6


@pytest.mark.parametrize("part", range(PARTS))
def test_k4_of_random_histories_only_what_people_did_is_learned(part: int) -> None:
    total = Result()
    for seed in range(part, IN_PROCESS, PARTS):
        result = play(plan(seed))
        assert not result.fails, shown(shrunk(plan(seed), play))
        total.add(result)
    assert total.given > IN_PROCESS / PARTS / 2
    assert total.expected == total.given + total.lost.total()


def undisturbed(history: Plan) -> Plan:
    """Return a history in which nothing happens within a poll: over a socket polls differ."""
    steps = [
        replace(step, inside=(), n=0) if step.act == "poll" else step for step in history.steps
    ]
    return replace(history, steps=tuple(steps))


def test_h3_histories_come_out_the_same_over_the_wire() -> None:
    for seed in range(ON_THE_WIRE):
        history = undisturbed(plan(seed))
        near, far = play(history), play_on_the_wire(history)
        assert not far.fails, shown(history)
        assert (far.expected, far.given) == (near.expected, near.given), shown(history)
