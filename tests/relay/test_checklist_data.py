"""Rows D of the checklist: DATA and content."""

import asyncio
import time
from contextlib import suppress
from math import inf

import pytest

from spamd.errors import StorageUnavailable
from spamd.network.judge import OnFault
from spamd.relay.options import BareNewlines, Received
from tests.fakes import REJECT, SPAM, FakeInspector
from tests.memory import peak_bytes, settled_bytes
from tests.relay.peers import MESSAGE, QUEUED, Do, ScriptedNextHop, Talk, relay

SECOND = b"MAIL FROM:<evil@x.test>\r\nRCPT TO:<victim@y.test>\r\nDATA\r\nSubject: smuggled\r\n"


HEADLESS = (b"no header", b": no name", b"..", b".. ")
"""Messages without a field: a blank line behind ours keeps their text from being taken for one."""


def below_our_fields(wire: bytes) -> bytes:
    """Return a message without the fields that we put on top."""
    end = wire.index(b"X-Spam-Id:")
    rest = wire[wire.index(b"\r\n", end) + 2 :]
    return rest[2:] if rest.startswith(tuple(b"\r\n" + start for start in HEADLESS)) else rest


async def test_smtp_d01_the_next_hops_final_reply_and_the_message_arrive_unchanged() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        assert await talk.deliver() == QUEUED
        assert below_our_fields(hop.messages[0]) == MESSAGE


async def test_smtp_d01_data_is_sent_only_after_the_verdict() -> None:
    inspector = FakeInspector(gate=asyncio.Event())
    async with ScriptedNextHop() as hop, relay(hop.url, inspector=inspector) as running:
        talk = await running.talk()
        await talk.begin()
        await talk.send(MESSAGE + b".\r\n")
        await inspector.begun.wait()
        assert hop.verbs == ["EHLO", "MAIL", "RCPT"]
        assert inspector.gate is not None
        inspector.gate.set()
        assert (await talk.reply()).startswith(b"250 ")
        assert hop.verbs == ["EHLO", "MAIL", "RCPT", "DATA"]


@pytest.mark.parametrize("octets", [0, 10, 300_000])
async def test_smtp_d04_a_next_hop_that_dies_in_the_body_is_451(octets: int) -> None:
    async with ScriptedNextHop(drop_in_body_after=octets) as hop, relay(hop.url) as running:
        talk = await running.talk()
        answer = await talk.deliver(MESSAGE + b"\r\n" * 5_000_000)
        assert answer.startswith(b"451 4.4.2 ")
        assert hop.messages == []


async def test_smtp_d05_a_next_hop_silent_after_the_dot_is_451() -> None:
    hop = ScriptedNextHop(answers={".": Do.NOTHING})
    async with hop, relay(hop.url, content_timeout_s=0.3) as running:
        talk = await running.talk()
        assert (await talk.deliver()).startswith(b"451 4.4.2 ")
        await hop.until(lambda: hop.open == 0)


async def test_smtp_d05_a_next_hop_that_takes_a_message_too_slowly_gets_no_more_of_it() -> None:
    taken = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal taken
        writer.write(b"220 next.test\r\n")
        async for line in reader:
            writer.write(b"354 go on\r\n" if line == b"DATA\r\n" else b"250 fine\r\n")
            if line == b"DATA\r\n":
                break
        with suppress(ConnectionError):
            while block := await reader.read(2**16):
                taken += len(block)
                await asyncio.sleep(0.01)
        writer.close()
        done.set()

    done = asyncio.Event()
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with relay(f"smtp://127.0.0.1:{port}", content_timeout_s=0.3) as running:
            talk = await running.talk()
            wire = b"x" * 98 + b"\r\n"
            assert (await talk.deliver(wire * 300_000)).startswith(b"451 4.4.2 ")
            await done.wait()
    assert taken < 15_000_000


