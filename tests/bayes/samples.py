"""Samples made of words, without the tokeniser: an id is a hash of the word, as in the product."""

from dataclasses import replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.counts import TokenCounts
from spamd.bayes.learning import Effect, Given, learn
from spamd.bayes.model import BayesOptions, Model
from spamd.sample import FactSchema, Kind, Label, Sample

SCHEMA = FactSchema(
    discrete=(("html", ("none", "only", "both")), ("attachment", ("no", "yes"))),
    continuous=("size",),
)


def ids_of(*words: str) -> NDArray[np.int64]:
    digests = b"".join(blake2b(word.encode(), digest_size=8).digest() for word in words)
    return np.frombuffer(digests, dtype="<i8").astype(np.int64)


def sample_of(
    *words: str,
    kind: Kind = Kind.WORD,
    discrete: tuple[int, int] = (0, 0),
    size: int = 10,
    grams: tuple[int, ...] = (),
) -> Sample:
    ids, occurrences = np.unique(ids_of(*words), return_counts=True)
    return Sample(
        ids=ids,
        occurrences=occurrences.astype(np.uint8),
        kinds=np.full(len(ids), kind, dtype=np.uint8),
        discrete=np.array(discrete, dtype=np.uint8),
        continuous=np.array([size * 1024], dtype=np.int64),
        grams=np.unique(np.array(grams, dtype=np.uint32)),
    )


def new_model(options: BayesOptions | None = None) -> Model:
    return Model.empty(SCHEMA, options or BayesOptions())


def known(model: Model, sample: Sample) -> None:
    """Give the sample's new tokens their rows."""
    fresh = sample.ids[model.tokens.find(sample.ids) < 0]
    model.tokens.merge(fresh, TokenCounts.zeros(len(fresh)))


def teach(model: Model, sample: Sample, label: Label, key: bytes = b"") -> Effect:
    """Give the sample's new tokens their rows, then learn it."""
    known(model, sample)
    (effect,) = learn(model, [Given(sample=sample, label=label, key=key)])
    return effect


def without(sample: Sample, indices: NDArray[np.intp]) -> Sample:
    """Return the sample without the tokens at `indices`; facts and grams stay."""
    keep = np.ones(len(sample.ids), dtype=np.bool_)
    keep[indices] = False
    return replace(
        sample,
        ids=sample.ids[keep],
        occurrences=sample.occurrences[keep],
        kinds=sample.kinds[keep],
    )
