"""Next hops that answer what nobody asked, or before they could know: never believed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

import pytest

from spamd.errors import RemoteProtocolError
from tests.fakes import FakeInspector
from tests.relay.peers import MESSAGE, Running, ScriptedNextHop, relay

HELLO = b"250-next.test\r\n250 PIPELINING\r\n"
OK = b"250 2.0.0 ok\r\n"
QUEUED = b"250 2.0.0 queued\r\n"
LARGE = b"Subject: large\r\n\r\n" + b"words and words\r\n" * 100_000
MEDIUM = b"Subject: medium\r\n\r\n" + b"words and words\r\n" * 4_000

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[object, object, None]]


@asynccontextmanager
async def next_hop(script: Script) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await script(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def up_to_data(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, recipients: int = 1
) -> None:
    """Answer as it should be, as far as DATA, which is not answered."""
    writer.write(b"220 next.test\r\n")
    for answer in (HELLO, OK, *[OK] * recipients):
        await reader.readline()
        writer.write(answer)
    assert (await reader.readline()) == b"DATA\r\n"


async def whole(reader: asyncio.StreamReader) -> None:
    await reader.readuntil(b"\r\n.\r\n")


async def before_anything(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await up_to_data(reader, writer)
    writer.write(b"354 go on\r\n" + QUEUED)
    await reader.read()


async def at_the_first_octets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await up_to_data(reader, writer)
    writer.write(b"354 go on\r\n")
    await reader.readexactly(10)
    writer.write(QUEUED)
    await reader.read()


async def and_goes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await up_to_data(reader, writer)
    writer.write(b"354 go on\r\n")
    await reader.read(100)
    writer.write(QUEUED)
    await writer.drain()


async def and_again_at_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await up_to_data(reader, writer)
    writer.write(b"354 go on\r\n")
    await reader.read(100)
    writer.write(QUEUED)
    await whole(reader)
    writer.write(QUEUED)
    await reader.read()


async def instead_of_354(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await up_to_data(reader, writer)
    writer.write(QUEUED)
    await reader.read()


EARLY = [before_anything, at_the_first_octets, and_goes, and_again_at_the_end, instead_of_354]


@pytest.fixture(autouse=True)
def _patient_relay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the next hop time to answer too early on a busy machine, too."""
    monkeypatch.setattr("spamd.relay.outbound.wire.PROBE_S", 0.1)


async def refused(running: Running, message: bytes) -> None:
    """Send a mail, which must be put off, and see that the next hop is to blame."""
    talk = await running.talk()
    answer = await talk.deliver(message)
    assert answer.startswith(b"451 4.3.0 ")
    assert await talk.rest() == b""  # the session at the next hop is gone, and so is ours
    await running.empty()
    ((event, fault),) = running.observer.faults
    assert event == "message.failed"
    assert isinstance(fault, RemoteProtocolError)


@pytest.mark.parametrize("message", [MESSAGE, MEDIUM, LARGE], ids=["small", "medium", "large"])
@pytest.mark.parametrize("script", EARLY)
async def test_k14_a_message_answered_before_its_end_is_not_believed(
    script: Script, message: bytes
) -> None:
    async with next_hop(script) as port, relay(f"smtp://127.0.0.1:{port}") as running:
        await refused(running, message)


@pytest.mark.parametrize("message", [MESSAGE, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("early", [1, 2])
async def test_k14_a_message_answered_before_its_end_is_not_believed_over_lmtp(
    message: bytes, early: int
) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await up_to_data(reader, writer, 2)
        writer.write(b"354 go on\r\n")
        await reader.readexactly(10)
        writer.write(QUEUED * early)
        await reader.read()

    async with next_hop(script) as port, relay(f"lmtp://127.0.0.1:{port}") as running:
        talk = await running.talk()
        await talk.begin(recipients=(b"<a@y.test>", b"<b@y.test>"))
        await talk.send(message + b".\r\n")
        assert (await talk.reply()).startswith(b"451 4.3.0 ")


async def test_k14_an_early_refusal_is_believed() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await up_to_data(reader, writer)
        writer.write(b"354 go on\r\n")
        await reader.readexactly(10)
        writer.write(b"552 5.3.4 too large\r\n")
        await reader.read()

    async with next_hop(script) as port, relay(f"smtp://127.0.0.1:{port}") as running:
        assert (await (await running.talk()).deliver()) == b"552 5.3.4 too large\r\n"


async def test_k14_only_the_first_message_of_a_connection_waits_for_its_dot() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        assert (await talk.deliver()).startswith(b"250 ")
        assert (await talk.deliver(hello=b"")).startswith(b"250 ")
        assert len(hop.messages) == 2


WRONG = {
    "": [b"250 hello\r\n", b"354 go on\r\n", b"220 one\r\n220 two\r\n", b"220 one\r\n250 two\r\n"],
    "EHLO": [b"220 next.test\r\n", b"221 bye\r\n", b"354 go on\r\n", HELLO + OK, HELLO + HELLO],
    "MAIL": [b"220 hello\r\n", b"221 bye\r\n", b"354 go on\r\n", OK + OK, OK + b"354 go on\r\n"],
    "RCPT": [b"220 hello\r\n", b"235 yes\r\n", b"354 go on\r\n", OK + OK, OK + b"354 go on\r\n"],
    "DATA": [OK, b"220 hello\r\n", b"334 go on\r\n", b"354 go on\r\n354 go on\r\n"],
    ".": [b"220 hello\r\n", b"221 bye\r\n", b"354 go on\r\n", b"235 yes\r\n"],
}


@pytest.mark.parametrize(
    ("verb", "answer"), [(verb, answer) for verb, answers in WRONG.items() for answer in answers]
)
async def test_k14_a_reply_that_answers_nothing_is_a_breach(verb: str, answer: bytes) -> None:
    inspector = FakeInspector()
    async with (
        ScriptedNextHop(answers={verb: answer}) as hop,
        relay(hop.url, inspector=inspector) as running,
    ):
        talk = await running.talk()
        said = b""
        script = [b"EHLO c.test", b"MAIL FROM:<a@x.test>", b"RCPT TO:<b@y.test>", b"DATA"]
        for line in [*script, MESSAGE + b"."]:
            said = await talk.say(line)
            if said[:1] not in b"23":
                break
            await asyncio.sleep(0.01)  # the second reply is on its way
        assert said[:1] == b"4", said
        assert await talk.rest() == b""
        await hop.until(lambda: hop.open == 0)


async def test_k14_a_reply_between_two_messages_ends_the_session_at_the_next_hop() -> None:
    async with (
        ScriptedNextHop(answers={".": QUEUED + QUEUED}) as hop,
        relay(hop.url) as running,
    ):
        talk = await running.talk()
        assert (await talk.deliver()).startswith(b"250 ")
        await hop.until(lambda: hop.open == 0)
        assert await talk.rest() == b""
