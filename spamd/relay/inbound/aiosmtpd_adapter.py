"""The only module that knows aiosmtpd: its loop over commands, and its parser of PROXY headers.

aiosmtpd's server as a whole does not fit a relay: its constructor looks at the whole class anew for
each connection (230 µs), its timer cuts a message that arrives steadily, a half-close cancels a
message in flight, and an exception becomes a permanent 500 with its text. So `SMTP.__init__` and
the streams are left out. We live on these inner parts of aiosmtpd 1.4, hence `aiosmtpd~=1.4.6`:

    SMTP._handle_client   the loop: greets, reads a line, splits it, calls the handler of its verb
    what the loop reads   hostname, __ident__, transport, session.peer, session.extended_smtp,
                          command_size_limit, enable_SMTPUTF8, require_starttls, _proxy_timeout,
                          _enforce_call_limit, _tls_handshake_okay, _tls_protocol
    what the loop calls   _reader.readuntil, _writer.close, _smtp_methods.get, push,
                          handle_exception, _reset_timeout
    smtp.sanitized_log    called twice a command
    get_proxy             of `aiosmtpd.proxy_protocol`, with AF, CMD and addresses of its answer
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from types import SimpleNamespace
from typing import Any, cast

import aiosmtpd.smtp
from aiosmtpd.proxy_protocol import V2_CMD, get_proxy
from aiosmtpd.smtp import SMTP

from spamd.relay.smtp.replies import Reply

Command = Callable[[str | None], Awaitable[None]]
"""Carries out a command; what it takes is the argument behind the verb."""


def _no_log(*_: object) -> None:
    """Log nothing: command lines hold addresses and secrets; two regexes a line cost 4 % CPU."""


cast("Any", aiosmtpd.smtp).sanitized_log = _no_log
logging.getLogger("mail.log").setLevel(logging.CRITICAL)  # it names addresses; ours does not


class CommandLoop(SMTP):
    """aiosmtpd's loop over the commands of one client.

    Args:
        hostname: our name in the greeting.
        protocol: what we speak, for the greeting.
        next_command: returns the next command line, or raises ConnectionResetError.
        command_for: returns what carries out a verb, whatever the verb.
        reply: answers the client.
        reply_to_fault: returns the reply to an exception that a command raised.
    """

    transport: Any = True  # the loop ends by ConnectionResetError, not by a transport that is None
    session: Any = SimpleNamespace(peer=None, extended_smtp=False)
    command_size_limit = 1 << 30  # the line buffer limits lines
    enable_SMTPUTF8 = True  # noqa: N815 - aiosmtpd's name
    require_starttls: Any = None
    _proxy_timeout = None
    _tls_handshake_okay = True
    _tls_protocol: Any = None
    _enforce_call_limit = False
    _reader: Any
    _writer: Any
    _smtp_methods: Any

    def __init__(
        self,
        *,
        hostname: str,
        protocol: str,
        next_command: Callable[[], Awaitable[bytes]],
        command_for: Callable[[str], Command],
        reply: Callable[[Reply], None],
        reply_to_fault: Callable[[Exception], Reply],
    ) -> None:
        self.hostname = hostname
        self.__ident__ = protocol
        self._smtp_methods = self._reader = self._writer = self
        self.readuntil = next_command
        self.get = command_for
        self._reply = reply
        self._reply_to_fault = reply_to_fault

    def run(self) -> Awaitable[None]:
        """Greet the client and carry out its commands until the connection ends.

        Raises:
            ConnectionResetError: it has ended.
        """
        return self._handle_client()

    async def push(self, status: Any) -> None:
        """Answer; aiosmtpd's own greeting comes as text without CRLF."""
        self._reply(status if isinstance(status, Reply) else _reply_of(status))

    async def handle_exception(self, error: Exception) -> Any:
        """Return the reply to an exception that a command raised."""
        return self._reply_to_fault(error)

    def close(self) -> None:
        """Do nothing at the end of the loop: the session closes the connection."""

    def _reset_timeout(self, duration: float | None = None) -> None:
        """Do nothing: each wait sets its own deadline."""


@lru_cache(8)
def _reply_of(status: str) -> Reply:
    """Return a reply that aiosmtpd wrote as text."""
    return Reply(int(status[:3]), status.encode("utf-8", "replace") + b"\r\n")


async def parse_proxy_header(header: bytes) -> tuple[IPv4Address | IPv6Address, int] | None:
    """Return the client that a whole PROXY header names, None for nobody (§2.2 LOCAL, UNKNOWN).

    Raises:
        ConnectionResetError: it is no good header.
    """
    reader = asyncio.StreamReader(limit=len(header) + 1)
    reader.feed_data(header)
    reader.feed_eof()
    found = await get_proxy(reader)
    if not found.valid:
        raise ConnectionResetError("no PROXY header")
    if found.command == V2_CMD.LOCAL or not isinstance(found.src_addr, IPv4Address | IPv6Address):
        return None
    return found.src_addr, int(found.src_port or 0)
