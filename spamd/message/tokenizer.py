"""Message and Reading → the tokens that the heads count. `docs/tokens.md` lists every kind.

Words keep their case; header words come marked by their field and, as a twin, without the mark,
because marks help a head that looks at few words and split the counts of one that uses all.
Adjacent words give pairs, made as numbers only (see `tokens`).

A message with more distinct tokens than the limit keeps, of its words and pairs, the first ones
as a reader meets them for one half of the room, and of the rest those with the smallest ids for
the other half. Ids are hashes, so the second half is a fair sample of the whole text that is the
same on every path: words piled up in front leave the sample, words piled up behind leave the
beginning.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spamd.message import headers, script, shape
from spamd.message.limits import Limits
from spamd.message.parser import Message
from spamd.message.reading import Reading
from spamd.message.tokens import pair_ids, word_ids
from spamd.sample import Kind

_NOT_A_SIGN = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff]")
_NO_PLACES = np.empty(0, np.int32)
_WORD_AND_TWIN = np.uint8(Kind.WORD | Kind.TWIN)
WITHOUT = frozenset({"route", "headers", "pairs", "twins", "links", "shape", "tricks", "hidden"})
"""Groups of tokens that can be left out, for experiments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerOptions:
    """What of a message becomes tokens. A change needs retraining: old lessons know others."""

    without: frozenset[str] = frozenset()
    """Groups left out: "route" (fields that tell the way: Received, Date, Message-ID, Return-Path,
    Delivered-To, List-*, replies, X-*), "headers", "pairs", "twins", "links", "shape", "tricks",
    "hidden". Empty in production; experiments measure what each group is worth."""
    limits: Limits = field(default_factory=Limits)
    """Sizes, depths and counts."""

    def __post_init__(self) -> None:
        unknown = set(self.without) - WITHOUT
        if unknown:
            raise ValueError(
                f"without: {', '.join(sorted(unknown))} is none of {', '.join(sorted(WITHOUT))}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The tokens of one message, sorted by id, distinct.

    The text of token i is `words[first[i]]`, followed for a pair by a space and `words[second[i]]`;
    `second[i]` is -1 for a token that is no pair.
    """

    ids: NDArray[np.int64]
    occurrences: NDArray[np.uint8]
    kinds: NDArray[np.uint8]
    words: tuple[str, ...]
    first: NDArray[np.int32]
    second: NDArray[np.int32]


def tokenize(message: Message, reading: Reading, options: TokenizerOptions) -> Tokens:
    """Return the tokens of a message; total, the same for the same content on every path."""
    bag = _Bag(options)
    without = options.without
    bag.text(script.words(reading.text))
    if "headers" not in without:
        skip = headers.ROUTE if "route" in without else None
        found = headers.header_tokens(message, options.limits, skip)
        bag.subject(script.words(reading.subject))
        bag.marked(found.marked)
        bag.add(found.links, Kind.LINK)
        if "shape" not in without:
            bag.add(found.shape, Kind.SHAPE)
    if "hidden" not in without:
        bag.hidden("title", script.words(reading.title))
        bag.hidden("hidden", script.words(reading.hidden))
    if "links" not in without and reading.links:
        links = shape.links(reading)
        bag.add(shape.link_tokens(links), Kind.LINK)
        bag.tricks |= dict.fromkeys(shape.host_tricks(links))
    if "links" not in without and "@" in reading.text:
        bag.add(shape.address_tokens(reading.text), Kind.LINK)
    if "shape" not in without:
        bag.add(shape.shape_tokens(message, reading), Kind.SHAPE)
    if "tricks" not in without:
        bag.add([f"trick:{name}" for name in (*reading.tricks, *bag.tricks)], Kind.TRICK)
    return bag.tokens()


class _Bag:
    """Collects tokens: texts with their kind and count, and runs of words for the pairs."""

    def __init__(self, options: TokenizerOptions) -> None:
        self.limits = options.limits
        self.without = options.without
        self.texts: list[str] = []
        self.kinds = bytearray()
        self.counts: list[int] = []  # of the words of the visible text, which come first; 1 behind
        self.runs: list[NDArray[np.int32]] = []  # places in `texts` of words one after the other
        self.tricks: dict[str, None] = {}

    def add(self, texts: Sequence[str], kind: Kind) -> None:
        """Add tokens as they are; one that comes again is counted again."""
        limit = self.limits.token_chars
        self.texts += [
            text[:limit]
            if text.isascii() and text.isprintable() and " " not in text
            # what a stranger wrote may hold line ends and NULs: no text may
            else _NOT_A_SIGN.sub("_", text[:limit])
            for text in texts
        ]
        self._noted(kind)

    def _noted(self, kind: int) -> None:
        """Give the texts added last their kind."""
        self.kinds += bytes([kind]) * (len(self.texts) - len(self.kinds))

    def text(self, words: list[str]) -> None:
        """Add the words of the visible text, what their tricks hide, and remember their order."""
        counts = Counter(words)
        distinct = [word for word in counts if not word.isdigit()]
        places = dict.fromkeys(counts, -1)
        places.update(zip(distinct, range(len(distinct)), strict=True))
        self.texts += self._fitting(distinct)
        self._noted(Kind.WORD)
        self.counts = [counts[word] for word in distinct]
        self.runs.append(np.fromiter(map(places.__getitem__, words), np.int32, len(words)))
        if "tricks" not in self.without:
            self._letters(words, distinct)

    def _fitting(self, words: list[str]) -> list[str]:
        """Return the words; of one that is too long only its start and its length class."""
        limit = self.limits.word_chars
        if not words or max(map(len, words)) <= limit:
            return words
        return [
            word if len(word) <= limit else f"skip:{word[0]}:{len(word).bit_length()}"
            for word in words
        ]

    def _letters(self, words: list[str], distinct: list[str]) -> None:
        """Add the plain reading of words in look-alikes, with digits, or letter by letter."""
        for name, plain in (
            ("leet", script.leet(distinct)),
            ("spaced", script.spaced_out(words, distinct)),
            ("look-alike", [folded for word in distinct if (folded := script.unmasked(word))]),
        ):
            if plain:
                self.tricks[name] = None
                self.texts += self._fitting(plain)
        self._noted(Kind.WORD | Kind.TRICK)

    def subject(self, words: list[str]) -> None:
        """Add the words of the subject marked, as twins, and in pairs."""
        start = self.marked([("subject", words)])
        if start is not None:
            self.runs.append(np.arange(start, len(self.texts), dtype=np.int32))

    def marked(self, fields: Iterable[tuple[str, list[str]]]) -> int | None:
        """Add words of header fields under their marks and as twins; return where these start."""
        twins: list[str] = []
        for mark, words in fields:
            kept = self._fitting([word for word in words if not word.isdigit()])
            twins += kept
            self.texts += [f"{mark}:{word}" for word in kept]
        self._noted(Kind.MARKED)
        if "tricks" not in self.without:
            plain = [folded for word in twins if (folded := script.unmasked(word))]
            if plain:
                self.tricks["look-alike"] = None
                self.texts += plain
                self._noted(Kind.WORD | Kind.TRICK)
        if "twins" in self.without:
            return None
        start = len(self.texts)
        self.texts += twins
        self._noted(Kind.TWIN)
        return start

    def hidden(self, mark: str, words: list[str]) -> None:
        """Add words that the reader is not shown."""
        kept = self._fitting([word for word in words if not word.isdigit()])
        self.texts += [f"{mark}:{word}" for word in kept]
        self._noted(Kind.HIDDEN)
        if kept and mark == "hidden":
            self.tricks["hidden"] = None

    def tokens(self) -> Tokens:
        """Return all that was added, merged, sorted and cut to the limit."""
        ids = word_ids(self.texts)
        singles = len(ids)
        runs = [run[run >= 0] for run in self.runs] if "pairs" not in self.without else []
        left = np.concatenate([_NO_PLACES, *[run[:-1] for run in runs]])
        right = np.concatenate([_NO_PLACES, *[run[1:] for run in runs]])
        if len(left):
            ids = np.concatenate([ids, pair_ids(ids[left], ids[right])])
        counts = np.ones(len(ids), np.int32)
        counts[: len(self.counts)] = self.counts
        kinds = np.full(len(ids), Kind.PAIR, np.uint8)
        kinds[:singles] = np.frombuffer(self.kinds, np.uint8)
        first = np.concatenate([np.arange(singles, dtype=np.int32), left])
        second = np.full(len(ids), -1, np.int32)
        second[singles:] = right
        return self._merged(ids, counts, kinds, first, second)

    def _merged(
        self,
        ids: NDArray[np.int64],
        counts: NDArray[np.int32],
        kinds: NDArray[np.uint8],
        first: NDArray[np.int32],
        second: NDArray[np.int32],
    ) -> Tokens:
        if len(ids) == 0:
            return Tokens(
                ids=ids, occurrences=kinds, kinds=kinds, words=(), first=first, second=second
            )
        order = ids.argsort()
        ids = ids[order]
        new = np.empty(len(ids), np.bool_)
        new[0] = True
        np.not_equal(ids[1:], ids[:-1], out=new[1:])
        starts = new.nonzero()[0]
        kinds = np.bitwise_or.reduceat(kinds[order], starts)
        counts = np.minimum(np.add.reduceat(counts[order], starts), self.limits.occurrences)
        kinds[(kinds & _WORD_AND_TWIN) == _WORD_AND_TWIN] &= ~np.uint8(Kind.TWIN)
        ids, places = ids[starts], order[starts]
        if len(ids) > self.limits.tokens:
            keep = self._chosen(ids, places, kinds)
            ids, counts, kinds, places = ids[keep], counts[keep], kinds[keep], places[keep]
        return Tokens(
            ids=ids,
            occurrences=counts.astype(np.uint8),
            kinds=kinds,
            words=tuple(self.texts),
            first=first[places],
            second=second[places],
        )

    def _chosen(
        self, ids: NDArray[np.int64], places: NDArray[np.int64], kinds: NDArray[np.uint8]
    ) -> NDArray[np.int64]:
        """Return the rows kept when there are too many (see the module's docstring)."""
        room = self.limits.tokens
        text = (kinds & (Kind.WORD | Kind.PAIR)) != 0
        other = np.flatnonzero(~text)
        other = other[np.argsort(places[other], kind="stable")][: room // 2]
        room -= len(other)
        rows = np.flatnonzero(text)
        # a pair stands where its first word does: both are read at the same moment
        at = np.where(places[rows] < len(self.texts), places[rows], places[rows] - len(self.texts))
        rows = rows[np.argsort(at, kind="stable")]
        early, late = rows[: room // 2], rows[room // 2 :]
        late = late[np.argsort(ids[late], kind="stable")][: room - len(early)]
        return np.sort(np.concatenate([other, early, late]))
