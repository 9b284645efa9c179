import pytest
from hypothesis import given
from hypothesis import strategies as st

from spamd.bayes.counts import Totals
from spamd.bayes.decision import Action, DecisionOptions, Rule, Verdict, decide, thresholds
from spamd.bayes.wishes import NO_WISHES, Wishes, borders, decide_for

TRAINED = Totals(spam=100, ham=100)
SITE = DecisionOptions(
    rule=Rule.CUTOFFS, ham_cutoff=0.2, spam_cutoff=0.9, reject_cutoff=0.99, reject=True
)


def outcome(probability: float, wishes: Wishes, options: DecisionOptions = SITE) -> str:
    return decide_for(probability, TRAINED, options, wishes).action.value


@given(st.floats(0, 1))
def test_without_a_wish_the_decision_is_the_sites(probability: float) -> None:
    for options in (SITE, DecisionOptions()):
        site = decide(probability, TRAINED, options)
        assert decide_for(probability, TRAINED, options, NO_WISHES) == site


def test_a_lower_threshold_tags_more_and_a_higher_one_less() -> None:
    assert outcome(0.6, Wishes(tag_from=0.5)) == "tag"
    assert outcome(0.95, Wishes(tag_from=0.97)) == "accept"


def test_the_reason_names_the_wish_and_its_threshold() -> None:
    found = decide_for(0.6, TRAINED, SITE, Wishes(tag_from=0.5))
    assert found.reason == "probability 0.6000, tag from 0.5000 by wish"


def test_who_never_wants_mail_tagged_gets_it_as_unsure() -> None:
    found = decide_for(1.0, TRAINED, SITE, Wishes(tag=False))
    assert (found.verdict, found.action) == (Verdict.UNSURE, Action.ACCEPT)


def test_who_wants_nothing_rejected_gets_it_tagged() -> None:
    assert outcome(1.0, Wishes(reject=False)) == "tag"
    assert outcome(0.995, Wishes(reject_from=0.999)) == "tag"
    assert outcome(0.98, Wishes(reject_from=0.97)) == "reject"


def test_a_wish_to_reject_needs_the_sites_leave() -> None:
    tags = DecisionOptions(rule=Rule.CUTOFFS)
    assert outcome(1.0, Wishes(reject=True, reject_from=0.5), tags) == "tag"


def test_with_too_little_training_a_wish_changes_nothing() -> None:
    found = decide_for(1.0, Totals(spam=1, ham=1), SITE, Wishes(tag_from=0.1))
    assert found == decide(1.0, Totals(spam=1, ham=1), SITE)


def test_the_nearer_wish_stands_over_the_farther() -> None:
    domain = Wishes(tag_from=0.8, reject_from=0.95, reject=False)
    assert Wishes(tag=False).over(domain) == Wishes(
        tag_from=0.8, reject_from=0.95, tag=False, reject=False
    )
    assert Wishes(tag_from=0.97).over(domain).reject_from == 0.97
    assert Wishes(reject_from=0.6).over(domain).tag_from == 0.6


@pytest.mark.parametrize("value", [0.0, -1.0, 1.5, float("nan")])
def test_a_threshold_is_a_probability(value: float) -> None:
    with pytest.raises(ValueError, match="must lie"):
        Wishes(tag_from=value)
    with pytest.raises(ValueError, match="must not be below"):
        Wishes(tag_from=0.9, reject_from=0.5)


wishes = st.builds(
    lambda low, high, tag, reject: Wishes(
        tag_from=low, reject_from=None if high is None else max(high, low or 0.0), tag=tag,
        reject=reject,
    ),
    st.none() | st.floats(0.01, 1), st.none() | st.floats(0.01, 1), st.none() | st.booleans(),
    st.none() | st.booleans(),
)  # fmt: skip


@given(wishes, st.sampled_from([SITE, DecisionOptions(), DecisionOptions(reject=True)]))
def test_borders_rise_with_the_choices_and_name_no_choice_that_is_not_wished(
    wished: Wishes, options: DecisionOptions
) -> None:
    at = borders(options, wished)
    assert list(at.values()) == sorted(at.values())
    assert min(at.values()) == 0.0 or "accept" not in thresholds(options)
    assert "reject" not in at or (options.reject and wished.reject is not False)
    assert wished.tag is not False or not {"tag", "reject"} & set(at)


@given(wishes, st.floats(0, 1), st.floats(0, 1))
def test_more_spam_is_never_done_less(wished: Wishes, one: float, other: float) -> None:
    rank = {"accept": 0, "tag": 1, "reject": 2}
    low, high = sorted((one, other))
    assert rank[outcome(low, wished)] <= rank[outcome(high, wished)]
