"""Report addresses: who may teach by mail, and what becomes of everybody else's."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from spamd.errors import StorageUnavailable
from spamd.sample import Label
from tests.fakes import FakeInspector
from tests.relay.peers import LETTER, ScriptedNextHop, relay

REPORTS = (b"<spam@y.test>",)


@dataclass
class FakeDesk:
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
    desk = FakeDesk()
    async with (
        ScriptedNextHop() as next_hop,
        relay(next_hop.url, desk=desk, report_networks=("127.0.0.0/8",)) as running,
    ):
        answer = await (await running.talk()).deliver(recipients=REPORTS)

    assert answer == b"250 2.0.0 1 reported as spam, 1 learned\r\n"
    assert desk.taken == [(LETTER, Label.SPAM, "a@x.test")]
    assert next_hop.messages == []


@pytest.mark.parametrize("networks", [(), ("192.0.2.0/24",)])
async def test_a_report_from_anybody_else_is_mail_for_the_next_hop(
    networks: tuple[str, ...],
) -> None:
    desk = FakeDesk()
    async with (
        ScriptedNextHop() as next_hop,
        relay(next_hop.url, desk=desk, report_networks=networks) as running,
    ):
        await (await running.talk()).deliver(recipients=REPORTS)

    assert desk.taken == []
    assert len(next_hop.messages) == 1


async def test_the_client_that_a_trusted_proxy_names_is_the_one_who_counts() -> None:
    desk = FakeDesk()
    async with (
        ScriptedNextHop() as next_hop,
        relay(
            next_hop.url,
            desk=desk,
            trusted_networks=("127.0.0.0/8",),
            report_networks=("127.0.0.0/8",),
        ) as running,
    ):
        talk = await running.talk()
        await talk.say(b"EHLO front.test", b"XFORWARD NAME=evil.test ADDR=198.51.100.7")
        await talk.deliver(recipients=REPORTS, hello=b"")

    assert desk.taken == []
    assert len(next_hop.messages) == 1


OPEN: dict[str, Any] = {"report_networks": ("127.0.0.0/8",)}


async def test_a_report_address_and_others_need_transactions_of_their_own() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, desk=FakeDesk(), **OPEN) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>")
        assert (await talk.say(b"RCPT TO:<spam@y.test>")).startswith(b"250 2.1.5 ")
        assert (await talk.say(b"RCPT TO:<b@y.test>")).startswith(b"452 4.5.3 ")
        await talk.say(b"RSET", b"MAIL FROM:<a@x.test>")
        assert (await talk.say(b"RCPT TO:<b@y.test>")).startswith(b"250 ")
        assert (await talk.say(b"RCPT TO:<spam@y.test>")).startswith(b"452 4.5.3 ")


async def test_a_report_that_can_not_be_learned_now_is_451_and_the_session_goes_on() -> None:
    desk = FakeDesk(fault=StorageUnavailable("away"))
    async with ScriptedNextHop() as hop, relay(hop.url, desk=desk, **OPEN) as running:
        talk = await running.talk()
        assert (await talk.deliver(recipients=REPORTS)).startswith(b"451 4.3.0 ")
        assert hop.verbs[-1] == "RSET"
        assert (await talk.deliver(hello=b"")).startswith(b"250 ")


async def test_a_report_larger_than_what_is_judged_is_552() -> None:
    desk = FakeDesk()
    inspector = FakeInspector(reads_bytes=1000)
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, desk=desk, inspector=inspector, **OPEN) as running,
    ):
        wire = LETTER + b"x" * 1000 + b"\r\n"
        answer = await (await running.talk()).deliver(wire, recipients=REPORTS)
        assert answer.startswith(b"552 5.3.4 ")
        assert desk.taken == []
