"""Fault cases C1–C26, F13 and F14, taken from bug reports of other products.

Those that are rows of the checklist too stand with them (C5, C6, C8–C13, C18); those about scanning
and rendering (C17, C20) stand with the message room.
"""

import asyncio
import logging
import re

import dkim
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from spamd.bayes.decision import Action, Verdict
from spamd.message.features import extract
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.network.judge import OnFault
from spamd.relay.content.data import unstuffed
from spamd.relay.options import BareNewlines
from tests.fakes import REJECT, SPAM, FakeInspector, fake_report
from tests.relay.peers import MESSAGE, QUEUED, Answer, ScriptedNextHop, relay
from tests.relay.test_checklist_data import below_our_fields
from tests.waiting import until


async def test_c1_a_second_envelope_in_the_text_is_text() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        second = b"\n.\r\nMAIL FROM:<evil@x.test>\r\nRCPT TO:<v@y.test>\r\nDATA\r\nSubject: 2\r\n"
        assert await talk.deliver(MESSAGE + second) == QUEUED
        assert [sender for sender, _ in hop.envelopes] == [b"FROM:<a@x.test>"]
        assert b"\r\n..\r\nMAIL FROM:<evil@x.test>\r\n" in hop.messages[0]


@pytest.mark.parametrize("mode", BareNewlines)
async def test_c2_a_lone_lf_is_settled_by_us(mode: BareNewlines) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, bare_newline=mode) as running:
        talk = await running.talk()
        answer = await talk.deliver(MESSAGE + b"one\ntwo\r\n")
        assert answer == QUEUED if mode is BareNewlines.NORMALIZE else answer.startswith(b"550 ")
        assert all(re.search(rb"(?<!\r)\n", message) is None for message in hop.messages)


@pytest.mark.parametrize("length", [5_000, 2_000_000])
async def test_c3_lines_of_any_length_pass(length: int) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        wire = b"Subject: " + b"s" * 989 + b"\r\n\r\n" + b"x" * length + b"\r\n"
        assert await talk.deliver(wire) == QUEUED
        assert below_our_fields(hop.messages[0]) == wire


async def test_c4_a_message_too_large_is_answered_once_and_not_judged() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, max_message_bytes=1000) as running:
        talk = await running.talk()
        assert (await talk.deliver(MESSAGE + b"line\r\n" * 300)).startswith(b"552 5.3.4 ")
        assert await talk.say(b"NOOP") == b"250 2.0.0 OK\r\n"
        assert running.inspector.seen == []


NO: list[dict[str, Answer | list[Answer]]] = [
    {"RCPT": b"550 5.1.1 no such user\r\n"},
    {".": b"450 4.2.0 greylisted\r\n"},
    {".": b"554 5.7.1 no\r\n"},
    {"DATA": b"451 4.3.0 no\r\n"},
    {"EHLO": b"421 4.3.2 no\r\n"},
]


@pytest.mark.parametrize("answers", NO)
async def test_c7_what_the_next_hop_refuses_is_refused(
    answers: dict[str, Answer | list[Answer]],
) -> None:
    async with ScriptedNextHop(answers=dict(answers)) as hop, relay(hop.url) as running:
        talk = await running.talk()
        (refusal,) = answers.values()
        found = [await talk.say(line) for line in (b"EHLO c.test", b"MAIL FROM:<a@x.test>")]
        found += [await talk.say(line) for line in (b"RCPT TO:<b@y.test>", b"DATA")]
        if found[-1].startswith(b"354"):
            await talk.send(MESSAGE + b".\r\n")
            found.append(await talk.reply())
        assert refusal in found
        assert not any(answer.startswith(b"250 2.0.0") for answer in found)


async def test_c14_silent_and_slow_clients_do_not_keep_others_out() -> None:
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, max_connections=3, command_timeout_s=0.3, data_timeout_s=0.3) as running,
    ):
        for _ in range(2):
            await running.talk()  # says nothing
        slow = await running.talk()
        await slow.begin()
        assert (await slow.reply()).startswith(b"421 4.4.2 ")
        await until(lambda: len(running.relay.sessions) <= 1)
        assert await (await running.talk()).deliver() == QUEUED


