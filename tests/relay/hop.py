"""A next hop in memory whose answers follow a script, and a mail server that sends to us."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from spamd.message.envelope import Client
from spamd.ports import Outcome
from spamd.relay.content.outgoing import Outgoing
from spamd.relay.smtp.commands import Path
from spamd.relay.smtp.replies import NextHopLost, Reply, reply
from spamd.report import ScanReport
from tests.relay.memory import MemoryRelay, TakesAll
from tests.waiting import until

LATER = reply(451, "4.2.0 not now")
NEVER = reply(550, "5.1.1 not here")
FINE = reply(250, "2.0.0 queued as X")

SPINS = 2_000
"""Turns of the loop that an answer may take before it is waited for by the clock."""

MESSAGE = b"From: a@x.test\r\nSubject: hello\r\n\r\nSome words.\r\n"


@dataclass(frozen=True)
class Plan:
    """What a next hop says about a recipient.

    rcpt   how many times RCPT is put off
    data   how many times the message is put off (LMTP: this recipient's; SMTP: everybody's)
    never  then it is refused: "rcpt", "data", or "" for never
    """

    rcpt: int = 0
    data: int = 0
    never: str = ""


class Hop(TakesAll):
    """A next hop that follows plans and keeps a ledger of what each recipient got."""

    def __init__(
        self, plans: Mapping[bytes, Plan], *, lmtp: bool, lost: Sequence[int] = ()
    ) -> None:
        super().__init__(lmtp=lmtp)
        self.plans = plans
        self.copies: dict[bytes, list[bytes]] = {name: [] for name in plans}
        self._left_rcpt = {name: plan.rcpt for name, plan in plans.items()}
        self._left_data = {name: plan.data for name, plan in plans.items()}
        self._lost = set(lost)  # which deliveries end in a lost connection, nothing taken
        self._deliveries = 0
        self._there: list[bytes] = []
        self.opened = 0

    async def open(self, client: Client) -> "Hop":
        self.usable = True
        self.opened += 1
        return self

    async def mail(self, argument: bytes, client: Client) -> Reply:
        assert self._there == [], "MAIL within a transaction"
        return FINE

    async def rcpt(self, argument: bytes, path: Path | None) -> Reply:
        assert path is not None
        name = path.address
        if self._left_rcpt[name]:
            self._left_rcpt[name] -= 1
            return LATER
        if self.plans[name].never == "rcpt":
            return NEVER
        self._there.append(name)
        return FINE

    async def reset(self) -> Reply:
        if not self.usable:
            raise NextHopLost
        self._there = []
        return FINE

    async def deliver(
        self, outgoing: Outgoing, recipients: Sequence[bytes], timeout_s: float
    ) -> list[Reply]:
        assert list(recipients) == self._there, "recipients that were not asked for"
        self._there = []
        self._deliveries += 1
        if self._deliveries in self._lost:
            self.usable = False
            raise NextHopLost
        content = outgoing.header + b"".join(outgoing.message.blocks(outgoing.start))
        answers = [self._answer(name) for name in recipients]
        if not self.lmtp:
            worst = next((each for each in answers if not each.accepted), FINE)
            answers = [worst] * len(recipients)
        for name, answer in zip(recipients, answers, strict=True):
            if answer.accepted:
                self.copies[name].append(content)
        return answers if self.lmtp else answers[:1]

    def _answer(self, name: bytes) -> Reply:
        if self._left_data[name]:
            self._left_data[name] -= 1
            return LATER
        return NEVER if self.plans[name].never == "data" else FINE


@dataclass
class SharedTaken:
    """What all workers remember, in memory (`ports.TakenStore`)."""

    rows: dict[bytes, dict[bytes, Outcome]] = field(default_factory=dict)

    async def of(self, message: bytes) -> Mapping[bytes, Outcome]:
        return dict(self.rows.get(message, {}))

    async def add(self, message: bytes, outcomes: Mapping[bytes, Outcome]) -> None:
        known = self.rows.setdefault(message, {})
        known |= {name: each for name, each in outcomes.items() if known.get(name) != "taken"}

    async def since(self, time: int) -> tuple[Mapping[bytes, Mapping[bytes, Outcome]], int]:
        return {message: dict(each) for message, each in self.rows.items()}, 1


@dataclass
class Sender:
    """A mail server that brings one message, and tries again what was put off.

    told   what it was told of each recipient in the end: "delivered" or "refused"
    """

    recipients: Sequence[bytes]
    content: bytes = MESSAGE
    told: dict[bytes, str] = field(default_factory=dict)
    rounds: int = 0

    @property
    def left(self) -> list[bytes]:
        return [name for name in self.recipients if name not in self.told]

    async def send(self, relay: MemoryRelay, *, several: bool = True) -> list[bytes]:
        """Try once, in one session, everybody who is left; return the final replies."""
        self.rounds += 1
        session, transport = relay.session()
        try:
            talk = _Talk(session.transport, transport)
            await talk.answer(b"")
            await talk.answer(b"LHLO c\r\n" if relay.listener.lmtp else b"EHLO c\r\n")
            assert (await talk.answer(b"MAIL FROM:<s@x.test>\r\n")).startswith(b"250")
            accepted: list[bytes] = []
            for name in self.left if several else self.left[:1]:
                answer = await talk.answer(b"RCPT TO:<%b>\r\n" % name)
                if answer.startswith(b"2"):
                    accepted.append(name)
                elif answer.startswith(b"5"):
                    self.told[name] = "refused"
            if not accepted:
                return []
            assert (await talk.answer(b"DATA\r\n")).startswith(b"354")
            count = len(accepted) if relay.listener.lmtp else 1
            replies = await talk.answers(self.content + b".\r\n", count)
            for name, answer in zip(accepted, replies * (len(accepted) // count), strict=True):
                if answer.startswith(b"2"):
                    self.told[name] = "delivered"
                elif answer.startswith(b"5"):
                    self.told[name] = "refused"
            return replies
        finally:
            transport.close()


class _Talk:
    def __init__(self, protocol: Any, transport: Any) -> None:
        self._protocol, self._transport = protocol, transport

    async def answer(self, line: bytes) -> bytes:
        return (await self.answers(line, 1))[0]

    async def answers(self, data: bytes, count: int) -> list[bytes]:
        if data:
            self._protocol.data_received(data)
        written: bytearray = self._transport.written

        def last_lines() -> list[bytes]:
            return [each for each in bytes(written).split(b"\r\n")[:-1] if each[3:4] == b" "]

        for _ in range(SPINS):  # all of it runs on this loop, and looks are cheap
            if len(last_lines()) >= count:
                break
            await asyncio.sleep(0)
        await until(lambda: len(last_lines()) >= count)
        found = last_lines()
        assert len(found) == count, found
        written.clear()
        return found


def connected(relay: MemoryRelay, hop: Hop, own: Mapping[bytes, ScanReport]) -> MemoryRelay:
    """Put a next hop behind a relay, and verdicts into it."""
    relay.hop = hop
    relay.context.next_hops = cast("Any", hop)
    relay.inspector.own = own
    return relay