@pytest.mark.parametrize("size", [1_000, 5_000_000])
async def test_smtp_d03_a_refusal_before_the_dot_is_passed_on(size: int) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 next.test\r\n")
        async for line in reader:
            writer.write(b"354 go on\r\n" if line == b"DATA\r\n" else b"250 fine\r\n")
            if line == b"DATA\r\n":
                break
        await reader.readexactly(500)
        writer.write(b"552 5.3.4 far too big\r\n")
        await over.wait()
        writer.close()

    over = asyncio.Event()
    async with await asyncio.start_server(serve, "127.0.0.1", 0, limit=1_000) as server:
        port = server.sockets[0].getsockname()[1]
        async with relay(f"smtp://127.0.0.1:{port}") as running:
            talk = await running.talk()
            answer = await talk.deliver(b"Subject: x\r\n\r\n" + b"x" * size + b"\r\n")
            assert answer == b"552 5.3.4 far too big\r\n"
            over.set()


async def test_smtp_d06_a_verdict_slower_than_the_idle_timeout_is_no_cut() -> None:
    inspector = FakeInspector(gate=asyncio.Event())
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, inspector=inspector, command_timeout_s=0.2, data_timeout_s=0.2) as running,
    ):
        talk = await running.talk()
        await talk.begin()
        await talk.send(MESSAGE + b".\r\n")
        await inspector.begun.wait()
        assert inspector.gate is not None
        asyncio.get_running_loop().call_later(0.5, inspector.gate.set)
        assert await talk.reply() == QUEUED


ENDS = [
    b"\n.\n",
    b"\n.\r\n",
    b"\r\n.\n",
    b"\r.\r",
    b"\r.\r\n",
    b"\r\n.\r",
    b"\r\n.\r\r\n",
    b"\r\r\n.\r\r\n",
    b"\r\n\x00.\r\n",
    b"\r\n.\x00\r\n",
    b"\r\n\x00.\x00\r\n",
    b"\x00\r\n.\n\x00",
]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("mode", BareNewlines)
async def test_smtp_d07_only_crlf_dot_crlf_ends_data(end: bytes, mode: BareNewlines) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, bare_newline=mode) as running:
        talk = await running.talk()
        await talk.begin()
        await talk.send(MESSAGE + end.removeprefix(b"\r\n") + SECOND + b"\r\n.\r\n")
        await talk.reply()
        assert (await talk.say(b"NOOP")).startswith(b"250 ")
        assert len(hop.envelopes) <= 1
        assert all(sender == b"FROM:<a@x.test>" for sender, _ in hop.envelopes)
        for message in hop.messages:
            assert message.count(b"\n") == message.count(b"\r\n") == message.count(b"\r")
            assert b"\r\n.\r\n" not in message


async def test_smtp_d08_bare_newlines_become_crlf_and_lone_dots_are_stuffed() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        body = b"one\ntwo\n.\nthree\n.four\r\n.\nfive\rsix\r\n.\rseven\r\n"
        assert (await talk.deliver(b"Subject: x\r\n\r\n" + body)).startswith(b"250 ")
        assert below_our_fields(hop.messages[0]) == (
            b"Subject: x\r\n\r\none\r\ntwo\r\n..\r\nthree\r\n..four\r\n..\r\nfive six\r\n"
            b".. seven\r\n"
        )
        ((content, _),) = running.inspector.seen
        assert b"\r\n.\r\nthree\r\n.four\r\n.\r\nfive six\r\n. seven\r\n" in content


DOTS = [
    b"Subject: x\r\n\r\n..dot\r\n...\r\n..\r\n....\r\n",
    b"Subject: x\r\n\r\n..\r\n",
    b"..first line\r\n",
    b".. \r\n",
    b"",
    b"Subject: no blank line\r\n",
    b"\r\n",
    b"\r\n\r\n..\r\n",
]


@pytest.mark.parametrize("wire", DOTS)
async def test_smtp_d10_dot_lines_arrive_as_they_were_meant(wire: bytes) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        assert (await talk.deliver(wire)).startswith(b"250 ")
        assert below_our_fields(hop.messages[0]) == wire
        ((content, _),) = running.inspector.seen
        meant = b"\r\n".join(line.removeprefix(b".") for line in wire.split(b"\r\n"))
        assert content == meant


