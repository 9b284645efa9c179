"""Mails of our own in odd encodings, one for each way in which senders write what readers take.

What is odd is put together from lists, so that each spelling meets each kind of part.
"""

from base64 import b64encode
from binascii import b2a_uu
from collections.abc import Iterator
from itertools import product

TEXT = "Grüße from the garden: cheap pills = https://pills.example/?a=b and more"
PAGE = f"<html><body><p>{TEXT}</p></body></html>"
CALENDAR = f"BEGIN:VCALENDAR\nSUMMARY:{TEXT[:30]}\n {TEXT[30:]}\nEND:VCALENDAR"

ENCODINGS = (
    "base64", "BASE64", " base64 ", "\tbase64\t", "base64;", "base64; x=y", "base64 (comment)",
    "(comment) base64", '"base64"', "base64,", "x-base64", "=?utf-8?Q?base64?=", "\n base64",
    "base64\nContent-Transfer-Encoding: base64",
)  # fmt: skip
TYPES = (
    "text/plain; charset=utf-8", 'text/plain; charset="utf-8"', "TEXT/PLAIN; CHARSET=UTF-8",
    "text/html; charset=utf-8", "text / html; charset=utf-8", "(c) text/html; charset=utf-8",
    '"text/html"; charset=utf-8', "text/html charset=utf-8", "text/html;charset=utf-8;;",
    "text/html; charset=utf-8 (comment)", "text/html; charset='utf-8'", "text; charset=utf-8",
    "text/html; charset*=us-ascii''utf-8", "text/html; charset*0=utf; charset*1=-8", "",
    "text/calendar; charset=utf-8", "text/html; charset=wrong", "text/html; charset=iso-8859-1",
)  # fmt: skip
BOUNDARIES = (
    'boundary="b"', "boundary=b", "Boundary=b", 'boundary = "b"', "boundary='b'", 'boundary="b',
    "boundary=b (comment)", "boundary=(c)b", "boundary*=us-ascii''b", "boundary*0=b",
    "x=y boundary=b", 'boundary="b "', "",
)  # fmt: skip
SUBJECTS = (
    "=?utf-8?B?{b}?=", "=?UTF-8?b?{b}?=", "=?utf-8*en?Q?{q}?=", "=?utf-8?Q?{q}?= =?utf-8?B?{b}?=",
    "=?utf-8?Q?{q}?=\n =?utf-8?Q?{q}?=", "=?utf-8?B?{cut}?= =?utf-8?B?{rest}?=",
    '"=?utf-8?Q?{q}?="', "=?utf-8?B?{two}?=", "x=?utf-8?Q?{q}?=y", "=?utf-8?Q?a b?=",
    "=?utf-8?Q?a\tb?=",
    "grüße",
    "=?utf-8?B?{b}", "=?wrong?Q?{q}?=", "=?utf-8?Q?{q}?=?=", "[SPAM] =?utf-8?Q?{q}?=",
    "=?utf-8?Q?a=?=", "=?utf-8?q?=c3=bc?=",
)  # fmt: skip


def base64(*pieces: str) -> str:
    """Return the pieces in base64, each with its padding."""
    return "\n".join(b64encode(piece.encode()).decode() for piece in pieces)


def quoted(text: str, soft: str = "=\n") -> str:
    """Return the text in quoted-printable, broken in the middle."""
    half = len(text) // 2
    return soft.join(
        "".join(
            sign if sign.isascii() and sign != "=" else "".join(f"={o:02x}" for o in sign.encode())
            for sign in piece
        )
        for piece in (text[:half], text[half:])
    )


