"""Report addresses: who may teach by mail, and what becomes of everybody else's."""

import asyncio
from dataclasses import dataclass, field
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest

from spamd.errors import StorageUnavailable
from spamd.sample import Label
from tests.fakes import FakeInspector
from tests.relay.peers import MESSAGE, Answer, Do, ScriptedNextHop, relay

REPORTS = (b"<spam@y.test>",)


@dataclass
class FakeHandler:
    """Takes mail to spam@y.test."""

    fault: Exception | None = None
    taken: list[tuple[bytes, Label, str]] = field(default_factory=list)

    def label_for(self, recipient: bytes) -> Label | None:
        return Label.SPAM if recipient == b"spam@y.test" else None

    async def take(self, content: bytes, label: Label, actor: str) -> str:
        if self.fault is not None:
            raise self.fault
        self.taken.append((content, label, actor))
        return "1 reported as spam, 1 learned"


async def test_a_report_from_a_network_that_may_teach_is_learned_and_goes_no_further() -> None:
    handler = FakeHandler()
    async with (
        ScriptedNextHop() as next_hop,
        relay(next_hop.url, report_handler=handler, report_networks=("127.0.0.0/8",)) as running,
    ):
        answer = await (await running.talk()).deliver(recipients=REPORTS)

    assert answer == b"250 2.0.0 1 reported as spam, 1 learned\r\n"
    assert handler.taken == [(MESSAGE, Label.SPAM, "127.0.0.1")]
    assert next_hop.envelopes == [(b"FROM:<>", [b"TO:<a@x.test>"])]  # the receipt


@pytest.mark.parametrize("sender", [b"<boss@x.test>", b"<>", b"<a@x.test>"])
async def test_h7_who_reports_is_the_client_whatever_stands_in_mail_from(sender: bytes) -> None:
    handler = FakeHandler()
    async with (
        ScriptedNextHop() as next_hop,
        relay(next_hop.url, report_handler=handler, report_networks=("127.0.0.0/8",)) as running,
    ):
        await (await running.talk()).deliver(sender=sender, recipients=REPORTS)
    assert [actor for _, _, actor in handler.taken] == ["127.0.0.1"]


async def test_h7_who_has_logged_in_reports_under_that_name() -> None:
    handler = FakeHandler()
    async with (
        ScriptedNextHop() as next_hop,
        relay(next_hop.url, report_handler=handler, trusted_networks=("127.0.0.0/8",)) as running,
    ):
        talk = await running.talk()
        await talk.say(b"EHLO front.test", b"XCLIENT ADDR=198.51.100.7 LOGIN=ann")
        await talk.deliver(recipients=REPORTS)
    assert [actor for _, _, actor in handler.taken] == ["ann"]


class StuckHandler(FakeHandler):
    """Waits for a database that is locked."""

    async def take(self, content: bytes, label: Label, actor: str) -> str:
        await asyncio.Event().wait()
        return "never"


async def test_k10_a_report_that_can_not_be_learned_in_time_is_451_within_the_deadline() -> None:
    options = {**OPEN, "inspect_timeout_s": 0.3}
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, report_handler=StuckHandler(), **options) as running,
    ):
        talk = await running.talk()
        async with asyncio.timeout(10):
            assert (await talk.deliver(recipients=REPORTS)).startswith(b"451 4.3.0 ")
        assert (await talk.deliver(hello=b"")).startswith(b"250 ")  # the session goes on


@pytest.mark.parametrize("networks", [(), ("192.0.2.0/24",)])
async def test_a_report_from_anybody_else_is_mail_for_the_next_hop(
    networks: tuple[str, ...],
) -> None:
    handler = FakeHandler()
    async with (
        ScriptedNextHop() as next_hop,
        relay(next_hop.url, report_handler=handler, report_networks=networks) as running,
    ):
        await (await running.talk()).deliver(recipients=REPORTS)

    assert handler.taken == []
    assert len(next_hop.messages) == 1


async def test_the_client_that_a_trusted_proxy_names_is_the_one_who_counts() -> None:
    handler = FakeHandler()
    async with (
        ScriptedNextHop() as next_hop,
        relay(
            next_hop.url,
            report_handler=handler,
            trusted_networks=("127.0.0.0/8",),
            report_networks=("127.0.0.0/8",),
        ) as running,
    ):
        talk = await running.talk()
        await talk.say(b"EHLO front.test", b"XFORWARD NAME=evil.test ADDR=198.51.100.7")
        await talk.deliver(recipients=REPORTS, hello=b"")

    assert handler.taken == []
    assert len(next_hop.messages) == 1


OPEN: dict[str, Any] = {"report_networks": ("127.0.0.0/8",)}


async def test_a_report_address_and_others_need_transactions_of_their_own() -> None:
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, report_handler=FakeHandler(), **OPEN) as running,
    ):
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>")
        assert (await talk.say(b"RCPT TO:<spam@y.test>")).startswith(b"250 2.1.5 ")
        assert (await talk.say(b"RCPT TO:<b@y.test>")).startswith(b"452 4.5.3 ")
        await talk.say(b"RSET", b"MAIL FROM:<a@x.test>")
        assert (await talk.say(b"RCPT TO:<b@y.test>")).startswith(b"250 ")
        assert (await talk.say(b"RCPT TO:<spam@y.test>")).startswith(b"452 4.5.3 ")


