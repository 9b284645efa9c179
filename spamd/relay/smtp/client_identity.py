"""Who the real client is, across proxies: XCLIENT, XFORWARD and the PROXY header, in and out.

Sources: Postfix XCLIENT_README and XFORWARD_README; "The PROXY protocol" (W. Tarreau, 2020), §2.2.
A value unknown is "[UNAVAILABLE]"; others are xtext (RFC 3461 §4): printable ASCII without "+", "="
and blanks, anything else as +XX.
"""

import ipaddress
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import replace

from spamd.message.envelope import Client

COMMAND_BYTES = 512
"""RFC 5321 §4.5.3.1.4; XFORWARD and XCLIENT say that longer commands must be split."""

VALUE_BYTES = 255
"""The longest value Postfix takes of an attribute."""

XTEXT_BYTES = 480
"""The longest encoded value that fits into a command together with its name."""

UNAVAILABLE = b"[UNAVAILABLE]"
_UNSAFE = re.compile(rb"[^!-*,-<>-~]")
_PLUS = re.compile(rb"\+([0-9A-Fa-f]{2})")
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
_PROXY_SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"


def xtext(value: bytes) -> bytes:
    """Return a value so that it may stand in a command."""
    return _UNSAFE.sub(lambda match: b"+%02X" % match[0][0], value)


def from_xtext(value: bytes) -> bytes:
    """Return the value that was meant."""
    return _PLUS.sub(lambda match: bytes([int(match[1], 16)]), value)


def attributes(client: Client) -> dict[bytes, bytes]:
    """Return what there is to say about a client, as XCLIENT and XFORWARD name it."""
    address = client.address.encode("ascii", "replace")
    found = {
        b"NAME": client.name.encode("ascii", "replace"),
        b"ADDR": b"IPV6:" + address if b":" in address else address,
        b"PORT": b"%d" % client.port if client.port else b"",
        b"HELO": client.helo.encode("utf-8", "surrogateescape"),
        b"PROTO": b"ESMTP" if client.protocol != "SMTP" else b"SMTP",
        b"LOGIN": (client.login or "").encode("utf-8", "surrogateescape"),
        b"SOURCE": b"REMOTE",
    }
    return {name: _cut(xtext(value[:VALUE_BYTES])) or UNAVAILABLE for name, value in found.items()}


def _cut(value: bytes) -> bytes:
    """Return as much of an xtext as fits into a command, without half a character."""
    if len(value) <= XTEXT_BYTES:
        return value
    cut = value[:XTEXT_BYTES]
    plus = cut.rfind(b"+", XTEXT_BYTES - 2)
    return cut if plus < 0 else cut[:plus]


def identity_commands(verb: bytes, client: Client, offered: Iterable[bytes]) -> list[bytes]:
    """Return the XCLIENT or XFORWARD commands that name the client, split where they get too long.

    offered  the attributes the next hop takes
    """
    known = attributes(client)
    commands = [verb]
    for name in offered:
        if name not in known:
            continue
        word = b" " + name + b"=" + known[name]
        if len(commands[-1]) + len(word) > COMMAND_BYTES - 2:
            commands.append(verb)
        commands[-1] += word
    return [command + b"\r\n" for command in commands if command != verb]


def parse_attributes(argument: bytes) -> Mapping[bytes, bytes] | None:
    """Return the attributes of an XCLIENT or XFORWARD command; None when they make no sense."""
    found: dict[bytes, bytes] = {}
    for word in argument.split():
        name, equals, value = word.partition(b"=")
        if not equals or not name:
            return None
        unknown = value in {UNAVAILABLE, b"[TEMPUNAVAIL]"}
        # A line break would begin a field in Received, or a command at the next hop.
        found[name.upper()] = b"" if unknown else _CONTROL.sub(b"?", from_xtext(value))
    return found or None


def named_client(client: Client, found: Mapping[bytes, bytes]) -> Client | None:
    """Return the client as a trusted proxy names it; None when the address is none."""
    changes: dict[str, str | int | None] = {}
    if b"ADDR" in found:
        address = found[b"ADDR"].decode("ascii", "replace")
        address = address[5:] if address.upper().startswith("IPV6:") else address
        try:
            changes["address"] = plain(ipaddress.ip_address(address)) if address else client.address
        except ValueError:
            return None
    if b"PORT" in found:
        port = int(found[b"PORT"][:6]) if found[b"PORT"].isdigit() else 0
        changes["port"] = port if port <= 0xFFFF else 0
    if b"NAME" in found:
        changes["name"] = found[b"NAME"].decode("ascii", "replace")
    if b"HELO" in found:
        changes["helo"] = found[b"HELO"].decode("utf-8", "surrogateescape")
    if found.get(b"PROTO"):
        changes["protocol"] = found[b"PROTO"].decode("ascii", "replace")
    if b"LOGIN" in found:
        changes["login"] = found[b"LOGIN"].decode("utf-8", "surrogateescape") or None
    return replace(client, **changes)  # type: ignore[arg-type]  # names and types stand above


def plain(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """Return an address as text, an IPv4 address that came by a socket of IPv6 as IPv4."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def proxy_header(client: Client, server: tuple[str, int]) -> bytes:
    """Return the PROXY v2 header that names the client; LOCAL when its address is unknown."""
    try:
        source = ipaddress.ip_address(client.address)
        target = ipaddress.ip_address(server[0])
    except ValueError:
        return _PROXY_SIGNATURE + b"\x20\x00\x00\x00"
    if source.version != target.version:
        source = _as_v6(source)
        target = _as_v6(target)
    family = b"\x11" if source.version == 4 else b"\x21"
    addresses = source.packed + target.packed + struct.pack("!HH", client.port, server[1])
    return _PROXY_SIGNATURE + b"\x21" + family + struct.pack("!H", len(addresses)) + addresses


def _as_v6(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv6Address:
    if isinstance(address, ipaddress.IPv6Address):
        return address
    return ipaddress.IPv6Address(b"\x00" * 10 + b"\xff\xff" + address.packed)
