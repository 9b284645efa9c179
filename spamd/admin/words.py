"""A word or a pair of words: its counts, its probability by each classifier, its lessons by week.

Words are known by a hash (`message.tokens.token_id`), so there is no list of them to search: what
is asked for is looked up as it stands, in lower case, and where a word also stands in the subject
or hidden.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from spamd.admin.mail import Mails
from spamd.admin.ports import Knowledge, WordLesson
from spamd.bayes.counts import distinct
from spamd.bayes.evidence import explain
from spamd.bayes.model import Model
from spamd.message.facts import SCHEMA
from spamd.message.tokens.hashing import token_id
from spamd.sample import Kind, Label, Sample

LONGEST = 200
LOOK_S = 0.12
PREFIXES = ("", "subject=", "hidden:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A token that was learned: messages that held it, and P(spam|token) by each classifier."""

    token: str
    spam: int
    ham: int
    spam_occurrences: int
    ham_occurrences: int
    classifiers: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """Lessons of a week that taught a word, by the label; the week begins on that Monday."""

    begins: date
    spam: int
    ham: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WordFound:
    """What is known of a word.

    forms       in which it was learned; none: it was not
    lessons     that taught the first of them, newest first, as far as was looked
    weeks       of these lessons
    looked      lessons that were looked through
    behind      from which one to look on; None: there are no more
    """

    text: str
    forms: tuple[Form, ...]
    lessons: tuple[WordLesson, ...]
    weeks: tuple[Week, ...]
    looked: int
    behind: int | None


class Words:
    """Looks words up."""

    def __init__(self, mails: Mails, knowledge: Knowledge) -> None:
        self._mails = mails
        self._knowledge = knowledge

    async def find(self, text: str, behind: int | None = None, *, people: bool) -> WordFound:
        """Return what is known of a word or pair, looking for lessons from a place on.

        Raises:
            StorageUnavailable: the database does not answer.
        """
        text = text[:LONGEST].encode("utf-8", "replace").decode()
        text = " ".join(text.split()[:2])
        spelled = dict.fromkeys((text, text.lower()))
        asked = [prefix + each for prefix in PREFIXES for each in spelled] if text else []
        ids = [token_id(each) for each in asked]
        model = await self._knowledge.model(distinct([np.array(ids, dtype=np.int64)]))
        forms = await asyncio.to_thread(_forms, model, asked, ids)
        if not forms:
            return WordFound(text=text, forms=(), lessons=(), weeks=(), looked=0, behind=None)
        taught = await self._mails.word_lessons(forms[0].token, LOOK_S, behind, people=people)
        return WordFound(
            text=text,
            forms=tuple(forms),
            lessons=taught.found,
            weeks=_weeks(taught.found),
            looked=taught.looked,
            behind=taught.behind,
        )


def _forms(model: Model, asked: list[str], ids: list[int]) -> list[Form]:
    """Return those of the tokens that were learned."""
    found = []
    for text, one in zip(asked, ids, strict=True):
        counts = model.tokens.counts(model.tokens.find(np.array([one], dtype=np.int64)))
        if not int(counts.seen[0]):
            continue
        explanation = explain(model, _alone(one), 1)
        found.append(
            Form(
                token=text,
                spam=int(counts.spam[0]),
                ham=int(counts.ham[0]),
                spam_occurrences=int(counts.spam_occurrences[0]),
                ham_occurrences=int(counts.ham_occurrences[0]),
                classifiers=tuple(
                    (each.name, each.clues[0].probability)
                    for each in explanation.classifiers
                    if each.clues
                ),
            )
        )
    return found


def _alone(one: int) -> Sample:
    """Return a mail that holds this token and nothing else."""
    return Sample(
        ids=np.array([one], dtype=np.int64),
        occurrences=np.array([1], dtype=np.uint8),
        kinds=np.array([Kind.WORD], dtype=np.uint8),
        discrete=np.zeros(len(SCHEMA.discrete), dtype=np.uint8),
        continuous=np.zeros(len(SCHEMA.continuous), dtype=np.int64),
        grams=np.array([], dtype=np.uint32),
    )


def _weeks(lessons: tuple[WordLesson, ...]) -> tuple[Week, ...]:
    counts: Counter[tuple[date, Label]] = Counter()
    for each in lessons:
        day = each.lesson.time.date()
        counts[day - timedelta(days=day.weekday()), each.lesson.label] += 1
    weeks = sorted({week for week, _ in counts})
    return tuple(
        Week(begins=week, spam=counts[week, Label.SPAM], ham=counts[week, Label.HAM])
        for week in weeks
    )
