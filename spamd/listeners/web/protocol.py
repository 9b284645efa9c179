"""One HTTP connection: uvicorn's protocol on httptools, with an end for every wait.

uvicorn bounds neither the head of a request nor the time it takes, and writes no reason but the
standard one. So here, besides what it does:

    a head comes within `HEAD_S` and has at most `HEAD_BYTES` and `HEAD_FIELDS`; chunk extensions
    and trailers likewise: never more than `HEAD_BYTES` without an octet of a body
    a client that does not read is cut off after `relay.data_timeout_s`
    a faulty request is answered and told to nobody; what came complete before it is finished
    a client that has closed its side after a complete request still gets its answer
    an answer that is given before all of the request was read can be read: the rest is passed over
    other protocols (Upgrade) are refused: what follows them is no body

How long a body may take, and how large it may be, is the endpoint's business (`body.py`).

Exim (variant=rspamd) speaks what rspamd spoke before HTTP, at the same port. It differs in its
first line, which becomes one of HTTP/1.0 here, and in the answer (`reply.rspamc`).
"""

import asyncio
from datetime import UTC, datetime
from email.utils import format_datetime

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from spamd.listeners.web.answers import refusal
from spamd.listeners.web.peer import Peer
from spamd.network.connection_limiter import is_here, network_of
from spamd.network.deadlines import Deadline
from spamd.network.shared import Shared
from spamd.ports import Clock

HEAD_S = 30.0
"""A head comes at once; SpamAssassin's daemon and nginx (60 s) wait as long."""

HEAD_BYTES = 64 * 1024
"""A thousand recipients, each in a field of its own."""

HEAD_FIELDS = 1200
"""`relay.max_recipients` is 1,000; each field takes some 150 octets of memory besides its own."""

LINGER_S = 5.0
"""A client that is still sending has this long to read why it need not."""

_RSPAMC = b"CHECK RSPAMC/"
_AS_HTTP = b"POST /checkv2 HTTP/1.0\r\n"
_FIRST_LINE_BYTES = 64  # "CHECK RSPAMC/1.3" has 16


