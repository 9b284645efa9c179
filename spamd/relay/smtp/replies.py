"""What a client reads: replies as values, and THE table from fault to reply.

A reply of the next hop is kept as the bytes it came in and passed on unchanged. A reply of ours has
an enhanced code (RFC 2034), says what the sender can do, and nothing about how we are built.

Each fault has one row. Most faults strike either while a message is in hand, and then the message
is answered, or between commands, and then the session ends with 421 if it can't go on; `at_command`
is the code for the second case. Anything that has no row is a bug of ours: 451 4.3.0, and the text
of the exception is for the log only. A fault of ours is never 5yz.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from spamd.errors import (
    BareNewline,
    ConfigError,
    DeadlineExceeded,
    LocalProtocolError,
    MessageRejected,
    MessageTooLarge,
    NextHopRefused,
    NextHopUnavailable,
    Overloaded,
    PermanentError,
    ProtocolError,
    RemoteProtocolError,
    RoutingLoop,
    SpamdError,
    SpoolFull,
    StorageUnavailable,
    TemporaryError,
)


class NextHopLost(NextHopUnavailable):
    """The next hop went silent or away in the middle of a session."""


class NextHopTlsFailed(NextHopUnavailable):
    """TLS with the next hop is required and could not be had."""


class ClientNotIdentified(NextHopUnavailable):
    """The next hop is to be told the client and can't be told: it would be open to everybody."""


class LoopsBack(NextHopUnavailable):
    """The client is our own connection to the next hop: mail would loop."""


class TooManyConnections(Overloaded):
    """The limit on connections, in all or of one client."""


class ShuttingDown(Overloaded):
    """We are stopping."""


class BadCommandError(RemoteProtocolError):
    """The client sent a line that is no command: control characters, no CRLF, too long."""


class FramingError(RemoteProtocolError):
    """The client announced a block of data that we can't delimit."""


class TooManyCommands(Overloaded):
    """A client that talks and brings no mail, or keeps sending wrong commands."""


class ClientTimeoutError(TemporaryError):
    """The client did not send the next command, or sent its message too slowly."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply, all its lines: `raw` ends in CRLF."""

    code: int
    raw: bytes

    @property
    def accepted(self) -> bool:
        """Tell whether it is 2yz."""
        return 200 <= self.code < 300

    @property
    def permanent(self) -> bool:
        """Tell whether it is 5yz."""
        return self.code >= 500

    @property
    def as_421(self) -> "Reply":
        """Return the same words as 421, after which the connection is closed."""
        return Reply(421, _CODE.sub(b"421", self.raw))


_CODE = re.compile(rb"^[0-9]{3}", re.MULTILINE)


@lru_cache(64)  # we have few words
def reply(code: int, text: str) -> Reply:
    """Return a reply of one line; `text` begins with the enhanced code where there is one."""
    return Reply(code, f"{code} {text}\r\n".encode("ascii"))


OK = reply(250, "2.0.0 OK")
SYNTAX = reply(501, "5.5.4 Syntax error in parameters")
TRANSACTION_OPEN = reply(503, "5.5.1 Transaction already begun")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a fault looks like from outside."""

    code: int
    enhanced: str
    text: str
    at_command: int | None = None

    def reply(self, *, in_hand: bool) -> Reply:
        """Return the reply, for a message in hand or between commands."""
        code = self.code if in_hand or self.at_command is None else self.at_command
        return reply(code, f"{self.enhanced} {self.text}")


_LATER = "please try again later"
_INTERNAL = Row(code=451, at_command=421, enhanced="4.3.0", text=f"Temporary error, {_LATER}")

TABLE: Mapping[type[SpamdError], Row] = MappingProxyType(
    {
        SpamdError: _INTERNAL,
        ConfigError: _INTERNAL,
        TemporaryError: _INTERNAL,
        StorageUnavailable: _INTERNAL,
        LocalProtocolError: _INTERNAL,
        ProtocolError: _INTERNAL,
        DeadlineExceeded: Row(code=451, at_command=421, enhanced="4.3.0", text=f"Busy, {_LATER}"),
        NextHopUnavailable: Row(
            code=451, at_command=421, enhanced="4.4.1", text=f"Mail can't be accepted now, {_LATER}"
        ),
        LoopsBack: Row(
            code=451, at_command=421, enhanced="4.4.6", text="Mail loops back to this server"
        ),
        NextHopLost: Row(
            code=451, at_command=421, enhanced="4.4.2", text=f"Connection lost, {_LATER}"
        ),
        NextHopTlsFailed: Row(
            code=451, at_command=421, enhanced="4.7.5", text=f"No secure connection, {_LATER}"
        ),
        ClientNotIdentified: Row(
            code=451, at_command=421, enhanced="4.3.5", text=f"Mail can't be accepted now, {_LATER}"
        ),
        RemoteProtocolError: _INTERNAL,  # the next hop broke the rules, not the client
        Overloaded: Row(code=451, at_command=421, enhanced="4.3.2", text=f"Busy, {_LATER}"),
        SpoolFull: Row(code=452, enhanced="4.3.1", text=f"Insufficient storage, {_LATER}"),
        TooManyConnections: Row(code=421, enhanced="4.7.0", text="Too many connections"),
        ShuttingDown: Row(code=421, enhanced="4.3.2", text=f"Shutting down, {_LATER}"),
        TooManyCommands: Row(
            code=421, enhanced="4.7.0", text="Too many commands without a message"
        ),
        ClientTimeoutError: Row(code=421, enhanced="4.4.2", text="Timeout, closing the connection"),
        BadCommandError: Row(
            code=500, enhanced="5.5.2", text="Syntax error: not an SMTP command line"
        ),
        FramingError: Row(
            code=501, enhanced="5.5.4", text="Size expected after BDAT, closing the connection"
        ),
        PermanentError: _INTERNAL,
        MessageTooLarge: Row(code=552, enhanced="5.3.4", text="Message too large"),
        RoutingLoop: Row(code=554, enhanced="5.4.6", text="Routing loop: too many Received fields"),
        BareNewline: Row(
            code=550, enhanced="5.5.2", text="Bare CR or LF in the message: lines end in CRLF"
        ),
        MessageRejected: Row(code=550, enhanced="5.7.1", text="Rejected as spam"),
    }
)
"""Every subclass of SpamdError but NextHopRefused, which brings its own reply; a test walks all."""


def reply_to(error: BaseException, *, in_hand: bool) -> Reply:
    """Return what the client reads about a fault.

    in_hand  the end of data has come, or a block of it: the message itself is answered
    """
    if isinstance(error, NextHopRefused):
        return Reply(int(error.reply[:3]), error.reply)
    for kind in type(error).__mro__:
        if kind in TABLE:
            return TABLE[kind].reply(in_hand=in_hand)
    return _INTERNAL.reply(in_hand=in_hand)


def needs_logging(error: BaseException) -> bool:
    """Tell whether a fault is ours or the next hop's: the log must tell of it.

    What a client does wrong, or too much of, is told to the client only.
    """
    return not isinstance(error, SpamdError) or isinstance(error, _LOGGED)


_LOGGED = (NextHopUnavailable, NextHopRefused, ProtocolError, StorageUnavailable, SpoolFull)
