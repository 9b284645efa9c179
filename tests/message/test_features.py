import pickle
from itertools import pairwise

import numpy as np

from spamd.message.facts import SCHEMA
from spamd.message.features import extract
from spamd.message.limits import Limits
from spamd.message.mime.parser import parse
from spamd.message.reading import read
from spamd.message.tokens.hashing import pair_ids, token_id, word_ids
from spamd.message.tokens.tokenizer import TokenizerOptions, tokenize
from spamd.sample import Kind

from .helpers import count, mail, of_kind, page, tokens, words


def test_a_plain_mail_gives_its_words_and_their_pairs() -> None:
    raw = mail("Cheap pills here", "Subject: Offer today")
    assert {"Cheap", "pills", "here"} <= words(raw)
    assert of_kind(raw, Kind.PAIR) == {"Cheap pills", "pills here", "Offer today"}


def test_header_words_come_marked_and_as_twins_unless_the_text_holds_them_too() -> None:
    raw = mail("Offer of the week", "Subject: Offer today")
    assert {"subject=Offer", "subject=today"} <= of_kind(raw, Kind.FIELD)
    assert "today" in of_kind(raw, Kind.TWIN)
    assert "Offer" not in of_kind(raw, Kind.TWIN)
    assert "Offer" in words(raw)


def test_the_arrays_of_a_sample_are_aligned_sorted_and_distinct() -> None:
    found = extract(mail("one two three two one two three", "Subject: one two"))
    sample = found.sample
    assert len(sample.ids) == len(found.texts) == len(sample.occurrences) == len(sample.kinds)
    assert np.all(np.diff(sample.ids) > 0)
    assert np.all(np.diff(sample.grams.astype(np.int64)) > 0)
    assert [token_id(text) for text in found.texts] == list(sample.ids)
    assert len(sample.discrete) == len(SCHEMA.discrete)
    assert len(sample.continuous) == len(SCHEMA.continuous)
    assert all(value < size for value, size in zip(sample.discrete, SCHEMA.sizes, strict=True))


def test_occurrences_are_counted_up_to_the_limit() -> None:
    found = extract(mail("pill " * 7 + "buy " * 500))
    assert count(found, "pill") == 7
    assert count(found, "buy") == 20
    assert count(found, "buy buy") == 20


def test_token_ids_never_change() -> None:
    assert token_id("viagra") == int(word_ids(["viagra"])[0])
    assert token_id("buy viagra") == int(pair_ids(word_ids(["buy"]), word_ids(["viagra"]))[0])
    assert token_id("viagra buy") != token_id("buy viagra")
    assert (token_id("viagra"), token_id("buy viagra"), token_id("祝你")) == (
        1861208466256785166,
        4140068338112543850,
        -8259766586121484068,
    )


def test_features_can_be_pickled() -> None:
    found = extract(mail("Cheap pills here"))
    again = pickle.loads(pickle.dumps(found))
    assert list(again.texts) == list(found.texts)
    assert again.digest == found.digest


def test_texts_can_be_sliced() -> None:
    texts = extract(mail("Cheap pills here")).texts
    assert texts[:3] == [texts[0], texts[1], texts[2]]
    assert texts[-1] == list(texts)[-1]


def test_an_empty_message_has_features_and_no_words() -> None:
    found = extract(b"")
    assert len(found.digest) == 16
    assert found.size_bytes == 0
    assert words(b"") == set()


def test_the_claimed_id_and_the_sender_are_reported() -> None:
    found = extract(mail("x", "X-Spam-Id: 0011-abc"))
    assert found.id == "0011-abc"
    assert found.sender_domain == "example.org"
    assert extract(b"Subject: x\n\ny").id is None
    assert extract(b"Subject: x\n\ny").sender_domain == ""


def test_no_token_is_empty_or_holds_a_line_end() -> None:
    found = tokens(mail("\"\" '' --- ... !!! a\tb", "Subject: ---", "X-Odd: ''"))
    assert all(token and not set(token) & set("\n\r\0\t") for token in found)


def kept_of(raw: bytes, most: int) -> set[str]:
    """Return which tokens of the text stay when no more than `most` are kept."""
    options = TokenizerOptions(
        without=frozenset({"headers", "links", "shape", "tricks"}),
        limits=Limits(tokens=most),
    )
    return set(extract(raw, options).texts)


def test_of_too_many_tokens_the_first_half_read_stays_and_the_smallest_ids_of_the_rest() -> None:
    words = [f"w{number}x" for number in range(30)]
    pairs = [f"{one} {other}" for one, other in pairwise(words)]
    raw = mail(" ".join(words))

    assert len(kept_of(raw, 59)) == 59
    for most in (1, 10, 11, 40, 58):
        in_order = sorted(
            [(place, token_id(text), text) for place, text in enumerate(words)]
            + [(place, token_id(text), text) for place, text in enumerate(pairs)]
        )
        early, late = in_order[: most // 2], in_order[most // 2 :]
        by_id = sorted(late, key=lambda one: one[1])[: most - len(early)]
        assert kept_of(raw, most) == {text for _, _, text in early + by_id}


def test_other_tokens_take_no_more_than_half_of_the_room() -> None:
    hidden = [f"h{number}x" for number in range(8)]
    raw = page("<p>" + " ".join(f"w{n}x" for n in range(30)) + f"<b hidden>{' '.join(hidden)}</b>")
    kept = kept_of(raw, 10)

    assert len(kept) == 10
    assert {text for text in kept if text.startswith("hidden:")} == {
        f"hidden:{word}" for word in hidden[:5]
    }


def test_a_token_that_is_no_pair_has_no_second_word() -> None:
    message = parse(mail("Cheap pills here"))
    found = tokenize(message, read(message), TokenizerOptions())
    pairs = found.kinds == Kind.PAIR

    assert np.all(found.second[~pairs] == -1)
    assert {
        f"{found.words[first]} {found.words[second]}"
        for first, second in zip(found.first[pairs], found.second[pairs], strict=True)
    } == {"Cheap pills", "pills here"}