class Connections(ServerState):
    """What uvicorn knows of all connections of a listener, and the date of their answers."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._second = datetime.fromtimestamp(0, UTC)

    def date(self) -> None:
        """Bring the Date field up to the second (RFC 9110 §6.6.1)."""
        now = self._clock.now().replace(microsecond=0)
        if now != self._second:
            self._second = now
            self.default_headers = [(b"date", format_datetime(now, usegmt=True).encode())]


class HttpProtocol(HttpToolsProtocol):
    """One connection.

    Args:
        config: uvicorn's, loaded.
        state: of all connections of a listener.
        shared: what all listeners share.
        unix: it came by a UNIX socket.
    """

    def __init__(
        self, config: Config, state: Connections, shared: Shared, *, unix: bool = False
    ) -> None:
        super().__init__(config, state, {})
        self._shared = shared
        self._connections = state
        self._unix = unix
        self._slot: str | None = None
        self._deadline = Deadline(self.loop, shared.deadline_timer, self._late)
        self._opening: bytes | None = b""  # the first octets, until they tell the protocol
        self._deaf = False  # nothing more is read
        self._ended = False  # nothing more is written
        self._quiet_bytes = 0  # since an octet of a body, or the end of a head
        self._fields = 0
        self._in_head = True
        self._running: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Let the client in, or say that there is no room."""
        super().connection_made(transport)
        if self.client is None and not self._unix:
            transport.abort()  # it has gone already, so nobody knows who it was
        address = "" if self._unix or self.client is None else self.client[0]
        self._slot = self._shared.limiter.acquire("" if is_here(address) else address)
        network = network_of(self._slot or "")
        self.peer = Peer(
            address=address,
            unix=self._unix,
            network=network,
            share=self._shared.budget.share(network),
            answer=self.answer,
        )
        self.app_state = {"peer": self.peer}
        if self._slot is None:
            self._refuse(503, "too many connections")
        else:
            self._deadline.set(HEAD_S)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._deaf = self._ended = True
        self._deadline.stop()
        if self._slot is not None:
            self._shared.limiter.release(self._slot)
            self._slot = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what comes."""
        if self._opening is not None:
            data = self._opened(data)
        if self._deaf or not data:
            return
        self._quiet_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._refuse(400, "this is no HTTP request that can be answered")
        else:
            if self._quiet_bytes > HEAD_BYTES:
                self._refuse(431, f"more than {HEAD_BYTES} octets without a body")

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn's closes, whatever is in hand
        """Finish what came complete; end what did not."""
        if not self._in_hand or self.cycle.more_body or self._deaf:
            return False
        self.cycle.keep_alive = False
        return True

    def on_message_begin(self) -> None:
        """Begin a head."""
        self._unset_keepalive_if_required()
        self._deadline.set(HEAD_S)
        self._fields = 0
        self._in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field of a head; trailers are passed over."""
        self._fields += 1
        if self._fields > HEAD_FIELDS:
            raise ValueError("too many fields")
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer; from here on the endpoint sees to the time."""
        if self.parser.should_upgrade():
            raise ValueError("another protocol")
        self._in_head = False
        self._quiet_bytes = 0
        self._deadline.clear()
        self._connections.date()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._quiet_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._quiet_bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the client to read its last answer."""
        answered = self._running
        super().on_response_complete()
        if answered is not None and answered.more_body and not self._deaf:
            self._linger()
        elif self.transport.is_closing():
            self._deadline.set(self._shared.options.data_timeout_s)

    def pause_writing(self) -> None:
        """Give the client time to read."""
        super().pause_writing()
        self._deadline.set(self._shared.options.data_timeout_s)

    def resume_writing(self) -> None:
        """Go on."""
        super().resume_writing()
        self._deadline.clear()

    def shutdown(self) -> None:
        """Close once the requests in hand are answered."""
        if self._deaf and not self._in_hand:
            self.transport.close()
        else:
            super().shutdown()

    def answer(self, raw: bytes) -> None:
        """Write a whole answer as it stands, and end the connection once the client has read it."""
        if self._ended:
            return
        latest = self._latest
        unread = latest is None or latest.more_body
        self._drop_requests()
        self.transport.write(raw)
        if unread:
            self._linger()
        else:
            self._deaf = self._ended = True
            self.transport.close()
            self._deadline.set(self._shared.options.data_timeout_s)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    @property
    def _in_hand(self) -> bool:
        """Tell whether a request is to be answered."""
        latest = self._latest
        return latest is not None and not (latest.response_complete or latest.disconnected)

    @property
    def _latest(self) -> RequestResponseCycle | None:
        """Return the request that was read last, if there was one."""
        return self.cycle

    def _opened(self, data: bytes) -> bytes:
        """Return what is to be parsed, once the first octets tell the protocol."""
        data = (self._opening or b"") + data
        self._opening = data
        if not _RSPAMC.startswith(data[: len(_RSPAMC)]):
            self._opening = None
            return data
        first, newline, rest = data.partition(b"\n")
        if len(first) > _FIRST_LINE_BYTES:
            self._opening = None
            return data  # which is no HTTP either
        if not newline:
            return b""
        self._opening = None
        self.peer.rspamc = True
        return _AS_HTTP + rest

    def _refuse(self, status: int, text: str) -> None:
        """Answer a request that can't be read, after those that came complete before it."""
        if self._in_hand and not self.cycle.more_body:
            self.cycle.keep_alive = False
            self._deaf = True
        else:
            self.answer(refusal(status, text, rspamc=self.peer.rspamc))

    def _drop_requests(self) -> None:
        """Have nothing answered any more by uvicorn."""
        self.pipeline.clear()
        for cycle in (self._running, self._latest):
            if cycle is not None:
                cycle.disconnected = True
                cycle.message_event.set()

    def _linger(self) -> None:
        """Pass over what still comes until the client closes, for a while."""
        self._deaf = self._ended = True
        self._unset_keepalive_if_required()
        self.flow.resume_reading()
        self._deadline.set(LINGER_S)
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def _late(self) -> None:
        """End a connection whose time is up."""
        if self._deaf or self.flow.write_paused or self.transport.is_closing():
            self.transport.abort()
        elif self._in_hand:
            self._deadline.set(HEAD_S)  # the head behind a request that is still being answered
        else:
            self._refuse(408, "the request did not come in time")