async def test_a_report_that_can_not_be_learned_now_is_451_and_the_session_goes_on() -> None:
    handler = FakeHandler(fault=StorageUnavailable("away"))
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, report_handler=handler, **OPEN) as running,
    ):
        talk = await running.talk()
        assert (await talk.deliver(recipients=REPORTS)).startswith(b"451 4.3.0 ")
        assert hop.verbs[-1] == "RSET"
        assert (await talk.deliver(hello=b"")).startswith(b"250 ")


async def test_a_report_larger_than_what_is_judged_is_552() -> None:
    handler = FakeHandler()
    inspector = FakeInspector(reads_bytes=1000)
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, report_handler=handler, inspector=inspector, **OPEN) as running,
    ):
        wire = MESSAGE + b"x" * 1000 + b"\r\n"
        answer = await (await running.talk()).deliver(wire, recipients=REPORTS)
        assert answer.startswith(b"552 5.3.4 ")
        assert handler.taken == []


REPORT = b"From: a@x.test\r\nMessage-ID: <1@x.test>\r\nSubject: fwd\r\n\r\nSee attached.\r\n"


async def test_a_report_is_answered_with_a_receipt_that_nothing_can_come_back_to() -> None:
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, report_handler=FakeHandler(), **OPEN) as running,
    ):
        talk = await running.talk()
        answer = await talk.deliver(REPORT, recipients=REPORTS)
        assert answer == b"250 2.0.0 1 reported as spam, 1 learned\r\n"
        assert hop.envelopes == [(b"FROM:<>", [b"TO:<a@x.test>"])]
        receipt = message_from_bytes(hop.messages[0])
        assert {name: receipt[name] for name in ("From", "To", "Subject", "Auto-Submitted")} == {
            "From": "spamd <spam@y.test>",
            "To": "<a@x.test>",
            "Subject": "Your report: 1 reported as spam, 1 learned",
            "Auto-Submitted": "auto-replied",
        }
        assert receipt["In-Reply-To"] == receipt["References"] == "<1@x.test>"
        assert receipt["Message-ID"].endswith("@mx.test>")
        assert receipt["Date"] == "Fri, 15 Jan 2027 08:00:00 +0000"
        assert "1 reported as spam, 1 learned\r\n" in receipt.get_payload()
        # the session goes on
        assert (await talk.deliver(hello=b"")).startswith(b"250 ")
        assert len(hop.messages) == 2


@pytest.mark.parametrize(
    ("sender", "field"),
    [
        (b"<>", b""),  # a bounce
        (b"<spam@y.test>", b""),  # a report address: it would report its own receipt
        (b"<a@x.test>", b"Auto-Submitted: auto-generated\r\n"),
        (b"<a@x.test>", b"Precedence: bulk\r\n"),
        (b"<a@x.test>", b"List-Id: <l.x.test>\r\n"),
    ],
)
async def test_what_no_person_sent_gets_no_receipt(sender: bytes, field: bytes) -> None:
    handler = FakeHandler()
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, report_handler=handler, **OPEN) as running,
    ):
        talk = await running.talk()
        answer = await talk.deliver(field + REPORT, sender=sender, recipients=REPORTS)
        assert answer.startswith(b"250 2.0.0 1 reported")
        assert len(handler.taken) == 1
        assert hop.messages == []


async def test_receipts_can_be_turned_off() -> None:
    options = {**OPEN, "report_receipts": False}
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, report_handler=FakeHandler(), **options) as running,
    ):
        talk = await running.talk()
        assert (await talk.deliver(REPORT, recipients=REPORTS)).startswith(b"250 ")
        assert hop.messages == []


@pytest.mark.parametrize("verb", ["MAIL", "RCPT", "."])
@pytest.mark.parametrize("fault", [b"550 5.7.1 no\r\n", Do.CLOSE])
async def test_a_receipt_that_is_not_taken_costs_nothing_but_itself(
    verb: str, fault: bytes | Do
) -> None:
    usual: Answer = b"250 2.0.0 fine\r\n"
    # the report's own MAIL comes first; its RCPT and its end never reach the next hop
    answers: list[Answer] = [usual, fault, usual] if verb == "MAIL" else [fault, usual]
    handler = FakeHandler()
    async with (
        ScriptedNextHop(answers={verb: answers}) as hop,
        relay(hop.url, report_handler=handler, **OPEN) as running,
    ):
        talk = await running.talk()
        answer = await talk.deliver(REPORT, recipients=REPORTS)
        assert answer == b"250 2.0.0 1 reported as spam, 1 learned\r\n"
        assert [event for event, _ in running.observer.faults] == ["receipt.failed"]
        assert len(handler.taken) == 1
        if fault is not Do.CLOSE:
            assert (await talk.deliver(hello=b"")).startswith(b"250 ")
        assert hop.connections == 1


async def test_a_report_to_a_maildir_leaves_its_receipt_there(tmp_path: Path) -> None:
    url = f"maildir://{tmp_path}/mail"
    async with relay(url, report_handler=FakeHandler(), **OPEN) as running:
        talk = await running.talk()
        assert (await talk.deliver(REPORT, recipients=REPORTS)).startswith(b"250 ")
    (path,) = (tmp_path / "mail" / "new").iterdir()
    assert b"Auto-Submitted: auto-replied" in path.read_bytes()
