"""Who the client is, and the session at the next hop that is opened in its name.

What EHLO says of the client, what TLS and a login change, and what a trusted proxy says of it by
XCLIENT, XFORWARD or a PROXY header. The commands themselves stand in `session.py`.
"""

from collections.abc import Mapping
from dataclasses import replace

from spamd.errors import NextHopUnavailable
from spamd.message.envelope import Client
from spamd.network.addresses import Listener
from spamd.relay.inbound.context import RelayContext
from spamd.relay.inbound.transport import Transport
from spamd.relay.outbound.router import NextHopSession
from spamd.relay.smtp.capabilities import ehlo_reply
from spamd.relay.smtp.client_identity import named_client, parse_attributes
from spamd.relay.smtp.replies import LoopsBack, NextHopLost, Reply, reply


class Greeting:
    """The client of one session, and its session at the next hop.

    Attributes:
        address, port: of the client, as far as a trusted proxy has said.
        trusted: it may name another client.
        stranger: neither a server of ours nor this machine is at the other end.
        helo: what it called itself; None before EHLO.
        extended: it said EHLO or LHLO.
        logged_in: the next hop has taken its login.
        forwarded: what XFORWARD said of this transaction.
        next_hop: None until there is one.
    """

    def __init__(self, context: RelayContext, listener: Listener, transport: Transport) -> None:
        self.address = ""
        self.port = 0
        self.trusted = False
        self.stranger = False
        self.helo: str | None = None
        self.extended = False
        self.logged_in = False
        self.forwarded: Mapping[bytes, bytes] = {}
        self.next_hop: NextHopSession | None = None
        self._context = context
        self._lmtp = listener.lmtp
        self._transport = transport
        self._named: dict[bytes, bytes] = {}  # what XCLIENT said
        self._client: Client | None = None  # computed once for all messages of a session
        self._known: tuple[object, ...] = ()

    async def greet_next_hop(self) -> Reply:
        """Greet the next hop for the client, on a fresh connection where there is none."""
        if (self.address, self.port) in self._context.next_hops.outgoing:
            raise LoopsBack("next_hop.url leads back to relay.listen")
        client = self._session_client()  # XFORWARD counts for a message, not for the session
        if self.next_hop is None or not self.next_hop.usable:
            if self.logged_in:
                raise NextHopLost("the connection on which the client had logged in was lost")
            self.close_next_hop()
            self.next_hop = await self._context.next_hops.open(client)
        return await self.next_hop.greet(client, extended=self.extended)

    async def new_next_hop(self) -> NextHopSession:
        """Return another session at the next hop for one that was lost between two messages."""
        answer = await self.greet_next_hop()
        if not answer.accepted or self.next_hop is None:
            raise NextHopUnavailable("the next hop refused the greeting (EHLO or HELO)")
        return self.next_hop

    def close_next_hop(self) -> None:
        """End the session at the next hop, and with it a login."""
        if self.next_hop is not None:
            self.next_hop.close()
            self.next_hop = None
        self.logged_in = False

    def reset(self) -> None:
        """Forget what the client said, but not what a proxy said of it."""
        self.helo = None
        self.close_next_hop()

    def hello_reply(self) -> Reply:
        """Return the reply to EHLO, HELO or LHLO that the next hop has accepted."""
        context = self._context
        if not self.extended:
            return reply(250, context.hostname)
        lines = ehlo_reply(
            context.hostname,
            self.next_hop.capabilities or {} if self.next_hop else {},
            context.relay.max_message_bytes,
            starttls=context.tls_context is not None and not self._transport.encrypted,
            auth=context.next_hop.auth and self._transport.encrypted,
            trusted=self.trusted,
        )
        return Reply(250, lines)

    def named(self, argument: str | None) -> Mapping[bytes, bytes] | None:
        """Return what XCLIENT or XFORWARD says; None when it makes no sense."""
        found = parse_attributes((argument or "").encode("utf-8", "surrogateescape"))
        return found if found and named_client(self.client(), found) is not None else None

    def replace_client(self, found: Mapping[bytes, bytes]) -> None:
        """Take the client for the one that XCLIENT names; it has to greet again."""
        self._named.update(found)
        self._client = None
        client = self.client()
        self.address, self.port = client.address, client.port
        self.reset()

    def client(self) -> Client:
        """Return who the client is, as far as it or a trusted proxy has said."""
        if self.forwarded:
            client = self._session_client()
            return named_client(client, self.forwarded) or client
        known = self.helo, self.address, self._transport.encrypted, self.logged_in, self.extended
        if self._client is None or self._known != known:
            self._client, self._known = self._session_client(), known
        return self._client

    def _session_client(self) -> Client:
        client = Client(
            address=self.address,
            port=self.port,
            helo=self.helo or "",
            name="",
            tls=self._transport.encrypted,
            login="" if self.logged_in else None,
            protocol="LMTP" if self._lmtp else "ESMTP" if self.extended else "SMTP",
            bare=self.stranger,
        )
        if self._named:
            client = named_client(client, self._named) or client
            client = replace(client, helo=self.helo or client.helo)
        return client
