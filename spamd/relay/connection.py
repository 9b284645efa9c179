"""One connection of a client: aiosmtpd's dispatcher on our own plumbing.

aiosmtpd's `SMTP` reads lines and calls `smtp_VERB`; everything around it is ours, for the reasons
that follow. Its constructor looks at the whole class anew for each connection (230 µs); its timer
cuts a message that arrives steadily; a half-close cancels a message in flight; an exception becomes
a permanent 500 with its text. Here each wait has its own deadline and a timed-out client reads 421;
a client that has sent everything and closed its side still gets its replies; a fault of ours is
421.

Replies of pipelined commands leave together (RFC 2920 §3.2). Once the message is being handed on
(`committing`), the loss of the client no longer stops it.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Coroutine
from functools import lru_cache
from typing import Any, cast

import aiosmtpd.smtp
from aiosmtpd.smtp import SMTP, Session

from spamd.errors import SpamdError
from spamd.relay.context import RelayContext
from spamd.relay.inbox import Inbox
from spamd.relay.proxy import read_proxy_header
from spamd.relay.replies import (
    BadCommandError,
    ClientTimeoutError,
    Reply,
    ShuttingDown,
    TooManyCommands,
    TooManyConnections,
    concerns_us,
    reply,
    reply_to,
)
from spamd.relay.urls import Listener
from spamd.relay.watchdog import TimeLimit, Watchdog

LINGER_S = 5.0
"""A client that reads gets our last words within this; then the connection is cut."""

COALESCED_REPLIES = 500
"""Replies kept back at most while further commands are waiting: 20 KB."""


Verb = Callable[[str | None], Coroutine[Any, Any, None]]


def _no_log(*_: object) -> None:
    """Log nothing: command lines hold addresses and secrets; two regexes a line cost 4 % CPU."""


cast("Any", aiosmtpd.smtp).sanitized_log = _no_log
logging.getLogger("mail.log").setLevel(logging.CRITICAL)  # it names addresses; ours does not


class Connection(SMTP):
    """The part of a session that is not about mail."""

    # aiosmtpd's names for things of ours that do the same work
    _reader: Any
    _writer: Any
    _transport: Any
    _smtp_methods: Any
    data_received: Any  # straight into the inbox
    command_size_limit = 1 << 30  # the inbox's affair

    def __init__(self, context: RelayContext, listener: Listener) -> None:
        loop = asyncio.get_running_loop()
        # What SMTP.__init__ sets and its dispatcher reads, without looking at the class each time,
        # and without what streams need (`StreamReaderProtocol`), for there are none.
        self.__ident__ = "LMTP" if listener.lmtp else "ESMTP"
        self._smtp_methods = self._reader = self
        self.loop = loop
        self.hostname = context.hostname
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

        self._context = context
        self._listener = listener
        self.inbox = Inbox(loop)
        self.data_received = self.inbox.feed_data
        self.watchdog = Watchdog(loop, context.kennel, self._client_silent)
        self.limit = TimeLimit(loop, context.kennel)
        self._out: list[bytes] = []
        self._writable: asyncio.Future[None] | None = None
        self._ticket: str | None = None
        self._closing = False
        self._bad_commands = 0
        self._junk = 0
        self._junk_turn = -1
        self._last_mail = loop.time()
        self.options = context.relay
        self.committing = False
        self.address = ""
        self.port = 0
        self.trusted = False
        self.encrypted = False

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let the client in or send it away."""
        self.transport = cast("asyncio.Transport", transport)
        self._use(self.transport)
        self.encrypted = transport.get_extra_info("sslcontext") is not None
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self.address, self.port = peer[0].partition("%")[0], peer[1]
        self.session = Session(self.loop)
        self._ticket = self._context.door.enter(self.address)
        if self._ticket is None or self._context.draining:
            refusal = ShuttingDown() if self._context.draining else TooManyConnections()
            self.last_words(refusal)
            if self._ticket is not None:
                self._context.door.leave(self._ticket)
            return
        self._handler_coroutine = self._context.spawn(self, self._serve())

    def eof_received(self) -> bool:
        """Let what the client sent before be answered; TLS can't stay half open."""
        self.inbox.feed_eof()
        return not self.encrypted

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - called by the loop
        """End the session, unless a message is being handed on."""
        self.transport = None
        self.watchdog.stop()
        self.inbox.feed_eof()
        self.resume_writing()
        if self._handler_coroutine is not None and not self.committing:
            self._handler_coroutine.cancel()

    def pause_writing(self) -> None:
        """Note that the client takes less than we send."""
        self._writable = self.loop.create_future()

    def resume_writing(self) -> None:
        """Note that it takes more again, or has gone."""
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    # What aiosmtpd's dispatcher calls

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

    async def handle_exception(self, error: Exception) -> Any:
        """Return the reply to an exception that a command raised."""
        self.watchdog.calm()
        if isinstance(error, BadCommandError):
            try:
                self.bad_command()
            except TooManyCommands as ended:
                error = ended
        answer = reply_to(error, in_hand=False)
        if not isinstance(error, BadCommandError):
            if concerns_us(error):
                self._context.observer.failed("session.failed", error)
            if answer.code < 500:  # not the client's fault, and our state is unknown: start anew
                answer = answer.as_goodbye
        if answer.code == 421:
            self._closing = True
        return answer

    def _reset_timeout(self, duration: float | None = None) -> None:
        """Do nothing: each wait sets its own deadline."""

    async def unknown(self, argument: str | None) -> None:  # noqa: ARG002 - called like all verbs
        """Answer a verb that does not exist."""
        self.bad_command()
        self.say(_UNKNOWN)

    # What a session is made of

    async def next_line(self, *, command: bool = False) -> bytes:
        """Return the next line with its CRLF, within the limits on talk without mail.

        Raises:
            BadCommandError: it is no line, or no `command` begins so; aiosmtpd would not count it.
        """
        if self._closing:
            raise ConnectionResetError("closed by us")
        options = self.options
        left_s = self._last_mail + options.session_timeout_s - self.loop.time()
        if left_s <= 0:
            raise TooManyCommands
        if self._writable is not None:
            await self.flush()
        inbox = self.inbox
        line = inbox.line()
        if line is None:
            if self._out:
                await self.flush()
            if self._context.draining and not self.busy and not inbox.has_line:
                raise ShuttingDown
            self.watchdog.watch(min(options.command_timeout_s, left_s))
            while line is None:
                await inbox.more()
                line = inbox.line()
            self.watchdog.calm()
        verb = line if line.isascii() else line.partition(b" ")[0]
        if command and (line[:1].isspace() or not verb.isascii()):
            raise BadCommandError("no command")
        return line

    def say(self, answer: Reply) -> None:
        """Answer the client; answers to pipelined commands are sent together."""
        self._out.append(answer.raw)
        if answer.code == 421:
            self._closing = True
        if self._closing or not self.inbox.has_line or len(self._out) > COALESCED_REPLIES:
            self._send()

    @property
    def unsent(self) -> bool:
        """Tell whether there is something for `flush` to do."""
        return bool(self._out) or self._writable is not None

    async def flush(self) -> None:
        """Send the replies kept back and wait until the client takes them."""
        if self._out:
            self._send()
        if self._writable is not None:
            self.watchdog.watch(self.options.command_timeout_s)
            await self._writable
            self.watchdog.calm()

    def _send(self) -> None:
        if self.transport is not None:
            self.transport.write(b"".join(self._out))
        self._out.clear()

    async def hang_up(self) -> None:
        """Send what is left to send and end the session."""
        self._closing = True
        await self.flush()
        raise ConnectionResetError("closed by us")

    def bad_command(self) -> None:
        """Count a wrong command; too many end the session."""
        self._bad_commands += 1
        if self._bad_commands > self._context.relay.max_bad_commands:
            raise TooManyCommands

    def junk(self) -> None:
        """Count a turn without mail: commands sent in one go count once."""
        if self.inbox.turns == self._junk_turn:
            return
        self._junk_turn = self.inbox.turns
        self._junk += 1
        if self._junk > self._context.relay.max_turns_without_mail:
            raise TooManyCommands

    def mail_came(self) -> None:
        """Note that the session brought a message."""
        self._junk = 0
        self._last_mail = self.loop.time()

    async def start_tls(self) -> None:
        """Start TLS on the open connection; what came before in clear is forgotten."""
        context = self._context.context
        if self.transport is None or context is None:
            raise ConnectionResetError("no connection")
        self.inbox.clear()
        try:
            transport = await self.loop.start_tls(
                self.transport,
                self,
                context,
                server_side=True,
                ssl_handshake_timeout=self._context.relay.tls_handshake_s,
            )
        except (OSError, TimeoutError) as error:
            raise ConnectionResetError("TLS handshake failed") from error
        if transport is None:
            raise ConnectionResetError("the client has gone")
        self._use(transport)  # what is in the inbox now came encrypted
        self.encrypted = True

    def end(self) -> None:
        """Give back what the session held; the session adds its own."""
        self.watchdog.stop()
        self.limit.stop()
        if self.transport is not None:
            self._close(self.transport)
        if self._ticket is not None:
            self._context.door.leave(self._ticket)
            self._ticket = None

    def stop(self) -> None:
        """Say goodbye if the client is only being waited for; else it happens after the message."""
        if not self.busy and self.inbox.waiting:
            self.last_words(ShuttingDown())

    @property
    def busy(self) -> bool:
        """Tell whether a transaction is under way."""
        return False

    async def _serve(self) -> None:
        try:
            self.trusted = self._context.door.trusts(self.address)
            if self.trusted and self.options.proxy_protocol:
                await self._read_proxy_header()
            await self._handle_client()
        except ConnectionError:
            pass  # the client has gone, or we closed
        except ssl.SSLError:
            pass  # its TLS broke
        except Exception as error:  # noqa: BLE001 - the border around one session
            self._context.observer.failed("session.failed", error)
        finally:
            self.end()

    async def _read_proxy_header(self) -> None:
        """Read the PROXY header, then start TLS where it is due."""
        if self.transport is None:
            return
        # The header is taken from the socket itself. Not sooner: asyncio before 3.11.5 begins to
        # read after connection_made, paused or not.
        self.transport.pause_reading()
        with self.transport.get_extra_info("socket").dup() as peer:
            try:
                async with asyncio.timeout(self.options.proxy_header_s):
                    named = await read_proxy_header(peer)
            except TimeoutError as error:
                raise ConnectionResetError("no PROXY header in time") from error
        if named is not None:
            self.address, self.port = named
            self.trusted = False  # the proxy is trusted, its client is not
            self._change_ticket()
        if self._listener.tls:
            await self.start_tls()
        else:
            self.transport.resume_reading()

    def _change_ticket(self) -> None:
        """Count the connection for the client behind the proxy."""
        door = self._context.door
        if self._ticket is not None:
            door.leave(self._ticket)
        self._ticket = door.enter(self.address)
        if self._ticket is None:
            self.last_words(TooManyConnections())
            raise ConnectionResetError("too many connections")

    def _use(self, transport: asyncio.Transport) -> None:
        """Read from and write to this transport from now on."""
        self._writer = self._transport = self.transport = transport
        self.inbox.set_transport(transport)

    def _client_silent(self) -> None:
        self.last_words(ClientTimeoutError())

    def last_words(self, error: SpamdError) -> None:
        """Say something from outside of the session's task and close."""
        answer = reply_to(error, in_hand=False)
        self._closing = True
        if self.transport is not None:
            self.transport.write(b"".join((*self._out, answer.raw)))
            self._out.clear()
            self._close(self.transport)
        self.inbox.feed_eof()

    def _close(self, transport: asyncio.Transport) -> None:
        """Close the connection; a client that does not take what is left to say is cut off."""
        if self.encrypted or transport.get_write_buffer_size():
            self.loop.call_later(LINGER_S, transport.abort)
        transport.close()


@lru_cache(8)
def reply_line(status: str) -> Reply:
    """Return a reply that aiosmtpd wrote as text."""
    return Reply(int(status[:3]), status.encode("utf-8", "replace") + b"\r\n")


_UNKNOWN = reply(500, "5.5.2 Command not recognized")
