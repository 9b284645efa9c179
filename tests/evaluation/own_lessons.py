"""Own lessons, over public mail: how many verdicts are wrong for whom the mail is for.

    python -m tests.evaluation.own_lessons CORPUS… [--disputed SHARE] [--orders N]

Six users get all mail of a corpus, and each says of each what it is, after it was judged. Of some
senders (lists, else addresses; of those with five mails or more, until they have sent `SHARE` of
all mail) half of the users call all mail spam and half ham, drawn anew for each; for the rest the
label of the corpus is theirs. In the order of the index, then in orders by chance. Wrong is what
lies on the wrong side of log-odds 0 for the user. Three filters:

    one     one corpus for all: what a user says replaces what the one before said (as until 0013)
    votes   the site as it learns by votes, without own lessons
    own     with own lessons: what the product does (`bayes.own`, `storage.layers.votes`); what a
            lesson repeats is told by what the site has learned of its mail in the end
"""

import argparse
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.fusion import FusionWeights
from spamd.bayes.learning import Effect, Given, learn, unlearn
from spamd.bayes.model import BayesOptions, Model
from spamd.bayes.own import MOST_LESSONS, Layer, OwnLesson, Trait
from spamd.evaluation.index import LabelledMail, order, read_index
from spamd.evaluation.material import spread
from spamd.evaluation.trial import empty_model
from spamd.message.facts import SCHEMA
from spamd.message.features import extract
from spamd.message.tokens.origin import NO_ORIGIN
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.person import trait
from spamd.sample import Label, Sample
from spamd.storage.layers.votes import Votes

USERS = 6
LEAST = 5
"""Mails of a sender who may be disputed."""

LABELS = (Label.HAM, Label.SPAM)
Says = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Letter:
    """A mail as all of this needs it."""

    sample: Sample
    trait: Trait
    spam: bool


@dataclass(slots=True, kw_only=True)
class Site:
    """One corpus, with lessons that may change."""

    model: Model
    letters: Sequence[Letter]
    learned: dict[int, tuple[Label, Effect]] = field(default_factory=dict)

    def set(self, place: int, label: Label | None) -> None:
        """Bring a mail to a label, or to none."""
        old, sample = self.learned.get(place), self.letters[place].sample
        if (old and old[0]) is label:
            return
        key = place.to_bytes(8, "big")
        if old:
            unlearn(self.model, sample, *old, key)
            del self.learned[place]
        if label is not None:
            given = Given(sample=sample, label=label, key=key)
            (effect,) = learn(self.model, [given], proof=False)
            self.learned[place] = (label, effect)


def letter_of(mail: LabelledMail) -> Letter:
    """Read a mail."""
    features = extract(mail.read(), TokenizerOptions())
    return Letter(sample=features.sample, trait=trait(features), spam=mail.label is Label.SPAM)


def disputed(letters: Sequence[Letter], share: float, seed: int) -> Mapping[int, Says]:
    """Return for each sender who is disputed which users call his mail spam."""
    chance = np.random.default_rng([seed, 7])
    sent = Counter(each.trait.origin for each in letters)
    most = share * len(letters)
    names = [
        name for name in sorted(sent) if name != NO_ORIGIN and LEAST <= sent[name] <= 0.3 * most
    ]
    chosen, total = {}, 0
    for name in chance.permutation(names).tolist():
        if total + sent[name] <= 1.05 * most:
            chosen[name] = chance.permutation(USERS) < USERS // 2
            total += sent[name]
    return chosen


def said(letters: Sequence[Letter], tastes: Mapping[int, Says]) -> list[Says]:
    """Return what each user says of each mail."""
    return [tastes.get(each.trait.origin, np.full(USERS, each.spam)) for each in letters]


def as_one(site: Site, says: Sequence[Says]) -> Callable[[int], None]:
    """Return how a corpus for all is taught a mail: by one after the other."""

    def teach(place: int) -> None:
        for spam in says[place].tolist():
            site.set(place, LABELS[spam])

    return teach


def by_votes(site: Site, says: Sequence[Says]) -> Callable[[int], None]:
    """Return how the site hears of a mail: by votes, which may change those on older ones."""
    sides: dict[int, list[set[bool]]] = defaultdict(lambda: [set() for _ in range(USERS)])
    there: dict[int, list[int]] = defaultdict(list)

    def tally(origin: int) -> tuple[int, int]:
        ham, spam = (sum(each == {label} for each in sides[origin]) for label in (False, True))
        return ham, spam

    def teach(place: int) -> None:
        origin = site.letters[place].trait.origin
        if origin == NO_ORIGIN:
            site.set(place, agreed(says[place], 0, 0))
            return
        before = tally(origin)
        there[origin].append(place)
        for user, spam in enumerate(says[place].tolist()):
            sides[origin][user].add(spam)
        changed = tally(origin) != before
        for each in there[origin] if changed else [place]:
            site.set(each, agreed(says[each], *tally(origin)))

    return teach


