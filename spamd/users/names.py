"""The canonical name of a person: one, however their address is written.

    Anna+Shop@Example.ORG, "anna"@example.org, @relay.example:anna@example.org  →  anna@example.org

No tables are asked here; what no rule can read stays as it is, in lower case.
"""

import re
import unicodedata

_ROUTE = re.compile(r"@[^:\"]*:(?=.*@)")  # RFC 5321 §4.1.2, A-d-l: to be ignored
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_PAIR = re.compile(r"\\(.)", re.DOTALL)

ROUNDS = 8
"""What was quoted may hold what a rule reads; so many times it is looked at."""


def canonical(address: str | bytes, *, separators: str = "", domain: str = "") -> str:
    """Return the canonical name behind an address or a login name, "" for none.

    separators  what begins a tag in the local part
    domain      of names that have none
    """
    name = address.decode("utf-8", "replace") if isinstance(address, bytes) else address
    for _ in range(ROUNDS):
        before, name = name, _simplified(name, separators, domain)
        if name == before:
            break
    return name


def domain_of(name: str) -> str:
    """Return the domain of a canonical name, "" when it has none."""
    return name.rpartition("@")[2] if "@" in name else ""


def _simplified(text: str, separators: str, domain: str) -> str:
    text = unicodedata.normalize("NFC", text.strip())
    if route := _ROUTE.match(text):
        text = text[route.end() :]
    local, _, host = text.rpartition("@") if "@" in text else (text, "", "")
    if quoted := _QUOTED.fullmatch(local):
        local = _PAIR.sub(r"\1", quoted[1])
    local, host = local.strip().lower(), _host(host.strip() or domain)
    cut = min((found for each in separators if (found := local.find(each)) > 0), default=-1)
    if cut > 0:
        local = local[:cut]
    return f"{local}@{host}" if local and host else local


def _host(host: str) -> str:
    """Return a domain in lower case and ASCII, where IDNA has a name for it."""
    host = host.lower().rstrip(".")
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host
