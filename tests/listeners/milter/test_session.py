"""The dialogue with a mail server: what it tells, in which order, and what it hears."""

import asyncio
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from spamd.bayes.decision import Action, Verdict
from spamd.errors import Overloaded, StorageUnavailable
from spamd.listeners.milter import session
from spamd.network.judge import OnFault
from tests.fakes import REJECT, SPAM, FakeInspector
from tests.listeners.milter.mta import POSTFIX, Mta, Outcome, connect, frame, listening, macros
from tests.waiting import until

HEADER = [(b"From", b" a@x.test"), (b"Subject", b" x"), (b"To", b" b@y.test,\n c@y.test")]
OFFERS = [
    POSTFIX,
    (6, 0x1FF, 0x1FFFFF & ~0x400),
    (6, 0x1FF, 0x1FFFFF & ~0x100000),
    (6, 0x11, 0),
    (4, 0x3F, 0x3FF),
    (3, 0x3F, 0x17F),
    (2, 0x3F, 0x7F),
]


@pytest.mark.parametrize("offer", OFFERS, ids=str)
async def test_a_message_is_judged_as_it_was_sent_and_marked_by_any_version(
    offer: tuple[int, int, int],
) -> None:
    async with listening(FakeInspector(SPAM)) as running:
        outcome = await running.message(HEADER, b"one\r\n.two\r\n", offer)
        ((content, _),) = running.inspector.seen
    assert content == (
        b"From: a@x.test\r\nSubject: x\r\nTo: b@y.test,\r\n c@y.test\r\n\r\none\r\n.two\r\n"
    )
    assert outcome.verdict == b"c"
    names = [name for name, _ in outcome.header]
    assert names[:4] == [b"X-Spam-Status", b"X-Spam-Flag", b"X-Spam-Probability", b"X-Spam-Id"]
    assert outcome.header[4:] == HEADER
    assert outcome.ours[b"X-Spam-Flag"] == b" YES"
    assert outcome.ours[b"X-Spam-Status"].startswith(b" Yes, score=")
    assert running.observer.faults == []
    ((_, reply, recipients),) = running.observer.scans
    assert (reply, recipients) == (b"250 2.0.0 OK id=4Qabc", 1)


async def test_a_server_that_lets_nothing_be_changed_still_gets_a_verdict() -> None:
    async with listening(FakeInspector(SPAM)) as running:
        outcome = await running.message([(b"X-Spam-Flag", b" NO")], offer=(6, 0, 0x1FFFFF))
        assert outcome.header == [(b"X-Spam-Flag", b" NO")]
        running.inspector.answer = REJECT
        assert (await running.message(offer=(6, 0, 0x1FFFFF))).verdict == b"y"


async def test_client_and_envelope_are_what_the_server_says() -> None:
    async with listening() as running:
        mta = await running.mta()
        mta.writer.write(
            macros(b"C", j="mx.test", client_addr="192.0.2.7")
            + connect("c.test", "192.0.2.7", 4711)
        )
        mta.writer.write(macros(b"H", tls_version="TLSv1.3") + frame(b"H", b"helo.test\0"))
        mta.writer.write(
            macros(b"M", auth_authen="alice") + frame(b"M", b'<"q q"@x.test>\0SIZE=1\0')
        )
        for mailer, address in (("smtp", "<b@y.test>"), ("error", "<no@y.test>"), ("smtp", "c")):
            mta.writer.write(
                macros(b"R", rcpt_mailer=mailer) + frame(b"R", f"{address}\0".encode())
            )
        await mta.content(HEADER, b"x\r\n")
        ((_, envelope),) = running.inspector.seen
    client = envelope.client
    assert envelope.sender == b'"q q"@x.test'
    assert envelope.recipients == (b"b@y.test", b"c")
    assert (client.address, client.port, client.name) == ("192.0.2.7", 4711, "c.test")
    assert (client.helo, client.tls, client.login) == ("helo.test", True, "alice")


@pytest.mark.parametrize(
    ("packet", "address", "name"),
    [
        (connect("unknown", "192.0.2.7"), "192.0.2.7", ""),
        (connect("[192.0.2.7]", "192.0.2.7"), "192.0.2.7", ""),
        (connect("c.test", "IPv6:2001:db8::1"), "2001:db8::1", "c.test"),
        (connect("c.test", "::ffff:192.0.2.7"), "192.0.2.7", "c.test"),
        (connect("c.test", "nonsense"), "", "c.test"),
        (frame(b"C", b"c.test\0U"), "", "c.test"),
        (frame(b"C", b"localhost\0L\0\0/run/x\0"), "", "localhost"),
    ],
)
async def test_an_address_is_written_as_everywhere_or_there_is_none(
    packet: bytes, address: str, name: str
) -> None:
    async with listening() as running:
        mta = await running.mta()
        mta.writer.write(packet)
        await mta.envelope()
        await mta.content(HEADER, b"x\r\n")
        ((_, envelope),) = running.inspector.seen
    assert (envelope.client.address, envelope.client.name) == (address, name)


