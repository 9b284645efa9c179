"""Requests as bytes: what is taken, what is refused with which words, and any cut of the bytes."""

import tracemalloc
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spamd.listeners.spamc.request import (
    MAX_HEADERS,
    MAX_LINE_BYTES,
    PIECE_BYTES,
    Code,
    Head,
    Refused,
    RequestReader,
    Verb,
)
from spamd.sample import Label

LIMIT = 100_000
MAIL = b"Subject: x\n\nbody\n"


def read(*pieces: bytes, ends: bool = True) -> tuple[Head | None, bytes, bool]:
    """Feed pieces; return head, mail, and whether the request is complete."""
    reader, mail = RequestReader(LIMIT), b""
    for piece in pieces:
        mail += b"".join(reader.feed(piece))
    if ends:
        reader.end()
    return reader.head, mail, reader.complete


def outcome(pieces: list[bytes]) -> object:
    """Return everything that can be seen of a request."""
    reader, mail = RequestReader(LIMIT), b""
    try:
        for piece in pieces:
            for part in reader.feed(piece):
                assert len(part) <= PIECE_BYTES or part == piece
                mail += part
        before = reader.complete
        reader.end()
    except Refused as refused:
        return refused.line
    return reader.head, mail, before, reader.size_bytes


def head(verb: str = "CHECK", *headers: str, version: str = "1.5") -> bytes:
    return "\r\n".join([f"{verb} SPAMC/{version}", *headers, "", ""]).encode()


def refusal(*pieces: bytes, ends: bool = True) -> str:
    with pytest.raises(Refused) as found:
        read(*pieces, ends=ends)
    return found.value.line.decode("latin_1")


def test_a_request_of_an_announced_length_is_complete_without_the_end_of_the_client() -> None:
    found, mail, complete = read(head("CHECK", "Content-length: 17") + MAIL, ends=False)
    assert found == Head(verb=Verb.CHECK, version=(1, 5), length=17)
    assert (mail, complete) == (MAIL, True)


def test_without_a_length_the_mail_goes_as_far_as_the_client_sends() -> None:
    assert read(head(), MAIL, ends=False) == (Head(verb=Verb.CHECK, version=(1, 5)), MAIL, False)
    assert read(head(), MAIL)[1:] == (MAIL, True)


def test_the_oldest_version_has_no_headers() -> None:
    assert read(head(version="1.0")[:-2] + MAIL)[1] == MAIL


@pytest.mark.parametrize("name", ["Content-length", "content-length", "CONTENT-LENGTH"])
@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_headers_stand_in_any_order_and_case_and_unknown_ones_are_skipped(
    name: str, end: str
) -> None:
    lines = ["TELL SPAMC/1.3", "X-Other: a: b", "Remove:remote", f"{name}:  17 ", "Set: local"]
    text = end.join([*lines, "Message-class: Spam", "User: björn", "", ""]).encode()
    assert read(text + MAIL, ends=False)[0] == Head(
        verb=Verb.TELL, version=(1, 3), user="björn", length=17, label=Label.SPAM,
        sets=frozenset({"local"}), removes=frozenset({"remote"}),
    )  # fmt: skip


@pytest.mark.parametrize("version", ["1.0", "1.2", "1.4"])
def test_a_ping_of_an_old_client_needs_no_empty_line(version: str) -> None:
    assert read(f"PING SPAMC/{version}\r\n".encode(), ends=False)[2]


def test_a_ping_of_a_new_client_has_headers() -> None:
    assert not read(b"PING SPAMC/1.5\r\n", ends=False)[2]
    assert read(b"PING SPAMC/1.5\r\nUser: a\r\n\r\n", ends=False)[2]


