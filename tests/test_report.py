from dataclasses import replace

from spamd.bayes.decision import Action
from spamd.report import Verdicts
from tests.fakes import HAM, REJECT, SPAM

ANNA, BOB, CARL = b"anna@x.test", b"bob@x.test", b"carl@x.test"


def test_who_has_no_own_report_gets_the_sites() -> None:
    verdicts = Verdicts(site=HAM, own={ANNA: SPAM})
    assert (verdicts.of(ANNA), verdicts.of(BOB)) == (SPAM, HAM)


def test_one_recipient_and_several_of_one_person_get_their_own() -> None:
    verdicts = Verdicts(site=HAM, own={ANNA: SPAM, BOB: SPAM})
    assert verdicts.for_all([ANNA]) is SPAM
    assert verdicts.for_all([ANNA, BOB]) is SPAM
    assert verdicts.for_all([]) is HAM


def test_several_who_differ_get_the_sites() -> None:
    assert Verdicts(site=HAM, own={ANNA: SPAM}).for_all([ANNA, BOB]) is HAM
    assert Verdicts(site=SPAM, own={ANNA: HAM, BOB: REJECT}).for_all([ANNA, BOB]) is SPAM


def test_a_mail_is_rejected_for_several_only_if_each_of_them_has_it_rejected() -> None:
    mine = replace(REJECT, user="anna@x.test")
    assert Verdicts(site=REJECT, own={ANNA: mine}).for_all([ANNA, BOB]) is REJECT
    spared = Verdicts(site=REJECT, own={ANNA: SPAM}).for_all([ANNA, BOB])
    assert spared == replace(REJECT, action=Action.TAG)
    other = replace(REJECT, user="carl@x.test")
    both = Verdicts(site=HAM, own={ANNA: mine, CARL: other})
    assert both.for_all([ANNA, CARL]) is mine
    assert both.for_all([ANNA, CARL, BOB]) is HAM


def test_each_report_is_told_once() -> None:
    verdicts = Verdicts(site=HAM, own={ANNA: SPAM, BOB: SPAM})
    assert verdicts.distinct([ANNA, BOB]) == [SPAM]
    assert verdicts.distinct([ANNA, BOB, CARL]) == [SPAM, HAM]
    assert verdicts.distinct([]) == [HAM]


def test_a_large_message_has_its_size_in_every_report() -> None:
    sized = Verdicts(site=HAM, own={ANNA: SPAM, BOB: SPAM}).sized(7)
    assert {sized.site.size_bytes, sized.of(ANNA).size_bytes} == {7}
    assert sized.of(ANNA) is sized.of(BOB)
