"""Rows P of the checklist: PIPELINING, CHUNKING, LMTP."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from spamd.relay.options import BareNewlines, Mixed
from tests.fakes import REJECT, FakeInspector
from tests.relay.peers import LETTER, QUEUED, Answer, Do, Running, ScriptedNextHop, Talk, relay
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


async def test_smtp_p01_a_session_in_one_write_is_answered_in_order() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.send(b"EHLO c.test\r\n" + ENVELOPE + b"DATA\r\n")
        assert (await talk.reply()).startswith(b"250-mx.test\r\n")
        answers = b"".join([await talk.reply() for _ in range(5)])
        assert answers == FINE + START
        await talk.send(LETTER + b".\r\n")
        assert await talk.reply() == QUEUED
        assert hop.verbs == ["EHLO", "MAIL", "RCPT", "RCPT", "RCPT", "DATA"]


async def test_smtp_p01_replies_to_a_group_leave_together() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        await talk.send(ENVELOPE)
        await talk.reader.readexactly(1)
        rest = len(FINE) - 1
        assert len(talk.reader._buffer) == rest  # type: ignore[attr-defined]  # one segment


async def test_smtp_p02_data_behind_refused_recipients_is_554() -> None:
    async with (
        ScriptedNextHop(answers={"RCPT": b"550 5.1.1 no\r\n"}) as hop,
        relay(hop.url) as running,
    ):
        talk = await running.talk()
        await talk.send(b"EHLO c.test\r\n" + ENVELOPE + b"DATA\r\nRSET\r\n")
        answers = [await talk.reply() for _ in range(7)]
        assert [answer[:3] for answer in answers[1:]] == [b"250", *[b"550"] * 3, b"554", b"250"]
        assert "DATA" not in hop.verbs


async def test_smtp_p03_what_follows_a_refused_mail_is_503() -> None:
    async with (
        ScriptedNextHop(answers={"MAIL": b"550 5.1.8 no\r\n"}) as hop,
        relay(hop.url) as running,
    ):
        talk = await running.talk()
        await talk.send(b"EHLO c.test\r\n" + ENVELOPE + b"DATA\r\n")
        answers = [await talk.reply() for _ in range(6)]
        assert [answer[:3] for answer in answers[1:]] == [b"550", *[b"503"] * 4]
        assert hop.verbs == ["EHLO", "MAIL"]


async def test_smtp_p04_two_messages_and_quit_in_one_write() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        one = ENVELOPE + b"DATA\r\n" + LETTER + b".\r\n"
        await talk.send(b"EHLO c.test\r\n" + one + one + b"QUIT\r\n")
        text = await talk.rest()
        assert text.endswith((FINE + START + QUEUED) * 2 + b"221 2.0.0 Bye\r\n")
        assert len(hop.messages) == 2


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
    ([LETTER], LETTER),
    ([LETTER, b""], LETTER),
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


async def test_smtp_p05_each_chunk_is_answered_with_its_size() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await envelope_of(running)
        await talk.send(b"BDAT 12\r\nSubject: x\r\nBDAT 2 LAST\r\n\r\n")
        assert await talk.reply() == b"250 2.0.0 12 octets\r\n"
        assert await talk.reply() == QUEUED


@pytest.mark.parametrize("mode", BareNewlines)
async def test_smtp_p05_bare_newlines_in_chunks_follow_the_setting(mode: BareNewlines) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, bare_newline=mode) as running:
        talk = await envelope_of(running)
        answer = await chunked(talk, b"Subject: x\r\n\r\none\n.\ntwo\r\n")
        if mode is BareNewlines.REJECT:
            assert answer.startswith(b"550 5.5.2 ")
        else:
            assert below_our_fields(hop.messages[0]) == b"Subject: x\r\n\r\none\r\n..\r\ntwo\r\n"


@pytest.mark.parametrize(
    "before", [[], [b"EHLO c.test"], [b"EHLO c.test", b"MAIL FROM:<a@x.test>"]]
)
async def test_smtp_p06_and_c13_a_chunk_out_of_place_is_swallowed(before: list[bytes]) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.say(*before)
        await talk.send(b"BDAT 14\r\nRSET\r\nRSET\r\n\r\nNOOP\r\n")
        assert (await talk.reply())[:9] in {b"503 5.5.1", b"554 5.5.1"}
        assert await talk.reply() == b"250 2.0.0 OK\r\n"
        assert "RSET" not in hop.verbs


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


@pytest.mark.parametrize(
    "size",
    [b"", b"ten", b"-1", b"10 FIRST", b"10 LAST LAST", b"1.5", b"9" * 5000, "٣".encode()],
    ids=ascii,
)
async def test_smtp_p06_a_chunk_without_a_size_ends_the_session(size: bytes) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await envelope_of(running)
        assert (await talk.say(b"BDAT " + size)).startswith(b"501 5.5.4 ")
        assert await talk.rest() == b""


async def test_smtp_p07_data_behind_bdat_is_503() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await envelope_of(running)
        await talk.send(b"BDAT 12\r\nSubject: x\r\n")
        await talk.reply()
        assert (await talk.say(b"DATA")).startswith(b"503 5.5.1 ")


async def test_smtp_p07_binarymime_is_not_for_us() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        assert (await talk.say(b"MAIL FROM:<a@x.test> BODY=BINARYMIME")).startswith(b"501 5.5.4 ")
        assert (await talk.say(b"DATA")).startswith(b"503 5.5.1 ")


async def test_smtp_p08_chunks_over_the_limit_are_swallowed_and_refused() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, max_message_bytes=1000) as running:
        talk = await envelope_of(running)
        chunk = b"BDAT 600\r\n" + b"x" * 598 + b"\r\n"
        await talk.send(chunk + chunk + chunk + b"BDAT 2 LAST\r\n\r\nNOOP\r\n")
        answers = [(await talk.reply())[:9] for _ in range(5)]
        assert answers == [b"250 2.0.0", b"552 5.3.4", b"503 5.5.1", b"503 5.5.1", b"250 2.0.0"]
        assert hop.verbs[-1] == "RSET"
        assert hop.messages == []


async def test_smtp_p09_lmtp_knows_lhlo_only() -> None:
    async with ScriptedNextHop(lmtp=True) as hop, lmtp(hop.url) as running:
        talk = await running.talk(greeting=False)
        assert await talk.reply() == b"220 mx.test LMTP\r\n"
        assert (await talk.say(b"EHLO c.test")).startswith(b"500 5.5.1 ")
        assert (await talk.say(b"HELO c.test")).startswith(b"500 5.5.1 ")
        assert (await talk.say(b"LHLO c.test")).startswith(b"250-mx.test\r\n")
        assert hop.commands == [b"LHLO c.test"]


MIXED: list[Answer] = [
    b"250 2.0.0 one\r\n",
    b"452 4.2.2 full\r\n",
    b"550-5.2.1 no\r\n550 5.2.1 no\r\n",
]


async def test_smtp_p10_and_c9_each_recipient_has_its_reply_in_order() -> None:
    async with (
        ScriptedNextHop(lmtp=True, answers={".": list(MIXED)}) as hop,
        lmtp(hop.url) as running,
    ):
        talk = await begin_lmtp(running)
        await talk.send(LETTER + b".\r\n")
        assert [await talk.reply() for _ in range(3)] == MIXED
        assert (await talk.say(b"NOOP")).startswith(b"250 ")


@pytest.mark.parametrize("what", ["spam", "size", "fault"])
async def test_smtp_p11_a_reply_of_ours_is_given_for_each_recipient(what: str) -> None:
    inspector = FakeInspector(REJECT) if what == "spam" else FakeInspector()
    options = {"max_message_bytes": 10} if what == "size" else {}
    if what == "fault":
        inspector = FakeInspector(fault=ZeroDivisionError())
        options = {"on_fault": "defer"}  # type: ignore[dict-item]  # the dataclass takes text too
    code = {"spam": b"550 5.7.1", "size": b"552 5.3.4", "fault": b"451 4.3.0"}[what]
    async with (
        ScriptedNextHop(lmtp=True) as hop,
        lmtp(hop.url, inspector=inspector, **options) as running,
    ):
        talk = await begin_lmtp(running)
        await talk.send(LETTER + b".\r\n")
        assert [(await talk.reply())[:9] for _ in range(3)] == [code] * 3
        assert (await talk.say(b"NOOP")).startswith(b"250 ")
        assert hop.messages == []


async def test_smtp_p12_lmtp_without_recipients_and_with_one_twice() -> None:
    answers: list[Answer] = [b"550 5.1.1 no\r\n", b"250 ok\r\n"]
    async with (
        ScriptedNextHop(lmtp=True, answers={"RCPT": answers}) as hop,
        lmtp(hop.url) as running,
    ):
        talk = await running.talk()
        await talk.say(b"LHLO c.test", b"MAIL FROM:<a@x.test>", b"RCPT TO:<b@y.test>")
        assert (await talk.say(b"DATA")).startswith(b"503 5.5.1 ")
        await talk.say(b"RCPT TO:<b@y.test>", b"RCPT TO:<b@y.test>", b"DATA")
        await talk.send(LETTER + b".\r\n")
        assert [await talk.reply() for _ in range(2)] == [QUEUED] * 2
        assert (await talk.say(b"NOOP")).startswith(b"250 ")


async def test_smtp_p13_from_lmtp_to_smtp_the_one_reply_is_repeated() -> None:
    async with ScriptedNextHop() as hop, lmtp(hop.url) as running:
        talk = await begin_lmtp(running)
        await talk.send(LETTER + b".\r\n")
        assert [await talk.reply() for _ in range(3)] == [QUEUED] * 3
        assert hop.commands[0] == b"EHLO c.test"


FOLDED = [
    ([b"250 2.0.0 a\r\n", b"250 2.0.0 b\r\n"], b"250 2.0.0 a\r\n"),
    ([b"550 5.2.1 a\r\n", b"554 5.2.1 b\r\n"], b"550 5.2.1 a\r\n"),
    ([b"450 4.2.1 a\r\n", b"452 4.2.1 b\r\n"], b"450 4.2.1 a\r\n"),
    ([b"250 2.0.0 a\r\n", b"550 5.2.1 b\r\n"], b"451 4.3.0 "),
    ([b"450 4.2.1 a\r\n", b"550 5.2.1 b\r\n"], b"451 4.3.0 "),
]


@pytest.mark.parametrize(("replies", "expected"), FOLDED)
async def test_smtp_p14_several_replies_become_one(replies: list[Answer], expected: bytes) -> None:
    async with ScriptedNextHop(lmtp=True, answers={".": replies}) as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.begin(recipients=(b"<b@y.test>", b"<c@y.test>"))
        await talk.send(LETTER + b".\r\n")
        assert (await talk.reply()).startswith(expected)
        assert (await talk.say(b"NOOP")).startswith(b"250 ")


async def test_smtp_p14_one_recipient_a_transaction_when_so_set() -> None:
    async with (
        ScriptedNextHop(lmtp=True) as hop,
        relay(hop.url, next_hop={"mixed_replies": Mixed.SINGLE}) as running,
    ):
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>", b"RCPT TO:<b@y.test>")
        assert (await talk.say(b"RCPT TO:<c@y.test>")).startswith(b"452 4.5.3 ")


@pytest.mark.parametrize("protocol", ["LMTP", "SMTP"])
async def test_smtp_p15_an_lmtp_next_hop_that_drops_between_its_replies(protocol: str) -> None:
    in_lmtp = protocol == "LMTP"
    answers: list[Answer] = [b"250 2.0.0 one\r\n", Do.CLOSE]
    hop = ScriptedNextHop(lmtp=True, answers={".": answers})
    async with hop, (lmtp if in_lmtp else relay)(hop.url) as running:
        talk = await running.talk()
        await talk.begin(
            hello=b"LHLO c.test" if in_lmtp else b"EHLO c.test",
            recipients=(b"<b@y.test>", b"<c@y.test>", b"<d@y.test>"),
        )
        await talk.send(LETTER + b".\r\n")
        if in_lmtp:
            found = [await talk.reply() for _ in range(3)]
            assert found[0] == b"250 2.0.0 one\r\n"
            assert [answer[:9] for answer in found[1:]] == [b"451 4.4.2"] * 2
        else:
            assert (await talk.reply()).startswith(b"451 4.3.0 ")


async def test_smtp_p15_an_lmtp_next_hop_that_takes_its_leave_behind_its_354() -> None:
    hop = ScriptedNextHop(lmtp=True, answers={"DATA": b"354 go on\r\n421 4.3.2 no, bye\r\n"})
    async with hop, lmtp(hop.url) as running:
        talk = await begin_lmtp(running)
        await talk.send(LETTER + b".\r\n")
        assert [(await talk.reply())[:9] for _ in range(3)] == [
            b"421 4.3.2",
            b"451 4.4.2",
            b"451 4.4.2",
        ]
        assert running.observer.faults == []


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