STREAM = (
    b"EHLO c.test\r\nMAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nDATA\r\n"
    b"Subject: x\r\n\r\n..\r\nwords\r\n.\r\n"
    b"MAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nDATA\r\n.\r\n"
    b"BOGUS\r\nQUIT\r\n"
)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 64, 10_000])
async def test_smtp_d11_any_chunking_gives_the_same_transcript(size: int) -> None:
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, max_commands_without_mail=10**6, command_delay_s=0) as running,
    ):
        talk = await running.talk()
        for at in range(0, len(STREAM), size):
            await talk.send(STREAM[at : at + size])
            await asyncio.sleep(0)
        text = await talk.rest()
        assert text.endswith(
            b"250 2.1.0 sender fine\r\n250 2.1.5 recipient fine\r\n"
            b"354 End data with <CR><LF>.<CR><LF>\r\n250 2.0.0 queued as ABC123\r\n"
            b"250 2.1.0 sender fine\r\n250 2.1.5 recipient fine\r\n"
            b"354 End data with <CR><LF>.<CR><LF>\r\n250 2.0.0 queued as ABC123\r\n"
            b"500 5.5.2 Command not recognized\r\n221 2.0.0 Bye\r\n"
        )
        assert [below_our_fields(message) for message in hop.messages] == [
            b"Subject: x\r\n\r\n..\r\nwords\r\n",
            b"",
        ]


@pytest.mark.parametrize("length", [998, 1000, 5000, 1_000_000])
async def test_smtp_d12_long_lines_arrive_unchanged(length: int) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        wire = b"Subject: " + b"s" * length + b"\r\n\r\n" + b"x" * length + b"\r\n"
        assert (await talk.deliver(wire)).startswith(b"250 ")
        assert below_our_fields(hop.messages[0]) == wire


async def test_smtp_d13_eight_bit_and_nul_arrive_unchanged() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        every_byte = bytes(set(range(256)) - {10, 13})
        wire = b"Subject: \xe4\xff\x00\r\n\r\n" + every_byte + b"\r\n"
        assert (await talk.deliver(wire)).startswith(b"250 ")
        assert below_our_fields(hop.messages[0]) == wire


@pytest.mark.parametrize("line", [b"x" * 78 + b"\r\n", b"x" * 1000])
async def test_smtp_d14_a_message_too_large_is_552_after_the_dot(line: bytes) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, max_message_bytes=100_000) as running:
        talk = await running.talk()
        wire = (line * (150_000 // len(line))).removesuffix(b"\r\n") + b"\r\n"
        assert (await talk.deliver(wire)).startswith(b"552 5.3.4 ")
        assert hop.messages == []
        assert hop.verbs[-1] == "RSET"
        assert running.inspector.seen == []
        assert (await talk.deliver(hello=b"")).startswith(b"250 ")


async def test_smtp_d14_an_endless_line_is_not_kept_in_memory() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, max_message_bytes=1_000_000) as running:
        talk = await running.talk()
        await talk.begin()
        rest = settled_bytes()
        with pytest.raises((ConnectionError, TimeoutError)):  # noqa: PT012 - one act, repeated
            for _ in range(200):
                await talk.send(b"x" * 1_000_000)
        assert peak_bytes() - rest < 50_000_000


async def test_smtp_d15_a_client_that_pauses_too_long_is_421() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, data_timeout_s=0.2) as running:
        talk = await running.talk()
        await talk.begin()
        await talk.send(MESSAGE)
        assert (await talk.reply()).startswith(b"421 4.4.2 ")
        await hop.until(lambda: hop.open == 0)
        assert hop.messages == []


async def test_smtp_d15_a_client_below_the_minimum_rate_is_421() -> None:
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, data_grace_s=0.2, data_rate=10_000) as running,
    ):
        talk = await running.talk()
        await talk.begin()
        async with asyncio.TaskGroup() as group:
            drip = group.create_task(drip_into(talk))
            assert (await talk.reply()).startswith(b"421 4.4.2 ")
            drip.cancel()
        assert hop.messages == []


async def test_smtp_d15_a_steady_slow_client_passes() -> None:
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, data_timeout_s=0.3, data_grace_s=0.1, data_rate=1.0) as running,
    ):
        talk = await running.talk()
        await talk.begin()
        for _ in range(8):
            await talk.send(b"x" * 100 + b"\r\n")
            await asyncio.sleep(0.1)
        await talk.send(b".\r\n")
        assert (await talk.reply()).startswith(b"250 ")


