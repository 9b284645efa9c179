"""What a user's own lessons say of a mail."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spamd.bayes.own import (
    MOST_LESSONS,
    SKETCH_TOKENS,
    SUREST,
    Layer,
    OwnLesson,
    OwnWord,
    Trait,
    sketch,
)
from spamd.sample import Label
from tests.bayes.samples import sample_of

NEWS, OTHER = 7, 8
TEXT = np.arange(100, 140, dtype=np.int64)


def lessons(*told: Label, origin: int = NEWS, first: int = 1000, alike: int = 0) -> Layer:
    """A layer: these lessons one after the other, of mails that share so many words with TEXT."""
    return Layer(
        [
            OwnLesson(
                number=number,
                spam=label is Label.SPAM,
                origin=origin,
                sketch=np.sort(
                    np.concatenate(
                        [TEXT[:alike], first + number * 100 + np.arange(40 - alike)]
                    ).astype(np.int64)
                ),
            )
            for number, label in enumerate(told, start=1)
        ]
    )


def word(layer: Layer, origin: int = NEWS, *, proven: bool = False) -> OwnWord | None:
    return layer.word_on(Trait(sketch=TEXT, origin=origin, proven=proven))


def odds(layer: Layer, origin: int = NEWS, *, proven: bool = False) -> float:
    found = word(layer, origin, proven=proven)
    assert found is not None
    return found.log_odds


HAM, SPAM = Label.HAM, Label.SPAM


def test_one_lesson_speaks_for_all_mail_of_its_origin() -> None:
    assert odds(lessons(SPAM)) == SUREST
    assert odds(lessons(HAM), proven=True) == -SUREST


def test_of_other_mail_nothing_is_said() -> None:
    assert word(lessons(SPAM, HAM), OTHER) is None
    assert word(lessons(SPAM, origin=0), 0) is None
    assert word(Layer([])) is None


def test_after_twenty_kept_two_moves_make_it_spam() -> None:
    kept = [HAM] * 20
    assert abs(odds(lessons(*kept, SPAM, alike=20))) < 0.1  # now nobody knows
    assert odds(lessons(*kept, SPAM, SPAM, alike=20)) > 3.9


def test_without_proof_an_origin_speaks_for_ham_only_where_the_mails_are_alike() -> None:
    assert word(lessons(HAM, HAM)) is None
    assert word(lessons(HAM, HAM, alike=9)) is None
    assert odds(lessons(HAM, HAM, alike=10)) == -SUREST
    assert odds(lessons(HAM, HAM), proven=True) == -SUREST
    assert odds(lessons(SPAM, SPAM)) == SUREST


def test_mail_that_is_much_alike_is_of_one_kind_wherever_it_comes_from() -> None:
    assert odds(lessons(SPAM, alike=34), OTHER) == SUREST
    assert word(lessons(SPAM, alike=33), OTHER) is None


def test_the_first_lesson_against_those_before_speaks_only_of_mail_that_is_alike() -> None:
    assert odds(lessons(HAM, HAM, SPAM), proven=True) == -SUREST
    assert odds(lessons(SPAM, SPAM, HAM), proven=True) == SUREST
    assert odds(lessons(HAM, HAM, SPAM, alike=20), proven=True) > 0
    assert odds(lessons(HAM, HAM, SPAM, SPAM), proven=True) > 0


def test_who_changes_their_mind_twice_means_what_the_mails_hold() -> None:
    assert word(lessons(HAM, SPAM, HAM), proven=True) is None
    alike = lessons(HAM, SPAM, HAM, alike=36)
    assert odds(alike) < 0


@pytest.mark.parametrize(
    ("told", "speaks"),
    [
        ([(HAM, True), (HAM, True)], False),
        ([(HAM, True), (HAM, False)], True),
        ([(SPAM, False), (HAM, True), (HAM, True)], False),
        ([(HAM, True), (SPAM, False), (SPAM, True)], True),
    ],
)
def test_lessons_that_all_repeat_what_the_site_says_leave_the_mail_to_it(
    told: list[tuple[Label, bool]], *, speaks: bool
) -> None:
    layer = Layer(
        [
            OwnLesson(number=number, spam=label is SPAM, origin=OTHER, sketch=TEXT, repeats=repeats)
            for number, (label, repeats) in enumerate(told)
        ]
    )
    assert (word(layer) is not None) is speaks


def test_lessons_are_counted_in_words() -> None:
    found = word(lessons(HAM, SPAM, SPAM, alike=20))
    assert found is not None
    assert found.words == "own lessons on such mail: 2 spam, 1 ham"


def test_the_newest_lessons_count_and_a_layer_stays_small() -> None:
    many = lessons(*[HAM] * MOST_LESSONS, *[SPAM] * MOST_LESSONS)
    assert len(many) == MOST_LESSONS
    assert odds(many) == SUREST
    assert many.size_bytes < 400_000


def test_a_sketch_is_the_same_choice_of_words_in_every_mail() -> None:
    words = [f"word{number}" for number in range(260)]
    assert len(sketch(sample_of("one", "two", "three"))) == 3
    one, other = sketch(sample_of(*words[:200])), sketch(sample_of(*words))
    assert len(one) == len(other) == SKETCH_TOKENS
    assert np.array_equal(one, np.sort(one))
    assert len(set(one.tolist()) & set(other.tolist())) > SKETCH_TOKENS // 2


@given(
    told=st.lists(st.tuples(st.sampled_from(Label), st.integers(0, 40)), max_size=8),
    proven=st.booleans(),
)
def test_what_is_said_is_bounded_and_mirrored_where_all_is_alike(
    told: list[tuple[Label, int]], *, proven: bool
) -> None:
    def layer(spam: Label) -> Layer:
        return Layer(
            [
                OwnLesson(
                    number=number,
                    spam=label is spam,
                    origin=OTHER,
                    sketch=np.concatenate([TEXT[:alike], 999 + np.arange(40 - alike)]),
                )
                for number, (label, alike) in enumerate(told)
            ]
        )

    found, mirrored = (word(layer(spam), proven=proven) for spam in (SPAM, HAM))
    assert (found is None) == (mirrored is None)
    if found is not None and mirrored is not None:
        assert abs(found.log_odds) <= SUREST + 1e-9
        assert found.log_odds == pytest.approx(-mirrored.log_odds)
