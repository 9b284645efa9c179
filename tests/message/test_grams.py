import numpy as np

from spamd.message.features import extract
from spamd.message.limits import Limits
from spamd.message.mime.parser import parse
from spamd.message.reading import read
from spamd.message.tokens.grams import BITS, gram_source, grams

from .helpers import mail, page


def source(raw: bytes) -> bytes:
    message = parse(raw)
    return gram_source(message, read(message), Limits())


def test_each_four_adjacent_bytes_give_a_bucket() -> None:
    assert len(grams(b"abcd")) == 1
    assert len(grams(b"abcde")) == 2
    assert len(grams(b"aaaaaaaa")) == 1
    assert grams(b"abc").tolist() == []
    assert set(grams(b"abcd")) <= set(grams(b"xxabcdxx"))


def test_buckets_are_sorted_distinct_and_within_the_table() -> None:
    found = grams(bytes(range(256)) * 12)
    assert found.dtype == np.uint32
    assert np.all(np.diff(found.astype(np.int64)) > 0)
    assert found.max() < 1 << BITS


def test_buckets_never_change() -> None:
    assert grams(b"viagra").tolist() == [248_191, 283_888, 599_560]


def test_the_source_is_what_a_reader_sees_and_no_hop_changes() -> None:
    raw = page("<p>vis<b></b>ible</p>", "Subject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=", "X-Mailer: bat")
    text = source(raw).decode()
    assert text.startswith("Grüße\n")
    assert "visible" in text
    assert "x-mailer:bat" in text
    assert source(b"Received: from elsewhere\n" + raw) == source(raw)


def test_the_source_is_subject_fields_and_text_to_the_octet() -> None:
    raw = mail(
        "one\ntwo",
        "Subject: " + "s" * 130,
        "Reply-To: " + "r" * 130,
        "X-Mailer: bat",
        "User-Agent: cow",
        "MIME-Version: 1.0",
        "Cc: eve@example.net",
    )
    lines = [
        "s" * 120,
        "from:Ann <ann@example.org>",
        "to:bob@example.net",
        "reply-to:" + "r" * 119,  # and the blank before
        "x-mailer:bat",
        "user-agent:cow",
        "mime-version:1.0",
        "content-type:text/plain; charset=utf-8",
        "one two",
    ]
    assert source(raw).decode().split("\n") == lines
    message = parse(raw)
    without = gram_source(message, read(message), Limits(), route=False).decode()
    assert without.split("\n") == lines[:3] + lines[5:]


def test_the_charset_of_the_first_fields_only_is_guessed() -> None:
    word = "уважаемый клиент"
    raw = b"Reply-To: " + word.encode("cp1251") + b"\n"
    lines = source(raw * 7 + b"\nx").decode().split("\n")

    assert lines[1:6] == [f"reply-to:{word}"] * Limits().guesses
    assert not any(word in line for line in lines[6:])


def test_the_source_is_bounded_in_bytes() -> None:
    assert len(source(mail("发" * 9000))) == Limits().gram_bytes
    assert len(extract(mail("发票 " * 9000)).sample.grams) < Limits().gram_bytes
