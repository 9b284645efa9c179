"""Arrays as bytes in database columns: samples with their texts, features, change rows, scores.

One codec for lessons, scans and held lessons. A sample is kept as its words, and its tokens as
places in them, so pairs cost a few bytes each and ids are recomputed from the text when it is read:
a stored text and its id can't disagree. decode ∘ encode = id.

    header   version, width of a place, how many of each array follow
    packed   zlib of: length of each word, first and second word of each token (as differences, in
             the order of the words), occurrences, kinds, facts, and the words without separators
    grams    sorted hashes as differences of 3 bytes each (4 where one does not fit); hashes do not
             compress
"""

import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.classifiers import logistic
from spamd.message.authentication.proof import NO_PROOF, Proof
from spamd.message.authentication.sender import Sender
from spamd.message.features import Features, Texts
from spamd.message.tokens.hashing import pair_ids, word_ids
from spamd.sample import Sample

VERSION = 1
HEADER = Struct("<BBBBHHIII")
"""version, bytes of a place, bytes of a gram, discrete facts, continuous facts, unused, words,
tokens, bytes of the packed part."""

LENGTH = Struct("<I")
NARROW_WORDS = 0x8000
"""With fewer words than this a difference of two places takes two bytes."""

ALONE = {2: 0x8000, 4: 0x8000_0000}
"""The difference, by its bytes, that no pair has: this token is a word alone."""


def _steps(values: NDArray[Any]) -> NDArray[Any]:
    """Return the differences between neighbours, the first one counted from zero."""
    steps = values.copy()
    steps[1:] -= values[:-1]
    return steps


class BlobError(ValueError):
    """A blob was not written by us, or is damaged."""


class PackedTexts(Texts):
    """Texts as they are stored, with their sample, and taken apart when somebody asks for one.

    So what came from the database, or was packed by another process, is not packed again.
    """

    __slots__ = ("content",)

    def __init__(self, content: bytes, texts: Texts | None = None) -> None:
        self.content = content
        if texts is not None:
            super().__init__(texts.words, texts.first, texts.second)

    def __len__(self) -> int:
        tokens: int = HEADER.unpack_from(self.content)[7]
        return tokens

    def __getattr__(self, name: str) -> object:
        """Find a slot of `Texts` that is empty still."""
        if name not in Texts.__slots__:
            raise AttributeError(name)
        texts = decode_sample(self.content)[1]
        super().__init__(texts.words, texts.first, texts.second)
        return getattr(self, name)

    def __reduce__(self) -> tuple[type["PackedTexts"], tuple[bytes]]:
        return PackedTexts, (self.content,)


def pack(features: Features) -> Features:
    """Return the same features with their texts packed, which is most of the work of storing."""
    return replace(features, texts=PackedTexts(encode_sample(features.sample, features.texts)))


def encode_sample(sample: Sample, texts: Texts) -> bytes:
    """Return a sample and the texts of its tokens as bytes."""
    if isinstance(texts, PackedTexts):
        return texts.content
    # a text names a word as often as it comes; one place for each is enough
    distinct = {word: place for place, word in enumerate(dict.fromkeys(texts.words))}
    places = np.fromiter(map(distinct.__getitem__, texts.words), np.int64, len(texts.words))
    first, second = places[texts.first], np.where(texts.second < 0, -1, places[texts.second])
    order = np.argsort((first << 32) + second)  # by first word, then second: small differences
    first, second = first[order], second[order]
    width = 2 if len(distinct) < NARROW_WORDS else 4
    place = f"<u{width}"
    gaps = second - first
    gaps[second < 0] = ALONE[width]
    packed = zlib.compress(
        b"".join(
            (
                np.fromiter(map(len, distinct), "<u2", len(distinct)).tobytes(),
                _steps(first).astype(place).tobytes(),
                gaps.astype(place).tobytes(),
                sample.occurrences[order].tobytes(),
                sample.kinds[order].tobytes(),
                sample.discrete.tobytes(),
                sample.continuous.astype("<i8").tobytes(),
                "".join(distinct).encode(),
            )
        ),
        1,  # three times as fast as level 6, for a tenth more bytes
    )
    grams = _steps(sample.grams).astype("<u4")
    gram_width = 3 if len(grams) == 0 or int(grams.max()) < 1 << 24 else 4
    header = HEADER.pack(
        VERSION, width, gram_width, len(sample.discrete), len(sample.continuous), 0,
        len(distinct), len(sample.ids), len(packed),
    )  # fmt: skip
    return header + packed + grams.view(np.uint8).reshape(-1, 4)[:, :gram_width].tobytes()


