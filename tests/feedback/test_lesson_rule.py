"""The rule, row by row, and what holds for every facts there can be."""

from dataclasses import replace
from itertools import product

import pytest

from spamd.bayes.decision import Verdict
from spamd.feedback.mailboxes.mailbox import Place
from spamd.feedback.watching.lesson_rule import (
    ELSEWHERE,
    NOWHERE,
    Event,
    MoveFacts,
    Why,
    is_told,
    lesson,
)
from spamd.sample import Label

VERDICTS = [None, Verdict.HAM, Verdict.UNSURE, Verdict.SPAM, Verdict.UNSCANNED]
NOT_SPAM = [None, Verdict.HAM, Verdict.UNSURE, Verdict.UNSCANNED]
PLACES = [Place.INBOX, Place.JUNK, Place.OTHER]


def every_sight() -> list[MoveFacts]:
    """Return all state: what was, what stays and what came in every combination that matters."""
    sides = [NOWHERE, *PLACES, Place.INBOX | Place.JUNK, Place.INBOX | Place.OTHER]
    return [
        MoveFacts(
            place=place,
            event=event,
            was=was,
            stays=stays & was,
            came=came | place,
            mark=mark,
            verdict=verdict,
            label=label,
            same=same,
            hasty=hasty,
            kept=kept,
        )
        for place, event, was, stays, came, mark, verdict, label, same, hasty in product(
            PLACES,
            Event,
            sides,
            [NOWHERE, ELSEWHERE, Place.JUNK],
            [NOWHERE, Place.INBOX, Place.JUNK],
            [None, Label.SPAM, Label.HAM],
            VERDICTS,
            [None, Label.SPAM, Label.HAM],
            [False, True],
            [False, True],
        )
        for kept in (False, True)
    ]


EVERY_SIGHT = every_sight()


@pytest.mark.parametrize("verdict", NOT_SPAM)
@pytest.mark.parametrize("was", [Place.INBOX, Place.OTHER, ELSEWHERE])
def test_a_mail_that_left_other_folders_for_junk_is_spam(
    verdict: Verdict | None, was: Place
) -> None:
    assert lesson(MoveFacts(place=Place.JUNK, was=was, verdict=verdict)) is Label.SPAM


@pytest.mark.parametrize("place", [Place.INBOX, Place.OTHER])
@pytest.mark.parametrize("verdict", VERDICTS)
def test_a_mail_rescued_from_junk_is_ham(place: Place, verdict: Verdict | None) -> None:
    assert lesson(MoveFacts(place=place, was=Place.JUNK, verdict=verdict)) is Label.HAM


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("place", PLACES)
def test_mail_that_lay_nowhere_before_is_no_lesson(place: Place, verdict: Verdict | None) -> None:
    assert lesson(MoveFacts(place=place, verdict=verdict)) is Why.NOTHING


@pytest.mark.parametrize("stays", [Place.INBOX, Place.OTHER])
def test_h1_a_mail_that_stayed_where_it_was_is_no_lesson(stays: Place) -> None:
    facts = MoveFacts(place=Place.JUNK, was=ELSEWHERE, stays=stays, verdict=Verdict.HAM)
    assert lesson(facts) is Why.COPIED


def test_h1_a_mail_that_lay_on_both_sides_is_no_lesson() -> None:
    both = Place.INBOX | Place.JUNK
    assert lesson(MoveFacts(place=Place.JUNK, was=both)) is Why.TWICE
    assert lesson(MoveFacts(place=Place.OTHER, was=both)) is Why.TWICE


def test_h1_a_mail_that_comes_to_both_sides_is_no_lesson() -> None:
    facts = MoveFacts(place=Place.JUNK, was=Place.INBOX, came=Place.JUNK | Place.OTHER)
    assert lesson(facts) is Why.TWICE


def test_k4_another_mail_that_left_proves_nothing() -> None:
    assert lesson(MoveFacts(place=Place.JUNK, was=Place.INBOX, same=False)) is Why.ANOTHER


