"""Rows M of the checklist: the envelope."""

import pytest

from tests.relay.peers import FULL, Answer, Do, ScriptedNextHop, relay

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


@pytest.mark.parametrize("address", ADDRESSES)
async def test_smtp_m01_addresses_arrive_byte_for_byte(address: bytes) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        assert await talk.say(b"MAIL FROM:" + address) == b"250 2.1.0 sender fine\r\n"
        assert await talk.say(b"RCPT TO:" + address) == b"250 2.1.5 recipient fine\r\n"
        assert hop.commands[1:] == [b"MAIL FROM:" + address, b"RCPT TO:" + address]


@pytest.mark.parametrize(
    "parameters",
    [
        b"RET=HDRS ENVID=QQ314159aBc",
        b"AUTH=<>",
        b"BODY=8BITMIME",
        b"SMTPUTF8",
        b"MT-PRIORITY=3",
        b"SIZE=1000",
        b"SIZE=1000 BODY=8BITMIME XOORG=Example.Org ret=full",
    ],
)
async def test_smtp_m02_parameters_arrive_byte_for_byte(parameters: bytes) -> None:
    hop = ScriptedNextHop(extensions=[*FULL, b"AUTH PLAIN", b"MT-PRIORITY"])
    async with hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        line = b"MAIL FROM:<a@x.test> " + parameters
        assert await talk.say(line) == b"250 2.1.0 sender fine\r\n"
        assert hop.commands[-1] == line


async def test_smtp_m03_dsn_parameters_of_recipients_arrive_byte_for_byte() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        line = b"RCPT TO:<b@y.test> NOTIFY=SUCCESS,failure ORCPT=rfc822;a+2Bb@c"
        await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>", line)
        assert hop.commands[-1] == line


async def test_c5_parameters_that_the_next_hop_does_not_know_are_left_out() -> None:
    async with ScriptedNextHop(extensions=[b"8BITMIME"]) as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.say(
            b"EHLO c.test",
            b"MAIL FROM:<a@x.test> SIZE=1 AUTH=<> BODY=8BITMIME XOORG=Example.Org",
            b"RCPT TO:<b@y.test> ORCPT=rfc822;b@y.test NOTIFY=NEVER",
        )
        assert hop.commands[1:] == [
            b"MAIL FROM:<a@x.test> BODY=8BITMIME XOORG=Example.Org",
            b"RCPT TO:<b@y.test>",
        ]


async def test_smtp_m04_a_size_above_the_limit_is_552_at_mail() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, max_message_bytes=10_000) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        for size in (b"10001", b"9" * 5000):
            answer = await talk.say(b"MAIL FROM:<a@x.test> SIZE=" + size)
            assert answer.startswith(b"552 5.3.4 ")
        assert hop.verbs == ["EHLO"]
        assert (await talk.say(b"MAIL FROM:<a@x.test> SIZE=9999")).startswith(b"250")


@pytest.mark.parametrize(
    "answer",
    [
        b"450 4.7.1 not now\r\n",
        b"550-5.1.8 line one\r\n550-5.1.8 line two\r\n550 5.1.8 line three\r\n",
        "550 5.1.8 für dich nicht\r\n".encode(),
        b"250-fine\r\n250 really\r\n",
    ],
)
async def test_smtp_m05_the_answer_to_mail_is_passed_on(answer: bytes) -> None:
    async with ScriptedNextHop(answers={"MAIL": answer}) as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        assert await talk.say(b"MAIL FROM:<a@x.test>") == answer
        if not answer.startswith(b"2"):
            assert (await talk.say(b"RCPT TO:<b@y.test>")).startswith(b"503 5.5.1 ")
            assert hop.verbs == ["EHLO", "MAIL"]


async def test_smtp_m06_a_second_mail_is_503() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>")
        assert (await talk.say(b"MAIL FROM:<c@x.test>")).startswith(b"503 5.5.1 ")
        assert hop.verbs == ["EHLO", "MAIL"]


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


async def test_smtp_m08_recipients_and_data_need_what_comes_before() -> None:
    async with (
        ScriptedNextHop(answers={"RCPT": b"550 5.1.1 no\r\n"}) as hop,
        relay(hop.url) as running,
    ):
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        assert (await talk.say(b"RCPT TO:<b@y.test>")).startswith(b"503 5.5.1 ")
        await talk.say(b"MAIL FROM:<a@x.test>", b"RCPT TO:<b@y.test>")
        assert (await talk.say(b"DATA")).startswith(b"554 5.5.1 ")
        assert "DATA" not in hop.verbs


