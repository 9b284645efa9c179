"""The rule, row by row, and what holds for every sight there can be."""

from itertools import product

import pytest

from spamd.bayes.decision import Verdict
from spamd.feedback.rule import ELSEWHERE, NOWHERE, Event, Sight, lesson
from spamd.ports import Place
from spamd.sample import Label

VERDICTS = [None, Verdict.HAM, Verdict.UNSURE, Verdict.SPAM, Verdict.UNSCANNED]
NOT_SPAM = [None, Verdict.HAM, Verdict.UNSURE, Verdict.UNSCANNED]


def every_sight() -> list[Sight]:
    """Return all sights, 5 × 3 × 3 × 2 × … of them."""
    return [
        Sight(
            place=place,
            event=event,
            before=before,
            mark=mark,
            verdict=verdict,
            label=label,
            first_look=first_look,
            unseen=unseen,
            late=late,
            twin=twin,
        )
        for place, event, before, mark, verdict, label, first_look, unseen, late, twin in product(
            [Place.INBOX, Place.JUNK, Place.OTHER],
            Event,
            [NOWHERE, Place.INBOX, Place.JUNK, Place.OTHER, Place.INBOX | Place.JUNK],
            [None, Label.SPAM, Label.HAM],
            VERDICTS,
            [None, Label.SPAM, Label.HAM],
            [False, True],
            [NOWHERE, Place.INBOX, Place.JUNK],
            [False, True],
            [False, True],
        )
    ]


EVERY_SIGHT = every_sight()


@pytest.mark.parametrize("verdict", NOT_SPAM)
def test_a_mail_moved_from_the_inbox_to_junk_is_spam(verdict: Verdict | None) -> None:
    sight = Sight(place=Place.JUNK, before=Place.INBOX, verdict=verdict)
    assert lesson(sight) is Label.SPAM


@pytest.mark.parametrize("place", [Place.INBOX, Place.OTHER])
@pytest.mark.parametrize("verdict", VERDICTS)
def test_a_mail_rescued_from_junk_is_ham(place: Place, verdict: Verdict | None) -> None:
    sight = Sight(place=place, before=Place.JUNK, verdict=verdict)
    assert lesson(sight) is Label.HAM


def test_spam_that_we_put_into_junk_is_no_lesson() -> None:
    assert lesson(Sight(place=Place.JUNK, verdict=Verdict.SPAM)) is None


@pytest.mark.parametrize("verdict", NOT_SPAM)
def test_mail_that_a_rule_delivers_to_junk_is_no_lesson(verdict: Verdict | None) -> None:
    assert lesson(Sight(place=Place.JUNK, verdict=verdict)) is None


@pytest.mark.parametrize("verdict", NOT_SPAM)
def test_mail_in_junk_is_spam_when_one_left_the_inbox_unseen(verdict: Verdict | None) -> None:
    assert lesson(Sight(place=Place.JUNK, verdict=verdict, unseen=Place.INBOX)) is Label.SPAM


@pytest.mark.parametrize("verdict", NOT_SPAM)
def test_mail_that_came_to_junk_long_after_its_delivery_is_spam(verdict: Verdict | None) -> None:
    assert lesson(Sight(place=Place.JUNK, verdict=verdict, late=True)) is Label.SPAM


def test_an_old_copy_in_trash_or_junk_is_not_what_makes_mail_spam() -> None:
    sight = Sight(place=Place.JUNK, verdict=Verdict.HAM, unseen=Place.JUNK)
    assert lesson(sight) is None


@pytest.mark.parametrize("verdict", [*NOT_SPAM, Verdict.SPAM])
def test_mail_delivered_to_the_inbox_is_no_lesson(verdict: Verdict | None) -> None:
    assert lesson(Sight(place=Place.INBOX, verdict=verdict)) is None


def test_spam_that_left_junk_unseen_and_lies_in_the_inbox_is_ham() -> None:
    sight = Sight(place=Place.INBOX, verdict=Verdict.SPAM, unseen=Place.JUNK)
    assert lesson(sight) is Label.HAM


def test_tagged_spam_that_a_person_files_from_the_inbox_is_ham() -> None:
    sight = Sight(place=Place.OTHER, before=Place.INBOX, verdict=Verdict.SPAM)
    assert lesson(sight) is Label.HAM


