"""The client's side of us: one SMTP or LMTP session at the next hop, for one session of ours.

MAIL and RCPT go on verbatim and at once. DATA is sent only when the message is judged, so a reject
or a fault of ours never leaves the next hop in the middle of a message. The body and our fields
leave in one write (two writes would cost Nagle's and the delayed acknowledgement's 40 ms).

LMTP (RFC 2033) is the same session with LHLO and one final reply per accepted recipient.

A next hop that is to be told the client (`next_hop.xclient`, `next_hop.proxy_protocol`) and can't
be told gets no mail, whoever the client is: it would take everybody for us, and us perhaps for
somebody who may send anywhere. Trusted clients are no exception, so that an admin who tries from
one of them meets what strangers meet.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import NoReturn

from spamd.errors import DeadlineExceeded, NextHopRefused, NextHopUnavailable, RemoteProtocolError
from spamd.message.envelope import Client
from spamd.network.deadlines import DeadlineTimer, TimeLimit
from spamd.relay.content.outgoing import Outgoing
from spamd.relay.options import NextHopOptions, NextHopTls
from spamd.relay.outbound.wire import DONE, DOT, GREETING, LOGIN, START, Wire
from spamd.relay.smtp.capabilities import Capabilities, parse_capabilities
from spamd.relay.smtp.client_identity import identity_commands, proxy_header
from spamd.relay.smtp.commands import Path, without_unsupported
from spamd.relay.smtp.replies import (
    ClientNotIdentified,
    NextHopLost,
    NextHopTlsFailed,
    Reply,
    reply,
)
from spamd.relay.urls import NextHopUrl

_UNKNOWN = {500, 502, 503}
"""What a server says to a PROXY header that it takes for commands, and we read behind EHLO."""

_ACCEPTED_LATER = reply(421, "4.3.2 Mail can't be accepted now, please try again later")


class SmtpSession:
    """One session at an SMTP or LMTP next hop.

    Args:
        url: where it is.
        options: time-outs, TLS, identity.
        hostname: our own name.
        context: for STARTTLS; None never uses it.
        timer: of its time-outs.

    Attributes:
        lmtp: whether the next hop gives one final reply per recipient.
    """

    def __init__(
        self,
        url: NextHopUrl,
        options: NextHopOptions,
        hostname: str,
        context: ssl.SSLContext | None,
        timer: DeadlineTimer,
    ) -> None:
        self.url = url
        self.lmtp = url.lmtp
        self.one_mailbox = False
        self.knows_client = False
        self.capabilities: Capabilities | None = None
        self._options = options
        self._hostname = hostname
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._timer = timer
        self._wire = Wire(self._loop, timer)
        self._encrypted = False
        self._delivering = False

    @property
    def usable(self) -> bool:
        """Tell whether the session is still in step."""
        return self._wire.usable

    @property
    def local_address(self) -> tuple[str, int]:
        """Return our end of the connection; a UNIX socket has none."""
        name = self._wire.transport.get_extra_info("sockname")
        return (str(name[0]), int(name[1])) if isinstance(name, tuple) else ("", 0)

    async def open(self, client: Client) -> None:
        """Connect and read the banner.

        Raises:
            NextHopUnavailable: nobody there, or no good banner.
            NextHopRefused: the banner is a refusal that the client may see.
        """
        options = self._options
        loop = self._loop
        limit = TimeLimit(loop, self._timer)
        try:
            with limit.of(options.connect_timeout_s):
                if self.url.path:
                    await loop.create_unix_connection(lambda: self._wire, self.url.path)
                else:
                    await loop.create_connection(lambda: self._wire, self.url.host, self.url.port)
        except (OSError, DeadlineExceeded) as error:
            raise NextHopUnavailable(f"can't connect to {self.url}") from error
        finally:
            limit.stop()
        if options.proxy_protocol and not self.url.path:
            peer = self._wire.transport.get_extra_info("peername")
            self._wire.transport.write(proxy_header(client, peer[:2]))
            self.knows_client = bool(client.address)  # else it comes by a UNIX socket, as we do
        banner = await self._wire.banner(options.greeting_timeout_s)
        if banner.accepted:
            return
        self.close()
        if banner.code < 500:
            # RFC 5321 §3.1: a next hop that can't serve now says 421; others of 4yz mean the same
            raise NextHopRefused(banner.as_421.raw)
        if self.knows_client:
            raise NextHopRefused(banner.raw)
        # It refuses us, not the client; a wrong setting between the two must not bounce mail.
        raise NextHopRefused(_ACCEPTED_LATER.raw)

    async def greet(self, client: Client, *, extended: bool) -> Reply:
        """Say EHLO, HELO or LHLO in the client's name; also turn on TLS and name the client.

        Raises:
            NextHopTlsFailed: TLS is required and can't be had.
            ClientNotIdentified: it is to be told the client and can't be told.
            NextHopRefused: it does not take this client now.
        """
        options = self._options
        # STARTTLS and XCLIENT are offered to EHLO only; a client that says HELO avoids neither.
        asked = extended or options.xclient or options.tls is NextHopTls.REQUIRED
        answer = await self._hello(client, extended=asked)
        usable = answer.accepted or asked is not extended
        context = self._tls_wanted() if usable and not self._encrypted else None
        if context is not None and await self._start_tls(context, client):
            answer = await self._hello(client, extended=asked)
        if options.xclient and answer.accepted:
            await self._name_client(client)
            answer = await self._hello(client, extended=extended)
        elif asked is not extended:
            answer = await self._hello(client, extended=extended)
        if options.xclient and answer.accepted and not self.knows_client:
            self._not_identified("the next hop refuses EHLO, and with it XCLIENT")
        if options.proxy_protocol and answer.code in _UNKNOWN:
            self._not_identified("the next hop does not accept the PROXY header")
        return answer

    def mail(self, argument: bytes, client: Client) -> Awaitable[Reply]:
        """Pass MAIL on."""
        command = b"MAIL " + without_unsupported(argument, self.capabilities) + b"\r\n"
        forward = self._forward(client)
        if forward:
            return self._forwarded(forward, command)
        return self._wire.command(command, self._options.command_timeout_s)

    async def _forwarded(self, forward: list[bytes], command: bytes) -> Reply:
        """Name the client, then pass MAIL on."""
        timeout_s = self._options.command_timeout_s
        if self.capabilities and b"PIPELINING" in self.capabilities:
            line = b"".join((*forward, command))
            return await self._wire.command(line, timeout_s, ignored_replies=len(forward))
        for line in forward:
            await self._wire.command(line, timeout_s)
        return await self._wire.command(command, timeout_s)

    def rcpt(self, argument: bytes, path: Path | None) -> Awaitable[Reply]:  # noqa: ARG002 - routes need it
        """Pass RCPT on."""
        command = b"RCPT " + without_unsupported(argument, self.capabilities) + b"\r\n"
        return self._wire.command(command, self._options.command_timeout_s)

    def reset(self) -> Awaitable[Reply]:
        """End the transaction without a message."""
        return self._wire.command(b"RSET\r\n", self._options.command_timeout_s)

    def command(self, line: bytes) -> Awaitable[Reply]:
        """Pass any other command on (AUTH and its answers)."""
        return self._wire.command(line + b"\r\n", self._options.command_timeout_s, answers=LOGIN)

    def keep_alive(self) -> None:
        """Keep the next hop from ending an idle session."""
        # RFC 5321 §4.1.1.9: NOOP does not touch the transaction. Behind DATA it would be text.
        if not self._delivering:
            self._wire.send_nowait(b"NOOP\r\n")

    async def deliver(
        self, outgoing: Outgoing, recipients: Sequence[bytes], timeout_s: float
    ) -> list[Reply]:
        """Send the message; return its final reply, over LMTP one for each recipient.

        Raises:
            NextHopLost: the outcome is unknown, or there is none.
        """
        options = self._options
        count = len(recipients) if self.lmtp else 1
        self._delivering = True
        try:
            deadline = self._loop.time() + timeout_s
            data_s = min(options.data_timeout_s, timeout_s)
            answer = await self._wire.command(b"DATA\r\n", data_s, answers=START)
            if answer.code != 354:
                return [self._data_refused(answer)] * count
            whole = outgoing.whole
            if whole is None:
                await self._wire.write_body(outgoing.blocks(), options.block_timeout_s, deadline)
                whole = DOT
            left_s = deadline - self._loop.time()
            first = await (await self._wire.send_message(whole, left_s, extra_replies=count - 1))
        except BaseException:
            self._wire.abort()  # never let a part pass for the whole
            raise
        finally:
            self._delivering = False
        if count == 1:
            return [first]
        return [first, *await self._extra_replies(count - 1, deadline - self._loop.time())]

    def _data_refused(self, answer: Reply) -> Reply:
        """Return the answer to a DATA that the next hop did not want.

        Raises:
            RemoteProtocolError: it is none.
        """
        if answer.code < 400:
            raise RemoteProtocolError(f"{answer.code} to DATA")
        self._wire.send_nowait(b"RSET\r\n")
        return answer

    def close(self) -> None:
        """End the session."""
        self._wire.close()

    def abort(self) -> None:
        """Cut the session."""
        self._wire.abort()

    async def _extra_replies(self, count: int, timeout_s: float) -> list[Reply]:
        """Return the other LMTP replies; those that do not come are replaced by ours."""
        # Recipients answered so far have their mail; only the others try again.
        replies = [reply(451, "4.4.2 Connection lost, please try again later")] * count
        with suppress(NextHopLost, RemoteProtocolError):
            for index in range(count):
                replies[index] = await self._wire.next_reply(timeout_s)
        return replies

    async def _hello(self, client: Client, *, extended: bool) -> Reply:
        verb = b"LHLO " if self.lmtp else b"EHLO " if extended else b"HELO "
        helo = self._hostname if self._options.own_helo else client.helo
        line = verb + helo.encode("utf-8", "surrogateescape") + b"\r\n"
        answer = await self._wire.command(line, self._options.greeting_timeout_s)
        if answer.accepted:
            self.capabilities = parse_capabilities(answer) if extended or self.lmtp else None
        return answer

    def _tls_wanted(self) -> ssl.SSLContext | None:
        """Return the context where the setting and the next hop want TLS.

        Raises:
            NextHopTlsFailed: it is required and not offered.
        """
        tls = self._options.tls
        if self.lmtp or tls is NextHopTls.NONE or self._context is None:
            return None
        if self.capabilities is not None and b"STARTTLS" in self.capabilities:
            return self._context
        if tls is NextHopTls.REQUIRED:
            self.close()
            raise NextHopTlsFailed("STARTTLS is not offered")
        return None

    async def _start_tls(self, context: ssl.SSLContext, client: Client) -> bool:
        """Turn on TLS, on a fresh connection go without; tell whether hello is due again."""
        options = self._options
        answer = await self._wire.command(
            b"STARTTLS\r\n", options.greeting_timeout_s, answers=GREETING
        )
        if answer.code != 220:
            if options.tls is NextHopTls.REQUIRED:
                self.close()
                raise NextHopTlsFailed("STARTTLS was refused")
            return False
        try:
            await self._wire.encrypt(context, self.url.host, options.greeting_timeout_s)
        except NextHopTlsFailed:
            if options.tls is NextHopTls.REQUIRED:
                raise
            # Opportunistic TLS is no promise; the handshake has spoilt the connection.
            self._context = None
            self._wire = Wire(self._loop, self._timer)
            self.knows_client = False
            await self.open(client)
        else:
            self._encrypted = True
        return True

    async def _name_client(self, client: Client) -> None:
        """Name the client by XCLIENT."""
        offered = (self.capabilities or {}).get(b"XCLIENT", b"").upper().split()
        if b"ADDR" not in offered:  # what a next hop decides by
            if self.knows_client:
                return  # said once already, and it is the same client
            self._not_identified("the next hop offers no XCLIENT with ADDR")
        for line in identity_commands(b"XCLIENT", client, offered):
            answer = await self._wire.command(
                line, self._options.greeting_timeout_s, answers=(*GREETING, *DONE)
            )
            if answer.permanent:
                self._not_identified(f"XCLIENT is refused by the next hop: {answer.code}")
            if not answer.accepted:
                self.close()
                raise NextHopRefused(answer.raw)
        self.knows_client = True

    def _not_identified(self, why: str) -> NoReturn:
        """End the session: the next hop would take the client for us."""
        self.close()
        raise ClientNotIdentified(f"{why}; {self.url} would treat all clients as this machine")

    def _forward(self, client: Client) -> list[bytes]:
        """Return the XFORWARD commands; they count for one message, so they stand before each."""
        if not self._options.xforward or not self.capabilities:
            return []
        offered = self.capabilities.get(b"XFORWARD")
        if offered is None:
            return []
        return identity_commands(b"XFORWARD", client, offered.upper().split())
