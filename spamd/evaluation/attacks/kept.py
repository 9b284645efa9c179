"""An attacker whose mail is read and kept: does he gain more than by one honest move?

He knows the words that speak most clearly for ham, and sends mail after mail that carries his spam
among them, each from another sender. What isn't called spam is read and left lying, one a day, by a
person who moves nearly all other spam: the one whose keeping is believed most. `bayes.selection`
then chooses what is taught as ham, with all the room it can have. Compared is one mail of these
that the person moves out of Junk.

    carried   the next mail of the attacker, with other such words
    plain     his spam without them
"""

import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from spamd.bayes.counts import TAUGHT_TOKENS
from spamd.bayes.decision import Verdict, decide
from spamd.bayes.learning import Effect, Given, learn, unlearn
from spamd.bayes.model import BayesOptions, Model
from spamd.bayes.selection import MISSED, Habit, Kept, KeptOptions, Standing, choose
from spamd.evaluation import rewrite
from spamd.evaluation.attacks.target import Lesson, Reader
from spamd.evaluation.attacks.words import Words
from spamd.evaluation.trial import empty_model, teach
from spamd.message.facts import SCHEMA
from spamd.sample import Label, Sample

CAMPAIGNS = 25
"""Spams of the mail that was not learned, each attacked with anew."""

CARRIERS = (1, 5, 20)
"""Mails of a campaign that are kept."""

BEST, ADDED = 300, 100
"""So many words the attacker knows, and so many he adds to a mail."""

TAUGHT = 200
"""Lessons before the attack: a young filter is moved most."""

ROOM = Standing(spam=1 << 20)
"""So much spam was taught that balance holds no ham back."""

BELIEVED = Habit(missed=float(MISSED[0]))
"""A person who leaves one spam in a thousand lying."""

SENDER = re.compile(rb"^From:[^\n]*", re.IGNORECASE | re.MULTILINE)

MOVE = "one honest move"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAttackRow:
    """What was gained over all campaigns: how far the log-odds of spam fell.

    lessons        of a campaign that were taught, mean
    carried, plain mean fall for the attacker's next mail, and for his spam alone
    most           the largest fall for a next mail
    """

    attack: str
    lessons: float
    carried: float
    plain: float
    most: float

    def to_json(self) -> dict[str, object]:
        """Return the object that `evaluate --attack --json` prints under `kept`."""
        return {
            "attack": self.attack,
            "lessons": self.lessons,
            "carried": self.carried,
            "plain": self.plain,
            "most": self.most,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """A spam as it is, and as the attacker sends it again and again; the last is not kept."""

    plain: Sample
    sent: Sequence[Sample]


def kept_attack(
    mail: Sequence[Lesson], reader: Reader, bayes: BayesOptions, seed: int
) -> tuple[KeptAttackRow, ...]:
    """Attack the product after its first lessons; the first row is the honest move.

    No rows where no spam is left.
    """
    lessons, rest = mail[:TAUGHT], mail[TAUGHT:]
    read = reader.read([raw for raw, _ in lessons])
    labels = [label for _, label in lessons]
    words = Words([(one.words, label) for one, label in zip(read, labels, strict=True)])
    campaigns = _campaigns([raw for raw, label in rest if label is Label.SPAM], words, reader, seed)
    if not campaigns:
        return ()
    samples = [one.sample for one in read]
    known = [sample for one in campaigns for sample in (one.plain, *one.sent)]
    model = empty_model([*samples, *known], SCHEMA, bayes, TAUGHT_TOKENS)
    teach(model, zip(samples, labels, strict=True), len(lessons))
    attack = _Attack(model)
    return (
        _row(MOVE, [attack.moved(one) for one in campaigns]),
        *(
            _row(f"{number} mails kept", [attack.kept(one, number) for one in campaigns])
            for number in CARRIERS
        ),
    )


def _campaigns(
    spam: Sequence[bytes], words: Words, reader: Reader, seed: int
) -> Sequence[Campaign]:
    draw = random.Random(seed)  # noqa: S311 - to be repeated, not secret
    best = words.best(BEST)

    def carrier(raw: bytes) -> bytes:
        text = rewrite.edited(raw, rewrite.appended(draw.sample(best, min(ADDED, len(best)))))
        sender = b"From: x@%x.example" % draw.getrandbits(40)
        return SENDER.sub(sender, text, count=1)

    found = []
    for raw in draw.sample(spam, min(CAMPAIGNS, len(spam))):
        plain, *sent = reader.samples([raw, *(carrier(raw) for _ in range(max(CARRIERS) + 1))])
        found.append(Campaign(plain=plain, sent=sent))
    return found


class _Attack:
    """Campaigns against one model, which is as before after each."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._options = KeptOptions()
        self._taught: list[tuple[Sample, Effect]] = []

    def moved(self, campaign: Campaign) -> Sequence[float]:
        """Return what one move gains."""
        with self._measured(campaign) as gains:
            self._teach(campaign.sent[0])
        return gains

    def kept(self, campaign: Campaign, number: int) -> Sequence[float]:
        """Return what so many kept mails gain."""
        with self._measured(campaign) as gains:
            for sample in campaign.sent[:number]:
                if self._is_taught(sample):
                    self._teach(sample)
        return gains

    def _is_taught(self, sample: Sample) -> bool:
        evidence = self._model.weigh(sample)
        found = decide(evidence.probability, self._model.totals, self._model.options.decision)
        if found.verdict is Verdict.SPAM:  # it lies in Junk
            return False
        one = Kept(key=None, log_odds=evidence.log_odds)
        return bool(choose([one], ROOM, BELIEVED, self._options))

    @contextmanager
    def _measured(self, campaign: Campaign) -> Iterator[list[float]]:
        """Yield a list of lessons, carried and plain, which is filled at the end."""
        gains: list[float] = []
        before = self._odds(campaign)
        yield gains
        after = self._odds(campaign)
        gains += [float(len(self._taught)), *(b - a for b, a in zip(before, after, strict=True))]
        while self._taught:
            sample, effect = self._taught.pop()
            unlearn(self._model, sample, Label.HAM, effect, b"")

    def _odds(self, campaign: Campaign) -> list[float]:
        return [self._model.weigh(each).log_odds for each in (campaign.sent[-1], campaign.plain)]

    def _teach(self, sample: Sample) -> None:
        (effect,) = learn(self._model, [Given(sample=sample, label=Label.HAM)], proof=False)
        self._taught.append((sample, effect))


def _row(attack: str, gains: Sequence[Sequence[float]]) -> KeptAttackRow:
    found = np.array(gains)
    lessons, carried, plain = found.mean(axis=0).tolist()
    return KeptAttackRow(
        attack=attack, lessons=lessons, carried=carried, plain=plain, most=float(found[:, 1].max())
    )
