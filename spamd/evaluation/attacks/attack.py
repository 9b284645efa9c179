"""What attackers do to a filter, measured: `spamd evaluate --attack`.

The first two thirds of the mail are learned, the rest is judged. On the clean rest the threshold is
found that loses at most half a percent of ham; it stays for all attacks.

    evasion  each spam of the rest is rewritten (`rewrite`): good words added in the open, in hidden
             text, in comments, in header fields; its spammiest words disguised
    noise    a share of the lessons has the wrong label
    poison   mails of all words of ham, labelled spam, are learned among others, with and without
             the cap of tokens learned of one message
    kept     the attacker's mail is read and kept (`kept`)

Any `Target` can be attacked; `tests/benchmarks/peers_bogofilter.py` puts bogofilter there.

Sources: D. Lowd and C. Meek, "Good Word Attacks on Statistical Spam Filters" (CEAS 2005); B. Nelson
and others, "Exploiting Machine Learning to Subvert Your Spam Filter" (LEET 2008); accuracy.md §7.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from spamd.bayes.counts import TAUGHT_TOKENS
from spamd.bayes.model import CLASSIFIERS, BayesOptions
from spamd.evaluation import rewrite
from spamd.evaluation.attacks.kept import KeptAttackRow, kept_attack
from spamd.evaluation.attacks.target import Lesson, Reader, Spamd, Target
from spamd.evaluation.attacks.words import Words, other
from spamd.evaluation.index import LabelledMail, shuffled
from spamd.evaluation.material import Progress, silent
from spamd.evaluation.rates import CALLED_SPAM, Flags, cutoff_at
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.sample import Label

HAM_LOSS = 0.005
"""Ham lost at the threshold at which attacks are compared (accuracy.md §5.3)."""

UNCAPPED = 1 << 30

Fresh = Callable[[], Target]
Evasion = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackOptions:
    """What is tried.

    seed          order of the mail, choice of words, places of poisoned lessons; none for the order
                  of the index
    added         numbers of good words added to each spam
    disguised     how many of the spammiest words are disguised
    poisoned      shares of lessons that are poison
    wrong_labels  shares of lessons with the wrong label
    jobs          processes that read mail
    """

    seed: int | None = None
    added: tuple[int, ...] = (10, 30, 100, 300)
    disguised: int = 50
    poisoned: tuple[float, ...] = (0.005, 0.01, 0.02, 0.05)
    wrong_labels: tuple[float, ...] = (0.05,)
    jobs: int = 2

    def __post_init__(self) -> None:
        """Check the ranges."""
        if any(number < 0 for number in (*self.added, self.disguised)):
            raise ValueError("added and disguised must not be below 0 words")
        if not all(0 <= share < 1 for share in (*self.poisoned, *self.wrong_labels)):
            raise ValueError("poisoned and wrong_labels must lie between 0 and 1")
        if self.jobs < 1:
            raise ValueError("jobs must be at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackRow:
    """What one attack did; percent.

    caught        spam above the threshold that loses 0.5 % of clean ham
    ham_lost      ham above that threshold
    spam_called   spam that got the verdict spam by the decision's own thresholds
    ham_called    ham that got it
    classifiers   spam caught by each classifier, above its own threshold
    """

    attack: str
    caught: float
    ham_lost: float
    spam_called: float
    ham_called: float
    classifiers: Mapping[str, float]

    def to_json(self) -> dict[str, object]:
        """Return the object that `evaluate --attack --json` prints."""
        return {
            "attack": self.attack,
            "caught": self.caught,
            "ham_lost": self.ham_lost,
            "spam_called_spam": self.spam_called,
            "ham_called_spam": self.ham_called,
            "classifiers": dict(self.classifiers),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacked:
    """What attacks did to the product."""

    rows: tuple[AttackRow, ...]
    kept: tuple[KeptAttackRow, ...]


def attack(
    index: Sequence[LabelledMail],
    options: AttackOptions,
    bayes: BayesOptions,
    tokenizer: TokenizerOptions,
    progress: Progress = silent,
) -> Attacked:
    """Attack the product with these settings.

    Raises:
        ConfigError: a message can't be read.
    """
    mail = [(mail.read(), mail.label) for mail in shuffled(index, options.seed)]
    reader = Reader(tokenizer, options.jobs)
    targets: dict[str, Fresh] = {
        "": partial(Spamd, reader, bayes, TAUGHT_TOKENS),
        "without the cap, ": partial(Spamd, reader, bayes, UNCAPPED),
    }
    classifiers = tuple(
        classifier for classifier in CLASSIFIERS if classifier in bayes.fusion.classifiers
    )
    return Attacked(
        rows=assault(mail, options, reader, targets, classifiers, progress),
        kept=kept_attack(mail, reader, bayes, options.seed or 0),
    )


def assault(
    mail: Sequence[Lesson],
    options: AttackOptions,
    reader: Reader,
    targets: Mapping[str, Fresh],
    classifiers: Sequence[str] = (),
    progress: Progress = silent,
) -> tuple[AttackRow, ...]:
    """Attack filters given by what stands before their rows; evasion and noise only the first."""
    border = 2 * len(mail) // 3
    lessons, rest = mail[:border], mail[border:]
    read = reader.read([raw for raw, _ in mail])[:border]
    words = Words([(one.words, label) for one, (_, label) in zip(read, lessons, strict=True)])
    main = next(iter(targets.values()))
    target = main()
    target.learn(lessons)
    bench = _Bench(rest, target, classifiers)
    clean = bench.row("none", target, rest)
    rows = [clean]
    evasions = evasions_of(words, options)
    doses = doses_of(lessons, words, options)
    steps = len(evasions) + len(doses) + len(options.poisoned) * (len(targets) - 1)
    for name, evade in evasions:
        spam = [(evade(raw), label) for raw, label in rest if label is Label.SPAM]
        row = bench.row(name, target, spam)  # the ham are the same, and judged already
        rows.append(replace(row, ham_lost=clean.ham_lost, ham_called=clean.ham_called))
        progress("attacks", len(rows) - 1, steps)
    for name, dosed in doses:
        for prefix, fresh in targets.items():
            if fresh is main or "poison" in name:
                target = fresh()
                target.learn(dosed)
                rows.append(bench.row(prefix + name, target, rest))
                progress("attacks", len(rows) - 1, steps)
    return tuple(rows)


class _Bench:
    """The clean rest of the mail, and the threshold of each classifier that it gave."""

    def __init__(self, rest: Sequence[Lesson], target: Target, classifiers: Sequence[str]) -> None:
        log_odds, _ = target.judge([raw for raw, _ in rest])
        spam = np.array([label is Label.SPAM for _, label in rest])
        self._classifiers = classifiers
        self._cutoffs = np.array(
            [cutoff_at(spam, log_odds[:, i], HAM_LOSS) for i in range(log_odds.shape[1])]
        )

    def row(self, name: str, target: Target, mails: Sequence[Lesson]) -> AttackRow:
        """Judge these messages and count."""
        log_odds, called = target.judge([raw for raw, _ in mails])
        spam = np.array([label is Label.SPAM for _, label in mails])
        above = log_odds > self._cutoffs
        caught = _share(above[spam])
        return AttackRow(
            attack=name,
            caught=caught[0],
            ham_lost=_share(above[~spam])[0],
            spam_called=_share((called == CALLED_SPAM)[spam])[0],
            ham_called=_share((called == CALLED_SPAM)[~spam])[0],
            classifiers=dict(zip(self._classifiers, caught[1:], strict=True)),
        )


def evasions_of(words: Words, options: AttackOptions) -> list[tuple[str, Evasion]]:
    """Return what is done to each spam, by name."""
    frequent, best = words.frequent(), words.best(max((*options.added, 100)))
    spammiest = words.best(options.disguised, Label.SPAM)
    draw = _draw(options)

    def random_words(number: int, raw: bytes) -> bytes:
        chosen = draw.sample(frequent, min(number, len(frequent)))
        return rewrite.edited(raw, rewrite.appended(chosen))

    def best_words(number: int, raw: bytes) -> bytes:
        return rewrite.edited(raw, rewrite.appended(best[:number]))

    def unseen(edit: rewrite.Edit, raw: bytes) -> bytes:
        return rewrite.edited(raw, edit, as_html=True)

    def disguised(edit: rewrite.Edit, raw: bytes) -> bytes:
        return rewrite.edited(raw, edit, everywhere=True)

    found: list[tuple[str, Evasion]] = [("rewritten, nothing added", partial(best_words, 0))]
    for number in options.added:
        found.append((f"{number} random ham words", partial(random_words, number)))
        found.append((f"{number} best ham words", partial(best_words, number)))
    hundred = best[:100]
    found += [
        ("100 best, hidden", partial(unseen, rewrite.hidden(hundred))),
        ("100 best, in a comment", partial(unseen, rewrite.commented(hundred))),
        ("100 best, in the header", partial(rewrite.in_header, words=hundred)),
    ]
    for name, disguise in (
        ("as lookalikes", rewrite.lookalike),
        ("split invisibly", rewrite.split_invisibly),
        ("s-p-a-c-e-d", rewrite.spaced),
    ):
        edit = partial(disguised, rewrite.disguised(spammiest, disguise))
        found.append((f"{options.disguised} spammiest {name}", edit))
    return found


def doses_of(
    lessons: Sequence[Lesson], words: Words, options: AttackOptions
) -> list[tuple[str, Sequence[Lesson]]]:
    """Return lessons gone bad, by name."""
    draw = _draw(options)
    found: list[tuple[str, Sequence[Lesson]]] = []
    for share in options.wrong_labels:
        noisy = [(raw, other(label) if draw.random() < share else label) for raw, label in lessons]
        found.append((f"{100 * share:g} % wrong labels", noisy))
    dictionary = words.dictionary()
    for share in options.poisoned:
        dosed = list(lessons)
        for _ in range(round(share * len(lessons))):
            # Each in another order: the same mail twice would be one lesson, and a filter that
            # reads only so many words reads others of each.
            venom = rewrite.poison(draw.sample(dictionary, len(dictionary)))
            dosed.insert(draw.randrange(len(dosed) + 1), (venom, Label.SPAM))
        found.append((f"{100 * share:g} % poison", dosed))
    return found


def _draw(options: AttackOptions) -> random.Random:
    return random.Random(options.seed or 0)  # noqa: S311 — to be repeated, not secret


def _share(flags: Flags) -> list[float]:
    """Return the percentage of each column that is true."""
    return [100.0 * float(column.mean()) if len(column) else 0.0 for column in flags.T]
