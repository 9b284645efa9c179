"""One session with a client: its commands, from the connection to the end.

The session owns the `Transport` (lines and replies), the `Greeting` (who the client is, the session
at the next hop) and the `Transaction` (MAIL, RCPT, DATA). It lets the client in, carries out the
commands that are not about one message, and answers faults: a fault of ours is 421, and it never
ends a message that is being delivered.

Deliberately absent: ETRN, TURN, VRFY of real addresses, AUTH of our own.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Mapping
from operator import attrgetter

from spamd.network.addresses import Listener
from spamd.network.connection_limiter import is_stranger, network_of
from spamd.relay.inbound.aiosmtpd_adapter import Command, CommandLoop
from spamd.relay.inbound.command_limits import ClientLimits
from spamd.relay.inbound.context import RelayContext
from spamd.relay.inbound.greeting import Greeting
from spamd.relay.inbound.proxy_header import proxy_header_of
from spamd.relay.inbound.transaction import Transaction
from spamd.relay.inbound.transport import Transport
from spamd.relay.smtp.replies import (
    OK,
    SYNTAX,
    TRANSACTION_OPEN,
    BadCommandError,
    Reply,
    ShuttingDown,
    TooManyCommands,
    TooManyConnections,
    needs_logging,
    reply,
    reply_to,
)

HELLO_BYTES = 255  # RFC 5321 §4.5.3.1.2

_UNKNOWN = reply(500, "5.5.2 Command not recognized")
_NOT_HERE = reply(500, "5.5.1 Command not supported")
_NOT_OFFERED = reply(502, "5.5.1 Command not implemented")
_FORBIDDEN = reply(550, "5.7.0 Not allowed from your address")
_TRY = reply(252, "2.0.0 Cannot VRFY user; send a message to attempt delivery")  # RFC 5321 §7.3
_HELP = reply(214, "2.0.0 RFC 5321")
_BYE = reply(221, "2.0.0 Bye")


class Session:
    """The dialogue with one client."""

    def __init__(self, context: RelayContext, listener: Listener) -> None:
        self._context = context
        self._listener = listener
        self._limits = ClientLimits(context.relay, asyncio.get_running_loop().time())
        self.transport = Transport(
            context,
            self._limits,
            connected=self._connected,
            lost=self._lost,
            busy=lambda: self.transaction.open,
        )
        self.greeting = Greeting(context, listener, self.transport)
        self.transaction = Transaction(
            context, listener, self.transport, self.greeting, self._limits
        )
        self._protocol = "LMTP" if listener.lmtp else "ESMTP"
        self._slot: str | None = None
        self._task: asyncio.Task[None] | None = None

    # From the connection to its end

    def _connected(self, peer: object) -> None:
        """Let the client in or send it away."""
        context, greeting = self._context, self.greeting
        if isinstance(peer, tuple):
            greeting.address, greeting.port = peer[0].partition("%")[0], peer[1]
        slot = context.shared.limiter.acquire(greeting.address)
        if slot is None or context.draining:
            self.transport.close_with(ShuttingDown() if context.draining else TooManyConnections())
            if slot is not None:
                context.shared.limiter.release(slot)
            return
        self._slot = slot
        self.transport.network = network_of(slot)
        self._task = context.spawn(self, self._run())

    def _lost(self) -> None:
        """End the session, unless a message is being delivered."""
        if self._task is not None and not self.transaction.committing:
            self._task.cancel()

    async def _run(self) -> None:
        transport = self.transport
        try:
            await self._prepare()
            transport.greeted = True
            await CommandLoop(
                hostname=self._context.hostname,
                protocol=self._protocol,
                next_command=transport.next_command,
                command_for=self._command_for,
                reply=transport.reply,
                reply_to_fault=self._reply_to_fault,
            ).run()
        except ConnectionError:
            self._release()
            await transport.linger()  # the client closed the connection, or we end the session
        except ssl.SSLError:
            pass  # its TLS broke
        except Exception as error:  # noqa: BLE001 - the border around one session
            self._context.shared.observer.failed("session.failed", error)
        finally:
            self._release()
            transport.close()
            if self._slot is not None:
                self._context.shared.limiter.release(self._slot)
                if self._limits.fruitless:
                    now = transport.loop.time()
                    self._context.recent_clients.note_fruitless(self._slot, now)

    async def _prepare(self) -> None:
        """Do what comes before the greeting: the PROXY header, then TLS where it is due."""
        context, transport, greeting = self._context, self.transport, self.greeting
        connection = transport.connection
        if connection is None:
            return
        greeting.trusted = context.shared.limiter.trusts(greeting.address)
        proxied = greeting.trusted and context.relay.proxy_protocol
        if proxied or self._listener.tls:
            # What comes is to be read by somebody else. Not sooner: asyncio before 3.11.5 begins to
            # read after connection_made, paused or not.
            connection.pause_reading()
        delay_s = context.recent_clients.delay_s(self._slot or "", transport.loop.time())
        if delay_s:
            await transport.delay(delay_s)
        await context.shared.turns.wait(transport.network, first=True)
        if proxied:
            named = await proxy_header_of(connection, context.relay.proxy_header_s)
            if named is not None:
                greeting.address, greeting.port = named
                greeting.trusted = False  # the proxy is trusted, its client is not
                self._change_slot()
        greeting.stranger = is_stranger(greeting.address) and not greeting.trusted
        if self._listener.tls:
            await transport.start_tls()
        elif proxied:
            connection.resume_reading()

    def _change_slot(self) -> None:
        """Count the connection for the client behind the proxy."""
        limiter = self._context.shared.limiter
        if self._slot is not None:
            limiter.release(self._slot)
        self._slot = limiter.acquire(self.greeting.address)
        self.transport.network = network_of(self._slot or "")
        if self._slot is None:
            self.transport.close_with(TooManyConnections())
            raise ConnectionResetError("too many connections")

    def _release(self) -> None:
        """Give back what the session held."""
        self.transaction.close()
        self.greeting.close_next_hop()
        self.transport.deadline.stop()

    # Commands

    def _command_for(self, verb: str) -> Command:
        """Return what carries out a verb."""
        command: Command = _COMMANDS.get(verb, _unknown)(self)
        return command

    def _reply_to_fault(self, error: Exception) -> Reply:
        """Return the reply to an exception that a command raised."""
        self.transport.deadline.clear()
        if isinstance(error, BadCommandError):
            try:
                self._limits.bad()
            except TooManyCommands as ended:
                error = ended
        answer = reply_to(error, in_hand=False)
        if not isinstance(error, BadCommandError):
            if needs_logging(error):
                self._context.shared.observer.failed("session.failed", error)
            if answer.code < 500:  # not the client's fault, and our state is unknown: start anew
                answer = answer.as_421
        return answer

    async def unknown(self, _: str | None) -> None:
        """Answer a verb that does not exist."""
        self._limits.bad()
        self.transport.reply(_UNKNOWN)

    def ehlo(self, argument: str | None) -> Awaitable[None]:
        """Greet by ESMTP."""
        return self._hello(argument, extended=True, lmtp=False)

    def helo(self, argument: str | None) -> Awaitable[None]:
        """Greet by SMTP."""
        return self._hello(argument, extended=False, lmtp=False)

    def lhlo(self, argument: str | None) -> Awaitable[None]:
        """Greet by LMTP."""
        return self._hello(argument, extended=True, lmtp=True)

    async def _hello(self, argument: str | None, *, extended: bool, lmtp: bool) -> None:
        if lmtp is not self._listener.lmtp:
            self.transport.reply(_NOT_HERE)  # RFC 2033 §4.1
            return
        helo = (argument or "").split(" ", 1)[0]
        if not helo or len(helo) > HELLO_BYTES:
            self.transport.reply(SYNTAX)
            return
        greeting = self.greeting
        self.transaction.reset()
        greeting.helo, greeting.extended = helo, extended
        answer = await greeting.greet_next_hop()
        if answer.accepted:
            answer = greeting.hello_reply()
        else:
            greeting.helo = None
        self.transport.reply(answer)

    async def noop(self, _: str | None) -> None:
        """Do nothing."""
        self.transport.reply(OK)

    async def vrfy(self, _: str | None) -> None:
        """Say that we do not know."""
        self.transport.reply(_TRY)

    async def expn(self, _: str | None) -> None:
        """Refuse."""
        self.transport.reply(_NOT_OFFERED)

    async def help(self, _: str | None) -> None:
        """Point to where help is."""
        self.transport.reply(_HELP)

    async def quit(self, _: str | None) -> None:
        """End the session."""
        self.transport.reply(_BYE)
        await self.transport.end_session()

    async def starttls(self, argument: str | None) -> None:
        """Turn on TLS (RFC 3207)."""
        transport = self.transport
        if argument:
            transport.reply(SYNTAX)
        elif transport.encrypted:
            transport.reply(reply(503, "5.5.1 TLS is already active"))
        elif self._context.tls_context is None:
            transport.reply(reply(454, "4.7.0 TLS is not available"))
        else:
            transport.reply(reply(220, "2.0.0 Ready to start TLS"))
            await transport.flush()
            await transport.start_tls()
            # RFC 3207 §4.2: everything learned from the client in clear is forgotten
            self.transaction.reset()
            self.greeting.reset()

    async def auth(self, argument: str | None) -> None:
        """Pass a login through to the next hop (RFC 4954)."""
        greeting, transport = self.greeting, self.transport
        next_hop = greeting.next_hop
        offered = next_hop.capabilities if next_hop else None
        allowed = self._context.next_hop.auth and transport.encrypted and greeting.extended
        if not allowed or next_hop is None or not offered or b"AUTH" not in offered:
            transport.reply(_NOT_OFFERED)
            return
        if greeting.logged_in or self.transaction.open:
            transport.reply(reply(503, "5.5.1 Already authenticated, or a transaction is open"))
            return
        line = b"AUTH " + (argument or "").encode("utf-8", "surrogateescape")
        answer = await next_hop.command(line)
        while answer.code == 334:
            transport.reply(answer)
            await transport.flush()
            try:
                line = (await transport.next_line()).rstrip(b"\r\n")
            except BadCommandError:
                await next_hop.command(b"*")  # RFC 4954 §4: cancels, or it would wait for an answer
                raise
            answer = await next_hop.command(line)
        greeting.logged_in = answer.accepted
        transport.reply(answer)

    async def xclient(self, argument: str | None) -> None:
        """Take a trusted client for another one."""
        found = self._named(argument)
        if isinstance(found, Reply):
            self.transport.reply(found)
            return
        self.greeting.replace_client(found)
        slot = self._context.shared.limiter.slot_of(self.greeting.address)
        self.transport.network = network_of(slot)
        self.transport.reply(reply(220, f"{self._context.hostname} {self._protocol}"))

    async def xforward(self, argument: str | None) -> None:
        """Take who sent this message from a trusted client."""
        found = self._named(argument)
        if isinstance(found, Reply):
            self.transport.reply(found)
            return
        self.greeting.forwarded = {**self.greeting.forwarded, **found}
        self.transport.reply(OK)

    def _named(self, argument: str | None) -> Mapping[bytes, bytes] | Reply:
        """Return what a trusted client says of another, or why it may not."""
        if not self.greeting.trusted:
            return _FORBIDDEN
        if self.transaction.open:
            return TRANSACTION_OPEN
        return self.greeting.named(argument) or SYNTAX


_COMMANDS = {
    "EHLO": attrgetter("ehlo"),
    "HELO": attrgetter("helo"),
    "LHLO": attrgetter("lhlo"),
    "MAIL": attrgetter("transaction.mail"),
    "RCPT": attrgetter("transaction.rcpt"),
    "DATA": attrgetter("transaction.data"),
    "BDAT": attrgetter("transaction.bdat"),
    "RSET": attrgetter("transaction.rset"),
    "NOOP": attrgetter("noop"),
    "QUIT": attrgetter("quit"),
    "VRFY": attrgetter("vrfy"),
    "EXPN": attrgetter("expn"),
    "HELP": attrgetter("help"),
    "STARTTLS": attrgetter("starttls"),
    "AUTH": attrgetter("auth"),
    "XCLIENT": attrgetter("xclient"),
    "XFORWARD": attrgetter("xforward"),
}
"""Every verb we know, and what carries it out."""

_unknown = attrgetter("unknown")
