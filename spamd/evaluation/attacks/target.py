"""A filter under attack: the product itself, or any other that learns and judges raw mail."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.model import BayesOptions
from spamd.evaluation.material import spread
from spamd.evaluation.trial import Record, empty_model, teach
from spamd.message.facts import SCHEMA
from spamd.message.features import extract
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.sample import Kind, Label, Sample

Floats = NDArray[np.float64]
Calls = NDArray[np.int8]
Lesson = tuple[bytes, Label]


class Target(Protocol):
    """A filter that learns once and then judges."""

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Learn these messages in order."""
        ...

    def judge(self, mails: Sequence[bytes]) -> tuple[Floats, Calls]:
        """Return log-odds and verdicts, [messages, 1 + classifiers]; column 0 is the fused."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A message as sample, and the words of its visible text."""

    sample: Sample
    words: tuple[str, ...]


class Reader:
    """Reads raw mail, each message once, in several processes where there is enough."""

    def __init__(self, tokenizer: TokenizerOptions, jobs: int) -> None:
        self._work = partial(_read, tokenizer=tokenizer)
        self._jobs = jobs
        self._known: dict[bytes, Read] = {}

    def read(self, mails: Sequence[bytes]) -> list[Read]:
        """Return all of these messages, and remember them."""
        new = [raw for raw in dict.fromkeys(mails) if raw not in self._known]
        self._known.update(zip(new, spread(self._work, new, self._jobs), strict=True))
        return [self._known[raw] for raw in mails]

    def samples(self, mails: Sequence[bytes]) -> list[Sample]:
        """Return the samples of these messages; those read for the first time are forgotten."""
        new = [raw for raw in dict.fromkeys(mails) if raw not in self._known]
        found = dict(zip(new, spread(self._work, new, self._jobs), strict=True))
        return [(found.get(raw) or self._known[raw]).sample for raw in mails]


class Spamd:
    """The product as a target; `taught_tokens` is the cap of tokens learned of one message."""

    def __init__(self, reader: Reader, bayes: BayesOptions, taught_tokens: int) -> None:
        self._reader = reader
        self._bayes = bayes
        self._taught_tokens = taught_tokens
        self._model = empty_model((), SCHEMA, bayes, taught_tokens)

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Start anew from these messages."""
        samples = self._reader.samples([raw for raw, _ in lessons])
        self._model = empty_model(samples, SCHEMA, self._bayes, self._taught_tokens)
        labels = [label for _, label in lessons]
        teach(self._model, zip(samples, labels, strict=True), len(lessons))

    def judge(self, mails: Sequence[bytes]) -> tuple[Floats, Calls]:
        """Judge without learning."""
        record = Record(len(mails), self._bayes)
        for place, sample in enumerate(self._reader.samples(mails)):
            record.judge(place, self._model, sample)
        return record.log_odds, record.called


def _read(raw: bytes, *, tokenizer: TokenizerOptions) -> Read:
    features = extract(raw, tokenizer)
    places = np.flatnonzero(features.sample.kinds & Kind.WORD)
    return Read(sample=features.sample, words=tuple(features.texts[int(i)] for i in places))
