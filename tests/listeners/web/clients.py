"""A listener with a fake judge, and what clients send to it."""

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

from spamd.admin.administration import Administration
from spamd.admin.ports import Sessions
from spamd.listeners.web.options import WebOptions
from spamd.listeners.web.pages.apart import Apart
from spamd.listeners.web.server import HttpListener
from spamd.network.shared import Shared
from spamd.network.sockets import open_sockets
from spamd.ports import Clock, Health, Inspector
from spamd.relay.options import RelayOptions
from tests.fakes import (
    FakeClock,
    FakeHealth,
    FakeInspector,
    FakeObserver,
    FakeSessions,
    FakeTeacher,
)
from tests.listeners import clients

MAIL = b"From: a@x.test\r\nMessage-ID: <1@x.test>\r\nSubject: hello\r\n\r\nbody\r\n"

BOUNDS = {"accept": 0.0, "unsure": 0.3, "tag": 0.9, "reject": 0.999}
"""From which probability on each choice is taken, where `fakes.fake_report` has 0.9 as border."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer of ours, taken apart by hand: no library smooths it."""

    status: int
    phrase: str
    fields: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(kw_only=True)
class Running(clients.Running):
    """A listener for clients of HTTP."""

    ends = False
    inspector: FakeInspector
    teacher: FakeTeacher
    listener: HttpListener

    async def get(self, path: str, fields: Iterable[str] = ()) -> Answer:
        """Send a request without a body and return its answer."""
        (answer,) = answers(await self.ask(request(path, None, fields, method="GET")))
        return answer

    async def delete(self, path: str, fields: Iterable[str] = ()) -> Answer:
        """Send a request to remove something and return its answer."""
        (answer,) = answers(await self.ask(request(path, b"", fields, method="DELETE")))
        return answer

    async def post(self, path: str, body: bytes = MAIL, fields: Iterable[str] = ()) -> Answer:
        """Send a request with a body and return its answer."""
        (answer,) = answers(await self.ask(request(path, body, fields)))
        return answer


@asynccontextmanager
async def running(
    inspector: Inspector | None = None,
    address: str = "127.0.0.1:0",
    password_file: str = "",
    clock: Clock | None = None,
    teacher: FakeTeacher | None = None,
    health: Health | None = None,
    web: Mapping[str, Any] | None = None,
    administration: Administration | None = None,
    *,
    apart: Apart | None = None,
    **options: Any,
) -> AsyncIterator[Running]:
    """Run a listener."""
    fake, teacher = FakeInspector(), teacher or FakeTeacher()
    fake = inspector if isinstance(inspector, FakeInspector) else fake
    observer = FakeObserver()
    shared = Shared.of(
        RelayOptions(**options), inspector or fake, teacher, observer, clock or FakeClock()
    )
    section = WebOptions(listen=(address,), **{"password_file": password_file, **(web or {})})
    (sockets,) = open_sockets(section.listeners, 1)
    opened = administration or office_of(FakeSessions())
    listener = HttpListener(
        section,
        shared,
        sockets,
        bounds=BOUNDS,
        taught=lambda _: 7,
        health=health or FakeHealth(),
        administration=lambda: opened,
        apart=apart,
    )
    await listener.start()
    try:
        yield Running(
            address=sockets[0].getsockname(),
            inspector=fake,
            teacher=teacher,
            observer=observer,
            shared=shared,
            listener=listener,
        )
    finally:
        await listener.stop()
        shared.close()


def office_of(sessions: Sessions) -> Administration:
    """Return what lets people in, and shows nothing."""
    nothing = cast("Any", None)
    return Administration(
        secret=b"secret",
        sessions=sessions,
        records=nothing,
        site=nothing,
        overview=nothing,
        mails=nothing,
        teaching=nothing,
        words=nothing,
        lessons=nothing,
        accounts=nothing,
        owned=nothing,
        evaluation=nothing,
    )


def request(
    path: str,
    body: bytes | None = MAIL,
    fields: Iterable[str] = (),
    *,
    method: str = "POST",
    last: bool = True,
) -> bytes:
    """Return a request; the last one of a connection says so."""
    fields = list(fields)
    host = [] if any(field.startswith("Host:") for field in fields) else ["Host: filter.test"]
    lines = [f"{method} {path} HTTP/1.1", *host, *fields]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    if last:
        lines.append("Connection: close")
    return "\r\n".join([*lines, "", ""]).encode("latin_1") + (body or b"")


def chunked(path: str, pieces: Iterable[bytes], fields: Iterable[str] = ()) -> bytes:
    """Return a request whose body comes in chunks."""
    head = request(path, None, [*fields, "Transfer-Encoding: chunked"])
    body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece)
    return head + body + b"0\r\n\r\n"


def answers(raw: bytes) -> list[Answer]:
    """Return the answers that stand one behind the other, each with the length it says."""
    found = []
    while raw:
        head, _, rest = raw.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin_1").split("\r\n")
        version, status, phrase = first.split(" ", 2)
        assert version == "HTTP/1.1", first
        if status == "100":
            raw = rest
            continue
        pairs = (line.split(": ", 1) for line in lines)
        fields = {name.lower(): value for name, value in pairs}
        length = int(fields.get("content-length", "0"))
        assert len(rest) >= length, raw
        found.append(Answer(status=int(status), phrase=phrase, fields=fields, body=rest[:length]))
        raw = rest[length:]
    return found
