"""The open relay check: would a next hop relay mail of unknown clients to foreign domains?

A next hop that is not told the client takes all mail for ours. If it then trusts our address (it
runs on this machine, and loopback stands in its `mynetworks`), whoever reaches us may send to the
whole world. So each next hop is probed: a session as for any client, in the name of an address that
belongs to nobody, MAIL with the empty sender, RCPT to a foreign domain, RSET. No mail is sent. The
probe runs where unknown clients can reach us, or where the next hop is to be told who they are. It
says RCPT by SMTP only: LMTP and Maildirs deliver and relay nothing.

A next hop that accepts everything for another reason (it is a filter, or it bounces later) is
reported too: from outside the two look the same.
"""

import asyncio
import ipaddress
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum

from spamd.errors import SpamdError
from spamd.message.envelope import Client
from spamd.network.deadlines import DeadlineTimer
from spamd.ports import Observer
from spamd.relay.options import NextHopOptions, RelayOptions
from spamd.relay.outbound.router import client_tls_context
from spamd.relay.outbound.smtp import SmtpSession
from spamd.relay.smtp.replies import ClientNotIdentified
from spamd.relay.urls import NextHopUrl, Scheme, parse_next_hop

# RFC 5737 and RFC 2606: an address and names that belong to nobody
UNKNOWN_CLIENT = Client(
    address="203.0.113.1",
    port=25,
    helo="stranger.example.net",
    name="",
    tls=False,
    login=None,
    protocol="ESMTP",
)
_SENDER = b"FROM:<>"  # no sender is checked, so the answer to RCPT is about the recipient
_RECIPIENT = b"TO:<nobody@example.com>"

PROBE_INTERVAL_S = 3600.0
"""Between two probes of a next hop that answered: its settings change seldom."""

RETRY_S = 30.0
"""Between two probes of a next hop that is away."""


class Relaying(StrEnum):
    """What a next hop does with an unknown client's mail for a foreign domain."""

    CLOSED = "closed"  # it refuses, or only delivers
    OPEN = "open"  # it would relay it
    NOT_IDENTIFIED = "not identified"  # it can't be told the client, and gets no mail
    UNKNOWN = "unknown"  # it does not answer now


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What one next hop answered; `reply` is the code of its answer, or why there is none."""

    next_hop: str
    relaying: Relaying
    reply: str


def reachable_from_outside(options: RelayOptions) -> bool:
    """Tell whether clients outside this machine can connect to us, directly or by a proxy."""
    return options.proxy_protocol or any(
        not listener.path and not _loopback(listener.host) for listener in options.listeners
    )


def trusts_everybody(options: RelayOptions) -> bool:
    """Tell whether any client may name another one as the real client."""
    networks = map(ipaddress.ip_network, options.trusted_networks)
    return any(network.prefixlen == 0 for network in networks)


def next_hops_to_probe(relay: RelayOptions, options: NextHopOptions) -> tuple[NextHopUrl, ...]:
    """Return the next hops that could be open relays."""
    told = options.xclient or options.proxy_protocol
    urls = (options.url, *options.fallback, *options.routes.values())
    parsed = dict.fromkeys(parse_next_hop(url, key="next_hop.url") for url in urls)
    if told:
        return tuple(url for url in parsed if url.scheme is not Scheme.MAILDIR)
    if not reachable_from_outside(relay):
        return ()
    return tuple(url for url in parsed if url.scheme is Scheme.SMTP)


async def probe_all(
    relay: RelayOptions, options: NextHopOptions, *, within_s: float
) -> AsyncIterator[ProbeResult]:
    """Yield the result of each next hop, each `within_s`."""
    for url in next_hops_to_probe(relay, options):
        yield await probe(url, options, within_s=within_s)


async def probe(url: NextHopUrl, options: NextHopOptions, *, within_s: float) -> ProbeResult:
    """Return what a next hop answers an unknown client."""
    timer = DeadlineTimer()
    session = SmtpSession(url, options, UNKNOWN_CLIENT.helo, client_tls_context(options), timer)
    try:
        async with asyncio.timeout(within_s):
            relaying, reply = await _probed(session)
    except ClientNotIdentified as error:
        relaying, reply = Relaying.NOT_IDENTIFIED, str(error)
    except (SpamdError, TimeoutError, ValueError) as error:
        relaying, reply = Relaying.UNKNOWN, str(error) or "no answer in time"
    finally:
        session.close()
        timer.stop()
    return ProbeResult(next_hop=str(url), relaying=relaying, reply=reply)


async def _probed(session: SmtpSession) -> tuple[Relaying, str]:
    await session.open(UNKNOWN_CLIENT)
    answer = await session.greet(UNKNOWN_CLIENT, extended=True)
    if answer.accepted and session.lmtp:
        return Relaying.CLOSED, "LMTP"
    if answer.accepted:
        answer = await session.mail(_SENDER, UNKNOWN_CLIENT)
    if answer.accepted:
        answer = await session.rcpt(_RECIPIENT, None)
        if not answer.accepted:
            return Relaying.CLOSED, str(answer.code)
        await session.reset()
        return Relaying.OPEN, str(answer.code)
    return Relaying.CLOSED if answer.permanent else Relaying.UNKNOWN, str(answer.code)


class OpenRelayCheck:
    """The job that probes at the start, until each next hop has answered, and then each hour."""

    name = "open relay check"

    def __init__(self, relay: RelayOptions, options: NextHopOptions, observer: Observer) -> None:
        self._relay = relay
        self._options = options
        self._observer = observer

    async def run(self) -> None:
        """Probe for ever; log every next hop that is an open relay."""
        if trusts_everybody(self._relay) and reachable_from_outside(self._relay):
            self._observer.happened("relay.unsafe", key="relay.trusted_networks")
        while next_hops_to_probe(self._relay, self._options):
            found = [result.relaying async for result in self._probed()]
            await asyncio.sleep(RETRY_S if Relaying.UNKNOWN in found else PROBE_INTERVAL_S)

    async def _probed(self) -> AsyncIterator[ProbeResult]:
        limit_s = self._options.connect_timeout_s + self._options.greeting_timeout_s
        async for result in probe_all(self._relay, self._options, within_s=limit_s):
            if result.relaying is Relaying.OPEN:
                self._observer.happened(
                    "next_hop.unsafe", next_hop=result.next_hop, reply=result.reply
                )
            elif result.relaying is Relaying.NOT_IDENTIFIED:
                self._observer.failed("next_hop.not_identified", ClientNotIdentified(result.reply))
            yield result


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