@pytest.mark.parametrize(
    ("request_bytes", "line"),
    [
        (b"", "76 Bad header line: (closed before headers)"),
        (b"HELO x\r\n", "76 Bad header line: HELO x"),
        (b"check SPAMC/1.5\r\n\r\n", "76 Bad header line: check SPAMC/1.5"),
        (b"CHECK SPAMC/x\r\n\r\n", "76 Bad header line: CHECK SPAMC/x"),
        (b"a\r\x1b[2J\r\n", "76 Bad header line: a??[2J"),
        (b"x" * 100 + b"\n", "76 Bad header line: " + "x" * 80),
        (b"CHECK SPAMC/1.5\r\nUser: a\r\n", "76 Bad header line: (EOF during headers)"),
        (head("CHECK", "User"), "76 Bad header line: (header not in 'Name: value' format)"),
        (
            head("CHECK", "Content-length: 1x"),
            "76 Bad header line: (Content-Length contains non-numeric bytes)",
        ),
        (
            head("CHECK", "Content-length: -1"),
            "76 Bad header line: (Content-Length contains non-numeric bytes)",
        ),
        (
            head("CHECK", "Content-length: " + "9" * 400),
            "76 Bad header line: (Content-Length contains non-numeric bytes)",
        ),
        (
            head("CHECK", f"Content-length: {LIMIT + 1}"),
            f"65 Data Error: the message is larger than {LIMIT} bytes",
        ),
        (
            head("CHECK", "User: a\tb"),
            "76 Bad header line: (User header contains control chars)",
        ),
        (
            head("CHECK", "Compress: gzip"),
            "76 Bad header line: (compression type not supported: gzip)",
        ),
        (
            head("CHECK", "Compress: zlib"),
            "69 Service Unavailable: Compress requires Content-length header",
        ),
        (
            head("TELL", "Message-class: eggs"),
            "76 Bad header line: (Message-class header contains invalid class)",
        ),
        (head("TELL", "Set: local"), "76 Bad header line: (Message-class header missing)"),
        (
            head("TELL", "Set: local", "Remove: local"),
            "76 Bad header line: Unable to set local and remove local in the same operation.",
        ),
        (
            head("TELL", "Set: remote", "Remove: remote"),
            "76 Bad header line: Unable to set remote and remove remote in the same operation.",
        ),
        (
            head("CHECK", "Content-length: 18") + MAIL,
            "76 Bad header line: (Content-Length mismatch: Expected 18 bytes, got 17 bytes)",
        ),
        (
            head("CHECK", "Content-length: 11") + MAIL,
            "76 Bad header line: (Content-Length mismatch: Expected 11 bytes, got more bytes)",
        ),
        (
            head("CHECK") + b"x" * (LIMIT + 1),
            f"65 Data Error: the message is larger than {LIMIT} bytes",
        ),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_the_words_of_spamassassin(
    request_bytes: bytes, line: str
) -> None:
    assert refusal(request_bytes) == f"SPAMD/1.0 {line}\r\n"


def test_white_space_behind_a_mail_of_an_announced_length_is_nothing() -> None:
    for surplus in (b"\r\n", b"\n\n", b" \r\n"):
        assert read(head("CHECK", "Content-length: 17") + MAIL + surplus)[1] == MAIL
        assert read(head("CHECK", "Content-length: 17") + MAIL, surplus)[1] == MAIL


def test_more_headers_than_there_may_be_are_refused() -> None:
    fine = [f"X-{n}: y" for n in range(MAX_HEADERS)]
    assert read(head("CHECK", *fine))[0] is not None
    assert "(too many headers)" in refusal(head("CHECK", *fine, "X: y"))


@pytest.mark.parametrize("first", [b"", b"CHECK SPAMC/1.5\r\n"])
def test_a_line_without_end_is_refused_before_it_fills_memory(first: bytes) -> None:
    blocks = [first, *[b"x" * 1000] * (MAX_LINE_BYTES // 1000 + 1)]
    assert "(header line too long)" in refusal(*filter(None, blocks), ends=False)


def test_a_compressed_mail_is_inflated_whatever_its_size() -> None:
    for mail in (b"", MAIL, b"line\n" * 10_000):
        data = zlib.compress(mail)
        headers = (f"Content-length: {len(data)}", "Compress: ZLIB")
        assert read(head("CHECK", *headers) + data, ends=False)[1:] == (mail, True)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"not zlib", "zlib: the data are damaged"),
        (zlib.compress(MAIL)[:-1], "zlib: failed to find end of zlib stream"),
        (zlib.compress(MAIL) + b"x", "zlib: there are data behind the stream"),
        (zlib.compress(MAIL)[:-4] + b"abcd", "zlib: the data are damaged"),
    ],
)
def test_a_damaged_stream_is_refused(data: bytes, text: str) -> None:
    request = head("CHECK", f"Content-length: {len(data)}", "Compress: zlib") + data
    assert refusal(request) == f"SPAMD/1.0 69 Service Unavailable: {text}\r\n"


def test_a_stream_that_inflates_to_a_thousand_times_its_size_takes_no_memory() -> None:
    bomb = zlib.compress(b"\0" * 50_000_000)
    reader = RequestReader(60_000_000)
    list(reader.feed(head("CHECK", f"Content-length: {len(bomb)}", "Compress: zlib")))
    tracemalloc.start()
    try:
        size = sum(len(piece) for piece in reader.feed(bomb))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    assert size == 50_000_000
    small = RequestReader(LIMIT)
    list(small.feed(head("CHECK", f"Content-length: {len(bomb)}", "Compress: zlib")))
    with pytest.raises(Refused) as found:
        for _ in small.feed(bomb):
            pass
    assert found.value.code is Code.TOO_LARGE


LINES = st.sampled_from([
    b"CHECK SPAMC/1.5", b"TELL SPAMC/1.2", b"PING SPAMC/1.5", b"SKIP SPAMC/1.4",
    b"PROCESS SPAMC/1.0",
    b"Content-length: 17", b"Content-length: 12", b"Content-length: 0", b"Compress: zlib",
    b"Content-length: %d" % len(zlib.compress(MAIL)), b"User: a", b"Set: local", b"Remove: local",
    b"Message-class: spam", b"X: y", b"no header", b"", b"", b"\0\xff", b"CHECK SPAMC/9.9",
])  # fmt: skip
ENDS = st.sampled_from([b"\r\n", b"\n", b"\r", b""])
BODIES = st.sampled_from([b"", MAIL, MAIL + b"\r\n", MAIL * 2, zlib.compress(MAIL), b"x" * 20])
REQUESTS = st.builds(
    lambda lines, body: (
        b"".join(line + end for line, end in lines) + b"\r\n\r\n"[: len(body)] + body
    ),
    st.lists(st.tuples(LINES, ENDS), max_size=6),
    BODIES,
)


@given(REQUESTS | st.binary(max_size=200), st.data())
def test_any_cut_of_the_bytes_gives_the_same(data: bytes, draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.sets(st.integers(1, max(1, len(data) - 1)), max_size=6)))
    pieces = [data[a:b] for a, b in pairwise([0, *cuts, len(data)]) if a < b]
    single = [data[n : n + 1] for n in range(len(data))]
    whole = outcome([data] if data else [])
    assert outcome(pieces) == whole
    assert outcome(single) == whole
