"""Mails that were made to cost much, at any size: for tests and benchmarks of time."""

from base64 import encodebytes
from collections.abc import Callable, Iterator

UNITS = (
    "<p>", "<p>a ", "<b>a</b>", "<a href=http://a%d.example/x>a</a>",
    "<td style=color:#%06d>a", "&#x301;&#x323;", "a%d ", "x1abcdefghijklmno-q%d ",
    "\u0301\u0323", "é%d ", "発財", "V\u0456a%d ", "http://h%d.example/p ", "v%d@h%d.example ",
    "\ufdfa", "\u3300", "🔥", "a\u200bb%d ", "=C3=A4%d ", "<style>.a%d{color:red}</style>",
    "<div style='display:none'>x", "a-b.c,d'%d ", "begin 644 a\n",
)  # fmt: skip
MULTIPART = b"Subject: s\nContent-Type: multipart/mixed; boundary=b\n\n"


def repeated(size: int, made: Callable[[int], bytes]) -> bytes:
    """Return numbered pieces, as many as fill that many bytes."""

    def pieces() -> Iterator[bytes]:
        left, number = size, 0
        while left > 0:
            piece = made(number)
            left -= len(piece)
            number += 1
            yield piece

    return b"".join(pieces())


def high(number: int) -> bytes:
    """Return forty bytes of no known charset, each time others."""
    return bytes((number * 7 + place * 31) % 96 + 160 for place in range(40))


def of_units(size: int) -> Iterator[tuple[str, bytes]]:
    """Yield a plain mail and a page of each unit."""
    for unit in UNITS:

        def piece(number: int, unit: str = unit) -> bytes:
            return unit.replace("%06d", f"{number % 10**6:06}").replace("%d", str(number)).encode()

        for kind in ("plain", "html"):
            head = f"Subject: s\nContent-Type: text/{kind}; charset=utf-8\n\n".encode()
            yield f"{kind} of {unit!a}", head + repeated(size, piece)


def of_parts(size: int) -> Iterator[tuple[str, bytes]]:
    """Yield mails whose header fields or parts are many."""
    made: dict[str, Callable[[int], bytes]] = {
        "fields": lambda number: b"X-A%d: a%d b\n" % (number, number),
        "senders": lambda number: b"From: a%d@h%d.ex\n" % (number, number),
        "fields of no charset": lambda number: b"X-A%d: %s\n" % (number, high(number)),
    }
    for name, piece in made.items():
        yield name, repeated(size, piece) + b"\nb\n"
    parameters = b"".join(b";a%d*=x''%%e4\xf6\xfc" % number for number in range(90))
    parts = {
        "parts": b"--b\n\na\n",
        "no delimiters": b"--c\n",
        "messages": b"--b\nContent-Type: message/rfc822\n\nSubject: \xe4\xf6\nFrom: \xe4\xf6\n\n",
        "parameters": b"--b\nContent-Type: text/plain" + parameters + b"\n\n\n",
        "pages": b"--b\nContent-Type: text/html\n\n" + b"<p>" * 2_800 + b"\n",
    }
    for name, part in parts.items():
        yield name, MULTIPART + part * (size // len(part))
    yield (
        "parts of no charset",
        MULTIPART
        + repeated(size, lambda n: b"--b\nContent-Type: text/plain; charset=x\n\n%s\n" % high(n)),
    )
    words = repeated(size, lambda n: b"=?x%d?q?=E4=F6=FC=DF=C4=%02X?= " % (n % 2, n % 90 + 160))
    yield "words of no charset", b"Subject: " + words + b"\n\nb\n"
    encoded = b"Content-Type: text/html\nContent-Transfer-Encoding: base64\n\n"
    yield "encoded page", encoded + encodebytes(b"<p>a " * (size // 7))


def mails(size: int) -> Iterator[tuple[str, bytes]]:
    """Yield every hostile mail at that size, by name."""
    yield from of_units(size)
    yield from of_parts(size)
