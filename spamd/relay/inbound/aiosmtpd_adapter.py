"""aiosmtpd's dispatcher: it reads lines and calls `smtp_VERB`; all around it is ours.

Its constructor looks at the whole class anew for each connection (230 µs); its timer cuts a message
that arrives steadily; a half-close cancels a message in flight; an exception becomes a permanent
500 with its text. So of `SMTP` only `_handle_client` is used; what it calls stands here and in
`connection.py`.
"""

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Callable, Coroutine
from functools import lru_cache
from typing import Any, cast

import aiosmtpd.smtp
from aiosmtpd.smtp import SMTP, Session

from spamd.relay.smtp.replies import Reply, reply

Verb = Callable[[str | None], Coroutine[Any, Any, None]]


def _no_log(*_: object) -> None:
    """Log nothing: command lines hold addresses and secrets; two regexes a line cost 4 % CPU."""


cast("Any", aiosmtpd.smtp).sanitized_log = _no_log
logging.getLogger("mail.log").setLevel(logging.CRITICAL)  # it names addresses; ours does not


class Dispatcher(SMTP):
    """The loop over commands; who inherits says where lines come from and replies go."""

    # aiosmtpd's names for things of ours that do the same work
    _reader: Any
    _writer: Any
    _transport: Any
    _smtp_methods: Any
    command_size_limit = 1 << 30  # the line buffer limits lines

    def __init__(self, loop: asyncio.AbstractEventLoop, hostname: str, protocol: str) -> None:
        # What SMTP.__init__ sets and its dispatcher reads, without looking at the class each time,
        # and without what streams need (`StreamReaderProtocol`), for there are none.
        self.__ident__ = protocol
        self._smtp_methods = self._reader = self._writer = self
        self.loop = loop
        self.hostname = hostname
        self.enable_SMTPUTF8 = True
        self.event_handler = None
        self.require_starttls = None
        self.session: Session | None = None
        self.transport: asyncio.Transport | None = None
        self._proxy_timeout = None
        self._tls_handshake_okay = True
        self._tls_protocol = None
        self._enforce_call_limit = False
        self._handler_coroutine: asyncio.Task[None] | None = None

    @abstractmethod
    def next_line(self, *, command: bool = False) -> Coroutine[Any, Any, bytes]:
        """Return the next line with its CRLF."""

    @abstractmethod
    def say(self, answer: Reply) -> None:
        """Answer the client."""

    @abstractmethod
    async def unknown(self, argument: str | None) -> None:
        """Answer a verb that does not exist."""

    def readuntil(self) -> Coroutine[Any, Any, bytes]:
        """Return the next command line."""
        return self.next_line(command=True)

    def get(self, verb: str) -> Verb:
        """Return the command of that name, as if we were the table of them that aiosmtpd builds."""
        found: Verb = getattr(self, "smtp_" + verb, None) or self.unknown
        return found

    async def push(self, status: Any) -> None:
        """Answer; aiosmtpd's own greeting comes as text without CRLF."""
        self.say(status if isinstance(status, Reply) else reply_line(status))

    def close(self) -> None:
        """Do nothing when the dispatcher ends: who started it closes."""

    def _reset_timeout(self, duration: float | None = None) -> None:
        """Do nothing: each wait sets its own deadline."""


@lru_cache(8)
def reply_line(status: str) -> Reply:
    """Return a reply that aiosmtpd wrote as text."""
    return Reply(int(status[:3]), status.encode("utf-8", "replace") + b"\r\n")


UNKNOWN = reply(500, "5.5.2 Command not recognized")
