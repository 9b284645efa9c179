"""Which mail that was read and kept is worth a lesson."""

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spamd.bayes.selection import Habit, Kept, KeptOptions, Standing, choose, habit_of

OPTIONS = KeptOptions()
TIDY = Habit(missed=0.001)
ROOMY = Standing(spam=100)


def odds(probability: float) -> float:
    return log(probability / (1 - probability))


def kept(key: int, probability: float, kind: str = "", *, deliberate: bool = False) -> Kept[int]:
    return Kept(key=key, log_odds=odds(probability), kind=kind, deliberate=deliberate)


def keys(chosen: list[Kept[int]]) -> list[int]:
    return [each.key for each in chosen]


def test_the_least_sure_comes_first_and_what_is_known_teaches_nothing() -> None:
    mails = [kept(1, 0.03), kept(2, 0.4), kept(3, 0.019), kept(4, 0.1)]
    assert keys(choose(mails, ROOMY, TIDY, OPTIONS)) == [2, 4, 1]


def test_equal_candidates_keep_their_order() -> None:
    assert keys(choose([kept(2, 0.1), kept(1, 0.1)], ROOMY, TIDY, OPTIONS)) == [2, 1]


def test_what_a_careless_person_keeps_may_be_spam() -> None:
    mails = [kept(1, 0.6), kept(2, 0.1)]
    assert keys(choose(mails, ROOMY, Habit(missed=0.3), OPTIONS)) == [2]
    assert keys(choose(mails, ROOMY, Habit(missed=0.01), OPTIONS)) == [1, 2]


def test_what_was_answered_or_filed_is_believed() -> None:
    mails = [kept(1, 0.6, deliberate=True), kept(2, 0.6)]
    assert keys(choose(mails, ROOMY, Habit(missed=0.3), OPTIONS)) == [1]


def test_what_is_called_spam_and_lies_in_the_inbox_is_not_believed() -> None:
    mail = [kept(1, 0.9999)]
    assert choose(mail, ROOMY, Habit(missed=0.3), OPTIONS) == []


def test_of_one_list_one_message_at_a_time() -> None:
    mails = [kept(1, 0.2, "list"), kept(2, 0.3, "list"), kept(3, 0.25), kept(4, 0.22)]
    assert keys(choose(mails, ROOMY, TIDY, OPTIONS)) == [2, 3, 4]


def test_new_senders_come_before_the_thousandth_of_one_list() -> None:
    mails = [kept(1, 0.3, "list"), kept(2, 0.1, "new")]
    standing = Standing(spam=100, kinds={"list": 1000})
    assert keys(choose(mails, standing, TIDY, OPTIONS)) == [2, 1]
    standing = Standing(spam=100, kinds={"list": 10**6})
    assert keys(choose(mails, standing, TIDY, KeptOptions(kept_crowd=0.5))) == [2]


@pytest.mark.parametrize(
    ("standing", "room"),
    [
        (Standing(), 10),
        (Standing(spam=20, ham=30), 20),
        (Standing(spam=20, ham=50), 0),
        (Standing(spam=20, ham=80), 0),
        (Standing(spam=200, today=45), 5),
        (Standing(spam=200, today=60), 0),
    ],
)
def test_ham_is_taught_in_balance_with_spam_and_spread_over_days(
    standing: Standing, room: int
) -> None:
    assert standing.room(OPTIONS) == room
    mails = [kept(key, 0.2) for key in range(100)]
    assert len(choose(mails, standing, TIDY, OPTIONS)) == room


def test_the_habit_of_a_person_nothing_is_known_of_is_the_supposed_one() -> None:
    assert habit_of((), (), OPTIONS) == Habit(missed=0.3, shift=0.0)
    assert habit_of((), (), KeptOptions(kept_missed=0.1)).missed == pytest.approx(0.1)


@pytest.mark.parametrize("missed", [0.0, 0.05, 0.3, 0.6])
@pytest.mark.parametrize("shift", [0.0, -1.5])
def test_the_habit_is_found_whether_or_not_the_filter_is_calibrated(
    missed: float, shift: float
) -> None:
    draw = np.random.default_rng(1)
    z = draw.uniform(-1, 3.5, 300)
    spam = draw.random(300) < 1 / (1 + np.exp(-(z + shift)))
    moved = spam & (draw.random(300) >= missed)
    found = habit_of(z[moved].tolist(), z[~moved].tolist(), OPTIONS)
    assert found.missed == pytest.approx(missed, abs=0.15)


def test_the_habit_is_that_of_lately() -> None:
    careless, tidy = [3.0] * 300, [3.0] * 300
    assert habit_of([], careless, OPTIONS).missed == 0.9
    assert habit_of(tidy, [-0.8], OPTIONS).missed < 0.05
    assert habit_of([*tidy], [*careless, *[-0.8] * 300], OPTIONS).missed < 0.1


@given(
    probabilities=st.lists(st.floats(1e-9, 1 - 1e-9), max_size=30),
    missed=st.floats(0.001, 0.9),
    spam=st.integers(0, 50),
    ham=st.integers(0, 50),
)
def test_whatever_is_asked_no_more_than_the_room_and_nothing_doubtful_is_taught(
    probabilities: list[float], missed: float, spam: int, ham: int
) -> None:
    standing, habit = Standing(spam=spam, ham=ham), Habit(missed=missed)
    mails = [kept(key, p, str(key % 7)) for key, p in enumerate(probabilities)]
    chosen = choose(mails, standing, habit, OPTIONS)
    assert len(chosen) <= min(7, standing.room(OPTIONS))
    assert all(habit.doubt(each) <= OPTIONS.kept_doubt for each in chosen)
    assert all(each.log_odds > odds(OPTIONS.kept_sure) for each in chosen)
    assert len({each.kind for each in chosen}) == len(chosen)


def test_no_log_odds_are_too_large() -> None:
    assert Habit(missed=0.3).doubt(Kept(key=0, log_odds=-1e4)) == 0
    assert Habit(missed=0.3).doubt(Kept(key=0, log_odds=1e4)) == 1


def test_a_shift_upwards_makes_nobody_less_careful() -> None:
    mail = kept(1, 0.5)
    assert Habit(missed=0.3, shift=2.0).doubt(mail) == Habit(missed=0.3).doubt(mail)
    assert Habit(missed=0.3, shift=-2.0).doubt(mail) < Habit(missed=0.3).doubt(mail)


@pytest.mark.parametrize("name", ["kept_sure", "kept_doubt", "kept_missed"])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_shares_lie_between_0_and_1(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        KeptOptions(**{name: value})  # type: ignore[arg-type] # the name is a parameter


@pytest.mark.parametrize("name", ["kept_crowd", "kept_ratio", "kept_start", "kept_a_day"])
def test_bounds_are_not_below_0(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        KeptOptions(**{name: -1})