def decode_sample(blob: bytes) -> tuple[Sample, Texts]:
    """Return what `encode_sample` was given.

    Raises:
        BlobError: the bytes are damaged, or of a later version.
    """
    try:
        sample, texts = _decode(blob)
    except (zlib.error, ValueError, IndexError, OverflowError) as error:
        raise BlobError(f"a stored sample is damaged: {error}") from error
    return sample, PackedTexts(blob, texts)


def holds_words(blob: bytes, words: Sequence[bytes]) -> bool:
    """Tell whether a stored sample may hold words (UTF-8); if not, it holds none of their tokens.

    Raises:
        BlobError: the bytes are damaged.
    """
    if len(blob) < HEADER.size:
        raise BlobError("a stored sample is damaged")
    size = HEADER.unpack_from(blob)[8]
    try:
        packed = zlib.decompress(blob[HEADER.size : HEADER.size + size])
    except zlib.error as error:
        raise BlobError(f"a stored sample is damaged: {error}") from error
    return all(word in packed for word in words)


def _decode(blob: bytes) -> tuple[Sample, Texts]:
    if len(blob) < HEADER.size or blob[0] != VERSION:
        raise BlobError("a stored sample has a form that this version doesn't know")
    _, width, gram_width, discrete, continuous, _, words, tokens, size = HEADER.unpack_from(blob)
    packed = _Reader(zlib.decompress(blob[HEADER.size : HEADER.size + size]))
    lengths = packed.take("<u2", words)
    first = np.cumsum(packed.take(f"<u{width}", tokens), dtype=np.int64).astype(np.int32)
    gap = packed.take(f"<i{width}", tokens).astype(np.int64)
    second = np.where(gap == -ALONE[width], -1, first + gap).astype(np.int32)
    occurrences, kinds = packed.take("u1", tokens), packed.take("u1", tokens)
    facts, numbers = packed.take("u1", discrete), packed.take("<i8", continuous)
    texts = Texts(_split(packed.rest().decode(), lengths), first, second)
    ids = token_ids(texts)
    order = np.argsort(ids)
    gaps = np.frombuffer(blob[HEADER.size + size :], np.uint8).reshape(-1, gram_width)
    wide = np.zeros((len(gaps), 4), np.uint8)
    wide[:, :gram_width] = gaps
    return Sample(
        ids=ids[order],
        occurrences=occurrences[order],
        kinds=kinds[order],
        discrete=facts,
        continuous=numbers.astype(np.int64),
        grams=np.cumsum(wide.view("<u4")[:, 0], dtype=np.uint32),
    ), Texts(texts.words, first[order], second[order])