async def drip_into(talk: Talk) -> None:
    while True:
        await talk.send(b"x")
        await asyncio.sleep(0.02)


async def test_smtp_d16_a_large_message_goes_over_the_disk_unchanged() -> None:
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, memory_bytes=2**20, spool_above_bytes=2**19) as running,
    ):
        talk = await running.talk()
        wire = b"Subject: big\r\n\r\n" + b"..dots and words\r\n" * 400_000
        assert (await talk.deliver(wire)).startswith(b"250 ")
        assert below_our_fields(hop.messages[0]) == wire
        ((content, _),) = running.inspector.seen
        assert len(content) < len(wire)
        assert content.startswith(b"Subject: big\r\n\r\n.dots and words\r\n.dots")
        budget = running.relay.context.shared.budget
        assert (budget.memory_bytes, budget.spool_bytes) == (2**20, 2048 * 2**20)


async def test_smtp_d17_empty_lines_do_not_stall_other_sessions() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk, other = await running.talk(), await running.talk()
        await talk.begin()
        longest_s = 0.0
        for _ in range(20):
            await talk.send(b"\r\n" * 500_000)
            started = time.process_time()
            await other.say(b"NOOP")
            longest_s = max(longest_s, time.process_time() - started)
        await talk.send(b".\r\n")
        assert (await talk.reply()).startswith(b"250 ")
        assert longest_s < 1.0


async def longest_noop_s(talk: Talk, answer: asyncio.Future[bytes]) -> float:
    """Return the longest that a session waited for its NOOPs until another one had its answer.

    In CPU time of ours, since other programs may keep the processor from us.
    """
    longest_s = 0.0
    while not answer.done():
        began = time.process_time()
        await talk.say(b"NOOP")
        longest_s = max(longest_s, time.process_time() - began)
    return longest_s


@pytest.mark.parametrize("sign", [b"\n", b"\r", b"\n.", b"\r\n.a"])
async def test_smtp_d17_a_flood_of_newlines_is_repaired_in_time(sign: bytes) -> None:
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, max_commands_without_mail=10**6, command_delay_s=0) as running,
    ):
        talk, other = await running.talk(), await running.talk()
        await talk.begin()
        await talk.send(b"Subject: x\r\n\r\nbare\n" + sign * 5_000_000 + b"\r\n.\r\n")
        started = time.process_time()
        answer = asyncio.ensure_future(talk.reply())
        longest_s = await longest_noop_s(other, answer)
        assert (await answer).startswith(b"250 ")
        assert longest_s < 1.5
        assert time.process_time() - started < 10


async def test_smtp_d17_a_header_of_a_million_fields_does_not_stall_other_sessions() -> None:
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, max_commands_without_mail=10**6, command_delay_s=0) as running,
    ):
        talk, other = await running.talk(), await running.talk()
        await talk.begin()
        wire = b"a:\r\n" * 1_000_000 + b"\r\nx\r\n"
        await talk.send(wire + b".\r\n")
        answer = asyncio.ensure_future(talk.reply())
        longest_s = await longest_noop_s(other, answer)
        assert (await answer).startswith(b"250 ")
        assert below_our_fields(hop.messages[0]) == wire
        assert longest_s < 1.5


FORGED = (
    b"X-Spam-Status: No, score=-99\r\nFrom: a@x.test\r\nx-SPAM-flag: NO\r\n"
    b"X-Spam-Report: one\r\n\ttwo\r\n three\r\nSubject: hello\r\nX-Spam-Status: No\r\n\r\n"
    b"X-Spam-Status: this is text\r\n"
)


async def test_smtp_d18_spam_is_tagged_and_forged_fields_are_removed() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, inspector=FakeInspector(SPAM)) as running:
        talk = await running.talk()
        assert await talk.deliver(FORGED) == QUEUED
        head, _, body = hop.messages[0].partition(b"\r\n\r\n")
        assert head.count(b"X-Spam-Status:") == 1
        assert b"X-Spam-Status: Yes, " in head
        assert b"\r\nX-Spam-Flag: YES\r\n" in head
        assert head.endswith(b"From: a@x.test\r\nSubject: hello")
        assert body == b"X-Spam-Status: this is text\r\n"


