"""Which entry counts for a mail: in memory, in the time of a few look-ups.

The most telling comes first: entries of the user, of the user's domain, of the site; among those an
address, a domain (the longest), a mailing list, a network (the narrowest), a recipient. Of one
owner there is one entry for one name, so that a later word takes the place of an earlier one. The
first that counts decides; one that lets in but does not count is passed over, and remembered for
the explanation.

An entry that keeps out always counts. One that lets in counts

    an address, a domain   if the domain of From is proven (`Proof.by`), or the client had logged in
                           and it is one of our own domains
    a mailing list         if a domain is proven that was registered as one with its List-Id
    a network              if the mail came from there: the address is no word of the sender's
    any but a network      if the entry says `unproven`, unless From is of our own domains

and, except for a network, only if the mail has one sender (`Sender`). So what a stranger writes
never makes an entry count.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address, ip_network

from spamd.lists.entry import SITE_OWNER, Effect, Entry, Kind
from spamd.message.authentication.proof import AuthOptions, Proof
from spamd.message.authentication.sender import address_name, same_organisation
from spamd.message.unicode import latin

_DIGITS = str.maketrans("01", "ol")

MOST_LABELS = 20
"""Labels of a domain that are looked up, from its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What the lists say of a mail.

    entry    the one that decides, None: none does
    refused  those that would let it in, but do not count
    why      what proves the sender, or why nothing does
    alike    the sender is written to look like the one of the refused entry
    """

    entry: Entry | None = None
    refused: tuple[Entry, ...] = ()
    why: str = ""
    alike: bool = False

    @property
    def effect(self) -> str:
        """Return "allow", "deny" or "" where no entry decides."""
        return self.entry.effect.value if self.entry else ""

    @property
    def number(self) -> int:
        """Return the number of the entry that decides, 0 for none."""
        return self.entry.number if self.entry else 0

    def short(self) -> str:
        """Return effect and number of the entry that decides, "" for none."""
        return f"{self.effect} {self.number}" if self.entry else ""

    def clause(self) -> str:
        """Return it as a clause for a reason, which names nobody, "" for nothing."""
        if self.entry is not None:
            return f"{self.entry.effect} entry {self.entry.number} for {self.entry.kind}"
        if self.refused:
            reason = "sender only looks like it" if self.alike else "sender not proven"
            return f"allow entry {self.refused[0].number} does not count: {reason}"
        return ""

    def words(self) -> str:
        """Return it as a clause for those who may read addresses, "" for nothing."""
        if self.entry is not None:
            return f"{self.entry}{f': {self.why}' if self.entry.effect is Effect.ALLOW else ''}"
        if self.refused:
            return f"{self.refused[0]} does not count: {self.why}"
        return ""


NOT_LISTED = Listed()


class Lists:
    """The entries in force, to be asked for each mail.

    Args:
        options: which domains are our own.
        entries: all that are in force.
    """

    def __init__(self, options: AuthOptions, entries: Iterable[Entry] = ()) -> None:
        self._options = options
        self._entries: dict[tuple[str, Kind, str], Entry] = {}
        self._lengths: dict[str, set[tuple[int, int]]] = {}
        self._owners: dict[str, int] = {}
        self._alike: dict[tuple[str, Kind, str], Entry] = {}
        for entry in entries:
            self.add(entry)

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: Entry) -> None:
        """Take an entry in; one for the same name goes."""
        self._entries[entry.key] = entry
        self._owners[entry.owner] = self._owners.get(entry.owner, 0) + 1
        if entry.kind in (Kind.ADDRESS, Kind.DOMAIN):
            self._alike[entry.owner, entry.kind, _shape(entry.value)] = entry
        if entry.kind is Kind.NETWORK:
            network = ip_network(entry.value)
            lengths = self._lengths.setdefault(entry.owner, set())
            lengths.add((network.version, network.prefixlen))

    def of(self, proof: Proof, *, user: str = "", recipient: bytes = b"") -> Listed:
        """Return what the lists say of a mail for a user, or for the site."""
        if not self._entries:
            return NOT_LISTED
        domain = user.rpartition("@")[2]
        owners = [user, f"@{domain}", SITE_OWNER] if domain else [user, SITE_OWNER]
        refused: list[Entry] = []
        for owner in dict.fromkeys(owners):
            if owner not in self._owners:
                continue
            for entry in self._found(owner, proof, recipient):
                if self._counts(entry, proof):
                    return Listed(entry=entry, refused=tuple(refused), why=_why(entry, proof))
                refused.append(entry)
        if refused:
            return Listed(refused=tuple(refused), why=proof.words())
        return self._looks_like(owners, proof)

    def _looks_like(self, owners: Iterable[str], proof: Proof) -> Listed:
        """Return an entry that lets in whom a sender is written to look like; only to be told."""
        for owner in dict.fromkeys(owners):
            for address in proof.sender.addresses if owner in self._owners else ():
                for kind, name in _names(address):
                    entry = self._alike.get((owner, kind, _shape(name)))
                    if entry and entry.effect is Effect.ALLOW and entry.value != name:
                        why = f"{name} only looks like {entry.value}"
                        return Listed(refused=(entry,), why=why, alike=True)
        return NOT_LISTED

    def _found(self, owner: str, proof: Proof, recipient: bytes) -> Iterator[Entry]:
        """Yield the entries of an owner that name a mail, the most telling first."""
        entries, sender = self._entries, proof.sender
        addresses = (sender.address,) if sender.address else sender.addresses
        names: list[tuple[Kind, str]] = [(Kind.ADDRESS, address) for address in addresses]
        for address in addresses:
            names += [(Kind.DOMAIN, each) for each in _above(address.rpartition("@")[2])]
        if proof.list_id:
            names.append((Kind.LIST, proof.list_id))
        if proof.client and owner in self._lengths:
            lengths = tuple(sorted(self._lengths[owner], reverse=True))
            names += [(Kind.NETWORK, each) for each in _around(proof.client, lengths)]
        if recipient:
            names.append((Kind.RECIPIENT, address_name(recipient.decode("utf-8", "replace"))))
        for kind, name in names:
            if (entry := entries.get((owner, kind, name))) is not None:
                yield entry

    def _counts(self, entry: Entry, proof: Proof) -> bool:
        if entry.effect is Effect.DENY or entry.kind is Kind.NETWORK:
            return True
        sender = proof.sender
        if not sender.address:
            return False
        own = self._options.owns(sender.domain)
        proven = bool(proof.by) or (own and proof.login)
        if own and not proven:
            return False
        if entry.unproven:
            return True
        if entry.kind is Kind.LIST:
            return any(same_organisation(domain, entry.value) for domain in proof.domains)
        return proven and entry.kind is not Kind.RECIPIENT


def _why(entry: Entry, proof: Proof) -> str:
    """Return in words why an entry counts."""
    if entry.kind is Kind.NETWORK:
        return f"it came from {proof.client}"
    if proof.by:
        return proof.words()
    if entry.unproven:
        return f"it asks for no proof; {proof.words()}"
    if entry.kind is Kind.LIST:
        return f"the list is proven by {', '.join(proof.domains)}"
    return "the client had logged in"


def _names(address: str) -> list[tuple[Kind, str]]:
    """Return what entries may name of a sender: the address, its domain, and those above."""
    domains = _above(address.rpartition("@")[2])
    return [(Kind.ADDRESS, address), *((Kind.DOMAIN, each) for each in domains)]


@lru_cache(maxsize=4_096)
def _shape(name: str) -> str:
    """Return how a name looks at a glance: the same for "shop.example" and "sh0p.example"."""
    local, _, domain = name.rpartition("@")
    plain = latin(domain).lower().translate(_DIGITS).replace("rn", "m").replace("vv", "w")
    return f"{local}@{plain}"


def _above(domain: str) -> Iterator[str]:
    """Yield a domain and those above it."""
    labels = domain.split(".")[-MOST_LABELS:]
    for start in range(len(labels) - 1):
        yield ".".join(labels[start:])


@lru_cache(maxsize=512)
def _around(address: str, lengths: tuple[tuple[int, int], ...]) -> tuple[str, ...]:
    """Return the networks of these lengths that an address lies in, the narrowest first."""
    known = ip_address(address)
    return tuple(
        str(ip_network((known, length), strict=False))
        for version, length in lengths
        if version == known.version
    )
