"""Rows E of the checklist: EHLO and capabilities."""

import pytest

from tests.relay.peers import FULL, Do, ScriptedNextHop, relay


def keywords(answer: bytes) -> list[bytes]:
    return [line[4:] for line in answer.split(b"\r\n")[1:] if line]


async def test_smtp_e01_only_known_keywords_of_the_next_hop_are_offered() -> None:
    hop = ScriptedNextHop(
        extensions=[*FULL, b"XCLIENT NAME", b"XFORWARD NAME", b"ETRN", b"BURL", b"X-EXPS NTLM",
                    b"CHUNKING", b"BINARYMIME", b"VERB", b"AUTH PLAIN", b"STARTTLS",
                    b"MT-PRIORITY MIXER", b"DELIVERBY 240", b"LIMITS RCPTMAX=5"]
    )  # fmt: skip
    async with hop, relay(hop.url, next_hop={"tls": "none"}) as running:
        talk = await running.talk()
        answer = await talk.say(b"EHLO client.test")
        assert answer.startswith(b"250-mx.test\r\n")
        assert keywords(answer) == [
            b"PIPELINING",
            b"SIZE 19995904",
            b"8BITMIME",
            b"SMTPUTF8",
            b"DSN",
            b"ENHANCEDSTATUSCODES",
            b"DELIVERBY 240",
            b"MT-PRIORITY MIXER",
            b"LIMITS RCPTMAX=5",
            b"CHUNKING",
        ]
        assert hop.commands == [b"EHLO client.test"]


async def test_smtp_e01_our_own_name_is_used_when_set() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, next_hop={"own_helo": True}) as running:
        await (await running.talk()).say(b"EHLO client.test")
        assert hop.commands == [b"EHLO mx.test"]


async def test_smtp_e02_helo_has_no_extensions() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        assert await talk.say(b"HELO client.test") == b"250 mx.test\r\n"
        await talk.say(b"MAIL FROM:<a@x.test> SIZE=5 RET=HDRS")
        assert hop.commands == [b"HELO client.test", b"MAIL FROM:<a@x.test> SIZE=5 RET=HDRS"]


async def test_smtp_e03_a_refused_ehlo_is_passed_on_and_helo_works() -> None:
    hop = ScriptedNextHop(answers={"EHLO": b"502 5.5.1 never heard of it\r\n"})
    async with hop, relay(hop.url) as running:
        talk = await running.talk()
        assert await talk.say(b"EHLO c.test") == b"502 5.5.1 never heard of it\r\n"
        assert hop.verbs == ["EHLO"]
        assert (await talk.say(b"MAIL FROM:<a@x.test>")).startswith(b"503 5.5.1 ")
        assert await talk.say(b"HELO c.test") == b"250 mx.test\r\n"
        assert (await talk.deliver(hello=b"")).startswith(b"250 ")


async def test_smtp_e03_an_answer_to_ehlo_that_asks_for_more_is_421() -> None:
    async with (
        ScriptedNextHop(answers={"EHLO": b"354 go on\r\n"}) as hop,
        relay(hop.url) as running,
    ):
        assert (await (await running.talk()).say(b"EHLO c.test")).startswith(b"421 4.3.0 ")


async def test_smtp_e04_a_second_ehlo_resets_the_transaction() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>", b"RCPT TO:<old@y.test>")
        assert (await talk.say(b"EHLO c.test")).startswith(b"250-")
        assert (await talk.say(b"DATA")).startswith(b"503 5.5.1 ")
        assert (await talk.deliver(hello=b"")).startswith(b"250 ")
        assert hop.envelopes == [(b"FROM:<a@x.test>", [b"TO:<b@y.test>"])]


@pytest.mark.parametrize("line", [b"EHLO", b"EHLO  ", b"HELO", b"EHLO " + b"a" * 300])
async def test_smtp_e05_a_hello_without_a_sane_name_is_501(line: bytes) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        assert (await talk.say(line)).startswith(b"501 5.5.4 ")
        assert hop.connections == 0


