"""Rows P of the checklist: PIPELINING, CHUNKING, LMTP."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from spamd.relay.options import BareNewlines
from tests.relay.peers import MESSAGE, QUEUED, Answer, Running, ScriptedNextHop, Talk, relay
from tests.relay.test_checklist_data import below_our_fields, drip_into

ENVELOPE = (
    b"MAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nRCPT TO:<c@y.test>\r\nRCPT TO:<d@y.test>\r\n"
)
START = b"354 End data with <CR><LF>.<CR><LF>\r\n"
FINE = b"250 2.1.0 sender fine\r\n" + b"250 2.1.5 recipient fine\r\n" * 3


def lmtp(url: str, **options: Any) -> Any:
    """Run a relay that takes LMTP."""
    return relay(url, listen=(), listen_lmtp=("127.0.0.1:0",), **options)


async def begin_lmtp(
    running: Running, recipients: Sequence[bytes] = (b"<b@y.test>", b"<c@y.test>", b"<d@y.test>")
) -> Talk:
    talk = await running.talk()
    await talk.begin(hello=b"LHLO c.test", recipients=recipients)
    return talk


async def test_smtp_p01_replies_to_a_group_leave_together() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        await talk.send(ENVELOPE)
        await talk.reader.readexactly(1)
        rest = len(FINE) - 1
        assert len(talk.reader._buffer) == rest  # type: ignore[attr-defined]  # one segment


async def chunked(talk: Talk, *chunks: bytes) -> bytes:
    """Send chunks, the last one as such, and return the final reply."""
    answer = b""
    for number, chunk in enumerate(chunks):
        last = b" LAST" if number == len(chunks) - 1 else b""
        await talk.send(b"BDAT %d%s\r\n" % (len(chunk), last) + chunk)
        answer = await talk.reply()
    return answer


async def envelope_of(running: Running) -> Talk:
    talk = await running.talk()
    await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>", b"RCPT TO:<b@y.test>")
    return talk


CHUNKS = [
    ([MESSAGE], MESSAGE),
    ([MESSAGE, b""], MESSAGE),
    ([b"Subject: x\r\n\r\n.dot\r\n", b".second\r\n", b"..\r\n"],
     b"Subject: x\r\n\r\n..dot\r\n..second\r\n...\r\n"),
    ([b"Subject: x\r\n\r\nend\r\n.\r\nof data\r\n"], b"Subject: x\r\n\r\nend\r\n..\r\nof data\r\n"),
    ([b"Subject: x\r\n\r\nend\r", b"\n", b".\r\nof data\r\n"],
     b"Subject: x\r\n\r\nend\r\n..\r\nof data\r\n"),
    ([b"Subject: x\r\n\r\nno last line end"], b"Subject: x\r\n\r\nno last line end\r\n"),
    ([b"Subject: x\r\n\r\nhalf\r", b""], b"Subject: x\r\n\r\nhalf\r\n"),
    ([b".", b"\r\n"], b"..\r\n"),
    ([bytes([sign]) for sign in b"Subject: x\r\n\r\n.\r\n"], b"Subject: x\r\n\r\n..\r\n"),
    ([b""], b""),
]  # fmt: skip


@pytest.mark.parametrize(("chunks", "wire"), CHUNKS)
async def test_smtp_p05_chunks_become_data_with_dots_stuffed(
    chunks: list[bytes], wire: bytes
) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await envelope_of(running)
        assert await chunked(talk, *chunks) == QUEUED
        assert below_our_fields(hop.messages[0]) == wire
        assert hop.verbs[-1] == "DATA"


@pytest.mark.parametrize("mode", BareNewlines)
async def test_smtp_p05_bare_newlines_in_chunks_follow_the_setting(mode: BareNewlines) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, bare_newline=mode) as running:
        talk = await envelope_of(running)
        answer = await chunked(talk, b"Subject: x\r\n\r\none\n.\ntwo\r\n")
        if mode is BareNewlines.REJECT:
            assert answer.startswith(b"550 5.5.2 ")
        else:
            assert below_our_fields(hop.messages[0]) == b"Subject: x\r\n\r\none\r\n..\r\ntwo\r\n"


async def test_smtp_p06_and_d15_a_chunk_out_of_place_holds_no_place_for_ever() -> None:
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, data_grace_s=0.2, data_rate=10_000) as running,
    ):
        talk = await running.talk()
        await talk.send(b"BDAT 1000000000\r\n")
        async with asyncio.TaskGroup() as group:
            drip = group.create_task(drip_into(talk))
            assert (await talk.reply()).startswith(b"421 4.4.2 ")
            drip.cancel()


async def test_smtp_p06_and_d14_a_chunk_out_of_place_is_not_swallowed_without_end() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, max_message_bytes=1_000_000) as running:
        talk = await running.talk()
        with pytest.raises((ConnectionError, TimeoutError)):  # noqa: PT012 - one act, repeated
            await talk.send(b"BDAT 1000000000\r\n")
            for _ in range(200):
                await talk.send(b"x" * 1_000_000)


MIXED: list[Answer] = [
    b"250 2.0.0 one\r\n",
    b"452 4.2.2 full\r\n",
    b"550-5.2.1 no\r\n550 5.2.1 no\r\n",
]


FOLDED = [
    ([b"250 2.0.0 a\r\n", b"250 2.0.0 b\r\n"], b"250 2.0.0 a\r\n"),
    ([b"550 5.2.1 a\r\n", b"554 5.2.1 b\r\n"], b"550 5.2.1 a\r\n"),
    ([b"450 4.2.1 a\r\n", b"452 4.2.1 b\r\n"], b"450 4.2.1 a\r\n"),
    ([b"250 2.0.0 a\r\n", b"550 5.2.1 b\r\n"], b"451 4.3.0 "),
    ([b"450 4.2.1 a\r\n", b"550 5.2.1 b\r\n"], b"451 4.3.0 "),
]


async def test_c10_three_mails_rset_and_a_repeated_ehlo_on_one_connection() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        assert await talk.deliver(sender=b"<one@x.test>") == QUEUED
        await talk.say(b"RSET", b"MAIL FROM:<no@x.test>", b"RCPT TO:<no@y.test>", b"RSET")
        assert await talk.deliver(sender=b"<two@x.test>", hello=b"") == QUEUED
        assert await talk.deliver(sender=b"<three@x.test>") == QUEUED
        assert [sender for sender, _ in hop.envelopes] == [
            b"FROM:<one@x.test>",
            b"FROM:<two@x.test>",
            b"FROM:<three@x.test>",
        ]
        assert {len(recipients) for _, recipients in hop.envelopes} == {1}
