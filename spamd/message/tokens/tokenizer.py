"""Message and Reading → the tokens that the classifiers count. `docs/tokens.md` lists every kind.

Words keep their case; header words come behind their field's name and, as a twin, without it: the
name helps a classifier that looks at few words and splits the counts of one that uses all. Adjacent
words give pairs, made as numbers only (see `hashing`). Whatever else is made has a prefix that no
text of a message can spell (see `kinds`).

A message with more distinct tokens than the limit keeps, of its words and pairs, the first ones
as a reader meets them for one half of the room, and of the rest those with the smallest ids for
the other half. Ids are hashes, so the second half is a fair sample of the whole text that is the
same on every path: words piled up in front leave the sample, words piled up behind leave the
beginning.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, filterfalse

import numpy as np
from numpy.typing import NDArray

from spamd.message import unicode
from spamd.message.limits import Limits
from spamd.message.mime.parser import Message
from spamd.message.reading import Reading
from spamd.message.tokens import headers, shape
from spamd.message.tokens.hashing import pair_ids, word_ids
from spamd.sample import Kind

_NOT_A_SIGN = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff]")
_MERGED = np.arange(256, dtype=np.uint8)  # the kinds of a token that came several times
_MERGED[(_MERGED & (Kind.WORD | Kind.TWIN)) == Kind.WORD | Kind.TWIN] &= ~np.uint8(Kind.TWIN)
WITHOUT = frozenset({"route", "headers", "pairs", "twins", "links", "shape", "tricks", "hidden"})
"""Groups of tokens that can be left out, for experiments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerOptions:
    """What of a message becomes tokens. A change needs retraining: lessons know other tokens."""

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


