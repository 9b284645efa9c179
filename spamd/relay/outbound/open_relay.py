"""An open door is never silent: does a next hop send mail of strangers anywhere?

A next hop that is not told the client takes all mail for ours. If it then trusts our address (it
runs on this machine, and loopback stands in its `mynetworks`), whoever reaches us may send to the
whole world. So we ask it what it would answer a stranger: a session as for any client, in the name
of an address that belongs to nobody, MAIL with the empty sender, RCPT to a domain that is nobody's
next hop, RSET. No mail is sent. It is asked where strangers can reach us, or where it is to be told
who they are; RCPT only by SMTP, for LMTP and Maildirs deliver, they send nothing on.

A next hop that accepts everything for another reason (it is a filter, or it bounces later) is named
too: from outside the two look the same.
"""

import asyncio
import ipaddress
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum

from spamd.errors import SpamdError
from spamd.message.envelope import Client
from spamd.ports import Observer
from spamd.relay.deadlines import Kennel
from spamd.relay.options import NextHopOptions, RelayOptions
from spamd.relay.outbound.router import client_context
from spamd.relay.outbound.smtp import SmtpSession
from spamd.relay.smtp.replies import ClientUntold
from spamd.relay.urls import NextHopUrl, Scheme, parse_next_hop

# RFC 5737 and RFC 2606: an address and names that belong to nobody
STRANGER = Client(
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

AGAIN_S = 3600.0
"""Between two questions to a next hop that answered: its settings change seldom."""

RETRY_S = 30.0
"""Between two questions to a next hop that is away."""


class Door(StrEnum):
    """What a next hop does with a stranger's mail for elsewhere."""

    CLOSED = "closed"  # it refuses, or only delivers
    OPEN = "open"  # it would send it on
    UNTOLD = "untold"  # it is to be told the client and can't be told: it gets no mail
    UNKNOWN = "unknown"  # it does not answer now


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one next hop answered; `reply` is the code of its answer, or what was in the way."""

    next_hop: str
    door: Door
    reply: str


def reached_by_strangers(options: RelayOptions) -> bool:
    """Tell whether others than this machine can connect to us, or are sent to us by a proxy."""
    return options.proxy_protocol or any(
        not listener.path and not _loopback(listener.host) for listener in options.listeners
    )


def trusts_everybody(options: RelayOptions) -> bool:
    """Tell whether any client may name another one, and so be whom it likes."""
    networks = map(ipaddress.ip_network, options.trusted_networks)
    return any(network.prefixlen == 0 for network in networks)


def next_hops_to_ask(relay: RelayOptions, options: NextHopOptions) -> tuple[NextHopUrl, ...]:
    """Return the servers that mail of strangers goes to, as far as they could be a danger."""
    told = options.xclient or options.proxy_protocol
    urls = (options.url, *options.fallback, *options.routes.values())
    parsed = dict.fromkeys(parse_next_hop(url, key="next_hop.url") for url in urls)
    if told:
        return tuple(url for url in parsed if url.scheme is not Scheme.MAILDIR)
    if not reached_by_strangers(relay):
        return ()
    return tuple(url for url in parsed if url.scheme is Scheme.SMTP)


async def ask_all(
    relay: RelayOptions, options: NextHopOptions, *, within_s: float
) -> AsyncIterator[Seen]:
    """Ask each of them; each answer comes `within_s`."""
    for url in next_hops_to_ask(relay, options):
        yield await ask(url, options, within_s=within_s)


async def ask(url: NextHopUrl, options: NextHopOptions, *, within_s: float) -> Seen:
    """Return what a next hop answers a stranger."""
    kennel = Kennel()
    session = SmtpSession(url, options, STRANGER.helo, client_context(options), kennel)
    try:
        async with asyncio.timeout(within_s):
            door, reply = await _asked(session)
    except ClientUntold as error:
        door, reply = Door.UNTOLD, str(error)
    except (SpamdError, TimeoutError, ValueError) as error:
        door, reply = Door.UNKNOWN, str(error) or "no answer in time"
    finally:
        session.close()
        kennel.stop()
    return Seen(next_hop=str(url), door=door, reply=reply)


async def _asked(session: SmtpSession) -> tuple[Door, str]:
    await session.open(STRANGER)
    answer = await session.greet(STRANGER, extended=True)
    if answer.accepted and session.lmtp:
        return Door.CLOSED, "LMTP"
    if answer.accepted:
        answer = await session.mail(_SENDER, STRANGER)
    if answer.accepted:
        answer = await session.rcpt(_RECIPIENT, None)
        if not answer.accepted:
            return Door.CLOSED, str(answer.code)
        await session.reset()
        return Door.OPEN, str(answer.code)
    return Door.CLOSED if answer.permanent else Door.UNKNOWN, str(answer.code)


class Strangers:
    """The job that asks at the start, until each next hop has answered, and then now and again."""

    name = "strangers"

    def __init__(self, relay: RelayOptions, options: NextHopOptions, observer: Observer) -> None:
        self._relay = relay
        self._options = options
        self._observer = observer

    async def run(self) -> None:
        """Ask for ever, and tell of every door that is open."""
        if trusts_everybody(self._relay) and reached_by_strangers(self._relay):
            self._observer.happened("relay.unsafe", key="relay.trusted_networks")
        while next_hops_to_ask(self._relay, self._options):
            away = [seen async for seen in self._asked() if seen.door is Door.UNKNOWN]
            await asyncio.sleep(RETRY_S if away else AGAIN_S)

    async def _asked(self) -> AsyncIterator[Seen]:
        limit_s = self._options.connect_timeout_s + self._options.greeting_timeout_s
        async for seen in ask_all(self._relay, self._options, within_s=limit_s):
            if seen.door is Door.OPEN:
                self._observer.happened("next_hop.unsafe", next_hop=seen.next_hop, reply=seen.reply)
            elif seen.door is Door.UNTOLD:
                self._observer.failed("next_hop.untold", ClientUntold(seen.reply))
            yield seen


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