def agreed(says: Says, ham: int, spam: int) -> Label | None:
    """Return what users say together of a mail (`storage.layers.votes`)."""
    votes = Votes()
    for label, number in zip(LABELS, ((~says).sum(), says.sum()), strict=True):
        votes.count(label, users=int(number), said=int(number))
    return votes.agreed(ham, spam).label


Teaching = Callable[[Site, Sequence[Says]], Callable[[int], None]]


def judged(
    letters: Sequence[Letter], says: Sequence[Says], how: Teaching
) -> tuple[NDArray[np.float64], Site]:
    """Return the site's log-odds of each mail, judged before it is taught, and what it learned."""
    model = empty_model([each.sample for each in letters], SCHEMA, BayesOptions(), 4000)
    site = Site(model=model, letters=letters)
    teach, found = how(site, says), np.zeros(len(letters))
    for place, letter in enumerate(letters):
        found[place] = model.weigh(letter.sample).log_odds
        teach(place)
    return found, site


def known(site: Site) -> Mapping[int, bool]:
    """Return of which mails the site has learned what it had said before: whether spam."""
    first = FusionWeights.default()
    found = {}
    for place, (label, effect) in site.learned.items():
        spam = label is Label.SPAM
        if first.signs(effect.scores[None])[0] == (1 if spam else -1):
            found[place] = spam
    return found


def with_own(
    letters: Sequence[Letter],
    says: Sequence[Says],
    judged: tuple[NDArray[np.float64], Site],
    users: Sequence[int],
) -> NDArray[np.float64]:
    """Return the log-odds of each mail for some users, by their own lessons where they speak."""
    odds, said_before = judged[0], known(judged[1])
    found = np.repeat(odds[:, None], len(users), 1)
    for column, user in enumerate(users):
        lessons: deque[OwnLesson] = deque(maxlen=MOST_LESSONS)
        for place, letter in enumerate(letters):
            if word := Layer(lessons).word_on(letter.trait):
                found[place, column] = word.log_odds
            spam = bool(says[place][user])
            lessons.append(
                OwnLesson(
                    number=place,
                    spam=spam,
                    origin=letter.trait.origin,
                    sketch=letter.trait.sketch,
                    repeats=said_before.get(place) is spam,
                )
            )
    return found


def wrong(odds: NDArray[np.float64], says: Sequence[Says], users: Iterable[int]) -> Says:
    """Return of which mails the verdict is wrong, for each user."""
    found: Says = (odds > 0) != np.stack(says)[:, list(users)]
    return found


def figures(letters: Sequence[Letter], share: float, seed: int) -> dict[str, float]:
    """Return the shares of verdicts that are wrong, in percent, of all users' mail."""
    tastes, users = disputed(letters, share, seed), range(USERS)
    says = said(letters, tastes)
    ours = np.array([each.trait.origin in tastes for each in letters])
    one = judged(letters, says, as_one)
    votes = judged(letters, says, by_votes) if tastes else one  # the same where all agree
    found = {
        "one": wrong(np.repeat(one[0][:, None], USERS, 1), says, users),
        "votes": wrong(np.repeat(votes[0][:, None], USERS, 1), says, users),
        "own": wrong(with_own(letters, says, votes, users), says, users),
    }
    shares = {name: 100 * float(each.mean()) for name, each in found.items()}
    if ours.any():
        shares |= {f"{name}, disputed": 100 * float(e[ours].mean()) for name, e in found.items()}
    return {"disputed mails": int(ours.sum()), **shares, "ratio": shares["own"] / shares["one"]}


def main() -> None:
    """Print the figures of some corpora."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--disputed", type=float, default=0.1)
    parser.add_argument("--orders", type=int, default=5)
    given = parser.parse_args()
    for corpus in given.corpora:
        letters = list(spread(letter_of, read_index(corpus / "index"), 2))
        for seed in range(given.orders):
            arranged = [letters[place] for place in order(len(letters), seed or None)]
            found = figures(arranged, given.disputed, seed)
            line = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
            print(f"{corpus.name}, order {seed}: {line}", flush=True)


if __name__ == "__main__":
    main()
