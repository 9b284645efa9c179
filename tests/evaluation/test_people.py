"""People move what is wrong, now and then, and keep the rest: the protocol "moves"."""

import json
from dataclasses import replace

import numpy as np
import pytest

from spamd.bayes.model import BayesOptions
from spamd.bayes.selection import KeptOptions
from spamd.evaluation.compare import compare
from spamd.evaluation.material import Material, prepare
from spamd.evaluation.people import PeopleOptions, Person, live
from spamd.evaluation.protocol import EvaluationOptions, Protocol, run
from spamd.evaluation.rates import CALLED_HAM, CALLED_SPAM, CALLED_UNSURE
from spamd.message.tokens.tokenizer import TokenizerOptions
from tests.evaluation.mails import mailbox

PEOPLE = PeopleOptions(taught=40, slips=0.0, selection=KeptOptions(kept_sure=0.001, kept_start=100))
SIZE = 260


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    folder = tmp_path_factory.mktemp("mail")
    return prepare(mailbox(folder, SIZE, mixed=0.42), TokenizerOptions(), jobs=1)


def lived(material: Material, people: PeopleOptions, delay: int = 20) -> Person:
    return live(material, people, BayesOptions(), delay=delay, taught_tokens=4000, seed=1)


def sources(person: Person) -> dict[str, tuple[int, int, int]]:
    found = person.lessons()
    return {source: (count.ham, count.spam, count.wrong) for source, count in found.items()}


def test_only_what_comes_after_the_taught_mail_is_judged(material: Material) -> None:
    options = EvaluationOptions(protocol=Protocol.MOVES, people=PEOPLE, delay=20)
    found = json.loads(json.dumps(run(material, options, BayesOptions()).to_json()))
    assert (found["messages"], found["protocol"]) == (SIZE - 40, "moves")
    assert list(found["lessons"]) == ["told", "move", "kept"]
    assert found["lessons"]["told"] == {"ham": 20, "spam": 20, "wrong": 0}
    assert found["lessons"]["kept"]["ham"] > 0


def test_the_same_seed_is_the_same_person(material: Material) -> None:
    one, other = lived(material, PEOPLE), lived(material, PEOPLE)
    assert sources(one) == sources(other)
    assert np.array_equal(one.record.log_odds, other.record.log_odds)


def test_who_reads_nothing_teaches_nothing(material: Material) -> None:
    person = lived(material, replace(PEOPLE, reads=0.0))
    assert sources(person) == {"told": (20, 20, 0), "move": (0, 0, 0), "kept": (0, 0, 0)}


def test_without_kept_mail_only_moves_teach(material: Material) -> None:
    found = sources(lived(material, replace(PEOPLE, kept=False)))
    assert found["kept"] == (0, 0, 0)
    assert found["move"][1] > 0


def test_old_lessons_are_learned_again_where_people_correct(material: Material) -> None:
    never, always = (lived(material, replace(PEOPLE, refresh=number)) for number in (0, 6))
    assert sources(always)["told"] == sources(never)["told"] == (20, 20, 0)
    assert sum(ham + spam for ham, spam, _ in sources(always).values()) == always.messages
    first = next(
        i for i in range(SIZE) if always.record.log_odds[i, 0] != never.record.log_odds[i, 0]
    )
    assert first > 40


def test_kept_mail_teaches_ham_only(material: Material) -> None:
    assert sources(lived(material, PEOPLE))["kept"][1] == 0


def test_who_corrects_nothing_still_moves_unsure_spam(material: Material) -> None:
    people = replace(PEOPLE, kept=False, corrects=0.0, reads=1.0)
    person = lived(material, people, delay=0)
    called = person.record.called[40:, 0]
    unsure_spam = int((material.spam[40:] & (called == CALLED_UNSURE)).sum())
    assert sources(person)["move"] == (0, unsure_spam - int(called[-1] == CALLED_UNSURE), 0)
    people = replace(people, unsure_moved=0.0)
    assert sources(lived(material, people))["move"] == (0, 0, 0)


def test_every_error_is_corrected_by_who_corrects_all(material: Material) -> None:
    people = replace(PEOPLE, kept=False, corrects=1.0, reads=1.0, unsure_moved=0.0)
    person = lived(material, people, delay=0)
    spam, called = material.spam[40:-1], person.record.called[40:-1, 0]
    passed = int((spam & (called == CALLED_HAM)).sum())
    lost = int((~spam & (called == CALLED_SPAM)).sum())
    assert sources(person)["move"] == (lost, passed, 0)


def test_a_correction_comes_within_the_delay(material: Material) -> None:
    people = replace(PEOPLE, kept=False, corrects=1.0, reads=1.0)
    never = lived(material, people, delay=1_000_000)
    assert sum(sources(never)["move"]) < sum(sources(lived(material, people, delay=0))["move"])


def test_slips_teach_the_wrong_label_and_each_message_has_one_lesson(material: Material) -> None:
    people = replace(PEOPLE, slips=1.0)
    person = lived(material, people)
    found = sources(person)
    assert found["move"][2] > 0
    assert sum(ham + spam for ham, spam, _ in found.values()) == person.messages
    assert sources(lived(material, PEOPLE))["move"][2] == 0


def test_the_thousandth_lesson_of_one_sender_waits(material: Material) -> None:
    crowded = replace(PEOPLE, selection=replace(PEOPLE.selection, kept_crowd=50.0))
    assert (
        0
        < sources(lived(material, crowded))["kept"][0]
        < sources(lived(material, PEOPLE))["kept"][0]
    )


def test_several_orders_have_the_mean_of_their_lessons(material: Material) -> None:
    options = EvaluationOptions(protocol=Protocol.MOVES, people=PEOPLE, delay=20)
    (found,) = compare(material, {"as set": BayesOptions()}, (1, 2), options)
    kept = [result.lessons["kept"].ham for result in found.results]
    assert found.lessons()["kept"].ham == round(sum(kept) / 2)
    shown = found.to_json()["lessons"]
    assert isinstance(shown, dict)
    assert shown["kept"] == {"ham": round(sum(kept) / 2), "spam": 0, "wrong": 0}


@pytest.mark.parametrize(
    "wrong", [{"taught": -1}, {"a_day": 0}, {"refresh": -1}, {"corrects": 1.1}, {"slips": -1}]
)
def test_what_nobody_can_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must"):
        replace(PEOPLE, **wrong)  # type: ignore[arg-type] # the names are parameters