def tokenize(
    message: Message, reading: Reading, options: TokenizerOptions, proof: Sequence[str] = ()
) -> Tokens:
    """Return the tokens of a message; total, the same for the same content on every path.

    `proof` are those that say what proves its sender.
    """
    bag = _Bag(options)
    without = options.without
    bag.text(unicode.words(reading.text))
    if "headers" not in without:
        skip = headers.ROUTE if "route" in without else None
        found = headers.header_tokens(message, options.limits, skip)
        bag.subject(unicode.words(reading.subject))
        bag.fields(found.fields)
        bag.add([text for each in found.fields for text in each.links], Kind.LINK)
        if "shape" not in without:
            bag.add([*found.shape, *proof], Kind.SHAPE)
    if "hidden" not in without:
        bag.hidden("title", unicode.words(reading.title))
        bag.hidden("hidden", unicode.words(reading.hidden))
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
        self.runs: list[range] = []  # places in `texts` of words that have a right neighbour
        self.tricks: dict[str, None] = {}

    def add(self, texts: Sequence[str], kind: Kind) -> None:
        """Add tokens as they are; one that comes again is counted again."""
        limit = self.limits.token_chars
        texts = [text[:limit] for text in texts]
        every = "".join(texts)
        if not every.isascii() or not every.isprintable() or " " in every:
            # what a stranger wrote may hold line ends and NULs: no text may
            texts = [_NOT_A_SIGN.sub("_", text) for text in texts]
        self.texts += texts
        self._noted(kind)

    def _noted(self, kind: int) -> None:
        """Give the texts added last their kind."""
        self.kinds += bytes([kind]) * (len(self.texts) - len(self.kinds))

    def text(self, words: list[str]) -> None:
        """Add the words of the visible text, each as often as it comes, and what tricks hide."""
        self._run(unicode.counted(words, self.limits.word_chars))
        self._noted(Kind.WORD)
        if "tricks" not in self.without:
            self._letters(words)

    def _run(self, words: list[str]) -> None:
        """Add words that stand one after the other: neighbours give pairs."""
        start = len(self.texts)
        self.texts += words
        self.runs.append(range(start, len(self.texts) - 1))

    def _letters(self, words: list[str]) -> None:
        """Add the plain reading of words in look-alikes, with digits, or letter by letter."""
        distinct = dict.fromkeys(words)
        mixed = list(filterfalse(str.isalpha, distinct))
        masked = filterfalse(str.isascii, distinct)
        for name, plain in (
            ("leet", unicode.leet(mixed)),
            ("spaced", unicode.spaced_out(words, distinct, mixed)),
            ("look-alike", [folded for word in masked if (folded := unicode.unmasked(word))]),
        ):
            if plain:
                self.tricks[name] = None
                self.texts += unicode.counted(plain, self.limits.word_chars)
        self._noted(Kind.WORD | Kind.TRICK)

    def subject(self, words: list[str]) -> None:
        """Add the words of the subject as a field's, as twins, in pairs, and what tricks hide."""
        start = len(self.texts)
        self._twice([headers.FieldTokens.of("subject", words, self.limits.word_chars)])
        if "twins" not in self.without:
            # the twins stand behind those with the field's name
            self.runs.append(range((start + len(self.texts)) // 2, len(self.texts) - 1))
        if "tricks" not in self.without:
            self._letters(words)

    def fields(self, fields: Sequence[headers.FieldTokens]) -> None:
        """Add words of header fields, also as twins, and what look-alikes among them hide."""
        self._twice(fields)
        if "tricks" not in self.without:
            words = chain.from_iterable([each.words for each in fields])
            masked = filterfalse(str.isascii, words)
            plain = [folded for word in masked if (folded := unicode.unmasked(word))]
            if plain:
                self.tricks["look-alike"] = None
                self.texts += plain
                self._noted(Kind.WORD | Kind.TRICK)

    def _twice(self, fields: Sequence[headers.FieldTokens]) -> None:
        """Add words of header fields behind the field's name, and then as twins."""
        for each in fields:
            self.texts += each.named
        self._noted(Kind.FIELD)
        if "twins" not in self.without:
            self.texts += [word for each in fields for word in each.words]
            self._noted(Kind.TWIN)

    def hidden(self, prefix: str, words: list[str]) -> None:
        """Add words that the reader is not shown."""
        kept = unicode.counted(words, self.limits.word_chars)
        self.texts += [f"{prefix}:{word}" for word in kept]
        self._noted(Kind.HIDDEN)
        if kept and prefix == "hidden":
            self.tricks["hidden"] = None

    def tokens(self) -> Tokens:
        """Return all that was added, merged, sorted and cut to the limit."""
        ids, kinds, first = self._with_pairs()
        order = ids.argsort()
        ids = ids.take(order)
        new = np.ones(len(ids) + 1, np.bool_)
        np.not_equal(ids[1:], ids[:-1], out=new[1:-1])
        bounds = new.nonzero()[0]
        starts = bounds[:-1]
        counts = np.minimum(bounds[1:] - starts, self.limits.occurrences).astype(np.uint8)
        kinds = _MERGED.take(np.bitwise_or.reduceat(kinds.take(order), starts))
        ids, places = ids.take(starts), order.take(starts)
        if len(ids) > self.limits.tokens:
            keep = self._chosen(ids, first[np.minimum.reduceat(order, starts)], kinds)
            ids, counts, kinds, places = ids[keep], counts[keep], kinds[keep], places[keep]
        first = first.take(places)
        return Tokens(
            ids=ids,
            occurrences=counts,
            kinds=kinds,
            words=tuple(self.texts),
            first=first,
            second=np.where(places < len(self.texts), np.int32(-1), first + np.int32(1)),
        )

    def _with_pairs(self) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int32]]:
        """Return ids, kinds and first word of all that was added and of all pairs."""
        ids = word_ids(self.texts)
        every = np.arange(len(ids), dtype=np.int32)
        pieces, places = [ids], [every]
        for run in () if "pairs" in self.without else self.runs:
            if run:
                pieces.append(
                    pair_ids(ids[run.start : run.stop], ids[run.start + 1 : run.stop + 1])
                )
                places.append(every[run.start : run.stop])
        first = np.concatenate(places)
        kinds = self.kinds + bytes([Kind.PAIR]) * (len(first) - len(ids))
        return np.concatenate(pieces), np.frombuffer(kinds, np.uint8), first

    def _chosen(
        self, ids: NDArray[np.int64], places: NDArray[np.int32], kinds: NDArray[np.uint8]
    ) -> NDArray[np.int64]:
        """Return the rows kept when there are too many (see the module's docstring).

        `places` are those where a reader meets a token, of a pair that of its first word.
        """
        room = self.limits.tokens
        text = (kinds & (Kind.WORD | Kind.PAIR)) != 0
        other = np.flatnonzero(~text)
        other = other[np.argsort(places[other], kind="stable")][: room // 2]
        room -= len(other)
        rows = np.flatnonzero(text)
        rows = rows[np.argsort(places[rows], kind="stable")]
        early, late = rows[: room // 2], rows[room // 2 :]
        late = late[np.argsort(ids[late], kind="stable")][: room - len(early)]
        return np.sort(np.concatenate([other, early, late]))
