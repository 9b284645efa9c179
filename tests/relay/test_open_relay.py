"""A next hop that is to be told the client and can't be told, and one that trusts everybody."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from spamd.relay.options import NextHopOptions, RelayOptions
from spamd.relay.outbound.open_relay import (
    OpenRelayCheck,
    Relaying,
    probe_all,
    reachable_from_outside,
    trusts_everybody,
)
from tests.fakes import FakeObserver
from tests.relay.peers import FULL, QUEUED, ScriptedNextHop, relay

XCLIENT = {"xclient": True}
NO = b"550 5.7.0 insufficient authorization\r\n"
TOLD = {"XCLIENT": b"220 next.test ESMTP\r\n"}


def offering(*attributes: bytes) -> list[bytes]:
    return [*FULL, b" ".join((b"XCLIENT", *attributes))]


NOT_IDENTIFIED: dict[str, dict[str, Any]] = {
    "not offered": {},
    "offered without an address": {"extensions": offering(b"NAME", b"PROTO")},
    "offered without anything": {"extensions": offering()},
    "refused": {"extensions": offering(b"NAME", b"ADDR"), "answers": {"XCLIENT": NO}},
    "refused in its second line": {
        "extensions": offering(b"NAME", b"ADDR", b"HELO"),
        "answers": {"XCLIENT": [b"220 fine\r\n", NO]},
    },
    "unknown": {"extensions": offering(b"ADDR"), "answers": {"XCLIENT": b"502 5.5.1 what?\r\n"}},
    "LMTP": {"lmtp": True},
}


@pytest.mark.parametrize("trusted", [(), ("127.0.0.0/8",)])
@pytest.mark.parametrize("case", NOT_IDENTIFIED)
async def test_j1_a_next_hop_that_cant_be_told_the_client_gets_no_mail(
    case: str, trusted: tuple[str, ...]
) -> None:
    hello = b"EHLO " + b"=" * 250 if "second line" in case else b"EHLO c.test"
    hop = ScriptedNextHop(**NOT_IDENTIFIED[case])
    async with hop, relay(hop.url, next_hop=XCLIENT, trusted_networks=trusted) as running:
        talk = await running.talk()
        assert (await talk.say(hello)).startswith(b"421 4.3.5 ")
        assert await talk.rest() == b""
        assert "MAIL" not in hop.verbs
        ((event, fault),) = running.observer.faults
        assert event == "session.failed"
        assert "XCLIENT" in str(fault)


async def test_j1_a_client_that_says_helo_does_not_avoid_being_named() -> None:
    hop = ScriptedNextHop(answers={"EHLO": b"502 5.5.1 what?\r\n", "HELO": b"250 next.test\r\n"})
    async with hop, relay(hop.url, next_hop=XCLIENT) as running:
        assert (await (await running.talk()).say(b"HELO c.test")).startswith(b"421 4.3.5 ")
        assert "MAIL" not in hop.verbs


async def test_j1_a_client_that_greets_again_is_not_refused() -> None:
    async with (
        ScriptedNextHop(extensions=offering(b"ADDR"), answers=dict(TOLD)) as hop,
        relay(hop.url, next_hop=XCLIENT) as running,
    ):
        talk = await running.talk()
        assert await talk.deliver() == QUEUED
        assert await talk.deliver() == QUEUED


async def test_j1_a_next_hop_of_a_route_that_cant_be_told_gets_no_mail_either() -> None:
    async with (
        ScriptedNextHop(extensions=offering(b"ADDR"), answers=dict(TOLD)) as told,
        ScriptedNextHop() as untold,
        relay(told.url, next_hop={**XCLIENT, "routes": {"z.test": untold.url}}) as running,
    ):
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>")
        assert (await talk.say(b"RCPT TO:<b@z.test>")).startswith(b"451 ")
        assert (await talk.say(b"RCPT TO:<b@y.test>")).startswith(b"250 ")
        assert "MAIL" not in untold.verbs
        assert [event for event, _ in running.observer.faults] == ["session.failed"]


async def test_j1_a_next_hop_that_does_not_know_the_proxy_header_gets_no_mail() -> None:
    what = b"500 5.5.2 what?\r\n"  # to the lines that it takes the header for
    hop = ScriptedNextHop(answers={"": [b"220 next.test\r\n", what], "\0": what})
    async with hop, relay(hop.url, next_hop={"proxy_protocol": True}) as running:
        assert (await (await running.talk()).say(b"EHLO c.test")).startswith(b"421 4.3.")
        assert "MAIL" not in hop.verbs
        assert [event for event, _ in running.observer.faults] == ["session.failed"]


async def test_j1_a_next_hop_that_answers_the_proxy_header_late_gets_no_mail() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 next.test\r\n")
        await reader.readuntil(b"c.test\r\n")
        writer.write(b"500 5.5.2 what?\r\n")
        await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with relay(url, next_hop={"proxy_protocol": True}) as running:
            assert (await (await running.talk()).say(b"EHLO c.test")).startswith(b"421 4.3.5 ")


# Asking in a stranger's name

REACHED = RelayOptions(listen=("0.0.0.0:25",))  # never opened here


async def doors(hop: ScriptedNextHop, **next_hop: Any) -> list[Relaying]:
    options = NextHopOptions(url=hop.url, **next_hop)
    return [seen.relaying async for seen in probe_all(REACHED, options, within_s=10)]


@pytest.mark.parametrize(
    ("answers", "relaying"),
    [
        ({"RCPT": b"554 5.7.1 Relay access denied\r\n"}, Relaying.CLOSED),
        ({"RCPT": b"450 4.7.1 greylisted\r\n"}, Relaying.CLOSED),
        ({}, Relaying.OPEN),
        ({"": b"421 4.3.2 later\r\n"}, Relaying.UNKNOWN),
    ],
)
async def test_j1_the_stranger_reads_what_the_next_hop_does_with_mail_for_elsewhere(
    answers: dict[str, Any], relaying: Relaying
) -> None:
    async with ScriptedNextHop(answers=answers) as hop:
        assert await doors(hop) == [relaying]
        assert "DATA" not in hop.verbs


async def test_j1_the_stranger_sees_that_nobody_can_be_told() -> None:
    async with ScriptedNextHop() as hop:
        assert await doors(hop, xclient=True) == [Relaying.NOT_IDENTIFIED]


async def test_j1_the_stranger_is_named_to_a_next_hop_that_is_told() -> None:
    hop = ScriptedNextHop(extensions=offering(b"ADDR"), answers=dict(TOLD))
    async with hop:
        assert await doors(hop, xclient=True) == [Relaying.OPEN]
        assert b"XCLIENT ADDR=203.0.113.1" in hop.commands


async def test_j1_an_open_next_hop_is_told_of_at_the_start() -> None:
    observer = FakeObserver()
    async with ScriptedNextHop() as hop:
        job = OpenRelayCheck(REACHED, NextHopOptions(url=hop.url), observer)
        task = asyncio.get_running_loop().create_task(job.run())
        await hop.until(lambda: "RSET" in hop.verbs)
        await hop.until(lambda: hop.open == 0)
        task.cancel()
    assert [event for event, _ in observer.events] == ["next_hop.unsafe"]


@pytest.mark.parametrize(
    ("options", "reached"),
    [
        ({"listen": ("127.0.0.1:25", "[::1]:25", "localhost:25")}, False),
        ({"listen": (), "listen_lmtp": ("unix:/run/x",)}, False),
        ({"listen": ("192.0.2.1:25",)}, True),
        ({"listen": ("[::]:25",)}, True),
        ({"listen_tls": ("0.0.0.0:465",)}, True),
        ({"listen_lmtp": ("10.0.0.1:24",)}, True),
        ({"proxy_protocol": True, "trusted_networks": ("127.0.0.1",)}, True),
    ],
)
def test_j1_whether_strangers_reach_us(options: dict[str, Any], reached: bool) -> None:  # noqa: FBT001 - a column
    assert reachable_from_outside(RelayOptions(**options)) is reached


def test_j1_a_network_that_holds_everybody_is_seen() -> None:
    assert trusts_everybody(RelayOptions(trusted_networks=("::/0",)))
    assert not trusts_everybody(RelayOptions(trusted_networks=("10.0.0.0/8",)))


async def test_j1_a_maildir_is_not_asked(tmp_path: Path) -> None:
    options = NextHopOptions(url=f"maildir://{tmp_path}", xclient=True)
    assert [seen async for seen in probe_all(REACHED, options, within_s=1)] == []
