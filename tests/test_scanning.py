from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from spamd.bayes.decision import Action, DecisionOptions
from spamd.bayes.model import BayesOptions, Evidence, Model
from spamd.bayes.wishes import Wishes
from spamd.extraction.extractor import Extractor
from spamd.message.envelope import Client, Envelope
from spamd.message.facts import SCHEMA
from spamd.message.features import extract
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.person import Person
from spamd.report import ScanReport
from spamd.sample import Label, Sample
from spamd.scanning import Scanner, ScanningInspector
from tests.bayes.samples import teach
from tests.fakes import FakeClock, FakeObserver

ANNA, BOTH, BOB = b"anna@x.test", b"anna+shop@x.test", b"bob@x.test"
CLIENT = Client(address="", port=0, helo="", name="", tls=False, login=None, protocol="SMTP")
SPAM = b"Subject: cheap pills\r\n\r\ncheap pills, buy cheap pills now\r\n"
HAM = b"Subject: minutes\r\n\r\nthe minutes of our meeting on Monday\r\n"


@dataclass
class Persons:
    """Knows some people (`ports.People`)."""

    people: Mapping[bytes, Person]
    asked: list[tuple[bytes, ...]] = field(default_factory=list)

    async def of(self, recipients: Sequence[bytes]) -> Mapping[bytes, Person]:
        self.asked.append(tuple(recipients))
        return {name: self.people[name] for name in recipients if name in self.people}


class Notes:
    def __init__(self) -> None:
        self.reports: list[ScanReport] = []

    def record(self, report: ScanReport) -> None:
        self.reports.append(report)


@pytest.fixture
def scanner() -> Scanner:
    model = Model.empty(SCHEMA, BayesOptions())
    for number in range(10):
        for label, text in ((Label.SPAM, SPAM), (Label.HAM, HAM)):
            teach(model, extract(text).sample, label, b"%d" % number)
    return Scanner(
        model=lambda: model, decision=DecisionOptions(reject=True), tokenizer=TokenizerOptions(),
        clock=FakeClock(), key=b"key", random=lambda size: b"\0" * size,
    )  # fmt: skip


NEVER = Person(user="anna@x.test", wishes=Wishes(tag=False))


def test_each_recipient_is_judged_by_their_own_wishes(scanner: Scanner) -> None:
    features = scanner.extract(SPAM)
    tags = Person(user="bob@x.test", wishes=Wishes(reject=False))
    verdicts = scanner.verdicts(features, 0.0, {ANNA: NEVER, BOTH: NEVER, BOB: tags})
    assert verdicts.site.action is Action.REJECT
    assert (verdicts.of(ANNA).action, verdicts.of(BOB).action) == (Action.ACCEPT, Action.TAG)
    assert verdicts.of(BOTH) is verdicts.of(ANNA)
    assert (verdicts.of(ANNA).user, verdicts.site.user) == ("anna@x.test", "")
    assert verdicts.of(ANNA).required == 1.0


def test_who_has_nothing_of_their_own_has_the_sites_report(scanner: Scanner) -> None:
    verdicts = scanner.verdicts(scanner.extract(SPAM), 0.0, {ANNA: Person(user="anna@x.test")})
    assert verdicts.own == {}


def test_what_is_missing_stands_in_the_reason(scanner: Scanner) -> None:
    person = Person(user="anna@x.test", missing="own wishes unknown")
    verdicts = scanner.verdicts(scanner.extract(SPAM), 0.0, {ANNA: person})
    assert verdicts.of(ANNA).reason == f"{verdicts.site.reason}; own wishes unknown"


def test_a_mail_is_weighed_once_for_all(scanner: Scanner, monkeypatch: pytest.MonkeyPatch) -> None:
    weighed: list[Sample] = []
    usual = Model.weigh

    def weigh(model: Model, sample: Sample) -> Evidence:
        weighed.append(sample)
        return usual(model, sample)

    monkeypatch.setattr(Model, "weigh", weigh)
    people = {b"%d" % number: Person(user=str(number), wishes=NEVER.wishes) for number in range(50)}
    scanner.verdicts(scanner.extract(SPAM), 0.0, people)
    assert len(weighed) == 1


async def test_the_log_keeps_each_report_that_somebody_gets(scanner: Scanner) -> None:
    notes, people = Notes(), Persons({ANNA: NEVER, BOTH: NEVER})
    extractor = Extractor(TokenizerOptions(), wait_s=60, work_s=60)
    judge = ScanningInspector(
        scanner, extractor, FakeClock(), notes, FakeObserver(), people=people
    )  # fmt: skip
    try:
        for recipients in ((ANNA, BOTH), (ANNA, BOB)):
            envelope = Envelope(sender=b"", recipients=recipients, client=CLIENT)
            await judge.inspect(lambda: SPAM, len(SPAM), envelope, bytes)
    finally:
        await extractor.close()
    assert [report.user for report in notes.reports] == ["anna@x.test", "anna@x.test", ""]
    assert people.asked == [(ANNA, BOTH), (ANNA, BOB)]