def test_a_mail_that_a_program_may_have_moved_is_no_lesson() -> None:
    assert lesson(MoveFacts(place=Place.JUNK, was=Place.INBOX, hasty=True)) is Why.HASTY


@pytest.mark.parametrize("was", [Place.JUNK, Place.INBOX])
def test_h1_a_mail_that_may_have_been_thrown_away_is_no_ham(was: Place) -> None:
    facts = MoveFacts(place=Place.OTHER, was=was, verdict=Verdict.SPAM, kept=False)
    assert lesson(facts) is Why.THROWN


def test_spam_that_we_put_into_junk_is_no_lesson() -> None:
    facts = MoveFacts(place=Place.JUNK, was=Place.INBOX, verdict=Verdict.SPAM)
    assert lesson(facts) is Why.NOTHING


def test_tagged_spam_that_a_person_files_from_the_inbox_is_ham() -> None:
    facts = MoveFacts(place=Place.OTHER, was=Place.INBOX, verdict=Verdict.SPAM)
    assert lesson(facts) is Label.HAM


@pytest.mark.parametrize("verdict", [Verdict.HAM, Verdict.UNSURE])
def test_ham_that_a_person_files_is_no_lesson_at_once(verdict: Verdict) -> None:
    facts = MoveFacts(place=Place.OTHER, was=Place.INBOX, verdict=verdict)
    assert lesson(facts) is Why.FILED
    assert lesson(replace(facts, label=Label.HAM)) is Why.NOTHING
    assert lesson(replace(facts, stays=Place.INBOX)) is Why.NOTHING


def test_a_second_thought_counts_both_ways() -> None:
    back = MoveFacts(place=Place.INBOX, was=Place.JUNK, label=Label.SPAM)
    again = MoveFacts(place=Place.JUNK, was=Place.INBOX, label=Label.HAM)
    assert (lesson(back), lesson(again)) == (Label.HAM, Label.SPAM)


@pytest.mark.parametrize(
    ("mark", "verdict", "expected"),
    [
        (Label.SPAM, Verdict.HAM, Label.SPAM),
        (Label.SPAM, Verdict.UNSURE, Label.SPAM),
        (Label.SPAM, None, Label.SPAM),
        (Label.SPAM, Verdict.SPAM, Why.NOTHING),
        (Label.HAM, Verdict.SPAM, Label.HAM),
        (Label.HAM, Verdict.UNSURE, Label.HAM),
        (Label.HAM, Verdict.HAM, Why.NOTHING),
    ],
)
def test_a_keyword_counts_like_a_move(
    mark: Label, verdict: Verdict | None, expected: Label | Why
) -> None:
    facts = MoveFacts(place=Place.INBOX, event=Event.MARKED, mark=mark, verdict=verdict)
    assert lesson(facts) is expected


@pytest.mark.parametrize("place", PLACES)
def test_a_keyword_that_a_mail_came_with_is_no_lesson(place: Place) -> None:
    assert lesson(MoveFacts(place=place, mark=Label.SPAM, verdict=Verdict.HAM)) is Why.NOTHING


def test_a_keyword_that_came_along_with_a_move_does_not_outvote_the_move() -> None:
    facts = MoveFacts(place=Place.JUNK, was=Place.INBOX, mark=Label.HAM, verdict=Verdict.HAM)
    assert lesson(facts) is Label.SPAM


def test_nothing_is_taught_twice() -> None:
    assert not [s for s in EVERY_SIGHT if s.label is not None and lesson(s) is s.label]


def test_what_we_said_ourselves_is_never_a_lesson_in_junk() -> None:
    ours = [s for s in EVERY_SIGHT if s.verdict is Verdict.SPAM and s.label is None]
    assert not [s for s in ours if lesson(s) is Label.SPAM]