async def test_c15_a_client_that_vanishes_in_data_leaves_nothing() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.begin()
        await talk.send(MESSAGE)
        talk.reset()
        await hop.until(lambda: hop.open == 0)
        assert hop.messages == []
        assert running.observer.faults == []
        assert running.relay.context.shared.budget.memory_bytes == 64 * 2**20


async def test_c16_fields_that_claim_to_be_ours_never_arrive_nor_count() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, inspector=FakeInspector(SPAM)) as running:
        talk = await running.talk()
        forged = b"X-Spam: No\r\nX-SPAM-Status: No\r\nx-spam-status:\r\n No, really\r\n"
        assert await talk.deliver(forged + MESSAGE) == QUEUED
        (found,) = hop.messages
        assert len(re.findall(rb"(?im)^x-spam-status:", found)) == 1
        assert b"X-Spam-Status: Yes" in found


@pytest.mark.parametrize(
    "forged",
    [
        b".X-Spam-Status: No\r\n",
        b"Subject: x\r\n.X-Spam-Status: No\r\n",
        b"Subject: x\r\n. next line of it\r\nX-Spam-Status: No\r\n",
    ],
)
async def test_c16_a_dot_that_the_next_hop_takes_away_hides_no_forged_field(forged: bytes) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, inspector=FakeInspector(SPAM)) as running:
        talk = await running.talk()
        assert (
            await talk.deliver(forged + b"..X-Spam-Status: of another name\r\n" + MESSAGE) == QUEUED
        )
        (found,) = hop.messages
        assert len(re.findall(rb"(?m)^\.?X-Spam-Status:", found)) == 1
        assert found.endswith(b"\r\n..X-Spam-Status: of another name\r\n" + MESSAGE)


async def test_c19_what_a_mail_says_is_data_in_our_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        wire = b"Message-ID: <%s%n@x>\r\nSubject: %(x)s \x1b[31m\r\n\r\n%d\r\n"
        assert await talk.deliver(wire, sender=b"<%s@x.test>") == QUEUED
        assert running.observer.faults == []
        assert "x.test" not in caplog.text


async def test_c21_the_subject_is_left_alone() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, inspector=FakeInspector(SPAM)) as running:
        talk = await running.talk()
        for wire in (b"From: a@x.test\r\n\r\nno subject\r\n", b"Subject: mine\r\n\r\nx\r\n"):
            assert await talk.deliver(wire, hello=b"EHLO c.test") == QUEUED
        assert [below_our_fields(message) for message in hop.messages] == [
            b"From: a@x.test\r\n\r\nno subject\r\n",
            b"Subject: mine\r\n\r\nx\r\n",
        ]


@pytest.fixture(scope="module")
def key() -> tuple[bytes, bytes]:
    """A private key in PEM and the DNS record of its public half."""
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    record = b"v=DKIM1; k=rsa; p=" + b"".join(public.split(b"\n")[1:-2])
    return pem, record


