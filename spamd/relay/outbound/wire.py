"""The wire to the next hop: commands out, replies back, bytes as they are.

Replies are matched to commands by order (RFC 5321 §4.2: one reply per command), so several commands
may be on their way. A reply is everything up to the line whose fourth byte is no hyphen, and stays
verbatim. Sizes are bounded: a next hop that sends garbage costs its connection, not our memory.

Raised to whoever waits for a reply: `NextHopLost` when the next hop is silent or gone,
`RemoteProtocolError` when it breaks the rules: a reply that nobody asked for, or one that can't be
the answer to what was asked, for it may be an earlier one's. A 421 that came unasked is the answer
to the next command, for then the next hop is about to close.
"""

import asyncio
import re
import ssl
from collections import deque
from collections.abc import AsyncIterable
from functools import lru_cache
from typing import cast

from spamd.errors import RemoteProtocolError, SpamdError
from spamd.network.deadlines import Deadline, DeadlineTimer
from spamd.relay.smtp.replies import NextHopLost, NextHopTlsFailed, Reply

DOT = b".\r\n"
REPLY_LINE_BYTES = 2048  # RFC 5321 §4.5.3.1.5 says 512; some next hops are talkative
REPLY_LINES = 100
KNOWN_REPLIES = 64  # a next hop has few words, but those that name a queue file
PROBE_S = 0.003
"""A next hop that answers a message before its end has this long to show it."""

DONE = (25,)
GREETING = (22,)
START = (35,)
LOGIN = (23, 25, 33)
"""Replies that a command may have besides refusals, without their last digit (RFC 5321 §4.3.2)."""

_LINE = re.compile(rb"([2-5][0-9][0-9])(?:([ -])[^\r\n]*)?\r\n")


