"""A mail server that keeps to nothing: packets made at random, and what must hold for any.

Half of the streams are dialogues as they should be, with something broken in them: a packet too
much, one missing, a length that lies, data cut short.
"""

import asyncio
import random
import struct
from collections.abc import Sequence
from typing import cast

from spamd.errors import Overloaded, RemoteProtocolError
from spamd.listeners.milter.options import MilterOptions
from spamd.listeners.milter.session import Session
from spamd.network.deadlines import TimeLimit
from spamd.network.shared import Shared
from spamd.network.stream_listener import Connection
from spamd.relay.options import RelayOptions
from tests.fakes import REJECT, SPAM, FakeClock, FakeInspector, FakeObserver, NoTeacher
from tests.listeners.milter.mta import connect, frame, macros

ANSWERS = frozenset(b"Ocspyimq")
"""Commands that we send."""

OFFERS = ((6, 0x1FF, 0x1FFFFF), (6, 0x1FF, 0), (2, 0x3F, 0x7F), (4, 0x31, 0x3FF), (6, 0, 0x1FFFFF))


class Written:
    """What would go to the network."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes) -> None:
        self.data += data

    async def drain(self) -> None:
        await asyncio.sleep(0)


def connection_of(reader: asyncio.StreamReader, writer: Written, shared: Shared) -> Connection:
    """Return a connection without a network."""
    return Connection(
        reader=reader,
        writer=cast("asyncio.StreamWriter", writer),
        address="127.0.0.1",
        network="",
        since=0.0,
        local=True,
        time_limit=TimeLimit(asyncio.get_running_loop(), shared.deadline_timer),
    )


def stream(number: int) -> bytes:
    """Return what a hostile server sends, another one for each number."""
    dice = random.Random(number)
    packets = [frame(b"O", struct.pack("!III", *dice.choice(OFFERS)))]
    for _ in range(dice.randrange(1, 4)):
        packets += [macros(b"C", client_addr="192.0.2.7"), connect(), frame(b"H", b"c.test\0")]
        packets += [macros(b"M", i="4Q", auth_authen="me"), frame(b"M", b"<a@x.test>\0SIZE=1\0")]
        packets += [frame(b"R", b"<b@y.test>\0")] * dice.randrange(3)
        packets += [frame(b"L", b"X-Spam-Flag\0 YES\0"), frame(b"L", b"Subject\0 a\n b\0")]
        packets += [frame(b"N"), frame(b"B", dice.randbytes(dice.randrange(3000)))]
        packets += [frame(b"E", dice.choice([b"", b"x\r\n"])), frame(b"A") * dice.randrange(3)]
    packets += [frame(dice.choice([b"Q", b"K"]))]
    for _ in range(dice.randrange(6)):
        _break(packets, dice)
    if number % 2:
        return b"".join(packets)
    alphabet = [b"O", b"D", b"C", b"H", b"M", b"R", b"T", b"U", b"L", b"N", b"B", b"E", b"A", b"K"]
    noise = [
        frame(dice.choice([*alphabet, dice.randbytes(1)]), dice.randbytes(dice.randrange(30)))
        for _ in range(dice.randrange(40))
    ]
    return packets[0] + b"".join(noise)


def _break(packets: list[bytes], dice: random.Random) -> None:
    at = dice.randrange(len(packets))
    packet = packets[at] or b"\0"
    match dice.randrange(6):
        case 0:
            packets[at] = packet[: dice.randrange(len(packet))]
        case 1:
            place = dice.randrange(len(packet))
            packets[at] = packet[:place] + dice.randbytes(1) + packet[place + 1 :]
        case 2:
            packets.insert(at, dice.choice(packets))
        case 3:
            packets[at] = struct.pack("!I", dice.choice([0, 1, 2**20, 2**20 + 1, 2**32 - 1]))
        case 4:
            packets[at] = packet.replace(b"\0", b"", 5)
        case _:
            del packets[at]


async def play(data: bytes, sizes: Sequence[int] = (65536,), *, small: bool = False) -> bytes:
    """Play one server to its end; check what must hold and return what was answered."""
    room = 2_000 if small else 2**22
    options = RelayOptions(
        memory_bytes=room, spool_above_bytes=room, spool_bytes=room, max_message_bytes=room
    )
    inspector = FakeInspector(lambda content: REJECT if len(content) % 2 else SPAM)
    observer = FakeObserver()
    shared = Shared.of(options, inspector, NoTeacher(), observer, FakeClock())
    before = shared.budget.memory_bytes, shared.budget.spool_bytes
    reader, writer = asyncio.StreamReader(), Written()
    connection = connection_of(reader, writer, shared)
    at, turn = 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        reader.feed_data(data[at : at + size])
        at, turn = at + size, turn + 1
    reader.feed_eof()
    session = Session(connection, shared, MilterOptions(quarantine=True), lambda: False)
    try:
        async with asyncio.timeout(20):
            await session.run()
    except (RemoteProtocolError, Overloaded):
        pass
    finally:
        connection.time_limit.stop()
        shared.close()
    assert (shared.budget.memory_bytes, shared.budget.spool_bytes) == before
    assert not [fault for name, fault in observer.faults if name != "message.failed"]
    assert all(isinstance(fault, Overloaded) for _, fault in observer.faults)
    said = bytes(writer.data)
    commands = _commands(said)
    assert set(commands) <= ANSWERS, commands
    return said


def _commands(said: bytes) -> bytes:
    """Return the commands of whole packets; there is nothing else."""
    found, at = bytearray(), 0
    while at < len(said):
        (length,) = struct.unpack_from("!I", said, at)
        assert length >= 1
        assert at + 4 + length <= len(said)
        found.append(said[at + 4])
        at += 4 + length
    return bytes(found)


async def fuzz(numbers: range) -> int:
    """Play servers of these numbers, each whole and in small pieces; return how many were judged.

    However a stream is cut, the answers are the same.
    """
    answers = 0
    for number in numbers:
        data = stream(number)
        small = number % 5 == 0
        whole = await play(data, small=small)
        assert await play(data, [1 + number % 7, 3, 50], small=small) == whole, number
        answers += len(_commands(whole))
    return answers
