"""Who the client is, and the session at the next hop that is opened in its name.

EHLO and what comes with it: TLS, AUTH passed through, and a trusted proxy's word on who the client
really is. MAIL and what follows stand in `session.py`. Every verb of the wire is a method
`smtp_VERB`, and nothing else may have a name like that.

Deliberately absent: ETRN, TURN, VRFY of real addresses, AUTH of our own.
"""

from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from spamd.errors import NextHopUnavailable
from spamd.message.envelope import Client
from spamd.relay.inbound.connection import Connection
from spamd.relay.inbound.connection_limiter import network_of
from spamd.relay.inbound.context import RelayContext
from spamd.relay.outbound.router import NextHopSession
from spamd.relay.smtp.capabilities import OwnExtensions, offer
from spamd.relay.smtp.client_identity import named_client, parse_attributes
from spamd.relay.smtp.replies import BadCommandError, LoopsBack, NextHopLost, Reply, reply
from spamd.relay.urls import Listener

OK = reply(250, "2.0.0 OK")
ARGUMENT = reply(501, "5.5.4 Syntax error in parameters")
NESTED = reply(503, "5.5.1 Transaction already begun")
_NOT_HERE = reply(500, "5.5.1 Command not used here")
_OFF = reply(502, "5.5.1 Command not implemented")
_FORBIDDEN = reply(550, "5.7.0 Not allowed from your address")

Hello = Coroutine[Any, Any, None]

HELLO_BYTES = 255  # RFC 5321 §4.5.3.1.2


