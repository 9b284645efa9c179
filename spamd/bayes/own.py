"""What one user has taught, in memory, and what it says of a mail.

A user's layer is the lessons that they gave last, each with the origin of its mail (list, else
address) and a sketch: some tokens, chosen by their hashes, so that two mails are as alike as their
sketches are. What lessons on such mail say takes the place of the site's log-odds:

    z = C · Σ γⁱ aᵢ² yᵢ / Σ γⁱ aᵢ²

i    place among the lessons on such mail, 0 the newest      y   +1 spam, −1 ham
a    how alike they are; at least `SAME_ORIGIN` where the origin is the same
C    8: the surest that a few words of a person make it      γ   ½: the last word counts most

Such mail is mail of the same origin, and mail that is much alike. Anybody can write a List-Id, or
the address of somebody else: so without proof of the sender, the same origin speaks for ham only
where the mails are alike too; it always speaks for spam. The first lesson that contradicts those
before, such as spam on a list, speaks only of mail that is alike; the second of the whole origin.
Once a user has changed their mind about an origin more than once, it is what the mails hold that
counts. Of other mail nothing is said, and the site's verdict holds.

A lesson that the site has learned too, and whose mail it had taken for that before, only repeats
what the site knows. Where all lessons that say what z says do, nothing is said either: the site
knows such mail better (E-047). So all of it is a function of the lessons that are in force, the
user's and the site's; taking one back leaves no trace. The numbers are those of E-038, E-041 and
E-042.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spamd.sample import Sample

SKETCH_TOKENS = 64
"""Tokens kept of a lesson: enough to tell alike from not alike within a tenth."""

MOST_LESSONS = 500
"""Lessons of a user that are held against a mail, the newest."""

SUREST = 8.0
"""Log-odds of mail about which all lessons agree: a probability of 0.9997."""

FADING = 0.5
"""What a lesson counts against the next newer one."""

SAME_ORIGIN = 0.86
"""As how alike mails of one origin count, at least."""

MUCH_ALIKE = 0.85
"""From here on mails are of one kind wherever they come from."""

UNPROVEN_ALIKE = 0.25
"""So alike must mails be for an origin without proof to speak for ham."""

AGAINST_ALIKE = 0.5
"""So alike must mail be for one lesson against those before on its origin to count."""

CHANGES_OF_MIND = 1
"""So often a user may change their mind about an origin."""

_SPREAD = np.uint64(0x9E3779B97F4A7C15)

Ids = NDArray[np.int64]


def sketch(sample: Sample) -> Ids:
    """Return the tokens that stand for a sample, ascending.

    Those with the smallest hashes: the same ones in every mail that holds them.
    """
    ids = sample.ids
    if len(ids) > SKETCH_TOKENS:
        key = ids.view(np.uint64) * _SPREAD
        ids = ids[np.argpartition(key, SKETCH_TOKENS)[:SKETCH_TOKENS]]
    return np.sort(ids)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trait:
    """What a mail is held against lessons by.

    origin  list or address that it comes from (`message.tokens.origin`), 0 unknown
    proven  that origin is proven to be the sender
    """

    sketch: Ids
    origin: int
    proven: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWord:
    """What a user's lessons say of a mail.

    log_odds  of spam       spam, ham  how many lessons say so
    """

    log_odds: float
    spam: int
    ham: int

    @property
    def words(self) -> str:
        """Return it as a clause of the reason."""
        return f"own lessons on such mail: {self.spam} spam, {self.ham} ham"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OwnLesson:
    """A lesson as a layer remembers it.

    number    its place in the journal
    origin    list or address that the mail came from, 0 unknown
    repeats   the site has learned the same of it, and had taken it for that before
    """

    number: int
    spam: bool
    origin: int
    sketch: Ids
    repeats: bool = False


class Layer:
    """The last lessons of a user; the newest `MOST_LESSONS` count."""

    __slots__ = ("_lengths", "_origins", "_owners", "_repeats", "_signs", "_sketches")

    def __init__(self, lessons: Sequence[OwnLesson]) -> None:
        last = sorted(lessons, key=lambda each: -each.number)[:MOST_LESSONS]
        self._signs = np.array([1.0 if each.spam else -1.0 for each in last])
        self._repeats = np.array([each.repeats for each in last], dtype=np.bool_)
        self._origins = np.array([each.origin for each in last], dtype=np.int64)
        self._lengths = np.array([len(each.sketch) for each in last], dtype=np.int64)
        self._sketches = np.concatenate([np.zeros(0, np.int64), *[each.sketch for each in last]])
        self._owners = np.repeat(np.arange(len(last), dtype=np.int16), self._lengths)

    def __len__(self) -> int:
        return len(self._signs)

    @property
    def size_bytes(self) -> int:
        """How much memory it takes."""
        return 10 * len(self._sketches) + 24 * len(self._signs) + 1_000

    def word_on(self, mail: Trait) -> OwnWord | None:
        """Return what the lessons say of a mail, None when nothing."""
        alike = self._alike(mail.sketch)
        same = np.flatnonzero((self._origins == mail.origin) & (mail.origin != 0))
        signs = self._signs[same]
        if np.count_nonzero(np.diff(signs)) <= CHANGES_OF_MIND:
            believed = (signs > 0) | (alike[same] >= UNPROVEN_ALIKE) | mail.proven
            if len(signs) > 1 and signs[0] != signs[1]:
                believed[0] &= alike[same[0]] >= AGAINST_ALIKE
            alike[same[believed]] = np.maximum(alike[same[believed]], SAME_ORIGIN)
        near = np.flatnonzero(alike >= MUCH_ALIKE)  # the newest first
        if not len(near):
            return None
        weights = FADING ** np.minimum(np.arange(len(near)), 200) * alike[near] ** 2
        signs = self._signs[near]
        log_odds = float(SUREST * (weights * signs).sum() / weights.sum())
        if self._repeats[near[signs * log_odds > 0]].all():
            return None
        return OwnWord(
            log_odds=log_odds,
            spam=int(np.count_nonzero(signs > 0)),
            ham=int(np.count_nonzero(signs < 0)),
        )

    def _alike(self, tokens: Ids) -> NDArray[np.float64]:
        """Return for each lesson how alike it is: shared tokens, of those of the longer sketch."""
        if not len(tokens):
            return np.zeros(len(self))
        place = np.minimum(np.searchsorted(tokens, self._sketches), len(tokens) - 1)
        shared = np.bincount(self._owners[tokens[place] == self._sketches], minlength=len(self))
        alike: NDArray[np.float64] = shared / np.maximum(self._lengths, len(tokens))
        return alike
