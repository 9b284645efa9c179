r"""Packets of the milter protocol: bytes → commands of the mail server, answers → bytes.

    length (32 bits, of what follows) · command (1 octet) · data

Strings in the data end with a NUL. Nothing here reads or writes a socket. A packet that is longer
than `LONGEST` is refused by its length alone: an HTTP request that comes in by mistake announces
more than a gigabyte.

Sources: Sendmail's libmilter (`include/libmilter/mfdef.h`), Postfix's `src/milter/milter8.c`.
"""

import re
import struct
from collections.abc import Iterator, Sequence

from spamd.errors import RemoteProtocolError

LONGEST = 1024 * 1024
"""Octets of a packet. A body comes in pieces of 65,535; a header field may be longer (Postfix's
`header_size_limit` is 102,400)."""

REPLY_BYTES = 512
"""Of a reply: RFC 5321 §4.5.3.1.5; a mail server takes no longer one for sure."""

REASON_BYTES = 100
"""Of why a mail is quarantined: what Postfix keeps of it."""

CONTINUE, SKIP, PROGRESS = b"\0\0\0\1c", b"\0\0\0\1s", b"\0\0\0\1p"
"""Answers without data, as packets."""

_HEAD = struct.Struct("!I")
_INDEXED = struct.Struct("!I")
_THREE = struct.Struct("!III")
_PORT = struct.Struct("!H")
_UNFIT = re.compile(r"[^ -~]")


class PacketReader:
    """Cuts a stream into packets, however it was cut by the network.

    Attributes:
        wanted: octets of the packet that has begun but is not whole; 0 when none has.
    """

    __slots__ = ("_buffer", "_start", "wanted")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._start = 0
        self.wanted = 0

    def feed(self, data: bytes) -> None:
        """Take what came from the network."""
        if self._start:
            del self._buffer[: self._start]
            self._start = 0
        self._buffer += data

    def next(self) -> tuple[bytes, bytes] | None:
        """Return command and data of the next packet, or None until more has come.

        Raises:
            RemoteProtocolError: its length is impossible.
        """
        buffer, start = self._buffer, self._start
        have = len(buffer) - start
        if have < 4:
            self.wanted = 4 if have else 0
            return None
        length: int = _HEAD.unpack_from(buffer, start)[0]
        if not 1 <= length <= LONGEST:
            raise RemoteProtocolError("this is not the milter protocol: a packet of that length")
        if have < 4 + length:
            self.wanted = 4 + length
            return None
        self.wanted = 0
        self._start = end = start + 4 + length
        return bytes(buffer[start + 4 : start + 5]), bytes(buffer[start + 5 : end])


def packet(command: bytes, data: bytes = b"") -> bytes:
    """Return a packet."""
    return _HEAD.pack(1 + len(data)) + command + data


def strings(data: bytes) -> list[bytes]:
    """Return the strings of a packet; the last may lack its NUL."""
    return data.removesuffix(b"\0").split(b"\0") if data else []


def macros(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield names and values of macros, names without braces; a name without a value is nothing."""
    words = strings(data)
    for name, value in zip(words[::2], words[1::2], strict=False):
        yield (name[1:-1] if name[:1] == b"{" and name[-1:] == b"}" else name), value


def numbers(data: bytes) -> tuple[int, int, int]:
    """Return version, actions and steps of a negotiation.

    Raises:
        RemoteProtocolError: there are no three numbers.
    """
    if len(data) < 12:
        raise RemoteProtocolError("a negotiation without version, actions and steps")
    version, actions, steps = _THREE.unpack_from(data)
    return version, actions, steps


def connection(data: bytes) -> tuple[bytes, bytes, int]:
    """Return name, address and port of a client; address and port of a UNIX socket are nothing.

    Raises:
        RemoteProtocolError: it is not said what the address is.
    """
    name, end, rest = data.partition(b"\0")
    if not end or not rest:
        raise RemoteProtocolError("a connection without the kind of its address")
    if rest[:1] not in {b"4", b"6"} or len(rest) < 3:
        return name, b"", 0
    port: int = _PORT.unpack_from(rest, 1)[0]
    return name, rest[3:].partition(b"\0")[0], port


def agreement(version: int, actions: int, steps: int, lists: Sequence[tuple[int, bytes]]) -> bytes:
    """Return our part of a negotiation, with the macros that we want at which stage."""
    wanted = b"".join([_INDEXED.pack(stage) + names + b"\0" for stage, names in lists])
    return packet(b"O", _THREE.pack(version, actions, steps) + wanted)


def inserted(index: int, name: bytes, value: bytes) -> bytes:
    """Return the packet that puts a header field behind so many others.

    Those that the mail server has added itself count; Postfix and Sendmail add Received, on top.
    """
    return packet(b"i", _INDEXED.pack(index) + name + b"\0" + value + b"\0")


def changed(index: int, name: bytes, value: bytes) -> bytes:
    """Return the packet that gives the n-th field of a name (from 1) another value, b"": none."""
    return packet(b"m", _INDEXED.pack(index) + name + b"\0" + value + b"\0")


def quarantined(reason: str) -> bytes:
    """Return the packet that keeps a mail from being delivered; a final answer must follow."""
    return packet(b"q", _fit(reason)[:REASON_BYTES] + b"\0")


def replied(reply: str) -> bytes:
    """Return the packet with a final reply of one line, such as "550 5.7.1 No"."""
    # A mail server takes the text for a format: every % stands for itself only if it is doubled.
    return packet(b"y", _fit(reply)[:REPLY_BYTES].replace(b"%", b"%%") + b"\0")


def _fit(text: str) -> bytes:
    """Return a text as one line of ASCII: anything else ends a string or a reply too soon."""
    return _UNFIT.sub("?", text).encode("ascii")