def bodies(text: str) -> Iterator[tuple[str, str]]:
    """Yield the ways to write a text, each with the encoding that it is in."""
    half = len(text) // 2
    for cut in range(half, half + 3):  # padded by none, one and two signs
        yield "base64", base64(text[:cut], text[cut:])
    whole = base64(text)
    yield "base64", "\n".join(whole[at : at + 60] for at in range(0, len(whole), 60))
    yield "base64", f"{whole[:9]}!*-{whole[9:]}\n===="
    yield "base64", whole.rstrip("=")
    for soft in ("=\n", "= \n", "= \t\n", "=\t\n"):
        yield "quoted-printable", quoted(text, soft)
    yield "quoted-printable", quoted(text) + "="
    yield "quoted-printable", quoted(text).replace("=3d", "==3d", 1)
    yield "quoted-printable", text
    lines = [text.encode()[at : at + 45] for at in range(0, len(text.encode()), 45)]
    coded = "".join(b2a_uu(line).decode() for line in lines)
    yield "x-uuencode", f"begin 644 a.txt\n{coded}`\nend"
    yield "8bit", text


def mails() -> Iterator[tuple[str, bytes]]:
    """Yield each mail with a name that says what is odd in it."""
    for name, text in _mails():
        yield name, text.encode()
        yield f"{name}, CR LF", text.replace("\n", "\r\n").encode()


HEAD = "From: =?utf-8?Q?J=C3=B6rg?= <j@example.org>\nSubject: x\nMIME-Version: 1.0\n"
INNER = (
    f"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n{base64(TEXT)}"
)


def _entity(kind: str, encoding: str, body: str) -> str:
    fields = f"Content-Type: {kind}\n" if kind else ""
    return f"{HEAD}{fields}Content-Transfer-Encoding: {encoding}\n\n{body}\n"


def _mails() -> Iterator[tuple[str, str]]:
    yield from _texts()
    yield from _containers()
    octets = "".join(f"={octet:02X}" for octet in TEXT.encode())
    for subject in SUBJECTS:
        told = subject.format(
            b=base64(TEXT),
            q=octets,
            two=base64(TEXT[:20], TEXT[20:]).replace("\n", ""),
            cut=b64encode("Grü".encode()[:3]).decode(),
            rest=b64encode("üße".encode()[1:]).decode(),
        )
        yield f"subject {subject}", f"From: {told} <a@b.example>\nSubject: {told}\n\nbody\n"
    for stray in ("no field", "\ufeffX-A: b", "Fröm: x", " ", "x\n y"):
        yield f"stray {stray}", f"From: a@b.example\n{stray}\nSubject: x\n{INNER}\n"


def _texts() -> Iterator[tuple[str, str]]:
    for kind, (encoding, body) in product(TYPES, bodies(PAGE)):
        yield f"type {kind}, {encoding}", _entity(kind, encoding, body)
    texts = (("text/plain", TEXT), ("text/html", PAGE), ("text/calendar", CALENDAR))
    for encoding, (kind, text) in product(ENCODINGS, texts):
        mail = _entity(f"{kind}; charset=utf-8", encoding, base64(text))
        yield f"encoding {encoding}, {kind}", mail


def _containers() -> Iterator[tuple[str, str]]:
    body = f"front\n--b\n{INNER}\n--b \n{INNER}\n--b--\nend"
    kinds = ("multipart/mixed", "multipart/alternative", "multipart")
    for boundary, kind in product(BOUNDARIES, kinds):
        yield f"boundary {boundary}, {kind}", _entity(f"{kind}; {boundary}", "7bit", body)
    for kind, whole in (
        ("message/rfc822", f"Subject: inside\n{INNER}"),
        ("message/global", f"Subject: inside\n{INNER}"),
        ("message/news", f"Subject: inside\n{INNER}"),
        ("multipart/mixed; boundary=b", f"--b\n{INNER}\n--b--"),
    ):
        for encoding, body in (
            ("7bit", whole),
            ("base64", base64(whole)),
            ("base64", whole),
            ("quoted-printable", whole.replace("=", "=3D")),
        ):
            yield f"{kind} in {encoding}", _entity(kind, encoding, body)
