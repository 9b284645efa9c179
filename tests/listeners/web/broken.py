"""Broken requests: good ones, with octets changed, doubled, cut, put together in other ways."""

import asyncio
import gzip
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from backports import zstd

from tests.listeners.web.clients import MAIL, Running, chunked, request

RSPAMC = (
    b"CHECK RSPAMC/1.3\r\nContent-length: %d\r\nQueue-Id: 1abc\r\nFrom: <a@x.test>\r\n"
    b"Recipient-Number: 1\r\nRcpt: <b@y.test>\r\nHelo: x.test\r\nIP: 192.0.2.1\r\n\r\n"
)
"""As Exim 4.96 sends it."""

FIELDS = ["Rcpt: b@y.test", "From: <a@x.test>", "IP: 192.0.2.1", "Queue-Id: 1abc"]
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "Content-Encoding: gzip": gzip.compress,
    "Content-Encoding: deflate": zlib.compress,
    "Compression: zstd": zstd.compress,
}
GOOD = (
    request("/checkv2", MAIL, FIELDS),
    request("/symbols", MAIL, FIELDS, last=False),
    chunked("/checkv2", [MAIL[:9], MAIL[9:]], FIELDS),
    *(request("/checkv2", pack(MAIL * 9), [field]) for field, pack in PACKED.items()),
    request("/learnspam", MAIL, ["Password: a"]),
    request("/stat", None, method="GET"),
    request("/checkv2", MAIL, last=False) + request("/ping", None, method="GET"),
    request("/checkv2", MAIL, ["Expect: 100-continue"]),
    RSPAMC % len(MAIL) + MAIL,
)
TOKENS = (
    b"\r\n", b"\n", b"\r", b"\0", b":", b" ", b"\t", b"-1", b"0", b"ffffffffffffffff",
    b"4294967296", b"Content-Length: 7\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Content-Encoding: zstd\r\n", b"Connection: upgrade\r\nUpgrade: x\r\n", b"\xff\xfe", b"%00",
    b"../", b"HTTP/1.0", b"\r\n\r\n", b"GET ", b"CHECK RSPAMC/1.3\r\n", b"\xed\xa0\x80",
    b"x" * 5000, b"{}", b"\x1f\x8b", b"(\xb5/\xfd",
)  # fmt: skip


def broken(random_: random.Random) -> bytes:
    """Return one broken request."""
    data = bytearray(random_.choice(GOOD))
    for _ in range(random_.randint(1, 6)):
        at = random_.randrange(len(data) + 1)
        to = min(len(data), at + random_.choice((0, 1, 1, 4, 40)))
        change: Sequence[Callable[[], bytes]] = (
            lambda: random_.choice(TOKENS),
            lambda at=at, to=to: bytes(data[at:to]) * 2,  # type: ignore[misc]  # bound now
            lambda: b"",
            lambda: random_.randbytes(random_.randint(1, 8)),
        )
        data[at:to] = random_.choice(change)()
    return bytes(data)


def pieces(random_: random.Random, data: bytes) -> Iterator[bytes]:
    """Yield the octets in some pieces."""
    while data:
        size = random_.choice((1, 7, 60, len(data)))
        yield data[:size]
        data = data[size:]


async def play(here: Running, count: int, seed: int) -> dict[str, int]:
    """Send broken requests, ten clients at a time; return how often which answer came."""
    said: dict[str, int] = {}

    async def client(number: int) -> None:
        random_ = random.Random(seed * 100 + number)
        for _ in range(count // 10):
            raw = b""
            with suppress(OSError):
                sent = pieces(random_, broken(random_))
                raw = await asyncio.wait_for(here.ask(*sent, ends=True), 60)
            first = raw.split(b"\r\n", 1)[0][:40].decode("latin_1")
            said[first] = said.get(first, 0) + 1

    async with asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(client(number))
    return said
