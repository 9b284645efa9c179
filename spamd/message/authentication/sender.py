"""Who a mail says it is from: the From field as strictly as a proof needs it.

Mail readers differ on what is malformed, so whatever they could differ on is no sender: two From
fields, several addresses, groups, routes, quoted local parts, an `@` outside of quotes, control
characters, lines that are no field. A display name that holds another address than the one behind
it is shown by many readers as the sender; that is no sender either.

A domain has one spelling: `xn--` labels in Unicode where they round-trip, the letters A to Z in
lower case. No other letter is folded, so that no look-alike becomes what it looks like (the lower
case of the Kelvin sign is a k).
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from spamd.message.mime.charset import header_text
from spamd.message.mime.parser import Message
from spamd.message.unicode import normalize
from spamd.message.url import host_label, registrable_domain

_FIELD_BYTES = 2_000
"""A From field with one address is shorter: of 8,000 mails the longest had 250 bytes."""

_FIELDS = 5
"""From fields looked at for addresses that are kept out."""

_ADDRESSES = 20

_RECIPIENTS_CHARACTERS = 16_000
"""Looked at of a field that names recipients: some hundred addresses."""

_PIECE = re.compile(r'"(?>(?:[^"\\]|\\.)*)"?|[^"()\\]+|\\.?|[()]', re.DOTALL)
_NAMED = re.compile(
    r'((?>(?:"(?>(?:[^"\\]|\\.)*)"|[^"<>@,;:\\]+)*))<([^<>"\s]{3,320})>\s*', re.DOTALL
)
"""A phrase, and an address in angle brackets (RFC 5322 §3.4), nothing else."""

_LOCAL = re.compile(r"[^\s\"()<>\[\]@,;:\\\x00-\x20\x7f]{1,64}")
_DOMAIN = re.compile(
    r"(?:[0-9A-Za-z_\u00a1-\U0010ffff](?:[0-9A-Za-z_\u00a1-\U0010ffff-]{0,61}"
    r"[0-9A-Za-z_\u00a1-\U0010ffff])?\.){0,20}"
    r"[0-9A-Za-z\u00a1-\U0010ffff][0-9A-Za-z\u00a1-\U0010ffff-]{0,62}"
)
_QUOTED = re.compile(r'"(?>(?:[^"\\]|\\.)*)"?', re.DOTALL)
_ANGLE = re.compile(r"<([^\s<>]{3,320})>")
_ANY = re.compile(r"[^\s\"()<>\[\]@,;:\\]{1,64}@[^\s\"()<>\[\]@,;:\\]{1,255}")
_BETWEEN = re.compile(r"[,;]")
_DOTS = str.maketrans(dict.fromkeys("。．｡", "."))


def domain_name(text: str) -> str:
    """Return the one spelling of a domain name, "" for what is none."""
    text = text.translate(_DOTS).removesuffix(".")
    if len(text) > 253 or _DOMAIN.fullmatch(text) is None:
        return ""
    lower = text.encode("utf-8", "replace").lower().decode()  # of ASCII letters only
    return ".".join(map(host_label, lower.split("."))) if "xn--" in lower else lower


def address_name(text: str) -> str:
    """Return the one spelling of a mail address, "" for what is none."""
    local, at, domain = text.rpartition("@")
    known = domain_name(domain) if at else ""
    if not known or _LOCAL.fullmatch(local) is None:
        return ""
    return f"{local.encode('utf-8', 'replace').lower().decode()}@{known}"


def same_organisation(domain: str, other: str) -> bool:
    """Tell whether two domains are aligned as DMARC's relaxed mode has it (RFC 7489 §3.1)."""
    return bool(domain) and (
        domain == other
        or ("." in domain and registrable_domain(domain) == registrable_domain(other))
    )


def addresses_of(text: str) -> list[str]:
    """Return the addresses in a field such as To, each in its one spelling."""
    bare = _QUOTED.sub(" ", text[:_RECIPIENTS_CHARACTERS])
    found: list[str] = []
    for piece in _BETWEEN.split(bare):
        places = _ANGLE.findall(piece) or _ANY.findall(piece)
        found += filter(None, map(address_name, places))
    return list(dict.fromkeys(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Whom the From fields name.

    address    the one address of the one From field, "" when there is none such
    addresses  all that stand in From fields where an address stands, however they are written
    trouble    why there is no one address, in words
    """

    address: str = ""
    addresses: tuple[str, ...] = ()
    trouble: str = ""

    @property
    def domain(self) -> str:
        """Return the domain of the one address."""
        return self.address.rpartition("@")[2]


def sender_of(message: Message) -> Sender:
    """Return whom the From fields of a mail name."""
    fields = message.all("from")
    if not fields:
        return Sender(trouble="no From field")
    if len(fields) == 1:
        found = _read(fields[0][: _FIELD_BYTES + 1])
        if message.strays and found.address:
            return Sender(addresses=found.addresses, trouble="lines among the fields that are none")
        return found
    several = [_read(field[: _FIELD_BYTES + 1]) for field in fields[:_FIELDS]]
    every = dict.fromkeys(address for each in several for address in each.addresses)
    return Sender(addresses=tuple(every)[:_ADDRESSES], trouble=f"{len(fields)} From fields")


@lru_cache(maxsize=1_024)
def _read(value: bytes) -> Sender:
    """Return whom one From field names."""
    try:
        text = value.decode("utf-8").replace("\n", " ").strip()
    except UnicodeDecodeError:
        text = value.decode("latin_1").replace("\n", " ").strip()
    bare = _QUOTED.sub(" ", text)
    places = _ANGLE.findall(bare) or _ANY.findall(bare)
    every = tuple(dict.fromkeys(filter(None, map(address_name, places))))[:_ADDRESSES]
    if len(value) > _FIELD_BYTES:
        return Sender(addresses=every, trouble="a From field that is too long")
    address, name = _split(text)
    one = address_name(address)
    if not one:
        return Sender(addresses=every, trouble="a From field without exactly one address")
    if any(shown != one for shown in _shown(name)):
        return Sender(addresses=every, trouble="a display name that is another address")
    return Sender(address=one, addresses=every)


def _split(text: str) -> tuple[str, str]:
    """Return what stands where one address stands, and what readers show of the rest."""
    plain, comments, depth = "", "", 0
    for piece in _PIECE.findall(text):
        depth += (piece == "(") - (piece == ")")
        if depth < 0:
            return "", ""
        if depth or piece == ")":
            comments += " " if piece in "()" else piece
            plain += " " if piece == "(" else ""
        else:
            plain += piece
    if depth:
        return "", ""
    named = _NAMED.fullmatch(plain.strip())
    return (plain.strip(), comments) if named is None else (named[2], named[1] + comments)


def _shown(name: str) -> list[str]:
    """Return the addresses that a display name shows."""
    if "@" not in name and "=?" not in name and name.isascii():
        return []
    text, _ = normalize(header_text(name.encode("utf-8", "replace")))
    text = text.replace("\ufe6b", "@").replace("\uff20", "@")
    return [address_name(each.strip(".'")) or each for each in _ANY.findall(text)]
