"""Who may change something: teach, by whatever way of ours that speaks HTTP.

    a UNIX socket of ours     whoever may open its file
    relay.report_networks     without a password, but never a browser: any page may make one send
    everybody else            with the password of `web.password_file`, else not at all

A request that was passed on by a proxy is everybody else's, for the proxy's own address says
nothing. Wrong passwords are counted by network: after `TRIES` a minute none is looked at.
"""

import asyncio
import hashlib
import os
from collections import OrderedDict, deque
from hmac import compare_digest

from starlette.requests import Request

from spamd.listeners.web.answers import Refusal
from spamd.listeners.web.options import WebOptions
from spamd.listeners.web.passwords import PasswordHash, password_of
from spamd.listeners.web.peer import Peer
from spamd.message.envelope import Client
from spamd.network.shared import Shared

TRIES = 10
"""Wrong passwords of one network within `WINDOW_S`: more than a person mistypes."""

WINDOW_S = 60.0

NETWORKS = 1000
"""Networks whose wrong passwords are remembered."""

FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
BROWSERS = ("origin", "sec-fetch-site", "referer")

OFF = "learning over TCP is off: set web.password_file, or use a UNIX socket in web.listen"
WRONG = "the password is missing or wrong"


class Access:
    """Decides who may change something.

    Args:
        options: the section `web`.
        shared: what all listeners share.

    Raises:
        ConfigError: the password file can't be used.
    """

    def __init__(self, options: WebOptions, shared: Shared) -> None:
        self._options = options
        self._shared = shared
        self._key = os.urandom(32)
        self._known: bytes | None = None
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()
        self._turn = asyncio.Semaphore(1)  # a try takes 32 MiB
        self.reload()

    def reload(self) -> None:
        """Read the password file again.

        Raises:
            ConfigError: it can't be used; the old password stays.
        """
        self._hash = password_of(self._options)
        self._known = None

    async def require(self, request: Request) -> str:
        """Return who may change something, for the journal.

        Raises:
            Refusal: this client may not.
        """
        peer: Peer = request.state.peer
        forwarded = any(name in request.headers for name in FORWARDED)
        if peer.unix and not forwarded:
            return "unix"
        password = _password(request)
        browser = any(name in request.headers for name in BROWSERS)
        if not (password or forwarded or browser) and self._may_report(peer):
            return peer.address
        if self._hash is None:
            raise Refusal(403, OFF)
        if not password:
            raise Refusal(401, WRONG)
        await self._try(self._hash, password, peer)
        return peer.address or "unix"

    def _may_report(self, peer: Peer) -> bool:
        nobody = Client(
            address=peer.address, port=0, helo="", name="", tls=False, login=None, protocol="HTTP"
        )
        return self._shared.limiter.may_report(nobody)

    async def _try(self, kept: PasswordHash, password: bytes, peer: Peer) -> None:
        """Return if it is the password.

        Raises:
            Refusal: it is not, or too many were not.
        """
        now = self._shared.clock.monotonic()
        key = self._shared.limiter.slot_of(peer.address) or peer.address
        wrong = self._wrong.get(key, deque())
        while wrong and wrong[0] < now - WINDOW_S:
            wrong.popleft()
        if len(wrong) >= TRIES:
            raise Refusal(429, "too many wrong passwords, wait a minute", {"retry-after": "60"})
        quick = hashlib.blake2b(password, key=self._key).digest()
        if self._known is not None and compare_digest(quick, self._known):
            return
        wrong.append(now)  # until it is known to be right: tries at the same time count
        self._wrong[key] = wrong
        self._wrong.move_to_end(key)
        if len(self._wrong) > NETWORKS:
            self._wrong.popitem(last=False)
        async with self._turn:
            right = await asyncio.to_thread(kept.matches, password)
        if not right:
            raise Refusal(401, WRONG)
        self._known = quick
        wrong.remove(now)


def _password(request: Request) -> bytes:
    """Return the password that comes with a request, as it was typed; empty for none."""
    given = request.headers.get("password", "").encode("latin_1")
    return given or request.query_params.get("password", "").encode("utf-8", "replace")
