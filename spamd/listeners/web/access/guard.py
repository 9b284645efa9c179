"""Who asks, and whether that person may: for the page and for the API.

    visitor = await guard.require(request, Role.READER)          # GET; or JSON with X-CSRF-Token
    visitor, fields = await guard.form(request, Role.TEACHER)    # a form that was sent
    cookie = await guard.log_in(request, password)               # its value for Set-Cookie

Somebody is, in this order, who shows a token (Authorization: Bearer); whom a trusted proxy names
(`web.user_header`); whoever has logged in; who opens a UNIX socket of ours; and, as long as there
is neither a password nor such a proxy, everybody at this machine, by the names of this machine.
What a proxy passed on is never of this machine.

Whatever may change something must come from a page of ours: by what the browser says of its origin,
and by a text that only our pages hold (`Visitor.form`: in the field `csrf` of a form or in
X-CSRF-Token). Programs with a token need neither, nor do programs at a UNIX socket.
"""

import asyncio
import hashlib
import hmac
import ipaddress
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl

from starlette.requests import Request

from spamd.admin.logins import Logins
from spamd.admin.roles import Role, Visitor, Way
from spamd.errors import StorageUnavailable
from spamd.listeners.web.access import marks
from spamd.listeners.web.access.passwords import passwords_of
from spamd.listeners.web.access.tokens import Token, digest_of, tokens_of
from spamd.listeners.web.access.tries import PasswordTries, Tries
from spamd.listeners.web.answers import Refusal
from spamd.listeners.web.body import Bodies, encoding_of
from spamd.listeners.web.options import ANYBODY, AT_SOCKETS, WebOptions
from spamd.listeners.web.peer import Peer
from spamd.network.connection_limiter import is_here
from spamd.network.deadlines import TimeLimit
from spamd.network.shared import Shared

COOKIE = "__Host-spamd"
"""Browsers take it only with Secure, from the whole host, and from no other (RFC 6265bis)."""

FORM_FIELD = "csrf"
FORM_BYTES = 64 * 1024
FORM_FIELDS = 1000

NAME_CHARACTERS = 128
"""Of a name that a proxy gives; longer ones are cut."""

OFF = "only at this machine: set web.password_file, or web.user_header of a trusted proxy"
LOG_IN = "log in, or send a token"
NOT_YOURS = "this takes the role {}"
ELSEWHERE = "a page of another site has sent this request"
NO_FORM = "this request does not come from a page of ours, or the page is too old: load it again"
IN_THE_CLEAR = "log in by https, or at this machine as localhost: else the password can be read"
AWAY = "nobody can log in while the database is away"
WRONG_TOKEN = "the token is wrong"  # noqa: S105 - a sentence
FOREIGN_NAME = "set web.password_file to use another name than localhost"


