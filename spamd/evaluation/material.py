"""The mail of an evaluation, made into samples once by the product's `message.features.extract`.

Extraction is most of the work and the same for every order and setting, so it is done once, in two
processes when there is enough of it; all runs share the result.
"""

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from spamd.evaluation.index import LabelledMail
from spamd.evaluation.rewrite import without_route
from spamd.message.facts import SCHEMA
from spamd.message.features import extract
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.sample import FactSchema, Label, Sample

Given = TypeVar("Given")
Made = TypeVar("Made")

Progress = Callable[[str, int, int], None]
"""Told what is going on, how much is done, and of how much."""

WORTH_A_PROCESS = 300
"""Messages from which on starting further processes saves time (they start in about 0.5 s)."""

CHUNK = 32
"""Messages handed to a process at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Samples, labels and the domains of the senders in the index's order."""

    samples: tuple[Sample, ...]
    labels: tuple[Label, ...]
    senders: tuple[str, ...]
    schema: FactSchema

    def __len__(self) -> int:
        return len(self.samples)

    def arranged(self, order: Sequence[int]) -> "Material":
        """Return the same mail in another order."""
        return Material(
            samples=tuple(self.samples[i] for i in order),
            labels=tuple(self.labels[i] for i in order),
            senders=tuple(self.senders[i] for i in order),
            schema=self.schema,
        )

    @property
    def spam(self) -> NDArray[np.bool_]:
        """True where the label is spam."""
        return np.array([label is Label.SPAM for label in self.labels], dtype=np.bool_)


def silent(stage: str, done: int, total: int) -> None:
    """Tell nobody about the progress."""


def prepare(
    index: Sequence[LabelledMail],
    tokenizer: TokenizerOptions,
    *,
    route: bool = True,
    jobs: int = 2,
    progress: Progress = silent,
) -> Material:
    """Return the samples of all messages.

    Without `route` the fields that tell where and when a mail travelled are taken out first.

    Raises:
        ConfigError: a message can't be read.
    """
    work = partial(_sample, tokenizer=tokenizer, route=route)
    samples, senders = [], []
    for done, (sample, sender) in enumerate(spread(work, index, jobs), start=1):
        samples.append(sample)
        senders.append(sender)
        progress("reading", done, len(index))
    return Material(
        samples=tuple(samples),
        labels=tuple(mail.label for mail in index),
        senders=tuple(senders),
        schema=SCHEMA,
    )


def spread(work: Callable[[Given], Made], things: Sequence[Given], jobs: int) -> Iterator[Made]:
    """Yield `work` of each thing in order, computed in `jobs` processes where that pays."""
    if jobs < 2 or len(things) < WORTH_A_PROCESS:
        yield from map(work, things)
        return
    context = multiprocessing.get_context("forkserver")  # safe whatever threads the caller has
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        yield from pool.map(work, things, chunksize=CHUNK)


def vocabulary(samples: Iterable[Sample]) -> NDArray[np.int64]:
    """Return the ids of all tokens of these samples, sorted, each once."""
    pieces, remaining = [np.zeros(0, dtype=np.int64)], iter(samples)
    while chunk := [sample.ids for sample in islice(remaining, 500)]:
        pieces.append(np.unique(np.concatenate(chunk)))
    return np.unique(np.concatenate(pieces))


def _sample(mail: LabelledMail, *, tokenizer: TokenizerOptions, route: bool) -> tuple[Sample, str]:
    """Return the sample of a message and the domain of its sender."""
    raw = mail.read()
    features = extract(raw if route else without_route(raw), tokenizer)
    return features.sample, features.sender_domain
