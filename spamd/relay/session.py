"""One session with a client: the verbs of SMTP and LMTP, mirrored at the next hop as they come.

MAIL and RCPT are asked at the next hop at once, verbatim, and its replies are the client's. The
message is collected here; what happens then stands in `handover.py`. Every verb of the wire is a
method `smtp_VERB`, and nothing else may have a name like that.

Deliberately absent: ETRN, TURN, BURL, BINARYMIME (our next hops get DATA), VRFY of real addresses.
"""

from dataclasses import replace

from spamd.errors import NextHopUnavailable
from spamd.message.envelope import Client, Envelope
from spamd.relay.capabilities import Ours, offer, size_limit
from spamd.relay.commands import Path, parse_path
from spamd.relay.connection import Connection
from spamd.relay.context import RelayContext
from spamd.relay.data import ChunkIntake, DataIntake, Intake
from spamd.relay.handover import HandOver, final_replies
from spamd.relay.identity import named_client, parse_attributes
from spamd.relay.next_hops import NextHopSession
from spamd.relay.options import Mixed
from spamd.relay.receiving import Receiving
from spamd.relay.replies import FramingError, NextHopLost, Reply, reply, reply_to
from spamd.relay.urls import Listener
from spamd.relay.watchdog import Heart

_OK = reply(250, "2.0.0 OK")
_START = reply(354, "End data with <CR><LF>.<CR><LF>")
_HELLO_FIRST = reply(503, "5.5.1 Say hello first")
_NO_SENDER = reply(503, "5.5.1 MAIL first")
_NESTED = reply(503, "5.5.1 Transaction already begun")
_NO_RECIPIENTS = reply(554, "5.5.1 No valid recipients")
_NO_RECIPIENTS_LMTP = reply(503, "5.5.1 No valid recipients")
_ARGUMENT = reply(501, "5.5.4 Syntax error in parameters")
_TLS_FIRST = reply(530, "5.7.0 Must issue a STARTTLS command first")
_TOO_LARGE = reply(552, "5.3.4 Message too large")
_NO_UTF8 = reply(553, "5.6.7 SMTPUTF8 is not possible on the way of this mail")
_NO_BINARY = reply(501, "5.5.4 BODY=BINARYMIME is not offered")
_TOO_MANY = reply(452, "4.5.3 Too many recipients")
_ONE_ONLY = reply(452, "4.5.3 One recipient a transaction, please")
_FULL = reply(452, "4.3.1 Not enough room now, please try again later")
_NOT_HERE = reply(500, "5.5.1 Command not used here")
_OFF = reply(502, "5.5.1 Command not implemented")
_FORBIDDEN = reply(550, "5.7.0 Not allowed from your address")

HELLO_BYTES = 255  # RFC 5321 §4.5.3.1.2


