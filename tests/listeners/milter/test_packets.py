"""Packets: cut from a stream in any pieces, and written so that no text of ours ends one early."""

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spamd.errors import RemoteProtocolError
from spamd.listeners.milter.packets import (
    LONGEST,
    PacketReader,
    changed,
    connection,
    inserted,
    macros,
    numbers,
    packet,
    quarantined,
    replied,
)

PACKETS = st.lists(st.tuples(st.sampled_from([b"C", b"L", b"B", b"?"]), st.binary(max_size=40)))


def read(stream: bytes, sizes: list[int]) -> list[tuple[bytes, bytes]]:
    """Return the packets of a stream that comes in pieces of these sizes, then octet by octet."""
    reader, found, at = PacketReader(), [], 0
    for size in [*sizes, *[1] * len(stream)]:
        reader.feed(stream[at : at + size])
        at += size
        while (one := reader.next()) is not None:
            found.append(one)
    assert reader.wanted == 0
    return found


@given(PACKETS, st.lists(st.integers(1, 30), max_size=30))
def test_any_chunking_gives_the_same_packets(
    packets: list[tuple[bytes, bytes]], sizes: list[int]
) -> None:
    stream = b"".join(packet(*one) for one in packets)
    assert read(stream, sizes) == packets


@pytest.mark.parametrize("length", [0, LONGEST + 1, 0xFFFFFFFF, int.from_bytes(b"GET ", "big")])
def test_an_impossible_length_is_refused_before_anything_comes(length: int) -> None:
    reader = PacketReader()
    reader.feed(struct.pack("!I", length))
    with pytest.raises(RemoteProtocolError):
        reader.next()


def test_the_longest_packet_is_taken() -> None:
    assert read(packet(b"B", b"x" * (LONGEST - 1)), [LONGEST]) == [(b"B", b"x" * (LONGEST - 1))]


def test_a_packet_that_has_begun_says_how_long_it_will_be() -> None:
    reader = PacketReader()
    assert (reader.next(), reader.wanted) == (None, 0)
    reader.feed(b"\0")
    assert (reader.next(), reader.wanted) == (None, 4)
    reader.feed(b"\0\0\x09Bab")
    assert (reader.next(), reader.wanted) == (None, 13)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"i\0abc\0{auth_authen}\0me\0", [(b"i", b"abc"), (b"auth_authen", b"me")]),
        (b"", []),
        (b"i\0", []),
        (b"i\0abc\0j", [(b"i", b"abc")]),
        (b"{x}\0\0i\0a\0", [(b"x", b""), (b"i", b"a")]),
    ],
)
def test_macros_come_with_or_without_braces_and_values(
    data: bytes, expected: list[tuple[bytes, bytes]]
) -> None:
    assert list(macros(data)) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"c.test\x004\x00\x19192.0.2.7\0", (b"c.test", b"192.0.2.7", 25)),
        (b"c.test\x006\x00\x19IPv6:2001:db8::1\0", (b"c.test", b"IPv6:2001:db8::1", 25)),
        (b"localhost\0L\0\0/run/socket\0", (b"localhost", b"", 0)),
        (b"unknown\0U", (b"unknown", b"", 0)),
        (b"c.test\x004\x00", (b"c.test", b"", 0)),
    ],
)
def test_a_client_is_read_by_the_kind_of_its_address(
    data: bytes, expected: tuple[bytes, bytes, int]
) -> None:
    assert connection(data) == expected


@pytest.mark.parametrize("data", [b"", b"c.test", b"c.test\0"])
def test_a_client_without_the_kind_of_its_address_breaks_the_protocol(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        connection(data)


@pytest.mark.parametrize("data", [b"", b"\0" * 11])
def test_a_negotiation_has_three_numbers(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        numbers(data)


@given(st.text(max_size=700))
@example("100%s of 5% \0 \r\n550 no")
def test_a_reply_is_one_short_line_in_which_no_percent_stands_alone(text: str) -> None:
    body = replied("550 5.7.1 " + text)[5:]
    assert body.startswith(b"550 5.7.1 ")
    assert body.endswith(b"\0")
    shown = body[:-1].replace(b"%%", b"")
    assert b"%" not in shown
    assert all(32 <= octet < 127 for octet in body[:-1])
    assert len(body[:-1].replace(b"%%", b"%")) <= 512
    assert body.count(b"%") == 2 * text[:502].count("%")


@given(st.text(max_size=300))
def test_the_reason_of_a_quarantine_is_short(text: str) -> None:
    body = quarantined(text)[5:]
    assert len(body) <= 101
    assert body.count(b"\0") == 1


def test_fields_are_named_with_their_place() -> None:
    assert inserted(1, b"X", b" y") == b"\0\0\0\x0ai\0\0\0\x01X\0 y\0"
    assert changed(2, b"X", b"") == b"\0\0\0\x08m\0\0\0\x02X\0\0"
