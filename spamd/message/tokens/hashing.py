"""The identity of a token: a signed 64-bit number made from its text.

A word's id is xxh3_64 of its UTF-8 text. A pair "first second" (exactly one space; no word holds
one) mixes the ids of its two words, so that all pairs of a message are made by a handful of numpy
calls and their texts need not exist until somebody wants to read them. Ids are the keys of the
token table: changing anything here orphans every trained corpus (a golden test guards it).

Source of the mixing step: the finaliser of S. Steele, D. Lea & C. Flood, "Fast splittable
pseudorandom number generators", OOPSLA 2014 (SplitMix64).
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_digest

# odd constants of SplitMix64: multiplication by them is one-to-one
_FIRST = np.uint64(0x9E3779B97F4A7C15)
_SECOND = np.uint64(0xBF58476D1CE4E5B9)
_FINAL = np.uint64(0x94D049BB133111EB)


def word_ids(words: Iterable[str]) -> NDArray[np.int64]:
    """Return the ids of words, none of which holds a space."""
    digests = b"".join(map(xxh3_64_digest, map(str.encode, words)))
    return np.frombuffer(digests, ">i8").astype(np.int64)


def pair_ids(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the ids of the pairs whose words have the ids `first` and `second`."""
    mixed = first.view(np.uint64) * _FIRST + second.view(np.uint64)
    mixed ^= mixed >> np.uint64(30)
    mixed *= _SECOND
    mixed ^= mixed >> np.uint64(27)
    mixed *= _FINAL
    mixed ^= mixed >> np.uint64(31)
    return mixed.view(np.int64)


def token_id(text: str) -> int:
    """Return the id of a token: of a word, or of a pair when `text` holds one space."""
    first, space, second = text.partition(" ")
    if not space:
        return int(word_ids([text])[0])
    ids = word_ids([first, second])
    return int(pair_ids(ids[:1], ids[1:])[0])
