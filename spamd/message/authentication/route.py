"""Which servers handed a mail on among themselves, and who handed it to the first of them.

Each server puts its Received field on top. The topmost was written by a server of ours; as long as
it says that it had the mail from one of ours (this machine, `auth.networks`), so was the next. The
one that had it from anybody else is our border: what stands above it no stranger could write, and
of what stands below all but what the border itself put there is his.

What the border says of its client is the client's address, the name that DNS has for it, and
whether it had logged in. The name that the client gave itself (HELO) is not believed; a field in a
form that lets it play with these is the border all the same, and says nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from spamd.message.mime.parser import Field

Network = IPv4Network | IPv6Network

MOST_FIELDS = 100
"""Fields from the top in which our servers' are looked for; real ones have 10 to 20 above From."""

_FIELD_BYTES = 1_000
_END = re.compile(rb";|for(?<=\sfor)\s")  # recipient and time are no word of the server's
_CLIENT = re.compile(
    rb"\s{0,9}from\s{1,9}(?:"
    rb"[^\s()\[\]]{1,255}\s{1,9}\((?:([^\s()\[\]]{1,255})\s{1,9})?\[(?:IPv6:)?([0-9A-Fa-f:.]{2,45})\]"
    rb"|\[[^\s()\[\]]{1,255}\]\s{1,9}\((?:([^\s()\[\]]{1,255})\s{1,9})?"
    rb"\[(?:IPv6:)?([0-9A-Fa-f:.]{2,45})\]"
    rb"|\[([0-9A-Fa-f:.]{2,45})\]\s{1,9}\((?:port=|helo=)"
    rb")",
    re.IGNORECASE,
)
"""Postfix, Sendmail, spamd: `from HELO (NAME [ADDRESS]`, HELO maybe an address in brackets itself;
Exim: `from NAME ([ADDRESS]`, `from [ADDRESS] (helo=HELO)`."""

_OF_SENDER = frozenset({
    "from", "to", "cc", "subject", "date", "message-id", "sender", "reply-to", "mime-version",
    "content-type", "dkim-signature", "list-id", "references", "in-reply-to",
})  # fmt: skip
"""Fields that a sender writes: what servers put on top stands above them."""

_LOGIN = re.compile(rb"\swith\s{1,9}(?:UTF8)?(?:E?SMTP|LMTP)S?A\b", re.IGNORECASE)  # RFC 3848


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """What a Received field says of the client: "" where it says nothing that can be believed."""

    address: str = ""
    name: str = ""
    login: bool = False


@lru_cache(maxsize=1_024)
def hop_of(value: bytes) -> Hop:
    """Return what a Received field says of the client."""
    said = _END.split(value[:_FIELD_BYTES], maxsplit=1)[0]
    login = _LOGIN.search(said) is not None
    found = _CLIENT.match(said)
    if found is None:
        return Hop(login=login)
    name, address = (found[1] or found[3] or b""), (found[2] or found[4] or found[5])
    known = name.rstrip(b".").lower().decode("ascii", "replace")
    return Hop(
        address=plain_address(address.decode("ascii")),
        name="" if known == "unknown" else known,
        login=login,
    )


def plain_address(text: str) -> str:
    """Return the one spelling of an IP address, "" for what is none."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


@lru_cache(maxsize=64)
def networks_of(texts: tuple[str, ...]) -> tuple[Network, ...]:
    """Return networks, this machine's among them.

    Raises:
        ValueError: one of the texts names no network.
    """
    return tuple(map(ip_network, ("127.0.0.0/8", "::1/128", *texts)))


@lru_cache(maxsize=1_024)
def within(address: str, texts: tuple[str, ...]) -> bool:
    """Tell whether an address is this machine's or one of these networks'."""
    if not address:
        return False
    known = ip_address(address)
    return any(known in network for network in networks_of(texts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """How a mail came in.

    above, below  fields that stand above our border's Received field, and right below it, before
                  any other Received field
    client        who handed it to our border
    """

    above: Sequence[Field]
    below: Sequence[Field]
    client: Hop


def route_of(fields: Sequence[Field], networks: tuple[str, ...], *, bare: bool) -> Route:
    """Return how a mail came in; `bare`: a stranger's words, no server of ours has written there.

    Our own X-Spam-Id tells nothing here: a stranger may write one into a mail that never came
    through us.
    """
    names = [field.name for field in fields[:MOST_FIELDS]]
    hops = [place for place, name in enumerate(names) if name == "received"]
    if bare:
        end = hops[0] if hops else len(names)
        return Route(above=(), below=_on_top(fields[:end]), client=Hop())
    for number, place in enumerate(hops):
        hop = hop_of(fields[place].value)
        if not within(hop.address, networks):
            end = hops[number + 1] if number + 1 < len(hops) else len(names)
            below = _on_top(fields[place + 1 : end])
            return Route(above=fields[:place], below=below, client=hop)
    return Route(above=_on_top(fields[: len(names)]), below=(), client=Hop())


def _on_top(fields: Sequence[Field]) -> Sequence[Field]:
    """Return those fields that stand above all that a sender writes."""
    for place, field in enumerate(fields):
        if field.name in _OF_SENDER:
            return fields[:place]
    return fields