async def test_messages_and_greetings_follow_each_other_on_one_connection() -> None:
    async with listening() as running:
        mta = await running.mta()
        await mta.client(helo="first.test")
        for number, helo in enumerate(["second.test", "", "third.test"]):
            if helo:
                await mta.step(b"H", helo.encode() + b"\0")
            await mta.envelope(f"<{number}@y.test>", sender=f"<{number}@x.test>")
            await mta.content([(b"Subject", b" %d" % number)], b"%d\r\n" % number)
            mta.writer.write(frame(b"A") * 2)
        seen = running.inspector.seen
    assert [(e.sender, e.recipients, e.client.helo) for _, e in seen] == [
        (b"0@x.test", (b"0@y.test",), "second.test"),
        (b"1@x.test", (b"1@y.test",), "second.test"),
        (b"2@x.test", (b"2@y.test",), "third.test"),
    ]
    assert [content for content, _ in seen] == [
        b"Subject: %d\r\n\r\n%d\r\n" % (number, number) for number in range(3)
    ]


@pytest.mark.parametrize("stage", range(6))
async def test_an_abort_forgets_the_message_in_any_state(stage: int) -> None:
    steps = [
        (b"M", b"<gone@x.test>\0"),
        (b"R", b"<gone@y.test>\0"),
        (b"L", b"Subject\0 gone\0"),
        (b"N", b""),
        (b"B", b"gone\r\n"),
    ]
    async with listening() as running:
        mta = await running.mta()
        await mta.client()
        mta.writer.write(macros(b"M", auth_authen="gone"))
        for command, data in steps[:stage]:
            await mta.step(command, data)
        mta.writer.write(frame(b"A") * 2)
        await mta.envelope()
        await mta.content(HEADER, b"x\r\n")
        ((content, envelope),) = running.inspector.seen
    assert b"gone" not in content
    assert (envelope.sender, envelope.recipients) == (b"a@x.test", (b"b@y.test",))
    assert (envelope.client.login, envelope.client.helo) == (None, "c.test")


async def test_a_new_client_on_the_same_connection_is_another_one() -> None:
    async with listening() as running:
        mta = await running.mta()
        await mta.client(address="192.0.2.7")
        await mta.envelope()
        mta.writer.write(frame(b"K"))
        mta.writer.write(connect("", "198.51.100.1"))
        await mta.envelope()
        await mta.content(HEADER, b"x\r\n")
        ((_, envelope),) = running.inspector.seen
    assert (envelope.client.address, envelope.client.helo) == ("198.51.100.1", "")


async def test_the_end_comes_without_an_answer() -> None:
    async with listening() as running:
        mta = await running.mta()
        mta.writer.write(frame(b"Q"))
        assert await mta.reader.read() == b""
        assert running.observer.faults == []


async def test_data_and_unknown_commands_are_answered_where_they_come_nevertheless() -> None:
    async with listening() as running:
        mta = await running.mta((6, 0x1FF, 0))
        await mta.client()
        await mta.step(b"U", b"HELP\0")
        await mta.envelope()
        await mta.step(b"T")
        assert (await mta.content(HEADER, b"x\r\n")).verdict == b"c"


async def test_the_last_of_the_body_may_come_with_its_end() -> None:
    async with listening() as running:
        mta = await running.mta()
        await mta.envelope()
        for name, value in HEADER:
            await mta.step(b"L", name + b"\0" + value + b"\0")
        await mta.step(b"N")
        await mta.step(b"B", b"one\r\n")
        mta.writer.write(frame(b"E", b"two\r\n"))
        outcome = Outcome([*HEADER])
        await mta.outcome(outcome, spaced=True)
        ((content, _),) = running.inspector.seen
    assert content.endswith(b"\r\n\r\none\r\ntwo\r\n")


async def test_what_is_rejected_gets_a_reply() -> None:
    async with listening(FakeInspector(REJECT)) as running:
        outcome = await running.message()
        assert (outcome.verdict, outcome.reply) == (b"y", b"550 5.7.1 Rejected as spam")
        ((_, reply, _),) = running.observer.scans
        assert reply == b"550 5.7.1 Rejected as spam id=4Qabc"


