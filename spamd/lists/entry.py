"""One entry of a list: whom it names, what follows, for whom it holds and until when.

    anna@shop.example          a sender's address
    shop.example               a sender's domain, with all below it
    203.0.113.0/24             the network of the client that handed the mail to our border
    list:news.shop.example     a mailing list, by its List-Id
    to:abuse@example.org       a recipient

An entry holds for the site, for a domain ("@example.org") or for a user ("anna@example.org"): its
owner.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from ipaddress import ip_network

from spamd.message.authentication.proof import AuthOptions
from spamd.message.authentication.sender import address_name, domain_name

SITE_OWNER = ""


class EntryError(ValueError):
    """There can't be such an entry; the text says why."""


class Effect(StrEnum):
    """What an entry does with the mail that it names."""

    ALLOW = "allow"
    DENY = "deny"


class Kind(StrEnum):
    """What of a mail an entry names, the most telling first."""

    ADDRESS = "address"
    DOMAIN = "domain"
    LIST = "list"
    NETWORK = "network"
    RECIPIENT = "recipient"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry.

    number    given by the database, never reused; 0: not stored yet
    value     in the one spelling of its kind
    owner     "" the site, "@example.org" a domain, "anna@example.org" a user
    unproven  it lets in mail that nothing proves to be from whom it names
    expires   None: never
    source    "command", "folder", "api"
    """

    effect: Effect
    kind: Kind
    value: str
    owner: str = SITE_OWNER
    unproven: bool = False
    expires: datetime | None = None
    source: str = "command"
    created: datetime | None = None
    number: int = 0

    @property
    def key(self) -> tuple[str, Kind, str]:
        """Return what there is one entry for at most."""
        return self.owner, self.kind, self.value

    def __str__(self) -> str:
        """Return it in words, for a reason."""
        whose = {"": "the site", "@": f"domain {self.owner[1:]}"}.get(self.owner[:1])
        return f"{self.effect} entry {self.number} ({self.text} of {whose or self.owner})"

    @property
    def text(self) -> str:
        """Return what it names as `named` reads it."""
        prefix = {Kind.LIST: "list:", Kind.RECIPIENT: "to:"}.get(self.kind, "")
        return prefix + self.value


def named(text: str) -> tuple[Kind, str]:
    """Return what a text names, in its one spelling.

    Raises:
        EntryError: nothing that an entry can name.
    """
    text = text.strip()
    if text.startswith("list:"):
        kind, value = Kind.LIST, domain_name(text[5:].strip("<> "))
    elif text.startswith("to:"):
        kind, value = Kind.RECIPIENT, address_name(text[3:].strip("<> "))
    elif (network := _network(text)) != "":
        kind, value = Kind.NETWORK, network
    elif "@" in text.lstrip("@"):
        kind, value = Kind.ADDRESS, address_name(text.strip("<>"))
    else:
        kind, value = Kind.DOMAIN, domain_name(text.lstrip("@").removeprefix("*.").lstrip("."))
    if not value or (kind is Kind.DOMAIN and "." not in value):
        raise EntryError(f"{text!r} is no address, domain, network, list:LIST-ID or to:RECIPIENT")
    return kind, value


def _network(text: str) -> str:
    try:
        return str(ip_network(text.strip("[]")))
    except ValueError:
        return ""


def checked(entry: Entry, options: AuthOptions) -> Entry:
    """Return an entry that may be kept.

    Raises:
        EntryError: it would let in mail that nobody can prove, and doesn't say so; or it would
            let in mail that pretends to be from our own domains.
    """
    if entry.effect is Effect.DENY:
        return entry
    if entry.kind is Kind.RECIPIENT and not entry.unproven:
        raise EntryError(
            f"{entry.text} would let in mail of anybody who writes there; if that is meant, say"
            " --unproven"
        )
    if entry.kind is Kind.NETWORK and _everybody(entry.value):
        raise EntryError(f"{entry.text} holds all clients there are, or very many")
    domain = entry.value.rpartition("@")[2]
    if entry.unproven and entry.kind in (Kind.ADDRESS, Kind.DOMAIN) and options.owns(domain):
        raise EntryError(f"{entry.text} is of auth.own_domains: never without proof")
    return entry


def _everybody(value: str) -> bool:
    network = ip_network(value)
    return network.prefixlen < (8 if network.version == 4 else 16)