class Wire(asyncio.Protocol):
    """One connection to the next hop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, timer: DeadlineTimer) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._awaited: deque[tuple[asyncio.Future[Reply] | None, tuple[int, ...]]] = deque()
        banner: asyncio.Future[Reply] = loop.create_future()
        self._awaited.append((banner, GREETING))
        self._announced = [banner]
        self._answered_in_step = False  # a message has been answered after its end
        self._buffer = b""
        self._goodbye: Reply | None = None
        self._writing_body = False
        self._fault: SpamdError | None = None
        self._deadline = Deadline(loop, timer, self._silent)
        self._writable: asyncio.Future[None] | None = None

    @property
    def usable(self) -> bool:
        """Tell whether another command makes sense."""
        return self._fault is None and self._goodbye is None and self._transport is not None

    @property
    def transport(self) -> asyncio.Transport:
        """Return the transport."""
        if self._transport is None:
            raise self._fault or NextHopLost("no connection")
        return self._transport

    async def encrypt(self, context: ssl.SSLContext, host: str, timeout_s: float) -> None:
        """Start TLS after the next hop's 220.

        Raises:
            NextHopTlsFailed: no handshake, or a certificate that is not good enough.
        """
        if self._buffer:  # CVE-2011-0411: sent in clear behind the 220, to be read as if by TLS
            self._fail(
                RemoteProtocolError("data before the TLS handshake, after the reply to STARTTLS")
            )
        try:
            self._transport = await self._loop.start_tls(
                self.transport, self, context, server_hostname=host, ssl_handshake_timeout=timeout_s
            )
        except (OSError, TimeoutError) as error:  # ssl.SSLError is an OSError
            self._fail(NextHopTlsFailed("handshake failed"))
            raise NextHopTlsFailed("handshake failed") from error

    def banner(self, timeout_s: float) -> asyncio.Future[Reply]:
        """Return what becomes the banner, which may come before anybody asks for it."""
        return self.next_reply(timeout_s)

    def command(
        self,
        line: bytes,
        timeout_s: float,
        *,
        answers: tuple[int, ...] = DONE,
        ignored_replies: int = 0,
        extra_replies: int = 0,
    ) -> asyncio.Future[Reply]:
        """Send one command (or the end of a message); what is returned becomes its reply.

        answers          what the reply may be unless it refuses; any other breaks the protocol
        ignored_replies  so many commands stand before it in `line`, whose replies nobody waits for
        extra_replies    so many replies follow the first (LMTP: one per recipient), for
                         `next_reply`; all may come in one piece

        Raises:
            SpamdError: the connection has failed before.
        """
        if self._goodbye is not None:
            answered: asyncio.Future[Reply] = self._loop.create_future()
            answered.set_result(self._goodbye)
            return answered
        if self._fault is not None or self._transport is None:
            raise self._fault or NextHopLost("no connection")
        self._transport.write(line)
        if ignored_replies:
            self._awaited.extend([(None, DONE)] * ignored_replies)
        first: asyncio.Future[Reply] = self._loop.create_future()
        self._awaited.append((first, answers))
        if extra_replies:
            announced = [self._loop.create_future() for _ in range(extra_replies)]
            self._awaited.extend((each, answers) for each in announced)
            self._announced.extend(announced)
        self._deadline.set(timeout_s)
        return first

    def next_reply(self, timeout_s: float) -> asyncio.Future[Reply]:
        """Return what becomes the next of the replies that were announced to `command`."""
        if not self._announced:  # it said goodbye, and `command` did not ask
            raise NextHopLost("the next hop ended the session")
        future = self._announced.pop(0)
        if not future.done():
            if self._fault is not None:
                raise self._fault
            self._deadline.set(timeout_s)
        return future

    def send_nowait(self, line: bytes) -> None:
        """Send one command whose reply nobody waits for."""
        if self.usable:
            self.transport.write(line)
            self._awaited.append((None, DONE))

    async def send_message(
        self, whole: bytes, timeout_s: float, *, extra_replies: int = 0
    ) -> asyncio.Future[Reply]:
        """Send a message in one piece; what is returned becomes its reply, as of `command`.

        The first one on a connection keeps its final dot back for a moment: a next hop that answers
        before it has seen the end of a message would do so unnoticed otherwise, since the kernel
        takes a small one whole.
        """
        if not self._answered_in_step and self._fault is None and self._goodbye is None:
            self._writing_body = True
            self.transport.write(whole[: -len(DOT)])
            await asyncio.sleep(PROBE_S)
            self._writing_body = False
            whole = DOT
        answer = self.command(whole, timeout_s, extra_replies=extra_replies)
        self._answered_in_step = True
        return answer

    async def write_body(
        self, blocks: AsyncIterable[bytes], timeout_s: float, deadline: float
    ) -> None:
        """Send the blocks of a message; each must be taken in time, and all by the deadline.

        A next hop that refuses before it has all of them gets no more; `command` returns its
        refusal. One that accepts breaks the protocol.
        """
        self._writing_body = True
        async for block in blocks:
            if self._goodbye is not None:
                break
            if self._fault is not None:
                raise self._fault
            self.transport.write(block)
            if self._writable is not None:
                self._deadline.set(min(timeout_s, deadline - self._loop.time()))
                await self._writable
                self._deadline.clear()
        self._writing_body = False

    def abort(self) -> None:
        """Cut the connection; the next hop must not take what it has for a whole message."""
        self._fail(NextHopLost("the session was ended by spamd"))

    def close(self) -> None:
        """Say goodbye and close, without waiting for the answer."""
        if self.usable and not self._awaited:
            self.transport.write(b"QUIT\r\n")
        self._deadline.stop()
        if self._transport is not None:
            self._transport.close()

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Cut what came into replies and hand them out."""
        if self._fault is not None:
            return
        usual = _one_line(data) if not self._buffer and len(data) <= REPLY_LINE_BYTES else None
        if usual is not None:
            self._answered(usual)
            return
        self._buffer = text = self._buffer + data
        start = at = 0
        lines = 0
        while match := _LINE.match(text, at):
            code = match[1]
            if text[start : start + 3] != code or match.end() - at > REPLY_LINE_BYTES:
                self._fail(RemoteProtocolError("reply with two codes, or too long"))
                return
            at = match.end()
            lines += 1
            if match[2] == b"-":
                if lines >= REPLY_LINES:
                    break
                continue
            self._answered(Reply(int(code), text[start:at]))
            start = at
            lines = 0
        self._buffer = text[start:]
        rest = len(text) - at
        if lines >= REPLY_LINES or b"\n" in text[at:] or rest > REPLY_LINE_BYTES:
            self._fail(RemoteProtocolError("malformed reply"))

    def eof_received(self) -> bool:
        """Take the end of what the next hop sends for the end of the connection."""
        self._fail(NextHopLost("closed by the next hop"))
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits."""
        fault = NextHopLost("connection lost")
        fault.__cause__ = exc
        self._fail(fault)
        self._transport = None

    def pause_writing(self) -> None:
        """Note that the next hop takes less than we send."""
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        """Note that it takes more again."""
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    def _answered(self, reply: Reply) -> None:
        if not self._awaited:
            if reply.code == 421 or (self._writing_body and reply.code >= 400):
                self._goodbye = reply
                self.resume_writing()  # it may take no more
            else:
                self._fail(RemoteProtocolError("reply without a command"))
            return
        future, answers = self._awaited[0]
        if reply.code < 400 and reply.code // 10 not in answers:
            self._fail(RemoteProtocolError(f"{reply.code} is no answer to this command"))
            return
        self._awaited.popleft()
        if not self._awaited:
            self._deadline.clear()
        if future is not None:
            if not future.done():
                future.set_result(reply)
        elif reply.code == 421:
            self._goodbye = reply

    def _silent(self) -> None:
        self._fail(NextHopLost("no answer in time"))

    def _fail(self, fault: SpamdError) -> None:
        if self._fault is None:
            self._fault = fault
        self._deadline.stop()
        for future, _ in self._awaited:
            if future is not None and not future.done():
                future.set_exception(self._fault)
                future.exception()  # seen: there may be nobody who waits for it
        self._awaited.clear()
        self.resume_writing()  # who waits there looks for a fault before the next block
        if self._transport is not None:
            self._transport.abort()


@lru_cache(KNOWN_REPLIES)
def _one_line(text: bytes) -> Reply | None:
    """Return the reply that `text` is, None unless it is one reply of one line."""
    match = _LINE.fullmatch(text)
    return Reply(int(match[1]), text) if match and match[2] != b"-" else None