BODIES = {
    "crlf": b"Some words.\r\n\r\n  indented \t\r\n\r\n\r\n",
    "8-bit": b"gr\xfc\xdfe \xff\xfe\r\n",
    "long": b"x" * 5000 + b"\r\n" + b"y " * 3000 + b"\r\n",
    "dots": b".\r\n..\r\n. .\r\nend\r\n",
    "nul": b"a\x00b\r\n",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("canonicalization", [b"simple", b"relaxed"])
async def test_c22_a_signed_mail_verifies_behind_us(
    key: tuple[bytes, bytes], canonicalization: bytes, body: bytes
) -> None:
    pem, record = key
    head = (
        b"From:  Ann <a@x.test>\r\nX-Spam-Status: No, forged\r\n"
        b"Subject: folded\r\n\tand   spaced\r\n"
        b"Date: Fri, 27 Nov 2026 12:00:00 +0000\r\n\r\n"
    )
    kinds = (canonicalization, canonicalization)
    signature = dkim.sign(
        head + body, b"s1", b"x.test", pem, canonicalize=kinds,
        include_headers=[b"from", b"subject", b"date"],
    )  # fmt: skip
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        stuffed = re.sub(rb"(?m)^\.", b"..", signature + head + body)
        assert await talk.deliver(stuffed) == QUEUED
        arrived = unstuffed(hop.messages[0])
        assert arrived.startswith(b"Received:")
        assert b"forged" not in arrived
        assert dkim.verify(arrived, dnsfunc=lambda *_, **__: record)


async def test_c23_single_blank_lines_and_dot_lines_are_all_there() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        wire = b"Subject: x\r\n\r\n\r\n\r\n..\r\n\r\n..\r\n...\r\n\r\n"
        assert await talk.deliver(wire) == QUEUED
        assert below_our_fields(hop.messages[0]) == wire


async def test_c24_a_scanner_that_hangs_is_seen_by_everybody() -> None:
    inspector = FakeInspector(gate=asyncio.Event())
    async with (
        ScriptedNextHop() as hop,
        relay(
            hop.url, inspector=inspector, inspect_timeout_s=0.05, on_fault=OnFault.ACCEPT
        ) as running,
    ):
        talk = await running.talk()
        assert await talk.deliver() == QUEUED
        assert b"X-Spam-Status: No, " in hop.messages[0]
        assert b"verdict=unscanned (no verdict in time)" in re.sub(rb"\s+", b" ", hop.messages[0])
        assert [name for name, _ in running.observer.faults] == ["message.unscanned"]
        assert running.observer.scans[0][0].verdict is Verdict.UNSCANNED


async def test_c25_a_malformed_header_block_passes_byte_for_byte() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        wire = b"Subject: x\r\n \r\nReceived\r\nX: \r\n\ty\r\n:\r\nContent-Type: =?\r\n\r\nbody\r\n"
        assert await talk.deliver(wire) == QUEUED
        assert below_our_fields(hop.messages[0]) == wire


async def test_c26_one_message_has_one_verdict_for_all_its_recipients() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, inspector=FakeInspector(SPAM)) as running:
        talk = await running.talk()
        recipients = (b"<b@y.test>", b"<group@y.test>", b"<c@z.test>")
        assert await talk.deliver(recipients=recipients) == QUEUED
        ((_, envelope),) = running.inspector.seen
        assert envelope.recipients == (b"b@y.test", b"group@y.test", b"c@z.test")
        assert len(hop.messages) == 1


async def test_f13_a_login_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"AUTH PLAIN c2VjcmV0", b"AUTH LOGIN")
        assert "c2VjcmV0" not in caplog.text
        assert "c2VjcmV0" not in repr(running.observer)


async def test_f14_each_client_session_has_a_session_of_its_own_at_the_next_hop() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talks = [await running.talk() for _ in range(5)]
        async with asyncio.TaskGroup() as group:
            answers = [
                group.create_task(talk.deliver(sender=b"<s%d@x.test>" % number))
                for number, talk in enumerate(talks)
            ]
        assert [task.result() for task in answers] == [QUEUED] * 5
        assert hop.connections == 5
        assert sorted(sender for sender, _ in hop.envelopes) == [
            b"FROM:<s%d@x.test>" % number for number in range(5)
        ]


async def test_a_rejected_mail_is_known_to_the_observer() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, inspector=FakeInspector(REJECT)) as running:
        await (await running.talk()).deliver()
        ((report, answer, recipients),) = running.observer.scans
        assert (report.action, recipients) == (Action.REJECT, 1)
        assert answer.startswith(b"550 5.7.1 ")


async def test_a_field_value_can_not_add_a_field() -> None:
    report = fake_report(reason="one\r\nBcc: all@x.test\r\n\r\nbody")
    async with ScriptedNextHop() as hop, relay(hop.url, inspector=FakeInspector(report)) as running:
        assert await (await running.talk()).deliver() == QUEUED
        assert below_our_fields(hop.messages[0]) == MESSAGE
        assert b"\r\nBcc:" not in hop.messages[0]


@pytest.mark.parametrize(
    "field", [b"X-Spam-Status: No, tests=[BAYES_00]", b"X-Spam-Flag: YES", b"X-Spam-Level: *****"]
)
def test_c17_what_other_filters_said_is_no_evidence(field: bytes) -> None:
    options = TokenizerOptions()
    with_field, without = extract(field + b"\r\n" + MESSAGE, options), extract(MESSAGE, options)
    assert list(with_field.sample.ids) == list(without.sample.ids)
    assert with_field.digest == without.digest
