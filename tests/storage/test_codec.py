"""The codec of samples: decode ∘ encode = id, and damage is named."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spamd.message.features import Features, extract
from spamd.sample import Sample
from spamd.storage.corpus.codec import (
    BlobError,
    add_gram_changes,
    chosen,
    decode_features,
    decode_sample,
    encode_features,
    encode_gram_changes,
    encode_sample,
    pack,
    texts_of,
    token_ids,
)
from tests.storage.mails import mail, same_sample


def test_features_come_back_as_they_were() -> None:
    features = mail("Größe 你好", "naïve e\u0301 \U0001f600 1€ buy http://a.example/b?c " * 3)
    back = decode_features(encode_features(features))
    assert same_sample(back, features)
    assert (back.digest, back.id, back.defects) == (features.digest, features.id, features.defects)


@settings(deadline=None)
@given(st.binary(max_size=2000))
def test_whatever_a_mail_holds_comes_back(content: bytes) -> None:
    features = extract(content)
    assert same_sample(decode_features(encode_features(features)), features)


def test_packed_texts_go_from_process_to_process_and_to_the_database_as_they_are() -> None:
    features = mail("Größe", "naïve buy now " * 3)
    packed = pack(features)

    there = pickle.loads(pickle.dumps(packed))

    assert len(pickle.dumps(packed)) < len(pickle.dumps(features))
    assert len(there.texts) == len(features.texts)
    assert encode_sample(there.sample, there.texts) == encode_sample(
        features.sample, features.texts
    )
    assert same_sample(there, features)
    assert not hasattr(there.texts, "first_words")


def test_a_sample_that_was_read_is_stored_as_it_was() -> None:
    features = mail("a", "some words and more words")
    blob = encode_sample(features.sample, features.texts)

    assert encode_sample(*decode_sample(blob)) is blob


words = st.text(min_size=1, max_size=8).filter(
    lambda text: " " not in text and not any("\ud800" <= each <= "\udfff" for each in text)
)
tokens = st.lists(st.one_of(words, st.tuples(words, words).map(" ".join)), unique=True, max_size=40)


def sample_of(texts: list[str], grams: list[int]) -> Features:
    found = texts_of(texts)
    ids = token_ids(found)
    order = np.argsort(ids)
    size = len(ids)
    return Features(
        sample=Sample(
            ids=ids[order],
            occurrences=np.arange(1, size + 1, dtype=np.uint8),
            kinds=np.arange(size, dtype=np.uint8),
            discrete=np.array([3, 1], dtype=np.uint8),
            continuous=np.array([-5, 2**62], dtype=np.int64),
            grams=np.array(sorted(set(grams)), dtype=np.uint32),
        ),
        texts=type(found)(found.words, found.first[order], found.second[order]),
        digest=b"d" * 16,
        id=None,
        sender_domain="",
        defects=(),
        size_bytes=0,
    )


@settings(deadline=None)
@given(tokens, st.lists(st.integers(0, 2**32 - 1), max_size=50))
def test_any_tokens_and_grams_come_back(texts: list[str], grams: list[int]) -> None:
    features = sample_of(texts, grams)
    assert same_sample(decode_features(encode_features(features)), features)


def test_more_words_than_two_bytes_can_count_come_back() -> None:
    features = sample_of([f"w{number}" for number in range(70_000)], [])
    features = Features(
        sample=features.sample,
        texts=features.texts,
        digest=b"",
        id="0a-1b",
        sender_domain="ä.example",
        defects=("bad charset",),
        size_bytes=7,
    )
    assert same_sample(decode_features(encode_features(features)), features)


def test_chosen_tokens_keep_only_the_words_they_need() -> None:
    features = sample_of(["a", "b", "a b", "c d", "e"], [])
    place = list(features.texts).index("c d")
    sample, texts = chosen(features.sample, features.texts, np.array([place]))
    assert list(texts) == ["c d"]
    assert set(texts.words) == {"c", "d"}
    assert sample.ids.tolist() == [features.sample.ids[place]]


@pytest.mark.parametrize("cut", [0, 5, 30, -1])
def test_a_damaged_sample_is_named(cut: int) -> None:
    features = mail("a", "some words and more words")
    blob = encode_sample(features.sample, features.texts)
    with pytest.raises(BlobError):
        decode_sample(blob[:cut])
    with pytest.raises(BlobError):
        decode_features(blob[:cut])


def test_a_sample_of_a_later_version_is_named() -> None:
    features = mail("a")
    blob = encode_sample(features.sample, features.texts)
    with pytest.raises(BlobError, match="this version doesn't know"):
        decode_sample(b"\x07" + blob[1:])


def test_gram_changes_are_what_the_lessons_add() -> None:
    table = np.zeros(16, dtype=np.int32)
    first = np.array([3, 19, 9], dtype=np.uint32)  # 3 and 19 share a slot: it moves once
    second = np.array([9], dtype=np.uint32)
    change = encode_gram_changes([(first, -7), (second, 100)], len(table))
    add_gram_changes(table, change)
    assert table[[3, 9]].tolist() == [-7, 93]
    assert np.count_nonzero(table) == 2
    assert encode_gram_changes([], 16) == b""
