import pytest
from hypothesis import given
from hypothesis import strategies as st

from spamd.bayes.counts import Totals
from spamd.bayes.decision import (
    CHOICES,
    Action,
    DecisionOptions,
    Rule,
    Verdict,
    adjusted,
    choose,
    decide,
    risk,
    thresholds,
)

TRAINED = Totals(spam=500, ham=500)
EQUAL = DecisionOptions(
    accept_losses=(0, 1), unsure_losses=(1, 1), tag_losses=(1, 0), reject_losses=(1, 0)
)
losses = st.floats(0, 100).map(lambda value: round(value, 3))


@st.composite
def options(draw: st.DrawFn) -> DecisionOptions:
    ham = sorted(draw(losses) for _ in CHOICES)
    spam = sorted((draw(losses) for _ in CHOICES), reverse=True)
    rows = list(zip(ham, spam, strict=True))
    return DecisionOptions(
        accept_losses=rows[0],
        unsure_losses=rows[1],
        tag_losses=rows[2],
        reject_losses=rows[3],
        reject=draw(st.booleans()),
    )


@given(options(), st.floats(0, 1))
def test_no_other_choice_has_less_risk(wanted: DecisionOptions, probability: float) -> None:
    chosen = risk(choose(probability, wanted), probability, wanted)

    allowed = CHOICES if wanted.reject else CHOICES[:-1]
    assert all(chosen <= risk(choice, probability, wanted) for choice in allowed)


@given(options(), st.floats(0, 1))
def test_the_thresholds_shown_are_those_that_decide(
    wanted: DecisionOptions, probability: float
) -> None:
    bounds = thresholds(wanted)
    by_threshold = [choice for choice, bound in bounds.items() if probability >= bound][-1]

    mine, theirs = (
        risk(choice, probability, wanted) for choice in (choose(probability, wanted), by_threshold)
    )
    assert theirs == pytest.approx(mine, abs=1e-9)


@given(st.floats(0, 1).filter(lambda p: p != 0.5))
def test_equal_losses_give_the_maximum_posterior(probability: float) -> None:
    decision = decide(probability, TRAINED, EQUAL)

    assert decision.verdict is (Verdict.SPAM if probability > 0.5 else Verdict.HAM)


def test_a_ham_loss_of_99_spam_losses_puts_the_threshold_at_99_percent() -> None:
    wanted = DecisionOptions(
        accept_losses=(0, 1), unsure_losses=(99, 1), tag_losses=(99, 0), reject_losses=(99, 0)
    )

    assert thresholds(wanted) == pytest.approx({"accept": 0.0, "tag": 0.99})


def test_mail_is_rejected_only_when_that_is_allowed() -> None:
    forbidden, allowed = DecisionOptions(), DecisionOptions(reject=True)

    assert decide(1.0, TRAINED, forbidden).action is Action.TAG
    assert decide(1.0, TRAINED, allowed).action is Action.REJECT
    assert decide(0.99, TRAINED, allowed).action is Action.TAG


@pytest.mark.parametrize(
    ("probability", "verdict", "action"),
    [
        (0.2, Verdict.HAM, Action.ACCEPT),
        (0.5, Verdict.UNSURE, Action.ACCEPT),
        (0.9, Verdict.SPAM, Action.TAG),
        (0.999, Verdict.SPAM, Action.REJECT),
    ],
)
def test_cut_offs_decide_when_they_are_chosen(
    probability: float, verdict: Verdict, action: Action
) -> None:
    wanted = DecisionOptions(rule=Rule.CUTOFFS, reject=True)

    decision = decide(probability, TRAINED, wanted)

    assert (decision.verdict, decision.action) == (verdict, action)


def test_cut_offs_are_shown_as_thresholds() -> None:
    assert thresholds(DecisionOptions(rule=Rule.CUTOFFS)) == {
        "accept": 0.0,
        "unsure": 0.2,
        "tag": 0.9,
    }
    assert thresholds(DecisionOptions(rule=Rule.CUTOFFS, reject=True))["reject"] == 0.999


def test_too_little_training_is_unsure_says_what_is_missing_and_never_rejects() -> None:
    decision = decide(1.0, Totals(spam=500, ham=3), DecisionOptions(reject=True, minimum_ham=20))

    assert decision.verdict is Verdict.UNSURE
    assert decision.action is Action.ACCEPT
    assert decision.reason == "too little training: ham 3 of 20 messages"


