"""Answers to requests that were refused: as HTTP, or as rspamd spoke before.

`rspamc` prints nothing of such an answer but the reason phrase, so the text stands there too; that
takes an answer written as a whole, since ASGI knows no reason phrase.
"""

import json
from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

_EX_PROTOCOL = 76  # sysexits.h


class Refusal(Exception):
    """A request that is not carried out; the text is for whoever sent it."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = headers


class WholeAnswer(Response):
    """An answer that stands as it is; the connection ends behind it."""

    def __init__(self, raw: bytes) -> None:
        super().__init__()
        self._raw = raw

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - as ASGI has it
        """Write it."""
        raw = self._raw
        if scope["method"] == "HEAD":
            raw = raw.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        scope["state"]["peer"].answer(raw)


def refusal(
    status: int, text: str, headers: Mapping[str, str] | None = None, *, rspamc: bool = False
) -> bytes:
    """Return a whole answer; the text is ours, one line of ASCII."""
    if rspamc:
        return f"RSPAMD/1.3 {_EX_PROTOCOL} {text}\r\n\r\n".encode("ascii")
    domain = "spamd" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "request"
    body = json.dumps({"error": text, "error_domain": domain}, separators=(",", ":"))
    lines = [
        f"HTTP/1.1 {status} {text}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        "connection: close",
        *(f"{name}: {value}" for name, value in (headers or {}).items()),
    ]
    return "\r\n".join([*lines, "", body]).encode("ascii")