async def test_smtp_m09_many_recipients_and_the_same_one_twice() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, max_recipients=150) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>")
        lines = [b"RCPT TO:<r%d@y.test>" % (number // 2) for number in range(150)]
        assert {await talk.say(line) for line in lines} == {b"250 2.1.5 recipient fine\r\n"}
        assert (await talk.say(b"RCPT TO:<one@y.test>")).startswith(b"452 4.5.3 ")
        assert hop.commands[2:] == lines


@pytest.mark.parametrize("verb", ["MAIL", "RCPT", "RSET"])
@pytest.mark.parametrize("what", [Do.CLOSE, Do.RESET, Do.NOTHING])
async def test_smtp_m10_a_next_hop_lost_or_silent_is_421(verb: str, what: Do) -> None:
    hop = ScriptedNextHop(answers={verb: what})
    async with hop, relay(hop.url, next_hop={"command_timeout_s": 0.2}) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        answer = b""
        for line in (b"MAIL FROM:<a@x.test>", b"RCPT TO:<b@y.test>", b"RSET"):
            answer = await talk.say(line)
            if line.startswith(verb.encode()):
                break
        assert answer.startswith(b"421 4.4.2 ")
        assert await talk.rest() == b""


@pytest.mark.parametrize("verb", ["MAIL", "RCPT"])
async def test_smtp_m11_a_421_of_the_next_hop_is_passed_on_and_ends_the_session(verb: str) -> None:
    async with (
        ScriptedNextHop(answers={verb: b"421 4.3.2 next.test going down\r\n"}) as hop,
        relay(hop.url) as running,
    ):
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        answer = await talk.say(b"MAIL FROM:<a@x.test>")
        if verb == "RCPT":
            answer = await talk.say(b"RCPT TO:<b@y.test>")
        assert answer == b"421 4.3.2 next.test going down\r\n"
        assert await talk.rest() == b""


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


@pytest.mark.parametrize(
    "line",
    [
        b"MAIL FROM:<a\x00@x.test>\r\n",
        b"MAIL FROM:<a\rRCPT TO:<b@y.test>\r\n",
        b"MAIL FROM:<a\x08@x.test>\r\n",
        b"MAIL FROM:<a@x.test>\n",
        b"MAIL FROM:<a@x.test>\r\r\n",
        b"\r\n",
    ],
)
async def test_smtp_m13_no_command_can_be_smuggled_in_an_argument(line: bytes) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        await talk.send(line)
        assert (await talk.reply()).startswith(b"500 ")
        assert (await talk.say(b"NOOP")).startswith(b"250 ")
        assert hop.verbs == ["EHLO"]


async def test_smtp_m14_rset_works_in_every_state() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        assert await talk.say(b"RSET") == b"250 2.0.0 OK\r\n"
        await talk.say(b"EHLO c.test")
        assert await talk.say(b"RSET") == b"250 2.0.0 OK\r\n"
        await talk.say(b"MAIL FROM:<a@x.test>", b"RCPT TO:<old@y.test>")
        assert await talk.say(b"RSET") == b"250 2.0.0 OK\r\n"
        assert (await talk.deliver(hello=b"")).startswith(b"250 ")
        assert hop.envelopes == [(b"FROM:<a@x.test>", [b"TO:<b@y.test>"])]


UTF8 = "FROM:<jürgen@x.test>".encode()


async def test_smtp_m15_utf8_addresses_arrive_byte_for_byte() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        await talk.say(b"MAIL " + UTF8 + b" SMTPUTF8")
        assert hop.commands[-1] == b"MAIL " + UTF8 + b" SMTPUTF8"
        await talk.say(b"RSET", b"MAIL " + UTF8)
        assert hop.commands[-1] == b"MAIL " + UTF8
        await talk.say(b"RSET", b"MAIL FROM:<\xff\xfe@x.test>")
        assert hop.commands[-1] == b"MAIL FROM:<\xff\xfe@x.test>"


async def test_smtp_m15_smtputf8_never_goes_where_it_is_not_understood() -> None:
    async with ScriptedNextHop(extensions=[b"8BITMIME"]) as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        assert (await talk.say(b"MAIL " + UTF8 + b" SMTPUTF8")).startswith(b"553 5.6.7 ")
        assert hop.verbs == ["EHLO"]


async def test_c6_bounces_pass_and_leave_no_trace_in_the_session() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        assert (await talk.deliver(sender=b"<>")).startswith(b"250 ")
        assert (await talk.deliver(hello=b"")).startswith(b"250 ")
        assert [sender for sender, _ in hop.envelopes] == [b"FROM:<>", b"FROM:<a@x.test>"]
        assert [envelope.sender for _, envelope in running.inspector.seen] == [b"", b"a@x.test"]


async def test_c8_one_refused_recipient_of_five_does_not_harm_the_others() -> None:
    answers: list[Answer] = [b"250 ok\r\n", b"250 ok\r\n", b"550 5.1.1 no\r\n", b"250 ok\r\n"]
    async with ScriptedNextHop(answers={"RCPT": answers}) as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>")
        found = [await talk.say(b"RCPT TO:<r%d@y.test>" % number) for number in range(5)]
        assert [answer[:3] for answer in found] == [b"250", b"250", b"550", b"250", b"250"]
        await talk.say(b"DATA")
        await talk.send(b"Subject: x\r\n\r\n.\r\n")
        assert (await talk.reply()).startswith(b"250 ")
        assert len(hop.messages) == 1
        assert len(hop.envelopes[0][1]) == 4


async def test_a_next_hop_that_went_away_between_two_mails_is_opened_anew() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        assert (await talk.deliver()).startswith(b"250 ")
        for writer in hop._writers:
            writer.write(b"421 4.4.2 idle too long\r\n")
            writer.close()
        await hop.until(lambda: hop.open == 0)
        assert (await talk.deliver(hello=b"")).startswith(b"250 ")
        assert hop.connections == 2
