"""Which next hop a session talks to: by URL, by recipient domain, or the fallback.

A session at the next hop is opened for each client session, at its EHLO. With `next_hop.routes` a
transaction goes where its first accepted recipient belongs; recipients that belong elsewhere get
452 4.5.3, so the client sends them in a transaction of their own, and there is never one reply for
two next hops. MAIL is asked at the default next hop, and again at another one when the first
recipient belongs there; its refusal is then the answer to RCPT.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Sequence
from typing import Protocol
from weakref import WeakValueDictionary

from spamd.errors import NextHopRefused, NextHopUnavailable
from spamd.message.envelope import Client
from spamd.network.deadlines import DeadlineTimer
from spamd.ports import Clock, Observer
from spamd.relay.content.outgoing import Outgoing
from spamd.relay.options import NextHopOptions, NextHopTls
from spamd.relay.outbound.contact import Contact
from spamd.relay.outbound.maildir import MaildirSession
from spamd.relay.outbound.smtp import SmtpSession
from spamd.relay.smtp.capabilities import Capabilities
from spamd.relay.smtp.commands import Path
from spamd.relay.smtp.replies import Reply, reply
from spamd.relay.urls import NextHopUrl, Scheme, parse_next_hop
from spamd.wording import reason

Urls = tuple[NextHopUrl, ...]

ASK_S = 5.0
"""Who asks whether it is there does not wait longer for the answer."""

NOBODY = Client(
    address="127.0.0.1", port=0, helo="", name="", tls=False, login=None, protocol="ESMTP"
)
"""In whose name it is asked: ours."""

_NOT_NOW = reply(451, "4.4.1 Mail can't be accepted now for this recipient, please try again later")
_ELSEWHERE = reply(452, "4.5.3 Send this recipient in a separate transaction")


class NextHopSession(Protocol):
    """What a session of ours asks of the next hop; faults are the errors of `replies.TABLE`."""

    @property
    def lmtp(self) -> bool:
        """Tell whether `deliver` returns one reply per recipient instead of one."""

    @property
    def usable(self) -> bool:
        """Tell whether the session is still in step."""

    @property
    def one_mailbox(self) -> bool:
        """Tell whether all recipients share one copy, so that there can't be several verdicts."""

    @property
    def knows_client(self) -> bool:
        """Tell whether it has been told the real client's address, and acts on it."""

    @property
    def capabilities(self) -> Capabilities | None:
        """Return what it offers; None when it has not said."""

    async def greet(self, client: Client, *, extended: bool) -> Reply:
        """Introduce the client."""

    def mail(self, argument: bytes, client: Client) -> Awaitable[Reply]:
        """Pass MAIL on; `client` is whose mail it is, which XFORWARD may have said."""

    def rcpt(self, argument: bytes, path: Path | None) -> Awaitable[Reply]:
        """Pass RCPT on."""

    def reset(self) -> Awaitable[Reply]:
        """End the transaction without a message."""

    def command(self, line: bytes) -> Awaitable[Reply]:
        """Pass another command on."""

    def keep_alive(self) -> None:
        """Keep the session from being ended for idleness."""

    async def deliver(
        self, outgoing: Outgoing, recipients: Sequence[bytes], timeout_s: float
    ) -> list[Reply]:
        """Hand the message on and return the final replies."""

    def close(self) -> None:
        """End the session."""

    def abort(self) -> None:
        """Cut the session."""