def test_every_lesson_by_a_move_left_one_side_whole_and_came_to_the_other() -> None:
    moved = [s for s in EVERY_SIGHT if s.event is Event.ARRIVED and lesson(s) in list(Label)]
    assert {lesson(s) for s in moved} == set(Label)
    for s in moved:
        assert s.same
        assert not s.hasty
        assert not s.stays
        assert s.was
        assert not s.was & s.place
        if lesson(s) is Label.SPAM:
            assert s.place is s.came is Place.JUNK
            assert not s.was & Place.JUNK
        else:
            assert s.was in {Place.JUNK, Place.INBOX}
            assert not s.came & Place.JUNK
            assert s.kept or s.place is Place.INBOX


def by_the_table(s: MoveFacts) -> Label | Why:  # noqa: C901, PLR0911, PLR0912 - row by row
    """The rule as docs/training.md tells it, row by row, without the arithmetic of places."""
    known = s.label or {Verdict.SPAM: Label.SPAM, Verdict.HAM: Label.HAM}.get(s.verdict)  # type: ignore[arg-type]  # None is no key
    if s.event is Event.MARKED:
        if s.mark is None or s.mark is known:
            return Why.NOTHING
        return Why.HASTY if s.hasty else s.mark
    was = {place for place in PLACES if place in s.was}
    came = {place for place in PLACES if place in s.came}
    if s.place is Place.JUNK:
        meant, origin, target = Label.SPAM, {Place.INBOX, Place.OTHER}, {Place.JUNK}
        if not was & origin or known is Label.SPAM:
            return Why.NOTHING
    elif Place.JUNK in was:
        meant, origin, target = Label.HAM, {Place.JUNK}, {Place.INBOX, Place.OTHER}
        if s.label is Label.HAM:
            return Why.NOTHING
    else:
        if s.place is not Place.OTHER or Place.INBOX not in was or s.label is not None:
            return Why.NOTHING
        meant, origin, target = Label.HAM, {Place.INBOX}, {Place.OTHER}
        doubts = [s.stays, was - origin, came - target, not s.same, not s.kept, s.hasty]
        if s.verdict is not Verdict.SPAM:
            passed = s.verdict in {Verdict.HAM, Verdict.UNSURE}
            return Why.FILED if passed and not any(doubts) else Why.NOTHING
    if s.stays:
        return Why.COPIED
    if was - origin or came - target:
        return Why.TWICE
    if not s.same:
        return Why.ANOTHER
    if s.place is Place.OTHER and not s.kept:
        return Why.THROWN
    return Why.HASTY if s.hasty else meant


def test_every_case_there_can_be_follows_the_table() -> None:
    assert not [s for s in EVERY_SIGHT if lesson(s) is not by_the_table(s)]


@pytest.mark.parametrize("label", Label)
@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("taught", [None, *Label])
def test_a_label_is_told_if_it_was_taught_or_else_if_we_said_so(
    label: Label, verdict: Verdict | None, taught: Label | None
) -> None:
    ours = {Verdict.SPAM: Label.SPAM, Verdict.HAM: Label.HAM}.get(verdict or Verdict.UNSURE)

    assert is_told(label, verdict, taught) is ((taught or ours) is label)


def test_a_move_is_taken_for_one_by_hand_unless_something_else_is_known() -> None:
    assert MoveFacts(place=Place.JUNK, was=Place.INBOX).event is Event.ARRIVED
    assert lesson(MoveFacts(place=Place.JUNK, was=Place.INBOX)) is Label.SPAM
    assert lesson(MoveFacts(place=Place.OTHER, was=Place.JUNK)) is Label.HAM


def test_the_reasons_are_said_in_words_for_a_log() -> None:
    assert [str(why) for why in Why] == [
        "teach nothing",
        "filed by their owner",
        "moved sooner than a person does",
        "moved to a folder that may be the Trash",
        "still where they lay before",
        "at two places at once",
        "not certain to be the message that left",
        "in a folder that shows messages of other folders",
        "came with a folder that was renamed",
        "came from outside, not from a folder",
    ]
    assert [str(event) for event in Event] == ["arrived", "marked"]