class _Reader:
    """Takes arrays off the front of a byte string."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, kind: str, count: int) -> NDArray[Any]:
        array = np.frombuffer(self._data, kind, count, self._at)
        self._at += array.nbytes
        return array

    def rest(self) -> bytes:
        return self._data[self._at :]


def _split(text: str, lengths: NDArray[Any]) -> tuple[str, ...]:
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    if (ends[-1] if ends else 0) != len(text):
        raise BlobError("a stored sample is damaged: its words are not as long as they were")
    return tuple([text[start:end] for start, end in zip([0, *ends], ends, strict=False)])


def texts_of(texts: Sequence[str]) -> Texts:
    """Return texts of tokens, pairs among them, as words and places."""
    places: dict[str, int] = {}
    first = np.zeros(len(texts), np.int32)
    second = np.full(len(texts), -1, np.int32)
    for number, text in enumerate(texts):
        one, space, other = text.partition(" ")
        first[number] = places.setdefault(one, len(places))
        if space:
            second[number] = places.setdefault(other, len(places))
    return Texts(tuple(places), first, second)


def token_ids(texts: Texts) -> NDArray[np.int64]:
    """Return the ids of tokens, computed from their texts."""
    words = word_ids(texts.words)
    ids = words[texts.first]
    pairs = np.flatnonzero(texts.second >= 0)
    ids[pairs] = pair_ids(words[texts.first[pairs]], words[texts.second[pairs]])
    return ids


def chosen(sample: Sample, texts: Texts, rows: NDArray[np.intp]) -> tuple[Sample, Texts]:
    """Return a sample of only the tokens `rows`, and the words that these need."""
    first, second = texts.first[rows], texts.second[rows]
    used = np.unique(np.concatenate((first, second[second >= 0])))
    place = np.zeros(len(texts.words), np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    return Sample(
        ids=sample.ids[rows],
        occurrences=sample.occurrences[rows],
        kinds=sample.kinds[rows],
        discrete=sample.discrete,
        continuous=sample.continuous,
        grams=sample.grams,
    ), Texts(
        tuple([texts.words[i] for i in used.tolist()]),
        place[first],
        np.where(second < 0, np.int32(-1), place[second]).astype(np.int32),
    )


def encode_features(features: Features) -> bytes:
    """Return everything known about a mail as bytes."""
    about = json.dumps(
        {
            "digest": features.digest.hex(),
            "id": features.id,
            "sender_domain": features.sender_domain,
            "defects": features.defects,
            "size_bytes": features.size_bytes,
            "proof": proof_to_json(features.proof),
        }
    ).encode()
    return LENGTH.pack(len(about)) + about + encode_sample(features.sample, features.texts)


def proof_to_json(proof: Proof) -> dict[str, Any]:
    """Return what JSON can hold of a proof."""
    return asdict(proof)


def proof_of_json(found: dict[str, Any] | None) -> Proof:
    """Return what `proof_to_json` was given; features stored before there were proofs have none.

    Raises:
        KeyError, TypeError: it is damaged.
    """
    if found is None:
        return NO_PROOF
    sender = found["sender"]
    pairs = tuple((method, result) for method, result in found["results"])
    return Proof(
        **{
            **found,
            "sender": Sender(**{**sender, "addresses": tuple(sender["addresses"])}),
            "results": pairs,
            "domains": tuple(found["domains"]),
        }
    )


def decode_features(blob: bytes) -> Features:
    """Return what `encode_features` was given.

    Raises:
        BlobError: the bytes are damaged, or of a later version.
    """
    if len(blob) < LENGTH.size:
        raise BlobError("stored features are damaged")
    end = LENGTH.size + LENGTH.unpack_from(blob)[0]
    try:
        about = json.loads(blob[LENGTH.size : end])
        digest = bytes.fromhex(about["digest"])
        proof = proof_of_json(about.get("proof"))
    except (ValueError, KeyError, TypeError) as error:
        raise BlobError(f"stored features are damaged: {error}") from error
    sample, texts = decode_sample(blob[end:])
    return Features(
        sample=sample,
        texts=texts,
        digest=digest,
        id=about["id"],
        sender_domain=about["sender_domain"],
        defects=tuple(about["defects"]),
        size_bytes=about["size_bytes"],
        proof=proof,
    )


def encode_floats(values: NDArray[np.float64]) -> bytes:
    """Return scores or weights as bytes, 8 for each."""
    return values.astype("<f8").tobytes()


def decode_floats(blob: bytes) -> NDArray[np.float64]:
    """Return what `encode_floats` was given."""
    return np.frombuffer(blob, "<f8").astype(np.float64)


def encode_ids(ids: NDArray[np.int64]) -> bytes:
    """Return token ids as bytes."""
    return ids.astype("<i8").tobytes()


def decode_ids(blob: bytes) -> NDArray[np.int64]:
    """Return what `encode_ids` was given."""
    return np.frombuffer(blob, "<i8").astype(np.int64)


GRAM_CHANGE = np.dtype([("slot", "<u4"), ("step", "<i4")])
"""What a revision added to one slot of the gram table."""


def encode_gram_changes(steps: Sequence[tuple[NDArray[np.uint32], int]], size: int) -> bytes:
    """Return what lessons, each with its grams and its step, add to a gram table of `size` slots.

    Two grams of one lesson that share a slot move it once, as `bayes.model` does.
    """
    slots = [np.unique(logistic.slots(grams, size)) for grams, _ in steps]
    moved, place = np.unique(np.concatenate([[], *slots]), return_inverse=True)
    added = np.repeat([step for _, step in steps], [len(each) for each in slots])
    changes = np.zeros(len(moved), GRAM_CHANGE)
    changes["slot"] = moved
    np.add.at(changes["step"], place, added.astype(np.int32))
    return changes.tobytes()


def add_gram_changes(table: NDArray[np.int32], blob: bytes) -> None:
    """Add a difference to a gram table in place."""
    changes = np.frombuffer(blob, GRAM_CHANGE)
    table[changes["slot"]] += changes["step"]
