"""One mail: what was said of it, what is said of it now, and why.

The words of a mail are for those who may teach; others see the verdict, what each classifier says,
and the names of tricks. It is judged by a model of its own, in a thread: no mail that comes in
waits for somebody who looks.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spamd.admin.ports import Knowledge, LessonRow, Records, ScanRow, WordLessons
from spamd.bayes.decision import Action, DecisionOptions, Verdict
from spamd.bayes.evidence import ClassifierEvidence, Explanation, explain
from spamd.explanation import PURPOSE, TRICKS, Disguise, sentences, with_sender
from spamd.lists.senders import Standing
from spamd.message.features import Features
from spamd.report import ScanReport
from spamd.sample import Kind

CLUES = 15
READ_WORDS = 400
"""Words of a mail that are shown, as its reader reads them."""

BASIS_WORDS = 5
BASIS_S = 0.12
"""The journal is looked through for so long, for all words together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict, with what is done by it and one clause why."""

    verdict: Verdict
    probability: float
    action: Action
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Clue:
    """A token as a classifier saw it: messages that held it, P(spam|token), what it adds."""

    token: str
    spam: int
    ham: int
    probability: float
    contribution: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """An attribute of the mail, and what it adds."""

    name: str
    value: str
    contribution: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What a classifier says: its score, and what it adds to the log-odds of the verdict."""

    name: str
    purpose: str
    score: float
    effect: float
    clues: tuple[Clue, ...]
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A token: messages that held it, and what it adds to the log-odds of the verdict."""

    token: str
    spam: int
    ham: int
    effect: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Without these tokens the verdict would be another one."""

    without: tuple[str, ...]
    verdict: Verdict
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a mail shows and what it hides.

    tricks   what it does to be read otherwise by a filter than by a person, by name and in words
    read     the words that its reader sees, each once, in their order; the first of them
    plain    of these, those that stand there in other characters
    hidden   words that its reader is not shown
    """

    tricks: tuple[tuple[str, str], ...]
    read: tuple[str, ...]
    plain: tuple[str, ...]
    hidden: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """All that is known of a mail.

    scan         as it was judged when it came
    now          as the site would judge it now
    own          as it is for the user that was asked for, where they have something of their own
    lesson       the lesson in force about it
    open         its words are shown; else there are none in what follows
    sentences    what it is; and if `open`, what spoke for and against, and what would change it
    sender       what proves who it is from, and what lists say; only for those who may see people
    log_odds     of the verdict now: `bias` + `prior` + the effects of the classifiers
    known        tokens that were learned, out of `tokens`
    flip         what would turn the verdict; None: no few words
    """

    scan: ScanRow
    now: Judgement
    lesson: LessonRow | None
    open: bool
    sentences: tuple[str, ...]
    sender: str
    log_odds: float
    bias: float
    prior: float
    classifiers: tuple[Opinion, ...]
    words: tuple[Word, ...]
    flip: Turn | None
    sight: Sight
    tokens: int
    known: int
    trained_spam: int
    trained_ham: int
    defects: tuple[str, ...]
    size_bytes: int
    own: Judgement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """The lessons that a strong word of a mail rests on."""

    word: Word
    lessons: WordLessons


class Mails:
    """Shows mails.

    Args:
        records: the store as rows.
        knowledge: what was learned.
        decision: how a probability becomes a verdict.
    """

    def __init__(self, records: Records, knowledge: Knowledge, decision: DecisionOptions) -> None:
        self._records = records
        self._knowledge = knowledge
        self._decision = decision

    async def features(self, name: str) -> tuple[ScanRow, Features] | None:
        """Return a scan by its id or by the identity of its message in hex."""
        return await self._records.scan(name)

    async def show(self, name: str, *, words: bool, people: bool) -> Mail | None:
        """Return a mail by our id or its identity in hex, None for one that is not known any more.

        words   show its words: who asks may teach
        people  show who it is from

        Raises:
            StorageUnavailable: the database does not answer.
        """
        found = await self._records.scan(name)
        if found is None:
            return None
        scan, features = found
        return await self.of(scan, features, words=words, people=people)

    async def of(self, scan: ScanRow, features: Features, *, words: bool, people: bool) -> Mail:
        """Return a mail that was scanned, as `show` does.

        Raises:
            StorageUnavailable: the database does not answer.
        """
        lesson = await self._records.lesson(features.digest)
        if lesson is not None and not people:
            lesson = nameless(lesson)
        explanation, standing = await self.explained(features)
        return _mail(scan, lesson, explanation, features, standing, words=words, people=people)

    async def judged(self, features: Features, user: str = "") -> Judgement:
        """Return how a mail would be judged now, for a user or by the site.

        Raises:
            StorageUnavailable: the database does not answer.
        """
        if user:
            return judgement_of(await self._knowledge.report(features, user))
        return judgement(*await self.explained(features, clues=1))

    async def explained(
        self, features: Features, clues: int = CLUES
    ) -> tuple[Explanation, Standing]:
        """Return why a mail would be judged as it would now.

        Raises:
            StorageUnavailable: the database does not answer.
        """
        model = await self._knowledge.model(features.sample.ids)
        found = await asyncio.to_thread(explain, model, features.sample, clues)
        standing = await self._knowledge.standing(features)
        return with_sender(found, standing, self._decision), standing

    async def basis(self, name: str, *, people: bool) -> Sequence[Basis]:
        """Return the lessons on which the strongest words of a mail rest, as far as was looked.

        Raises:
            StorageUnavailable: the database does not answer.
        """
        found = await self._records.scan(name)
        if found is None:
            return []
        _, features = found
        explanation, _ = await self.explained(features, BASIS_WORDS)
        words = _words(explanation, features.texts)
        each_s = BASIS_S / max(1, len(words))
        return [
            Basis(word=word, lessons=await self.word_lessons(word.token, each_s, people=people))
            for word in words
        ]

    async def word_lessons(
        self, text: str, within_s: float, behind: int | None = None, *, people: bool
    ) -> WordLessons:
        """Return lessons that taught a word, looking for so long from a place on."""
        found = await self._records.word(text, behind, within_s)
        return found if people else _nameless(found)


def nameless(row: LessonRow) -> LessonRow:
    """Return a lesson without what may point at a person."""
    return replace(row, actor="", sender_domain="")


def _nameless(found: WordLessons) -> WordLessons:
    shown = (replace(each, lesson=nameless(each.lesson)) for each in found.found)
    return replace(found, found=tuple(shown))


def judgement(found: Explanation, standing: Standing) -> Judgement:
    """Return the verdict of an explanation."""
    decision = found.decision
    reason = "; ".join(filter(None, (decision.reason, standing.reason(turned=False))))
    return Judgement(
        verdict=decision.verdict,
        probability=decision.probability,
        action=decision.action,
        reason=reason,
    )


def judgement_of(report: ScanReport) -> Judgement:
    """Return the verdict of a report on a mail that could be judged."""
    return Judgement(
        verdict=report.verdict,
        probability=0.5 if report.probability is None else report.probability,
        action=report.action,
        reason=report.reason,
    )


def _mail(
    scan: ScanRow,
    lesson: LessonRow | None,
    found: Explanation,
    features: Features,
    standing: Standing,
    *,
    words: bool,
    people: bool,
) -> Mail:
    texts = features.texts if words else None
    told = sentences(found, features, standing)
    sender = "; ".join(filter(None, (features.proof.words(), standing.words())))
    return Mail(
        scan=scan,
        now=judgement(found, standing),
        lesson=lesson,
        open=words,
        sentences=told if words else _first(told, standing),
        sender=sender if people else "",
        log_odds=found.evidence.log_odds + found.prior,
        bias=found.bias,
        prior=found.prior,
        classifiers=tuple(_opinion(each, texts) for each in found.classifiers),
        words=_words(found, texts) if texts else (),
        flip=_turn(found, texts) if texts else None,
        sight=_sight(features, words=words),
        tokens=len(features.texts),
        known=found.evidence.known,
        trained_spam=found.totals.spam,
        trained_ham=found.totals.ham,
        defects=features.defects,
        size_bytes=features.size_bytes,
    )


def _first(told: tuple[str, ...], standing: Standing) -> tuple[str, ...]:
    """Return what may be said to everybody: an entry of a list names its sender."""
    return () if standing.decides else told[:1]


def _opinion(each: ClassifierEvidence, texts: Sequence[str] | None) -> Opinion:
    clues = each.clues if texts else ()
    return Opinion(
        name=each.name,
        purpose=PURPOSE.get(each.name, each.name),
        score=each.score,
        effect=each.effect,
        clues=tuple(
            Clue(
                token=texts[clue.index] if texts else "",
                spam=clue.spam,
                ham=clue.ham,
                probability=clue.probability,
                contribution=clue.contribution,
            )
            for clue in clues
        ),
        facts=tuple(
            Fact(name=fact.name, value=fact.value, contribution=fact.contribution)
            for fact in each.facts
        ),
    )


def _words(found: Explanation, texts: Sequence[str]) -> tuple[Word, ...]:
    return tuple(
        Word(token=texts[each.index], spam=each.spam, ham=each.ham, effect=each.effect)
        for each in found.words
    )


def _turn(found: Explanation, texts: Sequence[str]) -> Turn | None:
    flip = found.flip
    if flip is None:
        return None
    return Turn(
        without=tuple(texts[index] for index in flip.without),
        verdict=flip.verdict,
        probability=flip.probability,
    )


def _sight(features: Features, *, words: bool) -> Sight:
    disguise = Disguise.of(features)
    tricks = tuple((name, TRICKS.get(name, name)) for name in disguise.names)
    if not words:
        return Sight(tricks=tricks, read=(), plain=(), hidden=())
    texts, kinds = features.texts, features.sample.kinds
    shown = [
        place
        for place, kind in enumerate(kinds.tolist())
        if kind & Kind.WORD and texts.second[place] < 0
    ]
    shown.sort(key=lambda place: texts.first[place])
    return Sight(
        tricks=tricks,
        read=tuple(texts[place] for place in shown[:READ_WORDS]),
        plain=disguise.plain,
        hidden=disguise.hidden,
    )
