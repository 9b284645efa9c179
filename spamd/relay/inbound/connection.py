"""One connection of a client: what it says, what it is answered, and how long it may take.

Each wait has its own deadline and a timed-out client reads 421; a client that has sent everything
and closed its side still gets its replies; a fault of ours is 421, and who is sent away while still
sending can read why.

Replies of pipelined commands leave together (RFC 2920 §3.2). Once the message is being delivered
(`committing`), the loss of the client no longer stops it. What a client sends in one go is done by
turns with the others (`turns.py`).
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, cast

from aiosmtpd.smtp import Session

from spamd.errors import SpamdError
from spamd.relay.deadlines import Deadline, TimeLimit
from spamd.relay.inbound.aiosmtpd_adapter import UNKNOWN, Dispatcher
from spamd.relay.inbound.client_limits import ClientLimits
from spamd.relay.inbound.connection_limiter import network_of
from spamd.relay.inbound.context import RelayContext
from spamd.relay.inbound.line_buffer import LineBuffer
from spamd.relay.inbound.proxy_header import proxy_header_of
from spamd.relay.smtp.replies import (
    BadCommandError,
    ClientTimeoutError,
    Reply,
    ShuttingDown,
    TooManyCommands,
    TooManyConnections,
    needs_logging,
    reply_to,
)
from spamd.relay.urls import Listener

LINGER_S = 5.0
"""A client that reads gets our last words within this; then the connection is cut."""

COMMANDS_PER_TURN = 4
"""Commands of one session, come in one piece, before it needs another turn: a pipelined envelope of
one recipient (RFC 2920) is three."""

COALESCED_REPLIES = 500
"""Replies kept back at most while further commands are waiting: 20 KB."""


class Connection(Dispatcher):
    """The part of a session that is not about mail."""

    data_received: Any  # straight into the buffer

    def __init__(self, context: RelayContext, listener: Listener) -> None:
        loop = asyncio.get_running_loop()
        protocol = "LMTP" if listener.lmtp else "ESMTP"
        super().__init__(loop, context.hostname, protocol)
        self._context = context
        self._listener = listener
        self.buffer = LineBuffer(loop, self._take_turn)
        self.data_received = self.buffer.feed_data
        self.deadline = Deadline(loop, context.deadline_timer, self._timed_out)
        self.limit = TimeLimit(loop, context.deadline_timer)
        self._out: list[bytes] = []
        self._writable: asyncio.Future[None] | None = None
        self._slot: str | None = None
        self.network = ""
        self._commands = 0  # of this turn
        self._greeted = False
        self._closing = False
        self._sent_away = False
        self.options = context.relay
        self.limits = ClientLimits(context.relay, loop.time())
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
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self.address, self.port = peer[0].partition("%")[0], peer[1]
        self.session = Session(self.loop)
        self._slot = self._context.limiter.acquire(self.address)
        if self._slot is None or self._context.draining:
            refusal = ShuttingDown() if self._context.draining else TooManyConnections()
            self.close_with(refusal)
            if self._slot is not None:
                self._context.limiter.release(self._slot)
            return
        self.network = network_of(self._slot)
        self._handler_coroutine = self._context.spawn(self, self._serve())

    def eof_received(self) -> bool:
        """Let what the client sent before be answered; TLS can't stay half open."""
        self.buffer.feed_eof()
        return not self.encrypted and (self._greeted or not self.buffer.empty)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - called by the loop
        """End the session, unless a message is being delivered."""
        self.transport = None
        self.buffer.set_transport(None)
        self.deadline.stop()
        self.buffer.feed_eof()
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

    # What the dispatcher calls

    async def handle_exception(self, error: Exception) -> Any:
        """Return the reply to an exception that a command raised."""
        self.deadline.clear()
        if isinstance(error, BadCommandError):
            try:
                self.limits.bad()
            except TooManyCommands as ended:
                error = ended
        answer = reply_to(error, in_hand=False)
        if not isinstance(error, BadCommandError):
            if needs_logging(error):
                self._context.observer.failed("session.failed", error)
            if answer.code < 500:  # not the client's fault, and our state is unknown: start anew
                answer = answer.as_421
        if answer.code == 421:
            self._closing = True
        return answer

    async def unknown(self, argument: str | None) -> None:  # noqa: ARG002 - called like all verbs
        """Answer a verb that does not exist."""
        self.limits.bad()
        self.say(UNKNOWN)

    # What a session is made of

    async def next_line(self, *, command: bool = False) -> bytes:
        """Return the next line with its CRLF, within the limits on talk without mail.

        Raises:
            BadCommandError: it is no line, or no `command` begins so; aiosmtpd would not count it.
        """
        if self._closing:
            raise ConnectionResetError("closed by us")
        left_s = self.limits.left_s(self.loop.time())
        self._commands += 1
        if self._commands > COMMANDS_PER_TURN:
            self._commands = 0
            await self._context.fair_queue.turn(self.network)
        if self._writable is not None:
            await self.flush()
        line = self.buffer.line()
        if line is None:
            line = await self._awaited_line(left_s)
        if command:
            await self._count(line)
        return line

    async def _awaited_line(self, left_s: float) -> bytes:
        """Return the next line once the client has sent it."""
        buffer = self.buffer
        if self._out:
            await self.flush()
        if self._context.draining and not self.busy and not buffer.has_line:
            raise ShuttingDown
        self._commands = 0
        self.deadline.set(min(self.options.command_timeout_s, left_s))
        while (line := buffer.line()) is None:
            await buffer.more()
        self.deadline.clear()
        return line

    async def _count(self, line: bytes) -> None:
        """Count a command, and let a client wait that brings no mail."""
        self.limits.command()
        if self.limits.delay_s:
            await self._delay(self.limits.delay_s)
        verb = line if line.isascii() else line.partition(b" ")[0]
        if line[:1].isspace() or not verb.isascii():
            raise BadCommandError("no command")

    async def _delay(self, seconds: float) -> None:
        if self._out:
            self._send()
        await asyncio.sleep(seconds)
        if self._context.draining and not self.busy:
            raise ShuttingDown

    def say(self, answer: Reply) -> None:
        """Answer the client; answers to pipelined commands are sent together."""
        self._out.append(answer.raw)
        if answer.code == 421:
            self._closing = self._sent_away = True
        if self._closing or not self.buffer.has_line or len(self._out) > COALESCED_REPLIES:
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
            self.deadline.set(self.options.command_timeout_s)
            await self._writable
            self.deadline.clear()

    def _send(self) -> None:
        if self.transport is not None:
            self.transport.write(b"".join(self._out))
        self._out.clear()

    async def end_session(self) -> None:
        """Send what is left to send and end the session."""
        self._closing = True
        await self.flush()
        raise ConnectionResetError("closed by us")

    async def turn(self) -> None:
        """Wait for a turn that is used up by what follows."""
        queue = self._context.fair_queue
        await queue.turn(self.network, first=True)
        queue.take_all()

    def message_received(self) -> None:
        """Note that the session brought a message."""
        self.limits.message_received(self.loop.time())
        self.buffer.message_received()

    async def start_tls(self) -> None:
        """Start TLS on the open connection; what came before in clear is forgotten."""
        context = self._context.tls_context
        if self.transport is None or context is None:
            raise ConnectionResetError("no connection")
        self.buffer.clear()
        try:
            async with self._context.handshakes.of(self.network):
                transport = await self.loop.start_tls(
                    self.transport,
                    self,
                    context,
                    server_side=True,
                    ssl_handshake_timeout=self.options.tls_handshake_s,
                )
        except (OSError, TimeoutError) as error:
            raise ConnectionResetError("TLS handshake failed") from error
        if transport is None:
            raise ConnectionResetError("the client has gone")
        self._use(transport)  # what is in the buffer now came encrypted
        self.encrypted = True

    def end(self) -> None:
        """Give back what the session held; the session adds its own."""
        self.deadline.stop()
        self.limit.stop()

    def stop(self) -> None:
        """Say goodbye if the client is only being waited for; else it happens after the message."""
        if not self.busy and self.buffer.waiting:
            self.close_with(ShuttingDown())

    @property
    def busy(self) -> bool:
        """Tell whether a transaction is under way."""
        return False

    async def _serve(self) -> None:
        try:
            await self._begin()
            self._greeted = True
            await self._handle_client()
        except ConnectionError:
            self.end()
            await self._linger()  # the client has gone, or we end the session
        except ssl.SSLError:
            pass  # its TLS broke
        except Exception as error:  # noqa: BLE001 - the border around one session
            self._context.observer.failed("session.failed", error)
        finally:
            self.end()
            if self.transport is not None:
                self._close(self.transport)
            if self._slot is not None:
                self._context.limiter.release(self._slot)
                if self.limits.fruitless:
                    self._context.recent_clients.note_fruitless(self._slot, self.loop.time())
                self._slot = None

    async def _begin(self) -> None:
        """Do what comes before the greeting: the PROXY header, then TLS where it is due."""
        if self.transport is None:
            return
        self.trusted = self._context.limiter.trusts(self.address)
        proxied = self.trusted and self.options.proxy_protocol
        if proxied or self._listener.tls:
            # What comes is to be read by somebody else. Not sooner: asyncio before 3.11.5 begins to
            # read after connection_made, paused or not.
            self.transport.pause_reading()
        delay_s = self._context.recent_clients.delay_s(self._slot or "", self.loop.time())
        if delay_s:
            await self._delay(delay_s)
        await self._context.fair_queue.turn(self.network, first=True)
        if proxied:
            named = await proxy_header_of(self.transport, self.options.proxy_header_s)
            if named is not None:
                self.address, self.port = named
                self.trusted = False  # the proxy is trusted, its client is not
                self._change_slot()
        if self._listener.tls:
            await self.start_tls()
        elif proxied:
            self.transport.resume_reading()

    async def _linger(self) -> None:
        """Let a client that still sends read our last words: unread octets would reset it."""
        transport = self.transport
        if transport is None or transport.is_closing() or self._context.draining:
            return
        self._send()
        if self.encrypted or (self.buffer.empty and not self._sent_away):
            return
        transport.write_eof()
        cut = self.loop.call_later(LINGER_S, transport.abort)
        try:
            self.buffer.divert(lambda _: None)
            while self.transport is not None:
                await self.buffer.more()
        except ConnectionError:
            pass  # that was the end of it
        finally:
            cut.cancel()

    def _change_slot(self) -> None:
        """Count the connection for the client behind the proxy."""
        limiter = self._context.limiter
        if self._slot is not None:
            limiter.release(self._slot)
        self._slot = limiter.acquire(self.address)
        self.network = network_of(self._slot or "")
        if self._slot is None:
            self.close_with(TooManyConnections())
            raise ConnectionResetError("too many connections")

    def _use(self, transport: asyncio.Transport) -> None:
        """Read from and write to this transport from now on."""
        self._transport = self.transport = transport
        self.buffer.set_transport(transport)

    def _take_turn(self, go: Callable[[], None]) -> bool:
        return self._context.fair_queue.take(self.network, go)

    def _timed_out(self) -> None:
        self.close_with(ClientTimeoutError())

    def close_with(self, error: SpamdError) -> None:
        """Say something from outside of the session's task and close."""
        answer = reply_to(error, in_hand=False)
        self._closing = True
        if self.transport is not None:
            self.transport.write(b"".join((*self._out, answer.raw)))
            self._out.clear()
            self._close(self.transport)
        self.buffer.feed_eof()

    def _close(self, transport: asyncio.Transport) -> None:
        """Close the connection; a client that does not take what is left to say is cut off."""
        if self.encrypted or transport.get_write_buffer_size():
            self.loop.call_later(LINGER_S, transport.abort)
        transport.close()
