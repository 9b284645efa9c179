"""The wire to the next hop: replies find their command however they arrive."""

import asyncio

from spamd.relay.watchdog import Kennel
from spamd.relay.wire import Wire


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
    wire = Wire(asyncio.get_running_loop(), Kennel())
    wire.connection_made(FakeTransport())
    wire.data_received(b"220 next.test ESMTP\r\n")
    assert (await wire.greeting(1)).raw == b"220 next.test ESMTP\r\n"


async def test_all_final_replies_of_lmtp_may_come_in_one_piece() -> None:
    wire = Wire(asyncio.get_running_loop(), Kennel())
    wire.connection_made(FakeTransport())
    wire.data_received(b"220 next.test LMTP\r\n")
    await wire.greeting(1)
    first = asyncio.ensure_future(wire.ask(b".\r\n", 1, further=2))
    await asyncio.sleep(0)
    wire.data_received(b"250 one\r\n452 two\r\n550 three\r\n")
    replies = [await first, await wire.further(1), await wire.further(1)]
    assert [reply.code for reply in replies] == [250, 452, 550]


async def test_a_reply_that_nothing_was_asked_for_ends_the_connection() -> None:
    wire = Wire(asyncio.get_running_loop(), Kennel())
    wire.connection_made(FakeTransport())
    wire.data_received(b"220 next.test ESMTP\r\n250 and more\r\n")
    await wire.greeting(1)
    assert not wire.usable