class Greeting(Connection):
    """The part of a session that comes before mail."""

    def __init__(self, context: RelayContext, listener: Listener) -> None:
        super().__init__(context, listener)
        self.next_hop: NextHopSession | None = None
        self.helo: str | None = None
        self._extended = False
        self._named: dict[bytes, bytes] = {}  # what XCLIENT said
        self._forwarded: dict[bytes, bytes] = {}  # what XFORWARD said of this transaction
        self._login: str | None = None
        self._client: Client | None = None  # computed once for all messages of a session
        self._known: tuple[object, ...] = ()

    # Greeting

    def smtp_EHLO(self, argument: str | None) -> Hello:  # noqa: N802 - the verb
        """Greet by ESMTP."""
        return self._hello(argument, extended=True, lmtp=False)

    def smtp_HELO(self, argument: str | None) -> Hello:  # noqa: N802
        """Greet by SMTP."""
        return self._hello(argument, extended=False, lmtp=False)

    def smtp_LHLO(self, argument: str | None) -> Hello:  # noqa: N802
        """Greet by LMTP."""
        return self._hello(argument, extended=True, lmtp=True)

    async def _hello(self, argument: str | None, *, extended: bool, lmtp: bool) -> None:
        if lmtp is not self._listener.lmtp:
            self.say(_NOT_HERE)  # RFC 2033 §4.1
            return
        helo = (argument or "").split(" ", 1)[0]
        if not helo or len(helo) > HELLO_BYTES:
            self.say(ARGUMENT)
            return
        self.forget()
        self.helo, self._extended = helo, extended
        answer = await self._greet_next_hop()
        if not answer.accepted:
            self.helo = None
            self.say(answer)
            return
        self.say(self._welcome())

    async def _greet_next_hop(self) -> Reply:
        """Introduce the client to the next hop, on a fresh connection where there is none."""
        if (self.address, self.port) in self._context.next_hops.outgoing:
            raise LoopsBack("next_hop.url leads back to relay.listen")
        client = self._introduced()  # XFORWARD counts for a message, not for the session
        if self.next_hop is None or not self.next_hop.usable:
            if self._login is not None:
                raise NextHopLost("with the client's login")
            self._drop_next_hop()
            self.next_hop = await self._context.next_hops.open(client)
        return await self.next_hop.greet(client, extended=self._extended)

    def _welcome(self) -> Reply:
        capabilities = self.next_hop.capabilities if self.next_hop else None
        if not self._extended:
            return reply(250, self.hostname)
        context = self._context
        ours = OwnExtensions(
            hostname=self.hostname,
            max_message_bytes=context.relay.max_message_bytes,
            starttls=context.tls_context is not None,
            encrypted=self.encrypted,
            auth=context.next_hop.auth,
            trusted=self.trusted,
        )
        return Reply(250, offer(ours, capabilities or {}))

    async def new_next_hop(self) -> NextHopSession:
        """Return another session at the next hop for one that was lost between two mails."""
        answer = await self._greet_next_hop()
        if not answer.accepted or self.next_hop is None:
            raise NextHopUnavailable("greeting refused")
        return self.next_hop

    # The rest

    async def smtp_NOOP(self, argument: str | None) -> None:  # noqa: N802, ARG002
        """Do nothing."""
        self.say(OK)

    async def smtp_QUIT(self, argument: str | None) -> None:  # noqa: N802, ARG002
        """End the session."""
        self.say(reply(221, "2.0.0 Bye"))
        await self.end_session()

    async def smtp_VRFY(self, argument: str | None) -> None:  # noqa: N802, ARG002
        """Say that we do not know."""
        self.say(reply(252, "2.0.0 Send some mail, we will try"))  # RFC 5321 §7.3

    async def smtp_EXPN(self, argument: str | None) -> None:  # noqa: N802, ARG002
        """Refuse."""
        self.say(_OFF)

    async def smtp_HELP(self, argument: str | None) -> None:  # noqa: N802, ARG002
        """Point to where help is."""
        self.say(reply(214, "2.0.0 RFC 5321"))

    async def smtp_STARTTLS(self, argument: str | None) -> None:  # noqa: N802
        """Turn on TLS (RFC 3207)."""
        if argument:
            self.say(ARGUMENT)
        elif self.encrypted:
            self.say(reply(503, "5.5.1 TLS is on already"))
        elif self._context.tls_context is None:
            self.say(reply(454, "4.7.0 TLS is not available"))
        else:
            self.say(reply(220, "2.0.0 Ready to start TLS"))
            await self.flush()
            await self.start_tls()
            # RFC 3207 §4.2: everything learned from the client in clear is forgotten
            self.forget()
            self.helo = None
            self._drop_next_hop()

    async def smtp_AUTH(self, argument: str | None) -> None:  # noqa: N802
        """Pass a login through to the next hop (RFC 4954)."""
        next_hop = self.next_hop
        offered = next_hop.capabilities if next_hop else None
        allowed = self._context.next_hop.auth and self.encrypted and self._extended
        if not allowed or next_hop is None or not offered or b"AUTH" not in offered:
            self.say(_OFF)
            return
        if self._login is not None or self.busy:
            self.say(reply(503, "5.5.1 Not now"))
            return
        line = b"AUTH " + (argument or "").encode("utf-8", "surrogateescape")
        answer = await next_hop.command(line)
        while answer.code == 334:
            self.say(answer)
            await self.flush()
            try:
                line = (await self.next_line()).rstrip(b"\r\n")
            except BadCommandError:
                await next_hop.command(b"*")  # RFC 4954 §4: cancels, or it would wait for an answer
                raise
            answer = await next_hop.command(line)
        if answer.accepted:
            self._login = ""
        self.say(answer)

    async def smtp_XCLIENT(self, argument: str | None) -> None:  # noqa: N802
        """Take a trusted client for another one."""
        found = await self._attributes(argument)
        if found is None:
            return
        self._named.update(found)
        self._client = None
        client = self.client()
        self.address, self.port = client.address, client.port
        self.network = network_of(self._context.limiter.slot_of(client.address))
        self.helo = None
        self._drop_next_hop()
        self.say(reply(220, f"{self.hostname} {self.__ident__}"))

    async def smtp_XFORWARD(self, argument: str | None) -> None:  # noqa: N802
        """Take who sent this message from a trusted client."""
        found = await self._attributes(argument)
        if found is None:
            return
        self._forwarded.update(found)
        self.say(OK)

    async def _attributes(self, argument: str | None) -> dict[bytes, bytes] | None:
        """Return what a trusted client says of another; None when it was told no."""
        if not self.trusted:
            self.say(_FORBIDDEN)
            return None
        if self.busy:
            self.say(NESTED)
            return None
        found = parse_attributes((argument or "").encode("utf-8", "surrogateescape"))
        if found is None or named_client(self.client(), found) is None:
            self.say(ARGUMENT)
            return None
        return dict(found)

    # State

    def end(self) -> None:
        """Give back what the session held."""
        self._drop_next_hop()
        super().end()

    def forget(self) -> None:
        """Forget the transaction, not the greeting."""
        self._forwarded = {}

    def _drop_next_hop(self) -> None:
        if self.next_hop is not None:
            self.next_hop.close()
            self.next_hop = None
        self._login = None  # it was one there

    def client(self) -> Client:
        """Return who the client is, as far as it or a trusted proxy has said."""
        if self._forwarded:
            return named_client(self._introduced(), self._forwarded) or self._introduced()
        known = (self.helo, self.address, self.encrypted, self._login, self._extended)
        if self._client is None or self._known != known:
            self._client, self._known = self._introduced(), known
        return self._client

    def _introduced(self) -> Client:
        kind = "LMTP" if self._listener.lmtp else "ESMTP" if self._extended else "SMTP"
        client = Client(
            address=self.address,
            port=self.port,
            helo=self.helo or "",
            name="",
            tls=self.encrypted,
            login=self._login,
            protocol=kind,
        )
        if self._named:
            client = named_client(client, self._named) or client
            client = replace(client, helo=self.helo or client.helo)
        return client