async def test_what_is_rejected_may_be_quarantined_instead_with_its_fields() -> None:
    async with listening(FakeInspector(REJECT), quarantine=True) as running:
        outcome = await running.message()
    assert (outcome.verdict, outcome.quarantined) == (b"c", b"5.7.1 Rejected as spam\0")
    assert b"X-Spam-Flag" in outcome.ours


async def test_spam_that_is_only_tagged_is_not_quarantined() -> None:
    async with listening(FakeInspector(SPAM), quarantine=True) as running:
        outcome = await running.message()
    assert (outcome.verdict, outcome.quarantined) == (b"c", b"")


async def test_a_server_without_a_quarantine_rejects() -> None:
    async with listening(FakeInspector(REJECT), quarantine=True) as running:
        outcome = await running.message(offer=(6, 0x1FF & ~0x20, 0x1FFFFF))
    assert outcome.verdict == b"y"


FAULTS = [
    (ZeroDivisionError(), OnFault.ACCEPT, b""),
    (ZeroDivisionError(), OnFault.DEFER, b"451 4.3.0 Temporary error, please try again later"),
    (StorageUnavailable(), OnFault.ACCEPT, b""),
    (StorageUnavailable(), OnFault.DEFER, b"451 4.3.0 Temporary error, please try again later"),
    (Overloaded(), OnFault.ACCEPT, b"451 4.3.2 Busy, please try again later"),
    (Overloaded(), OnFault.DEFER, b"451 4.3.2 Busy, please try again later"),
]


@pytest.mark.parametrize(("fault", "on_fault", "reply"), FAULTS, ids=str)
async def test_a_fault_never_loses_a_mail(
    fault: Exception, on_fault: OnFault, reply: bytes
) -> None:
    async with listening(FakeInspector(fault=fault), on_fault=on_fault) as running:
        outcome = await running.message()
    assert outcome.reply == reply
    if not reply:
        assert b"verdict=unscanned" in outcome.ours[b"X-Spam-Status"]
        ((report, _, _),) = running.observer.scans
        assert (report.verdict, report.action) == (Verdict.UNSCANNED, Action.ACCEPT)


async def test_no_verdict_in_time_is_a_fault() -> None:
    inspector = FakeInspector(gate=asyncio.Event())
    async with listening(inspector, inspect_timeout_s=0.01) as running:
        outcome = await running.message()
    assert b"no verdict in time" in b" ".join(outcome.ours[b"X-Spam-Status"].split())


async def test_a_server_that_waits_hears_that_we_still_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "PROGRESS_S", 0.01)
    gate = asyncio.Event()
    async with listening(FakeInspector(gate=gate)) as running:
        mta = await running.mta()
        await mta.envelope()
        for name, value in HEADER:
            await mta.step(b"L", name + b"\0" + value + b"\0")
        mta.writer.write(frame(b"N") + frame(b"E"))
        for _ in range(3):
            assert await mta.answer() == (b"p", b"")
        gate.set()
        outcome = Outcome([*HEADER])
        await mta.outcome(outcome, spaced=True)
    assert outcome.verdict == b"c"


@pytest.mark.parametrize(
    "packets",
    [
        frame(b"C", b"c.test\0U"),
        b"GET / HTTP/1.1\r\n\r\n",
        frame(b"O", b"short"),
        frame(b"O", struct.pack("!III", 1, 0, 0)),
        b"\0\0\0\0",
    ],
)
async def test_what_is_not_the_protocol_ends_the_connection(packets: bytes) -> None:
    async with listening() as running:
        mta = await running.mta(None)
        mta.writer.write(packets)
        assert await mta.reader.read() == b""
        await until(lambda: len(running.observer.faults) == 1)
        assert running.observer.faults[0][0] == "session.failed"
        assert (await running.message()).verdict == b"c"


@pytest.mark.parametrize("packet", [frame(b"X"), frame(b"y"), frame(b"C", b"c.test\0")])
async def test_a_command_that_does_not_exist_ends_the_connection(packet: bytes) -> None:
    async with listening() as running:
        mta = await running.mta()
        mta.writer.write(packet)
        assert await mta.reader.read() == b""


async def test_a_server_that_goes_away_in_the_middle_leaves_nothing() -> None:
    async with listening() as running:
        mta = await running.mta()
        await mta.envelope()
        await mta.step(b"L", b"Subject\0 x\0")
        mta.writer.write(b"\0\0\0\x20Bhalf")
        mta.writer.close()
        assert (await running.message()).verdict == b"c"
        assert running.observer.faults == []


async def test_a_packet_that_does_not_end_in_time_ends_the_connection() -> None:
    async with listening(data_timeout_s=0.05) as running:
        mta = await running.mta()
        mta.writer.write(b"\0\0\0\x20Bhalf")
        assert await mta.reader.read() == b""
        assert running.observer.faults == []