async def test_smtp_d19_rejected_spam_is_550_and_the_session_goes_on() -> None:
    inspector = FakeInspector(REJECT)
    async with ScriptedNextHop() as hop, relay(hop.url, inspector=inspector) as running:
        talk = await running.talk()
        assert (await talk.deliver()).startswith(b"550 5.7.1 ")
        assert hop.verbs == ["EHLO", "MAIL", "RCPT", "RSET"]
        inspector.answer = SPAM
        assert (await talk.deliver(hello=b"")).startswith(b"250 ")


FAULTS = [StorageUnavailable("no"), ZeroDivisionError("secret"), RecursionError(), MemoryError()]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
async def test_smtp_d20_an_unjudged_message_goes_on_marked(fault: Exception) -> None:
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, inspector=FakeInspector(fault=fault)) as running,
    ):
        talk = await running.talk()
        assert (await talk.deliver()).startswith(b"250 ")
        assert b"verdict=unscanned" in hop.messages[0]
        assert b"secret" not in hop.messages[0]
        assert [name for name, _ in running.observer.faults] == ["message.unscanned"]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
async def test_smtp_d20_an_unjudged_message_is_deferred_when_so_set(fault: Exception) -> None:
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, inspector=FakeInspector(fault=fault), on_fault=OnFault.DEFER) as running,
    ):
        talk = await running.talk()
        assert (await talk.deliver()).startswith(b"451 4.3.0 ")
        assert hop.messages == []


@pytest.mark.parametrize(("on_fault", "code"), [(OnFault.ACCEPT, b"250"), (OnFault.DEFER, b"451")])
async def test_smtp_d20_a_verdict_that_never_comes(on_fault: OnFault, code: bytes) -> None:
    inspector = FakeInspector(gate=asyncio.Event())
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, inspector=inspector, inspect_timeout_s=0.1, on_fault=on_fault) as running,
    ):
        assert (await (await running.talk()).deliver()).startswith(code)
        assert len(hop.messages) == (code == b"250")


async def test_smtp_d21_a_routing_loop_is_554() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        hops = b"Received: from a by b;\r\n\tnow\r\n"
        assert (await talk.deliver(hops * 99 + MESSAGE)).startswith(b"250 ")
        assert (await talk.deliver(hops * 100 + MESSAGE, hello=b"")).startswith(b"554 5.4.6 ")
        assert hop.verbs[-1] == "RSET"


async def test_smtp_d22_our_received_field_names_client_and_protocol() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        await (await running.talk()).deliver(hello=b"EHLO (evil\\) <c.test>")
        await (await running.talk()).deliver(hello=b"HELO c.test")
        first, second = (message.split(b"\r\nX-Spam")[0] for message in hop.messages)
        assert first == (
            b"Received: from ?evil?? ([127.0.0.1])\r\n\tby mx.test (spamd) with ESMTP;\r\n"
            b"\tFri, 15 Jan 2027 08:00:00 +0000"
        )
        assert b"from c.test ([127.0.0.1])" in second
        assert b" with SMTP;" in second


@pytest.mark.parametrize(
    ("helo", "named"),
    [
        (b"[127.0.0.1]", b"[127.0.0.1]"),
        (b"[IPv6:2001:db8::1]", b"[IPv6:2001:db8::1]"),
        (b"[127.0.0.1](evil)", b"?127.0.0.1??evil?"),
        (b"[[1]]", b"??1??"),
        (b"[]", b"??"),
    ],
)
async def test_smtp_d22_an_address_literal_keeps_its_brackets(helo: bytes, named: bytes) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        await (await running.talk()).deliver(hello=b"EHLO " + helo)
        assert hop.messages[0].startswith(b"Received: from " + named + b" ([127.0.0.1])\r\n")


async def test_smtp_d22_no_received_field_when_it_is_off() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, received=Received.OFF) as running:
        await (await running.talk()).deliver()
        assert b"Received:" not in hop.messages[0]


