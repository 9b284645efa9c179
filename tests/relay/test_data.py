"""From blocks to the message: any chunking gives the same, and no content escapes."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spamd.errors import BareNewline, MessageTooLarge
from spamd.network.spool import Budget
from spamd.relay.content.data import (
    END_OF_DATA,
    BdatReader,
    DataReader,
    unstuffed,
    unstuffed_blocks,
)
from spamd.relay.content.newlines import normalized
from spamd.relay.options import BareNewlines

SIGNS = st.lists(
    st.sampled_from([b"\r", b"\n", b".", b"\r\n", b"\r\n.", b"a", b"\x00", b"\r\n.\r", b"\n.\n"]),
    max_size=30,
).map(b"".join)


def budget() -> Budget:
    return Budget(memory_bytes=10_000, spool_bytes=100_000, spool_above_bytes=50)


def cut(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size
    yield data[at:]


SIZES = st.lists(st.integers(0, 5), max_size=30)


@given(body=SIGNS, behind=SIGNS, sizes=SIZES)
async def test_data_ends_at_the_first_crlf_dot_crlf_however_it_is_cut(
    body: bytes, behind: bytes, sizes: list[int]
) -> None:
    stream = body + END_OF_DATA + behind
    found = (b"\r\n" + stream).index(END_OF_DATA)
    rest = None
    reader = DataReader(budget().share(""), 10_000)
    left = b""
    for block in cut(stream, sizes):
        if rest is None:
            rest = reader.feed(block)
        else:
            left += block
    assert rest is not None
    assert rest + left == (b"\r\n" + stream)[found + 5 :]
    message = reader.message
    await message.settled()
    stored = b"".join(message.blocks())
    assert stored == stream[:found]
    assert message.dotted or unstuffed(stored) == stored
    assert reader.holds_bare_newlines == (re.search(rb"\r(?!\n)|(?<!\r)\n", stored) is not None)
    reader.close()


@given(body=SIGNS, sizes=SIZES)
def test_normalized_mail_has_whole_lines_only_and_no_early_end(
    body: bytes, sizes: list[int]
) -> None:
    if (b"\r\n" + body + b"\r\n").find(END_OF_DATA) >= 0:
        return  # the message would have ended there
    result = b"".join(normalized(cut(body, sizes)))
    assert re.search(rb"(?<!\r)\n|\r(?!\n)", result) is None
    assert END_OF_DATA not in b"\r\n" + result + b"\r\n"
    assert result == b"".join(normalized([body]))


RULES = re.compile(
    rb"(?<=\r\n)\.(?=\n|\r(?!\n))"  # a lone dot in front of a bare LF or CR
    rb"|(?<!\r)\n(\.?)"  # bare LF, and the dot that begins the next line
    rb"|\r(?!\n)"  # bare CR
)


def by_the_rules(match: re.Match[bytes]) -> bytes:
    if match[0] == b".":
        return b".."
    return b" " if match[0] == b"\r" else b"\r\n.." if match[1] else b"\r\n"


@given(body=SIGNS)
def test_normalizing_follows_the_rules_for_each_newline(body: bytes) -> None:
    if END_OF_DATA not in b"\r\n" + body + b"\r\n":
        assert b"".join(normalized([body])) == RULES.sub(by_the_rules, b"\r\n" + body)[2:]


@given(body=SIGNS)
def test_normalizing_whole_lines_changes_nothing(body: bytes) -> None:
    lines = body.replace(b"\r", b"").replace(b"\n", b"\r\n")
    if END_OF_DATA not in b"\r\n" + lines:
        assert b"".join(normalized([lines])) == lines


@given(body=SIGNS, sizes=SIZES)
def test_unstuffing_in_blocks_is_unstuffing(body: bytes, sizes: list[int]) -> None:
    whole = unstuffed(body).replace(b"\r\n", b"\n")
    assert b"".join(unstuffed_blocks(cut(body, sizes))) == whole


@given(body=SIGNS, sizes=SIZES)
async def test_chunks_become_the_same_message_however_they_are_cut(
    body: bytes, sizes: list[int]
) -> None:
    reader = BdatReader(budget().share(""), 10_000)
    for block in cut(body, sizes):
        reader.feed(block)
    reader.last()
    await reader.message.settled()
    stored = b"".join(reader.message.blocks())
    meant = body
    if body.endswith(b"\r"):
        meant += b"\n"
    elif body and not body.endswith(b"\r\n"):
        meant += b"\r\n"
    assert unstuffed(stored) == meant
    assert reader.message.dotted or unstuffed(stored) == stored
    assert END_OF_DATA not in b"\r\n" + stored
    reader.close()


@given(body=SIGNS)
async def test_a_message_gives_back_all_it_took(body: bytes) -> None:
    shared = budget()
    reader = DataReader(shared.share(""), 10_000)
    reader.feed(body + END_OF_DATA)
    try:
        message = await reader.finish(BareNewlines.NORMALIZE)
        stored = b"".join(message.blocks())
        assert message.dotted or unstuffed(stored) == stored
        message.close()
    finally:
        reader.close()
    assert shared == budget()


@pytest.mark.parametrize("size", [101, 200, 5000])
async def test_a_message_too_large_gives_back_all_it_took(size: int) -> None:
    shared = budget()
    reader = DataReader(shared.share(""), 100)
    reader.feed(b"x" * size + END_OF_DATA)
    with pytest.raises(MessageTooLarge):
        await reader.finish(BareNewlines.REJECT)
    assert shared == budget()


async def test_bare_newlines_are_refused_when_so_set() -> None:
    reader = DataReader(budget().share(""), 10_000)
    reader.feed(b"one\ntwo" + END_OF_DATA)
    with pytest.raises(BareNewline):
        await reader.finish(BareNewlines.REJECT)
