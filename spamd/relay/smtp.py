"""The client's side of us: one SMTP or LMTP session at the next hop, for one session of ours.

MAIL and RCPT go on verbatim and at once. DATA is sent only when the message is judged, so a reject
or a fault of ours never leaves the next hop in the middle of a message. The body and our fields
leave in one write (two writes would cost Nagle's and the delayed acknowledgement's 40 ms).

LMTP (RFC 2033) is the same session with LHLO and one final reply per accepted recipient.
"""

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import suppress

from spamd.errors import DeadlineExceeded, NextHopRefused, NextHopUnavailable, RemoteProtocolError
from spamd.message.envelope import Client
from spamd.relay.capabilities import Capabilities, parse_capabilities
from spamd.relay.commands import Path, understood
from spamd.relay.identity import identity_commands, proxy_header
from spamd.relay.options import NextHopOptions, NextHopTls
from spamd.relay.outgoing import Outgoing
from spamd.relay.replies import NextHopLost, NextHopTlsFailed, Reply, reply
from spamd.relay.urls import NextHopUrl
from spamd.relay.watchdog import Kennel, TimeLimit
from spamd.relay.wire import Wire

_ACCEPTED_LATER = reply(421, "4.3.2 Mail can't be taken now, please try again later")


class SmtpSession:
    """One session at an SMTP or LMTP next hop.

    Args:
        url: where it is.
        options: time-outs, TLS, identity.
        hostname: our own name.
        context: for STARTTLS; None never uses it.
        kennel: of its time-outs.
    """

    def __init__(
        self,
        url: NextHopUrl,
        options: NextHopOptions,
        hostname: str,
        context: ssl.SSLContext | None,
        kennel: Kennel,
    ) -> None:
        self.url = url
        self.knows_client = False
        self.capabilities: Capabilities | None = None
        self._options = options
        self._hostname = hostname
        self._context = context
        self._encrypted = False
        self._loop = asyncio.get_running_loop()
        self._kennel = kennel
        self._wire = Wire(self._loop, kennel)
        self._delivering = False

    @property
    def lmtp(self) -> bool:
        """Tell whether the next hop gives one final reply per recipient."""
        return self.url.lmtp

    @property
    def usable(self) -> bool:
        """Tell whether the session is still in step."""
        return self._wire.usable

    async def open(self, client: Client) -> None:
        """Connect and read the banner.

        Raises:
            NextHopUnavailable: nobody there, or no good banner.
            NextHopRefused: the banner is a refusal that the client may see.
        """
        options = self._options
        loop = self._loop
        limit = TimeLimit(loop, self._kennel)
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
            self.knows_client = True
        banner = await self._wire.greeting(options.greeting_timeout_s)
        if banner.accepted:
            return
        self.close()
        if banner.code < 500:
            # RFC 5321 §3.1: a next hop that can't serve now says 421; others of 4yz mean the same
            raise NextHopRefused(banner.as_goodbye.raw)
        if self.knows_client:
            raise NextHopRefused(banner.raw)
        # It refuses us, not the client; a wrong setting between the two must not bounce mail.
        raise NextHopRefused(_ACCEPTED_LATER.raw)

    async def greet(self, client: Client, *, extended: bool) -> Reply:
        """Say EHLO, HELO or LHLO in the client's name; also turn on TLS and name the client.

        Raises:
            NextHopTlsFailed: TLS is required and can't be had.
            NextHopRefused: XCLIENT was refused.
        """
        options = self._options
        # STARTTLS and XCLIENT are offered to EHLO only; a client that says HELO avoids neither.
        asked = extended or options.xclient or options.tls is NextHopTls.REQUIRED
        answer = await self._hello(client, extended=asked)
        if not self._encrypted and (answer.accepted or asked is not extended):
            answer = await self._secured(client, answer, extended=asked)
        named = answer.accepted and options.xclient and await self._name_client(client)
        self.knows_client = self.knows_client or named
        if named or asked is not extended:
            answer = await self._hello(client, extended=extended)
        return answer

    async def mail(self, argument: bytes, client: Client) -> Reply:
        """Pass MAIL on."""
        command = b"MAIL " + understood(argument, self.capabilities) + b"\r\n"
        timeout_s = self._options.command_timeout_s
        forward = self._forward(client)
        if not forward:
            return self._final(await self._wire.ask(command, timeout_s))
        if self.capabilities and b"PIPELINING" in self.capabilities:
            line = b"".join((*forward, command))
            return self._final(await self._wire.ask(line, timeout_s, unheard=len(forward)))
        for line in forward:
            await self._wire.ask(line, timeout_s)
        return self._final(await self._wire.ask(command, timeout_s))

    async def rcpt(self, argument: bytes, path: Path | None) -> Reply:  # noqa: ARG002 - routes need it
        """Pass RCPT on."""
        command = b"RCPT " + understood(argument, self.capabilities) + b"\r\n"
        return self._final(await self._wire.ask(command, self._options.command_timeout_s))

    async def reset(self) -> Reply:
        """End the transaction without a message."""
        return self._final(await self._wire.ask(b"RSET\r\n", self._options.command_timeout_s))

    async def command(self, line: bytes) -> Reply:
        """Pass any other command on (AUTH and its answers)."""
        return await self._wire.ask(line + b"\r\n", self._options.command_timeout_s)

    def keep_alive(self) -> None:
        """Keep the next hop from ending an idle session."""
        # RFC 5321 §4.1.1.9: NOOP does not touch the transaction. Behind DATA it would be text.
        if not self._delivering:
            self._wire.tell(b"NOOP\r\n")

    async def deliver(
        self, outgoing: Outgoing, recipients: Sequence[bytes], timeout_s: float
    ) -> list[Reply]:
        """Send the message; return its final reply, over LMTP one for each recipient.

        Raises:
            NextHopLost: the outcome is unknown, or there is none.
        """
        self._delivering = True
        try:
            return await self._deliver(outgoing, len(recipients), timeout_s)
        finally:
            self._delivering = False

    async def _deliver(self, outgoing: Outgoing, recipients: int, timeout_s: float) -> list[Reply]:
        options = self._options
        deadline = self._loop.time() + timeout_s
        answer = await self._wire.ask(b"DATA\r\n", min(options.data_timeout_s, timeout_s))
        count = recipients if self.lmtp else 1
        if answer.code != 354:
            if answer.code < 400:
                self._wire.abort()
                raise RemoteProtocolError(f"{answer.code} to DATA")
            self._wire.tell(b"RSET\r\n")
            return [answer] * count
        try:
            whole = outgoing.whole
            if whole is None:
                await self._wire.pour(outgoing.blocks(), options.block_timeout_s, deadline)
                whole = b".\r\n"
            last = await self._wire.ask(whole, deadline - self._loop.time(), further=count - 1)
            first = self._final(last)
        except BaseException:
            self._wire.abort()  # never let a part pass for the whole
            raise
        if count == 1:
            return [first]
        return [first, *await self._further(count - 1, deadline - self._loop.time())]

    def close(self) -> None:
        """End the session."""
        self._wire.close()

    def abort(self) -> None:
        """Cut the session."""
        self._wire.abort()

    def _final(self, answer: Reply) -> Reply:
        """Return a reply that ends a command.

        Raises:
            RemoteProtocolError: it is 3yz, which asks for something nobody is going to send.
        """
        if 300 <= answer.code < 400:
            self._wire.abort()
            raise RemoteProtocolError(f"{answer.code} to a command")
        return answer

    async def _further(self, count: int, timeout_s: float) -> list[Reply]:
        """Return the further LMTP replies; those that do not come are replaced by ours."""
        # Recipients answered so far have their mail; only the others try again.
        replies = [reply(451, "4.4.2 Connection lost, please try again later")] * count
        with suppress(NextHopLost, RemoteProtocolError):
            for index in range(count):
                replies[index] = await self._wire.further(timeout_s)
        return replies

    async def _hello(self, client: Client, *, extended: bool) -> Reply:
        verb = b"LHLO " if self.lmtp else b"EHLO " if extended else b"HELO "
        helo = self._hostname if self._options.own_helo else client.helo
        line = verb + helo.encode("utf-8", "surrogateescape") + b"\r\n"
        answer = self._final(await self._wire.ask(line, self._options.greeting_timeout_s))
        if answer.accepted:
            self.capabilities = parse_capabilities(answer) if extended or self.lmtp else None
        return answer

    async def _secured(self, client: Client, answer: Reply, *, extended: bool) -> Reply:
        """Return the answer to the hello that counts: the one inside TLS, where TLS is wanted."""
        try:
            if not await self._start_tls():
                return answer
        except NextHopTlsFailed:
            if self._options.tls is NextHopTls.REQUIRED:
                raise
            # Opportunistic TLS is no promise; the handshake has spoilt the connection.
            self._context = None
            self._wire = Wire(self._loop, self._kennel)
            await self.open(client)
        return await self._hello(client, extended=extended)

    async def _start_tls(self) -> bool:
        """Turn on TLS when the setting and the next hop want it; tell whether it is on now."""
        tls = self._options.tls
        if self.lmtp or tls is NextHopTls.NONE or self._context is None:
            return False
        if self.capabilities is None or b"STARTTLS" not in self.capabilities:
            if tls is NextHopTls.REQUIRED:
                self.close()
                raise NextHopTlsFailed("STARTTLS is not offered")
            return False
        answer = await self._wire.ask(b"STARTTLS\r\n", self._options.greeting_timeout_s)
        if answer.code != 220:
            if tls is NextHopTls.REQUIRED:
                self.close()
                raise NextHopTlsFailed("STARTTLS was refused")
            return False
        await self._wire.encrypt(self._context, self.url.host, self._options.greeting_timeout_s)
        self._encrypted = True
        return True

    async def _name_client(self, client: Client) -> bool:
        """Name the client by XCLIENT; tell whether that was offered."""
        capabilities = self.capabilities or {}
        offered = capabilities.get(b"XCLIENT")
        if offered is None:
            return False
        for line in identity_commands(b"XCLIENT", client, offered.upper().split()):
            answer = await self._wire.ask(line, self._options.greeting_timeout_s)
            if not answer.accepted:
                self.close()
                raise NextHopRefused(answer.raw)
        return True

    def _forward(self, client: Client) -> list[bytes]:
        """Return the XFORWARD commands; they count for one message, so they stand before each."""
        if not self._options.xforward or not self.capabilities:
            return []
        offered = self.capabilities.get(b"XFORWARD")
        if offered is None:
            return []
        return identity_commands(b"XFORWARD", client, offered.upper().split())