@pytest.mark.parametrize("line", [b"EHLO a\x00b", b"EHLO a\rb", b"EHLO a\x1bb"])
async def test_smtp_e05_a_hello_with_control_bytes_is_refused(line: bytes) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        assert (await talk.say(line)).startswith(b"500 5.5.2 ")
        assert hop.connections == 0


async def test_smtp_e06_mail_before_hello_is_503() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        assert (await talk.say(b"MAIL FROM:<a@x.test>")).startswith(b"503 5.5.1 ")
        assert (await talk.say(b"RCPT TO:<a@x.test>")).startswith(b"503 5.5.1 ")
        assert (await talk.say(b"DATA")).startswith(b"503 5.5.1 ")
        assert hop.connections == 0


@pytest.mark.parametrize(
    ("theirs", "ours", "offered"),
    [
        (b"SIZE 10000000", 50_000_000, b"SIZE 9995904"),
        (b"SIZE 10000000", 5_000_000, b"SIZE 4995904"),
        (b"SIZE", 50_000_000, b"SIZE 49995904"),
        (b"SIZE 0", 50_000_000, b"SIZE 49995904"),
        (b"DSN", 50_000_000, b"SIZE 49995904"),
    ],
)
async def test_smtp_e07_size_is_the_smaller_limit_less_our_fields(
    theirs: bytes, ours: int, offered: bytes
) -> None:
    hop = ScriptedNextHop(extensions=[theirs])
    async with hop, relay(hop.url, max_message_bytes=ours) as running:
        assert offered in keywords(await (await running.talk()).say(b"EHLO c.test"))


async def test_smtp_e08_what_the_next_hop_lacks_is_not_offered() -> None:
    async with ScriptedNextHop(extensions=[b"HELP"]) as hop, relay(hop.url) as running:
        found = keywords(await (await running.talk()).say(b"EHLO c.test"))
        assert found == [b"PIPELINING", b"SIZE 52424704", b"CHUNKING"]


async def test_smtp_e09_a_reply_in_single_bytes_is_the_same_reply() -> None:
    answers = []
    for split in (False, True):
        async with ScriptedNextHop(split=split) as hop, relay(hop.url) as running:
            talk = await running.talk()
            answers.append(await talk.say(b"EHLO c.test") + await talk.deliver(hello=b""))
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (b"VRFY bob", b"252 2.0.0 "),
        (b"EXPN list", b"502 5.5.1 "),
        (b"HELP", b"214 2.0.0 "),
        (b"XYZZY", b"500 5.5.2 "),
        (b"handle_exception", b"500 5.5.2 "),
        (b"noop   ", b"250 2.0.0 "),
        (b"\xff\xfe", b"500 "),
        (b"ehlo c.test", b"250-"),
        (b"LHLO c.test", b"500 5.5.1 "),
    ],
)
async def test_smtp_e10_other_verbs(line: bytes, answer: bytes) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        assert (await (await running.talk()).say(line)).startswith(answer)


@pytest.mark.parametrize("line", [b"XYZZY", b"NOOP \x01", b""])
async def test_too_many_wrong_commands_end_the_session(line: bytes) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, max_bad_commands=3) as running:
        talk = await running.talk()
        answers = [await talk.say(line) for _ in range(4)]
        assert [answer[:3] for answer in answers] == [b"500", b"500", b"500", b"421"]
        assert await talk.rest() == b""


async def test_a_next_hop_that_is_silent_after_ehlo_is_421() -> None:
    hop = ScriptedNextHop(answers={"EHLO": Do.NOTHING})
    async with hop, relay(hop.url, next_hop={"greeting_timeout_s": 0.2}) as running:
        assert (await (await running.talk()).say(b"EHLO c.test")).startswith(b"421 4.4.2 ")