class NextHops:
    """Opens sessions at the next hop.

    Args:
        options: where and how.
        hostname: our own name.
        timer: of their time-outs.
        observer: is told when a next hop beside the default one can't be used.
        clock: for `contact`.

    Attributes:
        contact: whether the default one, or a fallback, is there.
    """

    def __init__(
        self,
        options: NextHopOptions,
        hostname: str,
        timer: DeadlineTimer,
        observer: Observer,
        clock: Clock,
    ) -> None:
        self.contact = Contact(clock)
        self._timer = timer
        self.observer = observer
        self._options = options
        self._hostname = hostname
        self.outgoing: WeakValueDictionary[tuple[str, int], SmtpSession] = WeakValueDictionary()
        self._context = client_tls_context(options)
        self._default = tuple(
            parse_next_hop(url, key="next_hop.url") for url in (options.url, *options.fallback)
        )
        self._routes = {
            domain.lower().encode("idna" if not domain.isascii() else "ascii"): (
                parse_next_hop(url, key=f"next_hop.routes.{domain}"),
            )
            for domain, url in options.routes.items()
        }

    @property
    def urls(self) -> dict[str, NextHopUrl]:
        """Return every place mail may go to, by the key that names it."""
        first, *others = self._default
        found = {"next_hop.url": first}
        found |= {f"next_hop.fallback[{number}]": url for number, url in enumerate(others)}
        for domain, urls in self._routes.items():
            found[f"next_hop.routes.{domain.decode('ascii')}"] = urls[0]
        return found

    async def open(self, client: Client) -> NextHopSession:
        """Return a session at the default next hop, or at the first fallback that answers.

        Raises:
            NextHopUnavailable: none of them is there.
            NextHopRefused: none serves now; the reply is the last one's.
        """
        try:
            session = await self.connect(self._default, client)
        except (NextHopUnavailable, NextHopRefused) as error:
            self.contact.missed(error)
            raise
        self.contact.met()
        return RoutedSession(session, self, client) if self._routes else session

    async def is_there(self) -> bool:
        """Tell whether the default next hop, or a fallback, is there; by asking it if need be."""
        await self.contact.told(self._ask)
        return self.contact.away_since is None

    async def _ask(self) -> None:
        """Open a session and end it."""
        async with asyncio.timeout(ASK_S):
            (await self.connect(self._default, NOBODY)).close()

    def route(self, domain: bytes) -> Urls:
        """Return where mail for a domain goes: its own entry, that of a parent, or the default."""
        if domain in self._routes:
            return self._routes[domain]
        while (dot := domain.find(b".", 1)) > 0:
            domain = domain[dot:]
            if domain in self._routes:
                return self._routes[domain]
        return self._default

    async def connect(self, urls: Urls, client: Client) -> NextHopSession:
        """Return a session at the first of `urls` that answers; errors as of `open`."""
        fault: NextHopUnavailable | NextHopRefused | None = None
        for url in urls:
            session = self._session(url)
            try:
                await session.open(client)
            except (NextHopUnavailable, NextHopRefused) as error:
                session.abort()
                fault = error
            except (
                BaseException
            ):  # the client closed the connection meanwhile: nobody else knows the session
                session.abort()
                raise
            else:
                if isinstance(session, SmtpSession):
                    self.outgoing[session.local_address] = session
                return session
        raise fault or NextHopUnavailable("next_hop.url is not set")

    def _session(self, url: NextHopUrl) -> SmtpSession | MaildirSession:
        if url.scheme is Scheme.MAILDIR:
            return MaildirSession(url, self._options, self._hostname)
        return SmtpSession(url, self._options, self._hostname, self._context, self._timer)