class RelaySession(Connection):
    """The dialogue with one client."""

    def __init__(self, context: RelayContext, listener: Listener) -> None:
        super().__init__(context, listener)
        self._next_hop: NextHopSession | None = None
        self._helo: str | None = None
        self._extended = False
        self._named: dict[bytes, bytes] = {}  # what XCLIENT said
        self._forwarded: dict[bytes, bytes] = {}  # what XFORWARD said of this transaction
        self._login: str | None = None
        self._mail: Path | None = None
        self._recipients: list[bytes] = []
        self._chunks: ChunkIntake | None = None
        self._heart = Heart(self.loop, context.next_hop.keepalive_s)

    # Greeting

    async def smtp_EHLO(self, argument: str | None) -> None:  # noqa: N802 - the verb
        """Greet by ESMTP."""
        await self._hello(argument, extended=True, lmtp=False)

    async def smtp_HELO(self, argument: str | None) -> None:  # noqa: N802
        """Greet by SMTP."""
        await self._hello(argument, extended=False, lmtp=False)

    async def smtp_LHLO(self, argument: str | None) -> None:  # noqa: N802
        """Greet by LMTP."""
        await self._hello(argument, extended=True, lmtp=True)

    async def _hello(self, argument: str | None, *, extended: bool, lmtp: bool) -> None:
        if lmtp is not self._listener.lmtp:
            await self.say(_NOT_HERE)  # RFC 2033 §4.1
            return
        helo = (argument or "").split(" ", 1)[0]
        if not helo or len(helo) > HELLO_BYTES:
            await self.say(_ARGUMENT)
            return
        self.junk()
        self._reset()
        self._helo, self._extended = helo, extended
        answer = await self._greet_next_hop()
        if not answer.accepted:
            self._helo = None
            await self.say(answer)
            return
        await self.say(self._welcome())

    async def _greet_next_hop(self) -> Reply:
        """Introduce the client to the next hop, on a fresh connection where there is none."""
        client = self._client()
        if self._next_hop is None or not self._next_hop.usable:
            self._drop_next_hop()
            self._next_hop = await self._context.next_hops.open(client)
        return await self._next_hop.greet(client, extended=self._extended)

    def _welcome(self) -> Reply:
        capabilities = self._next_hop.capabilities if self._next_hop else None
        if not self._extended:
            return reply(250, self.hostname)
        context = self._context
        ours = Ours(
            hostname=self.hostname,
            max_message_bytes=context.relay.max_message_bytes,
            starttls=context.context is not None,
            encrypted=self.encrypted,
            auth=context.next_hop.auth,
            trusted=self.trusted,
        )
        return Reply(250, offer(ours, capabilities or {}))

    # Envelope

    async def smtp_MAIL(self, argument: str | None) -> None:  # noqa: N802
        """Begin a transaction, if the next hop does."""
        if self._helo is None:
            await self.say(_HELLO_FIRST)
            return
        if self._mail is not None:
            await self.say(_NESTED)
            return
        if self._context.tls.required and not self.encrypted:
            await self.say(_TLS_FIRST)
            return
        wire = (argument or "").encode("utf-8", "surrogateescape")
        path = parse_path(wire)
        if path is None:
            await self.say(_ARGUMENT)
            return
        next_hop = await self._ready_next_hop()
        refusal = self._refusal(path, next_hop)
        if refusal is not None:
            await self.say(refusal)
            return
        answer = await next_hop.mail(wire)
        if answer.accepted:
            self._mail = path
        await self.say(answer)

    def _refusal(self, path: Path, next_hop: NextHopSession) -> Reply | None:
        """Return why we refuse a sender ourselves, which is seldom."""
        parameters = path.parameters
        offered = next_hop.capabilities
        if parameters:
            size = parameters.get(b"SIZE", b"")
            limit = size_limit(self._context.relay.max_message_bytes, offered or {})
            if size.isdigit() and int(size) > limit:
                return _TOO_LARGE
            if parameters.get(b"BODY", b"").upper() == b"BINARYMIME":
                return _NO_BINARY
            # RFC 6531 §3.5: never to a next hop that can't take it
            if b"SMTPUTF8" in parameters and offered is not None and b"SMTPUTF8" not in offered:
                return _NO_UTF8
        return _FULL if self._context.budget.exhausted else None

    async def _ready_next_hop(self) -> NextHopSession:
        """Return the next hop's session; one that was lost between two mails is made anew."""
        if self._next_hop is None or not self._next_hop.usable:
            answer = await self._greet_next_hop()
            if not answer.accepted or self._next_hop is None:
                raise NextHopUnavailable("greeting refused")
        return self._next_hop

    async def smtp_RCPT(self, argument: str | None) -> None:  # noqa: N802
        """Ask the next hop for a recipient."""
        if self._mail is None or self._next_hop is None:
            await self.say(_NO_SENDER if self._helo else _HELLO_FIRST)
            return
        if len(self._recipients) >= self._context.relay.max_recipients:
            await self.say(_TOO_MANY)
            return
        if self._recipients and self._one_only:
            await self.say(_ONE_ONLY)
            return
        wire = (argument or "").encode("utf-8", "surrogateescape")
        if not wire:
            await self.say(_ARGUMENT)
            return
        path = parse_path(wire)
        answer = await self._next_hop.rcpt(wire, path)
        if answer.accepted:
            self._recipients.append(path.address if path else wire)
        await self.say(answer)

    @property
    def _one_only(self) -> bool:
        """Tell whether several recipients could end in replies that SMTP can't give."""
        return (
            self._context.next_hop.mixed_replies is Mixed.SINGLE
            and not self._listener.lmtp
            and self._next_hop is not None
            and self._next_hop.lmtp
        )

    async def smtp_RSET(self, argument: str | None) -> None:  # noqa: N802
        """End the transaction."""
        if argument:
            await self.say(_ARGUMENT)
            return
        self.junk()
        if self._mail is not None and self._next_hop is not None:
            self._reset()
            await self._next_hop.reset()
        self._reset()
        await self.say(_OK)

    # Content

    async def smtp_DATA(self, argument: str | None) -> None:  # noqa: N802
        """Take a message and answer for it."""
        if argument:
            await self.say(_ARGUMENT)
        elif self._mail is None or self._chunks is not None:
            await self.say(_NO_SENDER if self._chunks is None else _NESTED)
        elif not self._recipients:
            await self.say(self._no_recipients)
        else:
            await self.say(_START)
            if self._out:
                await self._flush()
            intake = DataIntake(self._context.budget, self._context.relay.max_message_bytes)
            self._heart.beat(self._next_hop)
            try:
                await Receiving(self, intake).data(intake)
                await self._hand_over(intake)
            finally:
                self._heart.rest()
                intake.close()

    @property
    def _no_recipients(self) -> Reply:
        return _NO_RECIPIENTS_LMTP if self._listener.lmtp else _NO_RECIPIENTS

    async def smtp_BDAT(self, argument: str | None) -> None:  # noqa: N802
        """Take a chunk of a message (RFC 3030)."""
        words = (argument or "").upper().split()
        last = words[1:] == ["LAST"]
        if not words or not words[0].isdecimal() or len(words) > 1 + last:
            # How much follows is unknown, so nothing after this can be understood.
            await self.say(reply_to(FramingError(), in_hand=False))
            await self.hang_up()
            return
        size = int(words[0])
        if not self._recipients:
            await Receiving(self, None).chunk(size, lambda _: None)
            await self.say(_NO_SENDER if self._mail is None else self._no_recipients)
            return
        relay = self._context.relay
        chunks = self._chunks = self._chunks or ChunkIntake(
            self._context.budget, relay.max_message_bytes
        )
        await Receiving(self, chunks).chunk(size, chunks.feed)
        if chunks.fault is not None:
            # RFC 3030 §2: the transaction has failed; what follows is swallowed
            await self._refuse(chunks.fault)
        elif last:
            chunks.last()
            self._heart.beat(self._next_hop)
            try:
                await self._hand_over(chunks)
            finally:
                self._heart.rest()
                chunks.close()
        else:
            await self.say(reply(250, f"2.0.0 {size} octets"))

    async def _refuse(self, fault: Exception) -> None:
        """Answer a failed transaction before its end."""
        self._reset()
        if self._next_hop is not None and self._next_hop.usable:
            await self._next_hop.reset()
        await self.say(reply_to(fault, in_hand=True))

    async def _hand_over(self, intake: Intake) -> None:
        """Judge a complete message, hand it on and answer for it."""
        next_hop, sender, recipients = self._next_hop, self._mail, self._recipients
        if next_hop is None or sender is None:
            raise NextHopLost("no session at the next hop")
        client = self._client()
        envelope = Envelope(sender=sender.address, recipients=tuple(recipients), client=client)
        self._chunks = None  # it is `intake` now
        self._reset()
        self.mail_came()
        replies = await HandOver(self._context, self, next_hop, envelope).run(intake)
        for answer in final_replies(replies, len(recipients), lmtp=self._listener.lmtp):
            await self.say(answer)
        if not next_hop.usable:
            await self.hang_up()

    # The rest

    async def smtp_NOOP(self, argument: str | None) -> None:  # noqa: N802, ARG002
        """Do nothing."""
        self.junk()
        await self.say(_OK)

    async def smtp_QUIT(self, argument: str | None) -> None:  # noqa: N802, ARG002
        """End the session."""
        await self.say(reply(221, "2.0.0 Bye"))
        await self.hang_up()

    async def smtp_VRFY(self, argument: str | None) -> None:  # noqa: N802, ARG002
        """Say that we do not know."""
        self.junk()
        await self.say(reply(252, "2.0.0 Send some mail, we will try"))  # RFC 5321 §7.3

    async def smtp_EXPN(self, argument: str | None) -> None:  # noqa: N802, ARG002
        """Refuse."""
        self.junk()
        await self.say(_OFF)

    async def smtp_HELP(self, argument: str | None) -> None:  # noqa: N802, ARG002
        """Point to where help is."""
        self.junk()
        await self.say(reply(214, "2.0.0 RFC 5321"))

    async def smtp_STARTTLS(self, argument: str | None) -> None:  # noqa: N802
        """Turn on TLS (RFC 3207)."""
        if argument:
            await self.say(_ARGUMENT)
        elif self.encrypted:
            await self.say(reply(503, "5.5.1 TLS is on already"))
        elif self._context.context is None:
            await self.say(reply(454, "4.7.0 TLS is not available"))
        else:
            await self.say(reply(220, "2.0.0 Ready to start TLS"))
            if self._out:
                await self._flush()
            await self.start_tls()
            # RFC 3207 §4.2: everything learned from the client in clear is forgotten
            self._reset()
            self._helo = None
            self._drop_next_hop()

    async def smtp_AUTH(self, argument: str | None) -> None:  # noqa: N802
        """Pass a login through to the next hop (RFC 4954)."""
        next_hop = self._next_hop
        offered = next_hop.capabilities if next_hop else None
        allowed = self._context.next_hop.auth and self.encrypted and self._extended
        if not allowed or next_hop is None or not offered or b"AUTH" not in offered:
            await self.say(_OFF)
            return
        if self._login is not None or self._mail is not None:
            await self.say(reply(503, "5.5.1 Not now"))
            return
        line = b"AUTH " + (argument or "").encode("utf-8", "surrogateescape")
        answer = await next_hop.command(line)
        while answer.code == 334:
            await self.say(answer)
            if self._out:
                await self._flush()
            line = (await self.readuntil()).rstrip(b"\r\n")
            answer = await next_hop.command(line)
        if answer.accepted:
            self._login = ""
        await self.say(answer)

    async def smtp_XCLIENT(self, argument: str | None) -> None:  # noqa: N802
        """Take a trusted client for another one."""
        found = await self._attributes(argument)
        if found is None:
            return
        self._named.update(found)
        client = self._client()
        self.address, self.port = client.address, client.port
        self._helo = None
        self._drop_next_hop()
        await self.say(reply(220, f"{self.hostname} {self.__ident__}"))

    async def smtp_XFORWARD(self, argument: str | None) -> None:  # noqa: N802
        """Take who sent this message from a trusted client."""
        found = await self._attributes(argument)
        if found is None:
            return
        self._forwarded.update(found)
        await self.say(_OK)

    async def _attributes(self, argument: str | None) -> dict[bytes, bytes] | None:
        """Return what a trusted client says of another; None when it was told no."""
        if not self.trusted:
            await self.say(_FORBIDDEN)
            return None
        if self._mail is not None:
            await self.say(_NESTED)
            return None
        found = parse_attributes((argument or "").encode("utf-8", "surrogateescape"))
        if found is None or named_client(self._client(), found) is None:
            await self.say(_ARGUMENT)
            return None
        return dict(found)

    # State

    def end(self) -> None:
        """Give back what the session held."""
        self._reset()
        self._heart.stop()
        self._drop_next_hop()
        super().end()

    def _busy(self) -> bool:
        return self._mail is not None

    def _reset(self) -> None:
        """Forget the transaction, not the greeting."""
        self._mail = None
        self._recipients = []
        self._forwarded = {}
        if self._chunks is not None:
            self._chunks.close()
            self._chunks = None

    def _drop_next_hop(self) -> None:
        if self._next_hop is not None:
            self._next_hop.close()
            self._next_hop = None

    def _client(self) -> Client:
        """Return who the client is, as far as it or a trusted proxy has said."""
        kind = "LMTP" if self._listener.lmtp else "ESMTP" if self._extended else "SMTP"
        client = Client(
            address=self.address,
            port=self.port,
            helo=self._helo or "",
            name="",
            tls=self.encrypted,
            login=self._login,
            protocol=kind,
        )
        for found in (self._named, self._forwarded):
            if found:
                client = named_client(client, found) or client
        if self._named and self._helo:
            client = replace(client, helo=self._helo)
        return client
