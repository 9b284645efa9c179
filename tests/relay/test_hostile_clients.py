"""Clients that want to keep us busy: what they may have done between two turns of somebody else."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, cast

import pytest

from spamd.network.turns import TURNS_PER_ROUND, Turns
from spamd.relay.inbound.command_limits import FRUITLESS_UNDELAYED, RecentClients
from spamd.relay.inbound.line_buffer import FREE_BYTES, FREE_SMALL_READS, LineBuffer
from spamd.relay.inbound.transport import COMMANDS_PER_TURN, Transport
from spamd.relay.options import RelayOptions
from spamd.relay.smtp.replies import Reply
from tests.fakes import FakeInspector
from tests.relay.peers import MESSAGE, WAIT_S, Running, ScriptedNextHop, Talk, relay

HELLO = b"EHLO bad.test\r\n"
MAIL = HELLO + b"MAIL FROM:<a@x.test>\r\n"
READY = MAIL + b"RCPT TO:<b@y.test>\r\n"

FLOODS = {
    "NOOP": (b"", b"NOOP\r\n"),
    "RSET": (b"", b"RSET\r\n"),
    "VRFY": (b"", b"VRFY someone\r\n"),
    "EXPN": (b"", b"EXPN list\r\n"),
    "HELP": (b"", b"HELP\r\n"),
    "unknown": (b"", b"XYZZY\r\n"),
    "empty lines": (b"", b"\r\n"),
    "lines with blanks in front": (b"", b" NOOP\r\n"),
    "control characters": (b"", b"NO\0OP\r\n"),
    "bare LF": (b"", b"NOOP\n"),
    "8-bit verbs": (b"", b"N\xd6\xd6P\r\n"),
    "HELO": (b"", b"HELO bad.test\r\n"),
    "EHLO": (b"", HELLO),
    "EHLO without a name": (b"", b"EHLO\r\n"),
    "LHLO": (b"", b"LHLO bad.test\r\n"),
    "STARTTLS that is not offered": (b"", b"STARTTLS\r\n"),
    "AUTH": (HELLO, b"AUTH PLAIN AGEAYg==\r\n"),
    "XCLIENT": (HELLO, b"XCLIENT NAME=x\r\n"),
    "XFORWARD": (HELLO, b"XFORWARD NAME=x\r\n"),
    "DATA out of place": (HELLO, b"DATA\r\n"),
    "MAIL again": (MAIL, b"MAIL FROM:<a@x.test>\r\n"),
    "MAIL without a path": (HELLO, b"MAIL\r\n"),
    "MAIL and RSET": (HELLO, b"MAIL FROM:<a@x.test>\r\nRSET\r\n"),
    "MAIL and EHLO": (HELLO, b"MAIL FROM:<a@x.test>\r\n" + HELLO),
    "RCPT out of place": (HELLO, b"RCPT TO:<b@y.test>\r\n"),
    "RCPT without a path": (MAIL, b"RCPT\r\n"),
    "RCPT": (MAIL, b"RCPT TO:<b@y.test>\r\n"),
    "BDAT out of place": (HELLO, b"BDAT 2\r\nxx"),
    "BDAT of two octets": (READY, b"BDAT 2\r\nxx"),
    "BDAT of nothing": (READY, b"BDAT 0\r\n"),
}
UNLIMITED: dict[str, Any] = {
    "max_commands_without_mail": 10**6,
    "max_bad_commands": 10**6,
    "command_delay_s": 0,
}


class Rounds:
    """Counts the replies that sessions give in each round of the event loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.replies = 0
        self.longest = 0
        reply = Transport.reply

        def counted(transport: Transport, answer: Reply) -> None:
            self.replies += 1
            reply(transport, answer)

        monkeypatch.setattr(Transport, "reply", counted)

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Look in every round."""
        task = asyncio.create_task(self._look())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _look(self) -> None:
        while True:
            before = self.replies
            await asyncio.sleep(0)
            self.longest = max(self.longest, self.replies - before)


async def flood(running: Running, head: bytes, body: bytes, size: int) -> bytes:
    """Send without looking at the answers, then say goodbye; return all that was answered."""
    talk = await running.talk()

    async def send() -> None:
        with suppress(ConnectionError):
            await talk.send(head + body * (size // len(body)) + b"QUIT\r\n")

    async with asyncio.TaskGroup() as group:
        group.create_task(send())
        return await talk.rest()


@pytest.mark.parametrize("clients", [1, 10])
@pytest.mark.parametrize("kind", FLOODS)
async def test_k1_no_session_works_through_what_it_has_in_one_go(
    monkeypatch: pytest.MonkeyPatch, kind: str, clients: int
) -> None:
    head, body = FLOODS[kind]
    rounds = Rounds(monkeypatch)
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, **UNLIMITED) as running,
        rounds.watched(),
        asyncio.TaskGroup() as group,
    ):
        for _ in range(clients):
            group.create_task(flood(running, head, body, 100 * len(body)))
    assert rounds.replies >= 100 * clients
    # What is done by turns, and the first commands of sessions that begin in the same round.
    assert rounds.longest <= (2 * TURNS_PER_ROUND + clients) * COMMANDS_PER_TURN


async def test_k1_commands_without_a_mail_are_counted_each_and_end_in_421() -> None:
    options: dict[str, Any] = {
        "max_commands_without_mail": 30,
        "max_recipients": 20,
        "command_delay_s": 0.001,
        "max_connections_per_client": 0,
    }
    # All at once: each waits five seconds for a client that goes on sending.
    async with ScriptedNextHop() as hop, relay(hop.url, **options) as running:
        async with asyncio.TaskGroup() as tasks:
            said = {
                kind: tasks.create_task(flood(running, head, body, 100_000))
                for kind, (head, body) in FLOODS.items()
            }
        replies = {
            kind: [line for line in task.result().splitlines() if line[3:4] == b" "]
            for kind, task in said.items()
        }
        assert {kind for kind, lines in replies.items() if len(lines) >= 100} == set()
        last = {kind: lines[-1] for kind, lines in replies.items()}
        assert {kind for kind, line in last.items() if not line.startswith(b"421 4.7.0 ")} == set()
        await running.empty()


async def test_k1_a_line_without_end_ends_the_session() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        assert (await flood(running, b"NOOP ", b"x", 3_000_000)).startswith(b"421 4.7.0 ")


async def test_k1_who_is_sent_away_while_sending_reads_why() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, command_delay_s=0) as running:
        talk = await running.talk()
        for _ in range(20):  # nothing is read meanwhile: a reset would lose what was said
            await talk.send(b"NOOP\r\n" * 1_000)
        assert (await talk.rest()).endswith(b"421 4.7.0 Too many commands without a message\r\n")


async def test_k1_a_mail_wipes_the_count_away() -> None:
    options: dict[str, Any] = {"max_commands_without_mail": 9, "command_delay_s": 60}
    async with ScriptedNextHop() as hop, relay(hop.url, **options) as running:
        talk = await running.talk()
        for _ in range(30):
            assert (await talk.deliver()).startswith(b"250 ")
            assert (await talk.say(b"NOOP", b"RSET", b"NOOP")).startswith(b"250 ")
        assert len(hop.messages) == 30


async def test_k1_a_list_with_many_dead_addresses_is_no_flood() -> None:
    refused = [b"550 5.1.1 gone\r\n", b"250 2.1.5 fine\r\n"] * 250 + [b"250 2.1.5 fine\r\n"]
    async with ScriptedNextHop(answers={"RCPT": list(refused)}) as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.say(HELLO[:-2], b"MAIL FROM:<a@x.test>")
        await talk.send(b"".join(b"RCPT TO:<r%d@y.test>\r\n" % number for number in range(500)))
        answers = [await talk.reply() for _ in range(500)]
        assert sum(answer.startswith(b"250 ") for answer in answers) == 250
        assert (await talk.say(b"DATA")).startswith(b"354 ")
        await talk.send(MESSAGE + b".\r\n")
        assert (await talk.reply()).startswith(b"250 ")


async def test_k1_commands_without_a_mail_wait_from_the_21st_on() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, command_delay_s=60) as running:
        talk = await running.talk()
        await talk.send(b"NOOP\r\n" * 21)
        assert [await talk.reply() for _ in range(20)] == [b"250 2.0.0 OK\r\n"] * 20
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await talk.reader.readline()


async def test_k1_who_comes_again_and_again_without_mail_waits_for_the_greeting() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, command_delay_s=60) as running:
        now = asyncio.get_running_loop().time()
        for _ in range(FRUITLESS_UNDELAYED + 100):
            running.relay.context.recent_clients.note_fruitless("127.0.0.1", now)
        talk = await running.talk(greeting=False)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await talk.reader.readline()
        await talk.close()
        await running.empty()  # who leaves while waiting takes no place


def test_k1_visits_without_mail_are_forgotten() -> None:
    recent_clients = RecentClients(RelayOptions(command_delay_s=1))
    for _ in range(FRUITLESS_UNDELAYED):
        recent_clients.note_fruitless("192.0.2.1", 0.0)
    assert recent_clients.delay_s("192.0.2.1", 0.0) == 0
    for _ in range(1_000):
        recent_clients.note_fruitless("192.0.2.1", 0.0)
    assert recent_clients.delay_s("192.0.2.1", 0.0) == 5
    assert recent_clients.delay_s("192.0.2.2", 0.0) == 0
    assert recent_clients.delay_s("192.0.2.1", 60.0) == 0
    for number in range(20_000):
        recent_clients.note_fruitless(f"client {number}", 100.0 + number)
    assert len(recent_clients._seen) <= 10_000


async def test_k1_chunks_that_come_in_one_piece_are_read_no_faster_than_they_are_done() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, **UNLIMITED) as running:
        talk = await running.talk()
        (session,) = running.relay.sessions.values()
        sending = asyncio.create_task(talk.send(READY + b"BDAT 2\r\nxx" * 300_000))
        most = 0
        while not sending.done():
            await asyncio.sleep(0)
            most = max(most, len(session.transport.buffer._buffer))
            if session.transport.buffer._reads > 100:
                break
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending
        assert most < 2**20


class FakeTransport:
    """Notes whether it is read from."""

    reading = True

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def is_closing(self) -> bool:
        return False


@pytest.mark.parametrize("sink", [True, False])
async def test_k1_octets_one_by_one_are_left_to_gather(sink: bool) -> None:  # noqa: FBT001 - a case
    transport = FakeTransport()
    buffer = LineBuffer(asyncio.get_running_loop(), lambda _: True)
    buffer.set_transport(cast("asyncio.Transport", transport))
    if sink:
        buffer.divert(lambda _: None)
    for number in range(FREE_SMALL_READS + 1):
        assert transport.reading, number
        buffer.feed_data(b"x")
    assert not transport.reading
    async with asyncio.timeout(WAIT_S):
        while not transport.reading:  # noqa: ASYNC110 - a timer of the loop's sets it
            await asyncio.sleep(0)
    buffer.message_received()
    buffer.feed_data(b"x")
    assert transport.reading


async def test_k2_of_a_large_mail_each_block_takes_a_turn_and_of_a_small_one_none() -> None:
    transport, turns = FakeTransport(), list[Callable[[], None]]()

    def take_turn(go: Callable[[], None]) -> bool:
        turns.append(go)
        return False

    buffer = LineBuffer(asyncio.get_running_loop(), take_turn)
    buffer.set_transport(cast("asyncio.Transport", transport))
    buffer.divert(lambda _: None)
    for _ in range(2):
        buffer.feed_data(b"x" * FREE_BYTES)
        assert (transport.reading, turns) == (True, [])
        for _ in range(3):
            buffer.feed_data(b"x" * FREE_BYTES)
            assert not transport.reading
            turns.pop()()
            assert transport.reading
        buffer.message_received()


async def test_k1_networks_come_by_turns_and_so_do_their_connections() -> None:
    turns, order = Turns(), list[str]()
    for _ in range(TURNS_PER_ROUND):
        assert turns.take("free", lambda: None)
    for number in range(6):
        turns.take("many", partial(order.append, f"many {number}"))
    turns.take("one", lambda: order.append("one"))
    turns.take("many", lambda: order.append("begins"), first=True)
    while len(order) < 8:  # noqa: ASYNC110 - each round of the loop is looked at
        await asyncio.sleep(0)
    assert order[:4] == ["begins", "one", "many 0", "many 1"]
    assert order[4:] == [f"many {number}" for number in range(2, 6)]


async def test_k1_a_round_has_so_many_turns_and_no_more() -> None:
    turns, taken = Turns(), list[int]()
    for number in range(20):
        if turns.take("a", partial(taken.append, number)):
            taken.append(number)
    longest = 0
    while len(taken) < 20:
        before = len(taken)
        await asyncio.sleep(0)
        longest = max(longest, len(taken) - before)
    assert longest == TURNS_PER_ROUND
    assert taken == list(range(20))


async def test_k1_mail_of_an_honest_client_comes_through_a_hundred_sessions_of_junk() -> None:
    inspector = FakeInspector()
    async with ScriptedNextHop() as hop, relay(hop.url, inspector=inspector) as running:
        bad = [await running.talk() for _ in range(99)]
        for talk in bad:
            await talk.send(b"NOOP\r\n" * 1_000)
        honest = await Talk.to(running.port)
        assert (await honest.deliver()).startswith(b"250 ")
        await honest.close()
