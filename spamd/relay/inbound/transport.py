"""The connection of one client: lines in, replies out, and how long each may take.

Each wait has its own deadline and a timed-out client reads 421; a client that has sent everything
and closed its side still gets its replies; who is sent away while still sending can read why.

Replies to pipelined commands leave together (RFC 2920 §3.2). What a client sends in one go is
carried out by turns with the others (`turns.py`).
"""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from spamd.errors import SpamdError
from spamd.network.deadlines import Deadline
from spamd.relay.inbound.command_limits import ClientLimits
from spamd.relay.inbound.context import RelayContext
from spamd.relay.inbound.line_buffer import LineBuffer
from spamd.relay.smtp.replies import (
    BadCommandError,
    ClientTimeoutError,
    Reply,
    ShuttingDown,
    reply_to,
)

LINGER_S = 5.0
"""A client that reads gets our last reply within this; then the connection is cut."""

COMMANDS_PER_TURN = 4
"""Commands of one session, come in one piece, before it needs another turn: a pipelined envelope of
one recipient (RFC 2920) is three."""

COALESCED_REPLIES = 500
"""Replies kept back at most while further commands are waiting: 20 KB."""


class Transport(asyncio.Protocol):
    """Reads from one client and writes to it.

    Args:
        context: what all sessions share.
        limits: on what the client sends without a message.
        connected: is called with the client's address, as asyncio has it.
        lost: is called when the connection has ended.
        busy: tells whether a transaction is under way.

    Attributes:
        connection: asyncio's transport; None once the client closed the connection.
        network: who shares with whom (`connection_limiter.network_of`).
        encrypted: TLS is on.
        greeted: the client has had our greeting.
    """

    data_received: Any  # straight into the buffer

    def __init__(
        self,
        context: RelayContext,
        limits: ClientLimits,
        *,
        connected: Callable[[object], None],
        lost: Callable[[], None],
        busy: Callable[[], bool],
    ) -> None:
        self.loop = loop = asyncio.get_running_loop()
        self.connection: asyncio.Transport | None = None
        self.buffer = LineBuffer(loop, self._take_turn)
        self.data_received = self.buffer.feed_data
        self.deadline = Deadline(loop, context.shared.deadline_timer, self._timed_out)
        self.network = ""
        self.encrypted = False
        self.greeted = False
        self._context = context
        self._limits = limits
        self._connected = connected
        self._lost = lost
        self._busy = busy
        self._unsent: list[bytes] = []
        self._writable: asyncio.Future[None] | None = None
        self._commands = 0  # of this turn
        self._closing = False
        self._sent_away = False

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Tell the session."""
        self._attach(cast("asyncio.Transport", transport))
        self._connected(transport.get_extra_info("peername"))

    def eof_received(self) -> bool:
        """Let what the client sent before be answered; TLS can't stay half open."""
        self.buffer.feed_eof()
        return not self.encrypted and (self.greeted or not self.buffer.empty)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - called by the loop
        """Wake up who waits, and tell the session."""
        self.connection = None
        self._closing = True
        self.buffer.set_transport(None)
        self.deadline.stop()
        self.buffer.feed_eof()
        self.resume_writing()
        self._lost()

    def pause_writing(self) -> None:
        """Note that the client takes less than we send."""
        self._writable = self.loop.create_future()

    def resume_writing(self) -> None:
        """Note that it takes more again, or has gone."""
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    # Lines

    async def next_command(self) -> bytes:
        """Return the next command line; a client that brings no mail waits for it.

        Raises:
            BadCommandError: no command begins so; aiosmtpd would not count it.
            TooManyCommands: the client has had its share.
        """
        line = await self.next_line()
        limits = self._limits
        limits.command()
        delay_s = limits.delay_s
        if delay_s:
            await self.delay(delay_s)
        verb = line if line.isascii() else line.partition(b" ")[0]
        if line[:1].isspace() or not verb.isascii():
            raise BadCommandError("no command")
        return line

    async def next_line(self) -> bytes:
        """Return the next line with its CRLF, within the limits on a session without mail.

        Raises:
            ConnectionResetError: the session has ended.
            BadCommandError: it is no line.
        """
        if self._closing:
            raise ConnectionResetError("closed")
        left_s = self._limits.left_s(self.loop.time())
        self._commands += 1
        if self._commands > COMMANDS_PER_TURN:
            self._commands = 0
            await self._context.shared.turns.wait(self.network)
        if self._writable is not None:
            await self.flush()
        line = self.buffer.line()
        return line if line is not None else await self._awaited_line(left_s)

    async def _awaited_line(self, left_s: float) -> bytes:
        """Return the next line once the client has sent it."""
        buffer = self.buffer
        if self._unsent:
            await self.flush()
        if self._context.draining and not self._busy() and not buffer.has_line:
            raise ShuttingDown
        self._commands = 0
        self.deadline.set(min(self._context.relay.command_timeout_s, left_s))
        while (line := buffer.line()) is None:
            await buffer.more()
        self.deadline.clear()
        return line

    async def delay(self, seconds: float) -> None:
        """Let the client wait."""
        if self._unsent:
            self._send()
        await asyncio.sleep(seconds)
        if self._context.draining and not self._busy():
            raise ShuttingDown

    def message_received(self) -> None:
        """Note that the session brought a message."""
        self._limits.message_received(self.loop.time())
        self.buffer.message_received()

    # Replies

    def reply(self, answer: Reply) -> None:
        """Answer the client; answers to pipelined commands are sent together."""
        self._unsent.append(answer.raw)
        if answer.code == 421:
            self._closing = self._sent_away = True
        if self._closing or not self.buffer.has_line or len(self._unsent) > COALESCED_REPLIES:
            self._send()

    @property
    def unsent(self) -> bool:
        """Tell whether there is something for `flush` to do."""
        return bool(self._unsent) or self._writable is not None

    async def flush(self) -> None:
        """Send the replies kept back and wait until the client takes them."""
        if self._unsent:
            self._send()
        if self._writable is not None:
            self.deadline.set(self._context.relay.command_timeout_s)
            await self._writable
            self.deadline.clear()

    def _send(self) -> None:
        if self.connection is not None:
            self.connection.write(b"".join(self._unsent))
        self._unsent.clear()

    # Beginning and end

    async def start_tls(self) -> None:
        """Start TLS on the open connection; what came before in clear is forgotten."""
        context = self._context.tls_context
        if self.connection is None or context is None:
            raise ConnectionResetError("no connection")
        self.buffer.clear()
        try:
            async with self._context.handshakes.of(self.network):
                encrypted = await self.loop.start_tls(
                    self.connection,
                    self,
                    context,
                    server_side=True,
                    ssl_handshake_timeout=self._context.relay.tls_handshake_s,
                )
        except (OSError, TimeoutError) as error:
            raise ConnectionResetError("TLS handshake failed") from error
        if encrypted is None:
            raise ConnectionResetError("the client closed the connection")
        self._attach(encrypted)  # what is in the buffer now came encrypted
        self.encrypted = True

    async def end_session(self) -> None:
        """Send what is left to send and end the session.

        Raises:
            ConnectionResetError: always; it ends the command loop.
        """
        self._closing = True
        await self.flush()
        raise ConnectionResetError("the connection was closed by spamd")

    def stop(self) -> None:
        """End the session if only the client's next command is waited for."""
        if not self._busy() and self.buffer.waiting:
            self.close_with(ShuttingDown())

    def close_with(self, error: SpamdError) -> None:
        """Answer a fault from outside of the session's task and close."""
        self._closing = True
        if self.connection is not None:
            self._unsent.append(reply_to(error, in_hand=False).raw)
            self._send()
            self.close()
        self.buffer.feed_eof()

    async def linger(self) -> None:
        """Let a client that still sends read our last reply: unread octets would reset it."""
        connection = self.connection
        if connection is None or connection.is_closing() or self._context.draining:
            return
        self._send()
        if self.encrypted or (self.buffer.empty and not self._sent_away):
            return
        connection.write_eof()
        cut = self.loop.call_later(LINGER_S, connection.abort)
        try:
            self.buffer.divert(lambda _: None)
            while self.connection is not None:
                await self.buffer.more()
        except ConnectionError:
            pass  # that was the end of it
        finally:
            cut.cancel()

    def close(self) -> None:
        """Close the connection; a client that does not take what is left to say is cut off."""
        connection = self.connection
        if connection is None:
            return
        if self.encrypted or connection.get_write_buffer_size():
            self.loop.call_later(LINGER_S, connection.abort)
        connection.close()

    def _attach(self, connection: asyncio.Transport) -> None:
        """Read from and write to this connection from now on."""
        self.connection = connection
        self.buffer.set_transport(connection)

    def _take_turn(self, go: Callable[[], None]) -> bool:
        return self._context.shared.turns.take(self.network, go)

    def _timed_out(self) -> None:
        self.close_with(ClientTimeoutError())
