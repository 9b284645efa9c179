"""The arguments of MAIL and RCPT, read for our own use; what goes on to the next hop is verbatim.

Nothing is refused here: an odd address is the next hop's to judge. A quoted local part may hold ">"
and blanks, so a path ends at the first ">" outside of quotes.
"""

import re
from collections.abc import Container
from dataclasses import dataclass

_PATH = re.compile(
    rb'(?i:FROM|TO)\s*:\s*(?:<((?>(?:[^">\\]++|\\.|"(?>(?:[^"\\]++|\\.)*)")*))>|(\S*))'
)
_PARAMETER = re.compile(rb"(?<! ) +([^ =]+)(?:=([^ ]*))?")

EXTENSION_OF = {
    b"SIZE": b"SIZE",
    b"BODY": b"8BITMIME",
    b"RET": b"DSN",
    b"ENVID": b"DSN",
    b"NOTIFY": b"DSN",
    b"ORCPT": b"DSN",
    b"AUTH": b"AUTH",
    b"BY": b"DELIVERBY",
    b"MT-PRIORITY": b"MT-PRIORITY",
    b"HOLDFOR": b"FUTURERELEASE",
    b"HOLDUNTIL": b"FUTURERELEASE",
}
"""Parameters that a next hop without the extension would refuse for good although the mail could be
delivered all the same. They are left out then; all others go on whatever they are."""


@dataclass(slots=True)
class Path:
    """A reverse-path or forward-path: its address without brackets, and its parameters."""

    address: bytes
    parameters: dict[bytes, bytes]
    end: int

    @property
    def domain(self) -> bytes:
        """Return the domain in lower case, empty when there is none."""
        return self.address.rpartition(b"@")[2].lower() if b"@" in self.address else b""


def parse_path(argument: bytes) -> Path | None:
    """Return the parts of what follows MAIL or RCPT; None when it names no path at all."""
    match = _PATH.match(argument)
    if match is None:
        return None
    address = match[1] if match[1] is not None else match[2]
    end = match.end()
    if end == len(argument):
        return Path(address, {}, end)
    parameters = {keyword.upper(): value for keyword, value in _PARAMETER.findall(argument, end)}
    return Path(address, parameters, end)


def without_unsupported(argument: bytes, extensions: Container[bytes] | None) -> bytes:
    """Return the argument without parameters of extensions that the next hop does not offer.

    extensions  what it offers in upper case; None when it has not said (after HELO)
    """
    if extensions is None or (path := parse_path(argument)) is None or not path.parameters:
        return argument
    unknown = [
        keyword
        for keyword in path.parameters
        if keyword in EXTENSION_OF and EXTENSION_OF[keyword] not in extensions
    ]
    if not unknown:
        return argument
    kept = [
        match[0]
        for match in _PARAMETER.finditer(argument, path.end)
        if match[1].upper() not in unknown
    ]
    return argument[: path.end] + b"".join(kept)