def test_another_share_of_spam_shifts_the_probability() -> None:
    as_trained = adjusted(0.5, TRAINED, 0.5)
    rare = adjusted(0.5, TRAINED, 0.1)

    assert as_trained == pytest.approx(0.5)
    assert rare == pytest.approx(0.1)
    assert adjusted(0.5, Totals(), 0.1) == 0.5
    assert adjusted(1e-300, TRAINED, 0.9) > 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"ham_cutoff": 0.95}, "cutoff"),
        ({"tag_losses": (-1.0, 0.0)}, "finite"),
        ({"tag_losses": (0.1, 0.0)}, "loss of a ham"),
        ({"tag_losses": (9.0, 0.5)}, "loss of a spam"),
        ({"minimum_ham": -1}, "minimum_ham"),
        ({"prior_spam": 1.0}, "prior_spam"),
    ],
)
def test_an_impossible_option_is_refused_by_name(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DecisionOptions(**values)  # type: ignore[arg-type]  # the point of the test


def test_the_thresholds_of_the_defaults_are_the_crossings_of_their_risks() -> None:
    # 0·(1−p) + 1·p = 0.3 at 0.3;  0.3 = 9(1−p) + 0.01p at 8.7/8.99;  … = 30(1−p) at 21/21.01
    expected = {"accept": 0.0, "unsure": 0.3, "tag": 8.7 / 8.99, "reject": 21 / 21.01}

    assert thresholds(DecisionOptions(reject=True)) == pytest.approx(expected, rel=1e-12)
    del expected["reject"]
    assert thresholds(DecisionOptions()) == pytest.approx(expected, rel=1e-12)


def test_risks_that_cross_in_one_point_leave_out_what_is_never_better() -> None:
    wanted = DecisionOptions(
        accept_losses=(0, 1), unsure_losses=(0.5, 0.5), tag_losses=(1, 0), reject_losses=(1, 0)
    )

    assert thresholds(wanted) == {"accept": 0.0, "tag": 0.5}


def test_of_choices_that_never_differ_the_milder_is_taken() -> None:
    wanted = DecisionOptions(
        accept_losses=(0, 1),
        unsure_losses=(1, 1),
        tag_losses=(1, 0),
        reject_losses=(1, 0),
        reject=True,
    )

    assert thresholds(wanted) == {"accept": 0.0, "tag": 0.5}
    assert [choose(p, wanted) for p in (0.0, 0.5, 0.51, 1.0)] == ["accept", "accept", "tag", "tag"]


@pytest.mark.parametrize(
    ("probability", "choice"),
    [
        (0.0, "accept"),
        (0.2, "accept"),
        (0.21, "unsure"),
        (0.89, "unsure"),
        (0.9, "tag"),
        (0.998, "tag"),
        (0.999, "reject"),
        (1.0, "reject"),
    ],
)
def test_a_cut_off_belongs_to_what_it_begins(probability: float, choice: str) -> None:
    wanted = DecisionOptions(rule=Rule.CUTOFFS, reject=True)

    assert choose(probability, wanted) == choice
    mild = choose(probability, DecisionOptions(rule=Rule.CUTOFFS))
    assert mild == ("tag" if choice == "reject" else choice)


def test_the_reason_says_the_probability_and_where_the_choice_begins() -> None:
    assert (
        decide(0.5, TRAINED, DecisionOptions()).reason == "probability 0.5000, unsure from 0.3000"
    )
    tagged = decide(0.99, TRAINED, DecisionOptions())
    assert tagged.reason == "probability 0.9900, tag from 0.9677"
    assert decide(0.01, TRAINED, DecisionOptions()).reason.endswith("accept from 0.0000")


@pytest.mark.parametrize(
    ("ham", "spam", "missing"),
    [
        (10, 10, ""),
        (9, 10, "ham 9 of 10"),
        (10, 9, "spam 9 of 10"),
        (0, 0, "ham 0 of 10, spam 0 of 10"),
    ],
)
def test_ten_of_each_label_are_enough_to_decide(ham: int, spam: int, missing: str) -> None:
    decision = decide(1.0, Totals(spam=spam, ham=ham), DecisionOptions())

    assert decision.verdict is (Verdict.UNSURE if missing else Verdict.SPAM)
    expected = f"too little training: {missing} messages" if missing else "tag from 0.9677"
    assert decision.reason.endswith(expected)


@pytest.mark.parametrize("probability", [0.001, 0.3, 0.5, 0.8, 0.999])
@pytest.mark.parametrize("prior", [0.01, 0.25, 0.5, 0.9])
def test_another_share_of_spam_follows_bayes_rule(probability: float, prior: float) -> None:
    # Trained on 300 spam and 100 ham: the likelihoods are p/¾ and (1 − p)/¼. (note 004 eq. 9)
    spam, ham = probability / 0.75 * prior, (1 - probability) / 0.25 * (1 - prior)

    found = adjusted(probability, Totals(spam=300, ham=100), prior)

    assert found == pytest.approx(spam / (spam + ham), rel=1e-12)


@pytest.mark.parametrize(
    ("probability", "totals", "prior"),
    [
        (0.0, TRAINED, 0.1),
        (1.0, TRAINED, 0.1),
        (0.3, TRAINED, 0.0),
        (0.3, Totals(spam=0, ham=9), 0.1),
        (0.3, Totals(spam=9, ham=0), 0.1),
    ],
)
def test_certainty_and_an_unknown_share_leave_the_probability_as_it_is(
    probability: float, totals: Totals, prior: float
) -> None:
    assert adjusted(probability, totals, prior) == probability
