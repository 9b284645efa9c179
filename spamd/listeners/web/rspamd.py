"""The paths of rspamd's HTTP API, for the clients that call them.

    POST /checkv2                        the verdict on a mail, as JSON
    POST /check, /symbols, /scan         the same, and as rspamd answered before /checkv2
    POST /learnspam, /learnham           a lesson; 208 for one that is in force already
    POST /fuzzyadd, /fuzzydel            success; there are no fuzzy hashes here
    GET  /stat, /auth, /ping             figures; whether the password is right; "pong"

A fault of ours never says anything about a mail: what shall come again is "soft reject", as clients
of rspamd hand it on (451). What is learned goes through the same teacher as a person's moves.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from importlib.metadata import version
from math import isnan
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from spamd.errors import SpoolFull, TemporaryError
from spamd.listeners.preface import Preface, judged_behind
from spamd.listeners.score import points
from spamd.listeners.web import reply
from spamd.listeners.web.access.teaching import Access
from spamd.listeners.web.answers import Refusal, WholeAnswer
from spamd.listeners.web.body import TOO_LARGE, Bodies, encoding_of
from spamd.listeners.web.envelope import envelope_of, fields_of
from spamd.message.envelope import Envelope
from spamd.message.header_top import header_end
from spamd.message.spam_fields import forged_names
from spamd.network.deadlines import TimeLimit
from spamd.network.marking import is_large
from spamd.network.shared import Shared
from spamd.network.spool import SpooledMessage
from spamd.ports import Taught
from spamd.report import ScanReport
from spamd.sample import Label

if TYPE_CHECKING:
    from spamd.listeners.web.peer import Peer

_MESSAGE_ID = re.compile(rb"(?mi)^message-id[ \t]*:\s*<?([!-~]{1,900}?)>?[ \t\r]*$")


class Rspamd:
    """Answers as rspamd does.

    Args:
        shared: what all listeners share.
        access: who may teach.
        bounds: from which probability on each choice is taken (`decision.thresholds`).
        taught: returns how many messages of a label were learned.
        connections: returns how many connections are open.
    """

    def __init__(
        self,
        shared: Shared,
        access: Access,
        bounds: Mapping[str, float],
        taught: Callable[[Label], float],
        connections: Callable[[], int],
    ) -> None:
        self._shared = shared
        self._access = access
        self._reject_from = (
            points(bounds["reject"], bounds.get("tag", bounds["reject"]))
            if "reject" in bounds
            else None
        )
        self._taught = taught
        self._connections = connections
        self._bodies = Bodies(shared.options)
        self._large_lesson = asyncio.Semaphore(1)
        self._actions: Counter[str] = Counter()
        self._started = shared.clock.monotonic()
        self._version = version("spamd")

    def routes(self) -> list[Route]:
        """Return what is answered where."""

        def learn(label: Label) -> Callable[[Request], Awaitable[Response]]:
            async def endpoint(request: Request) -> Response:
                return await self.learn(request, label)

            return endpoint

        scans = [
            Route(path, self.check, methods=["POST"])
            for path in ("/checkv2", "/check", "/symbols", "/scan")
        ]
        return [
            *scans,
            Route("/learnspam", learn(Label.SPAM), methods=["POST"]),
            Route("/learnham", learn(Label.HAM), methods=["POST"]),
            Route("/fuzzyadd", self.fuzzy, methods=["POST"]),
            Route("/fuzzydel", self.fuzzy, methods=["POST"]),
            Route("/stat", self.statistics),
            Route("/auth", self.authenticate),
            Route("/ping", self.ping),
        ]

    async def check(self, request: Request) -> Response:
        """Judge a message."""
        peer: Peer = request.state.peer
        flat = request.url.path != "/checkv2"
        limit = self._time_limit()
        try:
            if peer.rspamc and "content-length" not in request.headers:
                raise Refusal(400, "Content-length is missing")
            message = await self._body(request, limit)
            try:
                envelope = envelope_of(fields_of(request.headers.raw), peer.address)
                await self._shared.turns.wait(peer.network, first=True)
                preface = await Preface.in_front_of(message) if peer.rspamc else Preface()
                judge = self._shared.judge
                verdicts = await judged_behind(preface, message, judge, envelope, limit)
                report = verdicts.for_all(envelope.readers)
                message_id, forged = await _head(message, self._shared.judge.reads_bytes)
            finally:
                message.close()
        except TemporaryError as error:
            if isinstance(error, SpoolFull):
                self._shared.observer.failed("message.failed", error)
            self._actions["soft reject"] += 1
            return WholeAnswer(reply.rspamc(None)) if peer.rspamc else _json(reply.later(flat=flat))
        finally:
            limit.stop()
        self._told(report, envelope)
        if peer.rspamc:
            return WholeAnswer(reply.rspamc(report, message_id))
        return _json(reply.verdict(report, message_id, forged, self._reject_from, flat=flat))

    async def learn(self, request: Request, label: Label) -> Response:
        """Learn a message."""
        user = self._whose(request)
        actor = await self._access.require(request, user)
        limit = self._time_limit()
        try:
            message = await self._body(request, limit)
            try:
                if not message.size_bytes:
                    raise Refusal(400, "there is no message in the body")

                async def learned(content: bytes) -> Taught:
                    teacher = self._shared.teacher
                    return await teacher.learn(
                        content, label, source="http", actor=actor, user=user
                    )

                taught = await self._learned(message, learned, limit)
            finally:
                message.close()
        except TemporaryError as error:
            self._shared.observer.failed("message.failed", error)
            raise Refusal(503, "nothing was learned, try again later") from error
        finally:
            limit.stop()
        if taught is Taught.KNOWN:
            return _json(reply.learned(already=label), HTTPStatus.ALREADY_REPORTED)
        return _json(reply.learned())

    async def fuzzy(self, request: Request) -> Response:
        """Say that it is done."""
        await self._access.require(request)
        limit = self._time_limit()
        try:
            (await self._body(request, limit)).close()
        finally:
            limit.stop()
        return _json(reply.learned())

    async def statistics(self, request: Request) -> Response:  # noqa: ARG002 - an endpoint
        """Return the figures of this worker, and of all that was learned."""
        return _json(self._figures())

    async def authenticate(self, request: Request) -> Response:
        """Return figures to who may change something."""
        await self._access.require(request)
        return _json(self._figures())

    async def ping(self, request: Request) -> Response:  # noqa: ARG002 - an endpoint
        """Say that we are there."""
        return Response(b"pong\r\n", headers={"content-type": "text/plain"})

    def _time_limit(self) -> TimeLimit:
        return TimeLimit(asyncio.get_running_loop(), self._shared.deadline_timer)

    async def _body(self, request: Request, limit: TimeLimit) -> SpooledMessage:
        peer: Peer = request.state.peer
        fields = request.headers
        if int(fields.get("content-length", "0")) > self._shared.options.max_message_bytes:
            raise Refusal(413, TOO_LARGE)
        encoding = encoding_of(*fields.getlist("content-encoding"), *fields.getlist("compression"))
        return await self._bodies.received(request.receive, peer.share, limit, encoding)

    def _whose(self, request: Request) -> str:
        """Return the user for whom a message is learned, "" for the site: who would read it."""
        if not self._shared.teacher.personal:
            return ""
        peer: Peer = request.state.peer
        readers = envelope_of(fields_of(request.headers.raw), peer.address).readers
        return readers[0].decode("utf-8", "surrogateescape") if len(readers) == 1 else ""

    async def _learned(
        self,
        message: SpooledMessage,
        learn: Callable[[bytes], Awaitable[Taught]],
        limit: TimeLimit,
    ) -> Taught:
        timeout_s = self._shared.options.inspect_timeout_s
        if not message.spooled:
            with limit.of(timeout_s):
                return await learn(message.whole())
        async with self._large_lesson:  # at most one of them lies in memory
            with limit.of(timeout_s):
                return await learn(await asyncio.to_thread(b"".join, message.again()))

    def _told(self, report: ScanReport, envelope: Envelope) -> None:
        self._actions[reply.ACTIONS[report.action]] += 1
        self._shared.scanned(
            report, listener="http", reply=b"200 OK", recipients=len(envelope.recipients)
        )

    def _figures(self) -> bytes:
        ham, spam = (self._taught(label) for label in (Label.HAM, Label.SPAM))
        return reply.statistics(
            version=self._version,
            uptime_s=int(self._shared.clock.monotonic() - self._started),
            actions=self._actions,
            ham=_count(ham),
            spam=_count(spam),
            connections=self._connections(),
        )


async def _head(message: SpooledMessage, limit: int) -> tuple[str, list[str]]:
    """Return what the header section says: its Message-ID, and fields that may pass for ours.

    Of a message on disk, what the first `limit` octets hold of it.
    """
    if not message.spooled:
        content = message.whole()
        head = content[: header_end(content)]
        return await asyncio.to_thread(_said, head) if is_large(head) else _said(head)

    def read() -> tuple[str, list[str]]:
        start = message.first(limit)
        return _said(start[: header_end(start)])

    return await asyncio.to_thread(read)


def _said(head: bytes) -> tuple[str, list[str]]:
    found = _MESSAGE_ID.search(head)
    return found[1].decode("ascii") if found else "", forged_names(head)


def _count(number: float) -> int:
    """Return a count; nobody knows it (NaN) while the database does not answer."""
    return 0 if isnan(number) else int(number)


def _json(body: bytes, status: int = 200) -> Response:
    return Response(body, status, media_type="application/json")