def test_ham_that_a_person_files_is_no_lesson() -> None:
    assert lesson(Sight(place=Place.OTHER, before=Place.INBOX, verdict=Verdict.HAM)) is None


def test_a_second_thought_counts_both_ways() -> None:
    back = Sight(place=Place.INBOX, before=Place.INBOX | Place.JUNK, label=Label.SPAM)
    again = Sight(place=Place.JUNK, before=Place.INBOX | Place.JUNK, label=Label.HAM)
    assert (lesson(back), lesson(again)) == (Label.HAM, Label.SPAM)


@pytest.mark.parametrize(
    ("verdict", "in_inbox", "in_junk"),
    [
        (None, None, Label.SPAM),
        (Verdict.HAM, None, Label.SPAM),
        (Verdict.UNSURE, None, Label.SPAM),
        (Verdict.SPAM, Label.HAM, None),
    ],
)
def test_of_two_new_copies_the_one_where_we_did_not_put_it_counts(
    verdict: Verdict | None, in_inbox: Label | None, in_junk: Label | None
) -> None:
    inbox = Sight(place=Place.INBOX, verdict=verdict, twin=True)
    junk = Sight(place=Place.JUNK, verdict=verdict, twin=True)
    assert (lesson(inbox), lesson(junk)) == (in_inbox, in_junk)


@pytest.mark.parametrize(
    ("mark", "verdict", "expected"),
    [
        (Label.SPAM, Verdict.HAM, Label.SPAM),
        (Label.SPAM, Verdict.UNSURE, Label.SPAM),
        (Label.SPAM, None, Label.SPAM),
        (Label.SPAM, Verdict.SPAM, None),
        (Label.HAM, Verdict.SPAM, Label.HAM),
        (Label.HAM, Verdict.UNSURE, Label.HAM),
        (Label.HAM, Verdict.HAM, None),
    ],
)
def test_a_keyword_counts_like_a_move(
    mark: Label, verdict: Verdict | None, expected: Label | None
) -> None:
    sight = Sight(place=Place.INBOX, event=Event.MARKED, mark=mark, verdict=verdict)
    assert lesson(sight) is expected


def test_a_keyword_that_came_along_with_a_move_does_not_outvote_the_move() -> None:
    sight = Sight(
        place=Place.JUNK,
        before=Place.INBOX | Place.MARKED_HAM,
        mark=Label.HAM,
        verdict=Verdict.HAM,
    )
    assert lesson(sight) is Label.SPAM


def test_nothing_is_taught_twice() -> None:
    assert not [s for s in EVERY_SIGHT if s.label is not None and lesson(s) is s.label]


def test_what_we_said_ourselves_is_never_a_lesson_in_junk() -> None:
    ours = [s for s in EVERY_SIGHT if s.verdict is Verdict.SPAM and s.label is None]
    assert not [s for s in ours if lesson(s) is Label.SPAM]


def test_the_first_look_teaches_nothing_about_mail_we_never_judged() -> None:
    baseline = [
        s
        for s in EVERY_SIGHT
        if s.first_look and s.verdict is None and s.event is Event.ARRIVED and s.label is None
    ]
    assert {lesson(s) for s in baseline} == {None}


def test_new_uids_of_known_mail_teach_nothing_by_place() -> None:
    again = [
        s
        for s in EVERY_SIGHT
        if s.first_look and s.before & s.place and s.event is Event.ARRIVED and s.mark is None
    ]
    assert {lesson(s) for s in again} == {None}


def test_ham_by_place_always_has_a_sign_of_junk_or_of_a_person() -> None:
    ham = [s for s in EVERY_SIGHT if s.mark is None and lesson(s) is Label.HAM]
    signs = [
        s.before & Place.JUNK or s.unseen & Place.JUNK or s.late or s.twin or s.before & ELSEWHERE
        for s in ham
    ]
    assert ham
    assert all(signs)
    assert Place.JUNK not in {s.place for s in ham}


def test_spam_by_place_is_always_in_junk() -> None:
    spam = [s for s in EVERY_SIGHT if s.mark is None and lesson(s) is Label.SPAM]
    assert {s.place for s in spam} == {Place.JUNK}
