"""What is judged of a message, which identity it has, and what is taken out of its header."""

import re
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spamd.errors import MessageTooLarge
from spamd.listeners.milter.content import MAX_FORGED, Content
from spamd.message.features import extract
from spamd.message.identity import with_rest
from spamd.message.limits import Limits
from spamd.message.spam_fields import strip_and_prepend
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.network.spool import Budget
from tests.fakes import SPAM, FakeInspector
from tests.listeners.milter.mta import Mta, Outcome, listening

LIMIT = 1_000


def content(limit: int = LIMIT, *, leading_space: bool = True) -> Content:
    budget = Budget(memory_bytes=2**24, spool_bytes=2**24, spool_above_bytes=2**20)
    return Content(budget.share(""), limit, leading_space=leading_space)


def filled(
    header: list[tuple[bytes, bytes]], body: bytes, *, piece: int = 7, limit: int = LIMIT
) -> Content:
    made = content(limit)
    for name, value in header:
        made.field(name, value)
    made.end_of_header()
    for at in range(0, len(body), piece):
        made.body(body[at : at + piece])
    return made


NAME = st.sampled_from(
    [b"X-Spam-Flag", b"x-sPam-ID", b"X-Spam", b"Subject", b"To", b"X-Spam-\x80a"]
)
VALUE = st.lists(
    st.sampled_from(
        [b" x", b"\n\tfold", b"\n X-Spam-Flag: YES", b"\rX-Spam-Flag: YES", b":", b"\r", b""]
    ),
    max_size=4,
).map(b"".join)


async def changed(header: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return a header as a mail server delivers it."""
    packets = await filled(header, b"").removals()
    left = [*header]
    for packet in packets:
        command, (index,) = packet[4:5], struct.unpack("!I", packet[5:9])
        assert command == b"m"
        name, value, _ = packet[9:].split(b"\0")
        Mta._change(left, index, name, value)
    return left


def lines(header: list[tuple[bytes, bytes]]) -> list[bytes]:
    """Return what any reader may take for a line."""
    text = b"".join(name + b":" + value + b"\n" for name, value in header)
    return [line for line in re.split(rb"[\r\n]", text) if line]


@given(st.lists(st.tuples(NAME, VALUE), max_size=8))
@example([(b"Subject", b" a"), (b"Subject", b" b\rX-Spam-Flag: YES"), (b"SUBJECT", b" c")])
@example([(b"X-Spam-Flag", b" a"), (b"x-spam-flag", b" b"), (b"X-Spam-Flag", b" c")])
async def test_what_the_relay_would_take_out_is_taken_out(
    header: list[tuple[bytes, bytes]],
) -> None:
    after = await changed(header)
    joined = b"".join(name + b":" + value + b"\n" for name, value in after)
    assert strip_and_prepend(joined, b"") == joined
    clean = [field for field in header if await filled([field], b"").removals() == []]
    left = iter(after)
    assert all(field in left for field in clean)  # each, in their order
    rest = iter(lines(header))
    assert all(line in rest for line in lines(after))  # in their order


async def test_a_header_without_forged_fields_stays() -> None:
    header = [(b"Subject", b" x"), (b"X-Spammer", b" y"), (b"To", b"\n X-Spam-Flag: YES")]
    assert await filled(header, b"").removals() == []


async def test_more_forged_fields_than_a_server_can_take_out_are_refused() -> None:
    most = [(b"X-Spam-Flag", b" YES")] * MAX_FORGED
    assert len(await filled(most, b"", limit=100_000).removals()) == MAX_FORGED
    with pytest.raises(MessageTooLarge):
        await filled([*most, most[0]], b"", limit=100_000).removals()


async def test_a_large_header_is_gone_through_too() -> None:
    made = filled([(b"X-Spam-Flag", b" YES"), (b"To", b" x" * 50_000)], b"", limit=200_000)
    assert len(await made.removals()) == 1


def test_values_without_their_space_get_it_back() -> None:
    made = content(leading_space=False)
    made.field(b"Subject", b"x")
    made.end_of_header()
    assert made.start() == b"Subject: x\r\n\r\n"


def test_a_header_that_is_larger_than_what_is_read_refuses_the_message() -> None:
    made = content()
    for _ in range(3):
        made.field(b"To", b"x" * 500)
    assert isinstance(made.fault, MessageTooLarge)
    assert (made.full, made.size_bytes) == (True, 0)
    made.body(b"x")
    assert made.size_bytes == 0


SMALL = TokenizerOptions(limits=Limits(message_bytes=LIMIT - 200, header_bytes=200))
LARGE = [(b"Message-ID", b" <large@x.test>")], b"0123456789abcdef\r\n" * 500


@pytest.mark.parametrize("piece", [1, 17, 1000, 65535])
def test_of_a_large_message_the_start_is_kept_and_makes_its_identity(piece: int) -> None:
    made = filled(*LARGE, piece=piece)
    assert made.full
    assert made.size_bytes <= LIMIT * 18 // 17 + max(piece, 64)
    features = extract(made.start(), SMALL)
    assert with_rest(features.digest, made.rest()) == with_rest(
        features.digest, filled(*LARGE, piece=13).rest()
    )
    raw = b"Message-ID: <large@x.test>\r\n\r\n" + LARGE[1]
    whole = extract(raw, SMALL)
    assert features.sample.ids.tolist() == whole.sample.ids.tolist()
    assert features.texts.words == whole.texts.words


@pytest.mark.parametrize("body", [b"\r" * 5_000, b"\n" * 5_000, b"\r\n" * 5_000])
def test_no_body_is_kept_for_ever(body: bytes) -> None:
    assert filled([], body).size_bytes <= 2 * LIMIT + 7


async def test_the_server_is_told_to_skip_what_remains_of_a_large_message() -> None:
    inspector = FakeInspector(SPAM)
    inspector.reads_bytes = 100_000
    async with listening(inspector) as running:
        mta = await running.mta()
        await mta.envelope()
        outcome = await mta.content([(b"Subject", b" x")], b"0123456789abcdef\r\n" * 100_000)
        assert outcome.skipped > 1_600_000
        assert outcome.ours[b"X-Spam-Flag"] == b" YES"
        await mta.envelope()
        small = await mta.content([(b"Subject", b" y")], b"y\r\n")
        assert small.skipped == 0
        assert inspector.seen[1][0] == b"Subject: y\r\n\r\ny\r\n"


async def test_a_server_that_can_not_skip_is_listened_to() -> None:
    inspector = FakeInspector(SPAM)
    inspector.reads_bytes = 100_000
    async with listening(inspector) as running:
        outcome: Outcome = await running.message(
            body=b"0123456789abcdef\r\n" * 100_000, offer=(6, 0x1FF, 0x1FFFFF & ~0x400)
        )
        assert outcome.ours[b"X-Spam-Flag"] == b" YES"
        assert len(inspector.seen[0][0]) < 400_000
