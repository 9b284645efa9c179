"""Rows M of the checklist, the envelope, where a dialog in a file is not enough."""

import pytest

from tests.relay.peers import Answer, ScriptedNextHop, relay

ADDRESSES = [
    b"<>",
    b'<"quoted local"@x.test>',
    b'<"a>b"@x.test>',
    b"<@relay.test,@other.test:a@x.test>",
    b"<a@[192.0.2.1]>",
    b"<a@[IPv6:2001:db8::1]>",
    b"<=?utf-8?q?a?=@x.test>",
    b"<a(comment)@x.test>",
    b"<user%other@x.test>",
    b"<SRS0=HHH=TT=orig.test=u@x.test>",
    b"<a b@x.test>",
    b"a@x.test",
    b"<A.Very+Long_Local=Part@X.TEST>",
]


async def test_smtp_m07_each_recipient_has_the_next_hops_answer() -> None:
    answers: list[Answer] = [
        b"250 2.1.5 ok\r\n",
        b"251 2.1.5 will forward\r\n",
        b"450 4.2.1 full\r\n",
        b"550-5.1.1 no\r\n550 5.1.1 such user\r\n",
        b"452 4.5.3 too many\r\n",
    ]
    hop = ScriptedNextHop(answers={"RCPT": list(answers)})
    async with hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>")
        found = [await talk.say(b"RCPT TO:<r%d@y.test>" % number) for number in range(5)]
        assert found == answers
        assert (await talk.say(b"DATA")).startswith(b"354")
        await talk.send(b"Subject: x\r\n\r\nx\r\n.\r\n")
        assert (await talk.reply()).startswith(b"250 ")
        assert hop.envelopes == [(b"FROM:<a@x.test>", [b"TO:<r0@y.test>", b"TO:<r1@y.test>"])]
        ((_, _, recipients),) = running.observer.scans
        assert recipients == 2


async def test_smtp_m09_many_recipients_and_the_same_one_twice() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, max_recipients=150) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>")
        lines = [b"RCPT TO:<r%d@y.test>" % (number // 2) for number in range(150)]
        assert {await talk.say(line) for line in lines} == {b"250 2.1.5 recipient fine\r\n"}
        assert (await talk.say(b"RCPT TO:<one@y.test>")).startswith(b"452 4.5.3 ")
        assert hop.commands[2:] == lines


@pytest.mark.parametrize(
    "answer",
    [
        b"hello there\r\n",
        b"25 fine\r\n",
        b"250-" + b"x" * 4096 + b"\r\n250 ok\r\n",
        b"250 " + b"x" * 4096,
        b"250-again\r\n" * 200,
        b"250-yes\r\n550 no\r\n",
        b"250 ok\n",
        b"354 go on\r\n",
        b"250 a\r\n250 b\r\n",
    ],
)
async def test_smtp_m12_a_malformed_reply_is_421(answer: bytes) -> None:
    async with ScriptedNextHop(answers={"MAIL": answer}) as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        found = await talk.say(b"MAIL FROM:<a@x.test>")
        if answer.startswith(b"250 a"):  # the first of the two is the answer; the second is a fault
            assert found == b"250 a\r\n"
            found = await talk.say(b"RCPT TO:<b@y.test>")
        elif answer.startswith(b"250 x"):
            found = b"421 4.3.0 "  # long, but one reply, when it ends
        assert found.startswith(b"421 4.")
        assert [event for event, _ in running.observer.faults] == ["session.failed"]


UTF8 = "FROM:<jürgen@x.test>".encode()


async def test_c6_bounces_pass_and_leave_no_trace_in_the_session() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        assert (await talk.deliver(sender=b"<>")).startswith(b"250 ")
        assert (await talk.deliver(hello=b"")).startswith(b"250 ")
        assert [sender for sender, _ in hop.envelopes] == [b"FROM:<>", b"FROM:<a@x.test>"]
        assert [envelope.sender for _, envelope in running.inspector.seen] == [b"", b"a@x.test"]


async def test_a_next_hop_that_went_away_between_two_mails_is_opened_anew() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        assert (await talk.deliver()).startswith(b"250 ")
        for writer in hop.writers:
            writer.write(b"421 4.4.2 idle too long\r\n")
            writer.close()
        await hop.until(lambda: hop.open == 0)
        assert (await talk.deliver(hello=b"")).startswith(b"250 ")
        assert hop.connections == 2


async def test_smtp_e09_a_reply_in_single_bytes_is_the_same_reply() -> None:
    answers = []
    for split in (False, True):
        async with ScriptedNextHop(split=split) as hop, relay(hop.url) as running:
            talk = await running.talk()
            answers.append(await talk.say(b"EHLO c.test") + await talk.deliver(hello=b""))
    assert answers[0] == answers[1]