ODD = [
    b"no header at all\r\n",
    b"Subject: only\r\n\tfolded\r\n  header\r\n",
    b"From someone@x.test Mon Jan  1 00:00:00 2024\r\nSubject: mbox\r\n\r\nx\r\n",
    b"Subject: x\r\nX-Big: " + b"y" * 1_000_000 + b"\r\n\r\nx\r\n",
    b'Content-Type: multipart/mixed; boundary="\r\n\r\n--\r\nContent-Type: \x00\r\n',
    b": no name\r\nSubject: x\r\n\r\nx\r\n",
    b"Subject : blank before the colon\r\n\r\nx\r\n",
    b"\r\nbody only\r\n",
    b"Subject: x\r\n \r\nDate: blank folded line before\r\n\r\nx\r\n",
]


@pytest.mark.parametrize("wire", ODD)
async def test_smtp_d23_odd_messages_arrive_unchanged_below_our_fields(wire: bytes) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        assert (await talk.deliver(wire)).startswith(b"250 ")
        found = hop.messages[0]
        if wire.startswith(b"From "):
            line, _, wire = wire.partition(b"\r\n")
            assert found.startswith(line + b"\r\nReceived:")
        else:
            assert found.startswith(b"Received:")
        assert below_our_fields(found) == wire


async def test_smtp_d24_the_next_hop_is_kept_awake() -> None:
    inspector = FakeInspector(gate=asyncio.Event())
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, inspector=inspector, next_hop={"keepalive_s": 0.05}) as running,
    ):
        talk = await running.talk()
        await talk.begin()
        await hop.until(lambda: hop.verbs.count("NOOP") >= 2)
        await talk.send(MESSAGE + b".\r\n")
        await inspector.begun.wait()
        await hop.until(lambda: hop.verbs.count("NOOP") >= 4)
        assert inspector.gate is not None
        inspector.gate.set()
        assert await talk.reply() == QUEUED
        count = hop.verbs.count("NOOP")
        await talk.say(b"NOOP")
        assert hop.verbs.count("NOOP") <= count + 1


async def test_smtp_d24_the_next_hop_is_kept_awake_from_the_first_chunk_to_the_last() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, next_hop={"keepalive_s": 0.1}) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>", b"RCPT TO:<b@y.test>")
        await talk.send(b"BDAT 12\r\nSubject:")
        await hop.until(lambda: hop.verbs.count("NOOP") >= 2)
        await talk.send(b" x\r\n")
        await talk.reply()
        await hop.until(lambda: hop.verbs.count("NOOP") >= 4)
        assert await talk.say(b"BDAT 0 LAST") == QUEUED
        await talk.say(b"MAIL FROM:<a@x.test>", b"RCPT TO:<b@y.test>", b"BDAT 0", b"RSET")
        (session,) = running.relay.sessions.values()
        assert session.transaction.keepalive.due == inf


async def test_smtp_d24_a_next_hop_that_drops_all_the_same_is_451() -> None:
    inspector = FakeInspector(gate=asyncio.Event())
    async with ScriptedNextHop() as hop, relay(hop.url, inspector=inspector) as running:
        talk = await running.talk()
        await talk.begin()
        await talk.send(MESSAGE + b".\r\n")
        await inspector.begun.wait()
        for writer in hop.writers:
            writer.close()
        await hop.until(lambda: hop.open == 0)
        assert inspector.gate is not None
        inspector.gate.set()
        assert (await talk.reply()).startswith(b"451 4.4.2 ")


async def test_smtp_d24_nothing_comes_between_data_and_the_final_dot() -> None:
    hop = ScriptedNextHop(answers={"DATA": Do.NOTHING})
    async with (
        hop,
        relay(hop.url, next_hop={"keepalive_s": 0.01, "data_timeout_s": 0.5}) as running,
    ):
        talk = await running.talk()
        await talk.begin()
        await hop.until(lambda: "NOOP" in hop.verbs)
        await talk.send(MESSAGE + b".\r\n")
        await hop.until(lambda: "DATA" in hop.verbs)
        await asyncio.sleep(0.05)
        assert hop.verbs[-1] == "DATA"
