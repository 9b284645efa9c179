"""The scores of the classifiers, made one calibrated probability.

    z = b + Σ_h w_h · tanh(s_h / scale_h)        P(spam) = 1 / (1 + e^(−z))

The weights are a regularised logistic regression of the labels on the scores that were given
*before* they learned each lesson (prequential), over the last `window` lessons:

    minimise  Σᵢ −ln[ε + (1 − 2ε)·σ(yᵢ zᵢ)] + ρ/2 · Σ_h k_h · (w_h − w⁰_h)²

ε is the share of lessons with the wrong label: people err, and not all who report mean well. It is
estimated with the weights. Without it, one wrong label in twenty keeps every probability below
0.95, and no mail is called spam any more; with it P is the probability of the true label (E-021).

w⁰ are sane default weights: with no lessons the fusion is w⁰, with few it stays near. So the
weights are a function of the lesson journal, and forgetting a lesson forgets it here too.

Sources: T. Lynam and G. Cormack, "On-line spam filter fusion" (SIGIR 2006): logistic regression is
the best stacker; J. Platt (1999) for the calibration that comes with it; A. Dempster, N. Laird, D.
Rubin, "Maximum Likelihood from Incomplete Data via the EM Algorithm" (1977).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.classifiers.logistic import sigmoid
from spamd.sample import Label

CLASSIFIERS: tuple[str, ...] = (
    "graham",
    "multinomial",
    "fisher",
    "confidence",
    "logistic",
    "grams",
    "facts",
    "dependence",
)
"""The classifiers, in the order of every array of scores."""

SCALES = np.array([100.0, 40.0, 60.0, 0.15, 5.5, 6.0, 20.0, 20.0])
"""A classifier's score of this size counts as clear; beyond it tanh flattens (E-005)."""

DEFAULTS = np.array([0.0, 1.0, 0.8, 1.2, 3.0, 2.4, 2.4, 0.0, 0.4])
"""w⁰: the bias and the weight of each classifier before there are lessons (E-005)."""

PULLS = np.array([0.4, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 20.0, 1.0])
"""k: how hard each of them is held there. The bias is free to follow the share of spam, which keeps
the probability calibrated; `facts` has to prove itself: it costs where believed (E-010)."""

SUPPOSED_LESSONS = 500
"""How many lessons the supposed share of wrong labels weighs against those that are found wrong."""

FIRST_GUESS, ROUNDS = 0.02, 10
"""ε to start from, and rounds of the estimate: enough where one label in twenty is wrong."""