class RoutedSession:
    """A session whose transactions may go to one of several next hops."""

    def __init__(self, default: NextHopSession, next_hops: NextHops, client: Client) -> None:
        self._next_hops = next_hops
        self._client = client
        self._extended = True
        self._default = default
        self._sessions: dict[Urls, NextHopSession] = {next_hops.route(b""): default}
        self._current: NextHopSession | None = None  # where the transaction is
        self._mail = b"", client
        self._accepted = False

    @property
    def lmtp(self) -> bool:
        """Tell whether the transaction's next hop gives one final reply per recipient."""
        return (self._current or self._default).lmtp

    @property
    def usable(self) -> bool:
        """Tell whether the sessions in use are in step."""
        return self._default.usable and (self._current is None or self._current.usable)

    @property
    def one_mailbox(self) -> bool:
        """Tell whether the transaction's recipients share one copy."""
        return (self._current or self._default).one_mailbox

    @property
    def knows_client(self) -> bool:
        """Tell whether the transaction's next hop has been told the client's address."""
        return (self._current or self._default).knows_client

    @property
    def capabilities(self) -> Capabilities | None:
        """Return what the default next hop offers; the others get what they understand."""
        return self._default.capabilities

    async def greet(self, client: Client, *, extended: bool) -> Reply:
        """Introduce the client to the default next hop; the others follow when needed."""
        self._client, self._extended = client, extended
        for urls, session in list(self._sessions.items()):
            if session is not self._default:
                session.close()
                del self._sessions[urls]
        self._assign(None)
        return await self._default.greet(client, extended=extended)

    async def mail(self, argument: bytes, client: Client) -> Reply:
        """Ask the default next hop."""
        self._mail = argument, client
        answer = await self._default.mail(argument, client)
        self._assign(self._default)
        return answer

    async def rcpt(self, argument: bytes, path: Path | None) -> Reply:
        """Ask the next hop of the recipient's domain."""
        urls = self._next_hops.route(path.domain if path else b"")
        session = self._sessions.get(urls)
        if session is None or session is not self._current:
            if self._accepted:
                return _ELSEWHERE
            try:
                session, answer = await self._move_to(urls)
            except (NextHopUnavailable, NextHopRefused) as error:
                self._next_hops.observer.failed("session.failed", error)
                return _NOT_NOW
            if not answer.accepted:
                return answer
        answer = await session.rcpt(argument, path)
        self._accepted = self._accepted or answer.accepted
        return answer

    async def reset(self) -> Reply:
        """End the transaction wherever it was."""
        session = self._current
        self._assign(None)
        if session is not None and session is not self._default:
            await session.reset()
        return await self._default.reset()

    async def command(self, line: bytes) -> Reply:
        """Ask the default next hop."""
        return await self._default.command(line)

    def keep_alive(self) -> None:
        """Keep all sessions alive."""
        for session in self._sessions.values():
            session.keep_alive()

    async def deliver(
        self, outgoing: Outgoing, recipients: Sequence[bytes], timeout_s: float
    ) -> list[Reply]:
        """Hand the message to the transaction's next hop."""
        session = self._current or self._default
        self._assign(None)
        return await session.deliver(outgoing, recipients, timeout_s)

    def close(self) -> None:
        """End all sessions."""
        for session in self._sessions.values():
            session.close()

    def abort(self) -> None:
        """Cut all sessions."""
        for session in self._sessions.values():
            session.abort()

    def _assign(self, session: NextHopSession | None) -> None:
        self._current = session
        self._accepted = False

    async def _move_to(self, urls: Urls) -> tuple[NextHopSession, Reply]:
        """Move the transaction, in which nobody has been accepted yet, to another next hop."""
        if self._current is not None:
            previous, self._current = self._current, None
            await previous.reset()
        session = self._sessions.get(urls)
        if session is None or not session.usable:
            session = await self._next_hops.connect(urls, self._client)
            self._sessions[urls] = session
            answer = await session.greet(self._client, extended=self._extended)
            if not answer.accepted:
                del self._sessions[urls]
                session.close()
                return session, answer
        answer = await session.mail(*self._mail)
        if answer.accepted:
            self._current = session
        return session, answer


def client_tls_context(options: NextHopOptions) -> ssl.SSLContext | None:
    """Return the TLS context towards next hops, None when TLS is never used.

    Raises:
        ValueError: `next_hop.tls_ca_file` can't be read.
    """
    if options.tls is NextHopTls.NONE:
        return None
    if options.tls is NextHopTls.OPPORTUNISTIC or not options.tls_verify:
        # RFC 7435: encryption without proof of identity is better than none
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    try:
        return ssl.create_default_context(cafile=options.tls_ca_file or None)
    except OSError as error:
        raise ValueError(f"next_hop.tls_ca_file: {options.tls_ca_file}: {reason(error)}") from error