class Guard:
    """Decides who may see and change what.

    Args:
        options: the section `web`.
        shared: what all listeners share.
        logins: the sessions.
        secret: returns the key of what forms carry, the same for all workers.

    Attributes:
        passwords: whose a password is, for the API of rspamd too.

    Raises:
        ConfigError: a file of passwords or tokens can't be used.
    """

    def __init__(
        self,
        options: WebOptions,
        shared: Shared,
        logins: Logins,
        secret: Callable[[], bytes],
    ) -> None:
        self._options = options
        self._shared = shared
        self._logins = logins
        self._secret = secret
        self._tries = Tries(shared)
        self._bodies = Bodies(shared.options)
        self.passwords = PasswordTries(self._tries)
        self._tokens: Mapping[bytes, Token] = {}
        self._proxies = tuple(
            ipaddress.ip_network(each) for each in options.trusted_proxies if each != AT_SOCKETS
        )
        self.reload()

    def reload(self) -> None:
        """Read the files again.

        Raises:
            ConfigError: one can't be used; the old passwords and tokens stay.
        """
        kept, tokens = passwords_of(self._options), tokens_of(self._options)
        self.passwords.follow(kept)
        self._tokens = tokens

    async def require(self, request: Request, role: Role) -> Visitor:
        """Return who asks, if that person has the role.

        Raises:
            Refusal: this client may not.
        """
        visitor = await self._required(request, role)
        if request.method not in marks.SAFE:
            self._check_form(request, visitor, request.headers.get("x-csrf-token", ""))
        return visitor

    async def form(
        self, request: Request, role: Role, most_bytes: int = FORM_BYTES
    ) -> tuple[Visitor, Mapping[str, str]]:
        """Return who has sent a form, and its fields, each once.

        Raises:
            Refusal: this client may not, or it is no form.
        """
        visitor = await self._required(request, role)
        fields = await self.fields(request, most_bytes)
        given = request.headers.get("x-csrf-token") or fields.get(FORM_FIELD, "")
        self._check_form(request, visitor, given)
        return visitor, fields

    async def visitor(self, request: Request) -> Visitor | None:
        """Return who asks, None for somebody who has to log in first.

        Raises:
            Refusal: nobody could be let in there.
        """
        if marks.from_elsewhere(request.method, request.headers):
            raise Refusal(403, ELSEWHERE)
        peer: Peer = request.state.peer
        return (
            self._by_token(request, peer)
            or self._by_proxy(request, peer)
            or await self._by_session(request)
            or self._here(request, peer)
        )

    @property
    def takes_passwords(self) -> bool:
        """Whether anybody could log in."""
        return bool(self.passwords.roles)

    async def log_in(self, request: Request, password: str) -> str:
        """Begin a session; return the value of the field Set-Cookie.

        Raises:
            Refusal: the password is wrong, or nobody may log in that way.
        """
        headers, peer = request.headers, request.state.peer
        if not self.takes_passwords:
            raise Refusal(403, OFF)
        if not marks.is_same_origin(headers):
            raise Refusal(403, ELSEWHERE)
        if not marks.keeps_cookies(headers):
            raise Refusal(403, IN_THE_CLEAR)
        try:
            role = await self.passwords.role_of(password.encode("utf-8", "replace"), peer)
        except Refusal:
            self._shared.observer.happened("login.failed", way="password", address=peer.address)
            raise
        try:
            secret = await self._logins.open(role, self.passwords.mark_of(role))
        except StorageUnavailable as error:
            raise Refusal(503, AWAY) from error
        self._shared.observer.happened("login.succeeded", role=role.value, address=peer.address)
        return _cookie(secret, round(3600 * self._options.session_hours))

    async def log_out(self, request: Request) -> str:
        """End the session of a request, if it has one; return the value of Set-Cookie."""
        if secret := request.cookies.get(COOKIE, ""):
            try:
                await self._logins.close(secret)
            except StorageUnavailable as error:
                raise Refusal(503, "the session could not be ended, try again later") from error
        return _cookie("", 0)

    async def fields(self, request: Request, most_bytes: int = FORM_BYTES) -> Mapping[str, str]:
        """Return the fields of a form, whoever has sent it.

        Raises:
            Refusal: it is no form, or too large or slow a one.
        """
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            raise Refusal(415, "a form has the type application/x-www-form-urlencoded")
        text = (await self.body(request, most_bytes)).decode("utf-8", "replace")
        try:
            return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=FORM_FIELDS))
        except ValueError:
            raise Refusal(400, "the form has too many fields") from None

    async def body(self, request: Request, most_bytes: int) -> bytes:
        """Return the whole body of a request, in its time and its limits.

        Raises:
            Refusal: it is too large, too slow, or not packed as it says.
        """
        if int(request.headers.get("content-length", "0")) > most_bytes:
            raise Refusal(413, f"the body has more than {most_bytes} octets")
        peer: Peer = request.state.peer
        limit = TimeLimit(asyncio.get_running_loop(), self._shared.deadline_timer)
        encoding = encoding_of(*request.headers.getlist("content-encoding"))
        try:
            message = await self._bodies.received(request.receive, peer.share, limit, encoding)
        finally:
            limit.stop()
        try:
            if message.size_bytes > most_bytes:
                raise Refusal(413, f"the body has more than {most_bytes} octets")
            return message.first(most_bytes)
        finally:
            message.close()

    async def _required(self, request: Request, role: Role) -> Visitor:
        visitor = await self.visitor(request)
        if visitor is None:
            if not self.takes_passwords and not self._tokens and not self._options.user_header:
                raise Refusal(403, OFF)
            raise Refusal(401, LOG_IN, {"www-authenticate": "Bearer"})
        if not visitor.role.may(role):
            raise Refusal(403, NOT_YOURS.format(role.value))
        return visitor

    def _by_token(self, request: Request, peer: Peer) -> Visitor | None:
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = self._tokens.get(digest_of(secret.strip()))
        if token is None:
            self._tries.check(peer)
            self._tries.count(peer)
            self._shared.observer.happened("login.failed", way="token", address=peer.address)
            raise Refusal(401, WRONG_TOKEN, {"www-authenticate": 'Bearer error="invalid_token"'})
        return Visitor(name=token.name, role=token.role, way=Way.TOKEN, form="")

    def _by_proxy(self, request: Request, peer: Peer) -> Visitor | None:
        options = self._options
        if not options.user_header or not self._is_proxy(peer):
            return None
        values = request.headers.getlist(options.user_header)
        name = values[0].strip()[:NAME_CHARACTERS] if len(values) == 1 else ""
        if not name:
            return None
        teaches = name in options.teachers or ANYBODY in options.teachers
        role = Role.TEACHER if teaches else Role.READER
        return Visitor(name=name, role=role, way=Way.PROXY, form=self._form(Way.PROXY, name))

    def _is_proxy(self, peer: Peer) -> bool:
        if peer.unix:
            return AT_SOCKETS in self._options.trusted_proxies
        try:
            address = ipaddress.ip_address(peer.address.partition("%")[0])
        except ValueError:
            return False
        return any(address in network for network in self._proxies)

    async def _by_session(self, request: Request) -> Visitor | None:
        secret = request.cookies.get(COOKIE, "")
        if not secret or not self.takes_passwords:
            return None
        try:
            found = await self._logins.find(secret)
        except StorageUnavailable as error:
            raise Refusal(503, AWAY) from error
        if found is None or self.passwords.mark_of(found.role) != found.name:
            return None  # the password is another one by now
        form = self._form(Way.SESSION, found.digest.hex())
        return Visitor(name=found.role.value, role=found.role, way=Way.SESSION, form=form)

    def _here(self, request: Request, peer: Peer) -> Visitor | None:
        headers = request.headers
        if marks.passed_on(headers):
            return None
        if peer.unix and not marks.from_browser(headers):
            return Visitor(name="unix", role=Role.TEACHER, way=Way.LOCAL, form="")
        guarded = self.takes_passwords or self._options.user_header
        role = self._options.local_role
        if guarded or role is Role.NOBODY or peer.unix or not is_here(peer.address):
            return None
        if not marks.names_this_machine(headers):
            raise Refusal(403, FOREIGN_NAME)
        return Visitor(name="local", role=role, way=Way.LOCAL, form=self._form(Way.LOCAL, ""))

    def _form(self, way: Way, who: str) -> str:
        text = f"form of {way}: {who}".encode()
        return hmac.new(self._secret(), text, hashlib.sha256).hexdigest()[:32]

    def _check_form(self, request: Request, visitor: Visitor, given: str) -> None:
        """Return if a request that changes something comes from a page of ours.

        Raises:
            Refusal: it may come from elsewhere.
        """
        if not visitor.form:  # no browser shows a token or opens a UNIX socket by itself
            return
        if visitor.way is Way.LOCAL and not marks.from_browser(request.headers):
            return  # a program of this machine
        right = hmac.compare_digest(visitor.form.encode(), given.encode("utf-8", "replace"))
        if not (right and marks.is_same_origin(request.headers)):
            raise Refusal(403, NO_FORM)


def _cookie(secret: str, age_s: int) -> str:
    return f"{COOKIE}={secret}; Path=/; Max-Age={age_s}; Secure; HttpOnly; SameSite=Strict"