MOST_WRONG = 0.2
"""No larger ε is found: where more labels seem wrong, it is the classifiers that err."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionOptions:
    """How the classifiers' scores become one probability.

    It is a regularised logistic regression over the scores that were recorded before each lesson
    was learned.

    classifiers      those that score and learn
    refit_every      lessons between two fits within a transaction; each transaction ends with one
    window           lessons that a fit looks back on
    regularisation   ρ, the pull towards the default weights, in units of one lesson's evidence
    wrong_labels     share of lessons supposed to have the wrong label before any is seen; 0 takes
                     every label for true (E-021)
    """

    classifiers: tuple[str, ...] = CLASSIFIERS
    refit_every: int = 50
    window: int = 3000
    regularisation: float = 10.0
    wrong_labels: float = 0.01

    def __post_init__(self) -> None:
        """Check names and ranges."""
        unknown = set(self.classifiers) - set(CLASSIFIERS)
        if unknown or not self.classifiers:
            raise ValueError(f"classifiers must be one or more of {', '.join(CLASSIFIERS)}")
        if self.refit_every < 1 or self.window < 1:
            raise ValueError("refit_every and window must be at least 1")
        if self.regularisation <= 0:
            raise ValueError("regularisation must be above 0")
        if not 0 <= self.wrong_labels <= MOST_WRONG:
            raise ValueError(f"wrong_labels must lie between 0 and {MOST_WRONG}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FusionWeights:
    """Bias and weights, float64[1 + classifiers], and the number of lessons they were fitted on."""

    values: Floats
    lessons: int

    @classmethod
    def default(cls) -> "FusionWeights":
        """Return w⁰, the weights before any lesson."""
        return cls(values=DEFAULTS.copy(), lessons=0)

    @classmethod
    def of(cls, values: Sequence[float], lessons: int) -> "FusionWeights":
        """Return stored weights; those of another set of classifiers give way to w⁰."""
        if len(values) != len(DEFAULTS) or not np.isfinite(values).all():
            return cls.default()
        return cls(values=np.array(values, dtype=np.float64), lessons=lessons)

    def log_odds(self, scores: Floats) -> float:
        """Return z for the scores of one message."""
        return float(self.values[0] + self.values[1:] @ np.tanh(scores / SCALES))

    def signs(self, scores: Floats) -> Floats:
        """Return the sign of z of each message from float64[m, classifiers]: 1 for spam."""
        found: Floats = np.sign(self.values[0] + self.effects(scores).sum(axis=1))
        return found

    def probabilities(self, scores: Floats) -> list[float]:
        """Return P(spam) of each message from float64[m, classifiers]."""
        return [sigmoid(self.log_odds(each)) for each in scores]

    def effects(self, scores: Floats) -> Floats:
        """Return what each classifier adds to z."""
        effects: Floats = self.values[1:] * np.tanh(scores / SCALES)
        return effects


class ScoreHistory:
    """The last `window` lessons: key, label and scores before learning, oldest first."""

    __slots__ = ("_end", "_keys", "_scores", "_spam", "_start", "window")

    def __init__(self, window: int = 3000) -> None:
        self.window = window
        self._scores = np.zeros((2 * window, len(CLASSIFIERS)))
        self._spam = np.zeros(2 * window, dtype=np.bool_)
        self._keys: list[bytes] = []
        self._start = self._end = 0

    def __len__(self) -> int:
        return self._end - self._start

    @property
    def scores(self) -> Floats:
        """float64[lessons, classifiers]."""
        return self._scores[self._start : self._end]

    @property
    def spam(self) -> NDArray[np.bool_]:
        """True where the lesson's label is spam."""
        return self._spam[self._start : self._end]

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The keys of the lessons."""
        return tuple(self._keys)

    def append(self, key: bytes, label: Label, scores: Sequence[float] | Floats) -> None:
        """Add the newest lesson; the oldest leaves when the window is full.

        Scores of an earlier set of classifiers are filled up with 0, "said nothing".
        """
        if self._end == len(self._spam):
            size = len(self)
            self._scores[:size] = self.scores.copy()
            self._spam[:size] = self.spam.copy()
            self._start, self._end = 0, size
        known = min(len(scores), len(CLASSIFIERS))
        self._scores[self._end] = 0.0
        self._scores[self._end, :known] = scores[:known]
        self._spam[self._end] = label is Label.SPAM
        self._end += 1
        self._keys.append(key)
        if len(self) > self.window:
            self._start += 1
            del self._keys[0]

    def remove(self, key: bytes, label: Label, scores: Floats) -> None:
        """Take an entry with this key, label and these scores out; none is no error."""
        index = -1
        while True:
            try:
                index = self._keys.index(key, index + 1)
            except ValueError:
                return
            same = self.spam[index] == (label is Label.SPAM)
            if same and np.array_equal(self.scores[index], scores):
                break
        del self._keys[index]
        at = self._start + index
        self._scores[at : self._end - 1] = self._scores[at + 1 : self._end].copy()
        self._spam[at : self._end - 1] = self._spam[at + 1 : self._end].copy()
        self._end -= 1


def fit(history: ScoreHistory, options: FusionOptions) -> FusionWeights:
    """Return the weights that explain the history best; the result depends on it alone.

    Expectation and maximisation by turns: how likely each label is wrong given the weights, then
    the weights given labels that are true to that degree.
    """
    x = np.hstack([np.ones((len(history), 1)), np.tanh(history.scores / SCALES)])
    spam = history.spam
    pull = options.regularisation * PULLS
    w = _regression(x, spam.astype(np.float64), pull, DEFAULTS)
    noise = FIRST_GUESS
    for _ in range(ROUNDS if options.wrong_labels and len(history) else 0):
        believed = 0.5 * (1 + np.tanh(np.where(spam, 0.5, -0.5) * (x @ w)))
        wrong = noise * (1 - believed)
        wrong /= wrong + (1 - noise) * believed
        before = noise
        supposed = options.wrong_labels * SUPPOSED_LESSONS
        noise = min(MOST_WRONG, (wrong.sum() + supposed) / (len(history) + SUPPOSED_LESSONS))
        w = _regression(x, np.where(spam, 1 - wrong, wrong), pull, w)
        if abs(noise - before) < 1e-5:
            break
    return FusionWeights(values=w, lessons=len(history))


def _regression(x: Floats, target: Floats, pull: Floats, start: Floats) -> Floats:
    """Return the weights w of the logistic regression of `target` on `x`, pulled towards w⁰.

    Newton's method; the problem is strictly convex, so the result hardly depends on the start.
    Each step is halved until it lowers the objective.
    """

    def objective(at: Floats) -> float:
        z, moved = x @ at, at - DEFAULTS
        return float((np.logaddexp(0.0, z) - target * z).sum() + (pull * moved) @ moved / 2)

    w = start.copy()
    least = objective(w)
    for _ in range(50):  # pragma: no branch - it converges in about ten
        p = 0.5 * (1 + np.tanh(x @ w / 2))
        gradient = x.T @ (p - target) + pull * (w - DEFAULTS)
        hessian = (x.T * (p * (1 - p))) @ x + np.diag(pull)
        step = np.linalg.solve(hessian, gradient)
        size, now = 1.0, objective(w - step)
        while size > 1e-6 and now > least:
            size /= 2
            now = objective(w - size * step)
        w = w - size * step
        if least - now < 1e-9 * max(1.0, least):
            break
        least = now
    return w