async def test_octets_that_drip_do_not_prolong_the_time_of_a_packet() -> None:
    async with listening(data_timeout_s=0.2) as running:
        mta = await running.mta()
        mta.writer.write(b"\0\0\xff\xffB")
        ended = asyncio.ensure_future(mta.reader.read())
        async with asyncio.timeout(10):
            while not ended.done():
                mta.writer.write(b"x")
                await asyncio.sleep(0.01)


async def test_a_silent_stranger_is_not_waited_for_as_a_mail_server_is() -> None:
    async with listening(command_timeout_s=0.05) as running:
        silent = await running.mta(None)
        server = await running.mta()
        assert await silent.reader.read() == b""
        await server.envelope()
        assert (await server.content(HEADER, b"x\r\n")).verdict == b"c"


async def test_the_end_of_the_daemon_waits_for_the_message_in_hand() -> None:
    gate = asyncio.Event()
    async with listening(FakeInspector(gate=gate)) as running:
        idle, busy = await running.mta(), await running.mta()
        await busy.envelope()
        sending: asyncio.Future[Outcome] = asyncio.ensure_future(busy.content(HEADER, b"x\r\n"))
        await running.inspector.begun.wait()
        stopping = asyncio.ensure_future(running.milter.stop(5.0))
        assert await idle.reader.read() == b""
        gate.set()
        assert (await sending).verdict == b"c"
        assert await busy.reader.read() == b""
        await stopping


async def test_a_full_store_defers_and_the_next_message_is_taken() -> None:
    async with listening(
        memory_bytes=10_000, spool_above_bytes=10_000, spool_bytes=10_000, max_message_bytes=10_000
    ) as running:
        mta = await running.mta()
        await mta.envelope()
        outcome = await mta.content(HEADER, b"x" * 20_000)
        assert outcome.reply == b"452 4.3.1 Insufficient storage, please try again later"
        await mta.envelope()
        assert (await mta.content(HEADER, b"x" * 2_000)).verdict == b"c"
        assert running.inspector.seen[0][0].endswith(b"x" * 2_000)


async def test_a_disk_that_can_not_be_written_defers(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    async with listening(spool_directory=nowhere, spool_above_bytes=1_000) as running:
        mta = await running.mta()
        await mta.envelope()
        outcome = await mta.content(HEADER, b"x" * 600_000)
        assert outcome.reply == b"452 4.3.1 Insufficient storage, please try again later"
        assert [name for name, _ in running.observer.faults] == ["message.failed"]
        await mta.envelope()
        assert (await mta.content(HEADER, b"x")).verdict == b"c"


async def test_more_recipients_than_can_be_kept_defer_the_message() -> None:
    async with listening(memory_bytes=1_000_000, spool_above_bytes=100_000) as running:
        mta = await running.mta()
        await mta.envelope(*[f"<{'x' * 60_000}{number}@y.test>" for number in range(20)])
        outcome = await mta.content(HEADER, b"x\r\n")
        assert outcome.reply == b"452 4.3.1 Insufficient storage, please try again later"
        await mta.envelope()
        assert (await mta.content(HEADER, b"x\r\n")).verdict == b"c"


async def test_names_of_any_length_are_kept_in_part() -> None:
    async with listening() as running:
        mta = await running.mta()
        mta.writer.write(macros(b"C", client_addr="1" * 90_000) + connect("n" * 90_000))
        mta.writer.write(frame(b"H", b"h" * 90_000 + b"\0"))
        mta.writer.write(macros(b"M", auth_authen="l" * 90_000))
        await mta.envelope()
        await mta.content(HEADER, b"x\r\n")
        ((_, envelope),) = running.inspector.seen
    client = envelope.client
    assert (len(client.name), len(client.helo), len(client.login or "")) == (255, 255, 255)
    assert client.address == "192.0.2.7"


def is_ours(header: Sequence[tuple[bytes, bytes]]) -> list[bool]:
    return [name.startswith(b"X-Spam") for name, _ in header]


async def test_fields_stand_on_top_in_their_order_also_without_a_header() -> None:
    async with listening() as running:
        outcome = await running.message([], b"no header\r\n")
        ((content, _),) = running.inspector.seen
    assert content == b"\r\nno header\r\n"
    assert is_ours(outcome.header) == [True, True, True]


async def test_many_connections_at_once_are_all_served() -> None:
    async with listening() as running:
        mtas: list[Mta] = [await running.mta() for _ in range(100)]
        for mta in mtas:
            await mta.envelope()
        outcomes = await asyncio.gather(*[mta.content(HEADER, b"x\r\n") for mta in mtas])
    assert {outcome.verdict for outcome in outcomes} == {b"c"}
