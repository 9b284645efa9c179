"""The wire to the next hop: replies find their command however they arrive."""

import asyncio

import pytest

from spamd.errors import RemoteProtocolError
from spamd.network.deadlines import DeadlineTimer
from spamd.relay.outbound.wire import START, Wire


class FakeTransport(asyncio.Transport):
    """Takes what is written and sends nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def abort(self) -> None:
        pass


async def test_a_banner_that_comes_before_anybody_asks_is_the_banner() -> None:
    wire = Wire(asyncio.get_running_loop(), DeadlineTimer())
    wire.connection_made(FakeTransport())
    wire.data_received(b"220 next.test ESMTP\r\n")
    assert (await wire.banner(1)).raw == b"220 next.test ESMTP\r\n"


async def test_all_final_replies_of_lmtp_may_come_in_one_piece() -> None:
    wire = Wire(asyncio.get_running_loop(), DeadlineTimer())
    wire.connection_made(FakeTransport())
    wire.data_received(b"220 next.test LMTP\r\n")
    await wire.banner(1)
    first = asyncio.ensure_future(wire.command(b".\r\n", 1, extra_replies=2))
    await asyncio.sleep(0)
    wire.data_received(b"250 one\r\n452 two\r\n550 three\r\n")
    replies = [await first, await wire.next_reply(1), await wire.next_reply(1)]
    assert [reply.code for reply in replies] == [250, 452, 550]


async def test_a_reply_that_nothing_was_asked_for_ends_the_connection() -> None:
    wire = Wire(asyncio.get_running_loop(), DeadlineTimer())
    wire.connection_made(FakeTransport())
    wire.data_received(b"220 next.test ESMTP\r\n250 and more\r\n")
    await wire.banner(1)
    assert not wire.usable


async def test_a_reply_that_asks_for_more_is_a_breach_where_nothing_more_is_to_come() -> None:
    wire = Wire(asyncio.get_running_loop(), DeadlineTimer())
    wire.connection_made(FakeTransport())
    wire.data_received(b"220 next.test ESMTP\r\n")
    await wire.banner(1)
    start = wire.command(b"DATA\r\n", 1, answers=START)
    wire.data_received(b"354 go on\r\n")
    assert (await start).code == 354
    final = wire.command(b".\r\n", 1)
    wire.data_received(b"354 go on\r\n")
    with pytest.raises(RemoteProtocolError):
        await final
    assert not wire.usable


async def test_after_an_unasked_421_every_command_is_answered_by_it() -> None:
    transport = FakeTransport()
    wire = Wire(asyncio.get_running_loop(), DeadlineTimer())
    wire.connection_made(transport)
    wire.data_received(b"220 next.test ESMTP\r\n421 going down\r\n")
    await wire.banner(1)
    assert (await wire.command(b"MAIL FROM:<>\r\n", 1)).raw == b"421 going down\r\n"
    assert transport.written == b""


async def test_a_known_reply_is_told_from_the_start_of_a_longer_one() -> None:
    wire = Wire(asyncio.get_running_loop(), DeadlineTimer())
    wire.connection_made(FakeTransport())
    wire.data_received(b"220 next.test ESMTP\r\n")
    await wire.banner(1)
    for pieces in ((b"250 ok\r\n",), (b"250-one\r\n", b"250 ok\r\n"), (b"25", b"0 ok\r\n")):
        answer = wire.command(b"NOOP\r\n", 1)
        for piece in pieces:
            wire.data_received(piece)
        assert (await answer).raw == b"".join(pieces)
