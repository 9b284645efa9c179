"""Transfer encodings: their names as senders spell them, and their removal as readers do it.

Standards tell how to write them; here is what mail programs show of what was written. Base64 goes
on behind padding, since programs that send a text in pieces pad each of them; signs outside the
alphabet are passed over; a soft break of quoted-printable may have blanks behind it (RFC 2045 §6.7
rule 3: a relay may have added them); a `=` that encodes nothing stands for itself.

Nothing raises; damaged data gives what can be saved. Time is linear in the bytes.
"""

import re
from binascii import Error as BinasciiError
from binascii import a2b_base64, a2b_qp, a2b_uu
from typing import Literal

Encoding = Literal["", "base64", "quoted-printable", "x-uuencode"]

_NAMES: dict[str, Encoding] = {
    "base64": "base64", "xbase64": "base64",
    "quotedprintable": "quoted-printable", "xquotedprintable": "quoted-printable",
    "uuencode": "x-uuencode", "xuuencode": "x-uuencode", "uue": "x-uuencode", "xuue": "x-uuencode",
}  # fmt: skip
_USUAL: dict[str, Encoding] = {
    "7bit": "", "8bit": "", "binary": "", "base64": "base64", "quoted-printable": "quoted-printable"
}  # fmt: skip
_ENCODED_WORD = re.compile(r"=\?[^?\s]{1,40}\?[QqBb]\?([^?\s]{0,40})\?=")
_COMMENT = re.compile(r"\([^()]*\)")
_NESTED = 3  # comments inside comments that are passed over
_SIGNS = re.compile(r"[^a-z0-9]+")
_END = re.compile(r"[;,]")
_PADDED = re.compile(rb"([A-Za-z0-9+/]*)(=*)")
_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/=]+")
_NOT_LETTERS = re.compile(rb"[^A-Za-z0-9+/]+")
_SOFT_BREAK = re.compile(rb"=[ \t]+(?=\n|\Z)")
_LONE_EQUALS = re.compile(rb"=(?==)")
_BEGIN = re.compile(rb"^begin(-base64)? [0-7]{3,4} [^\n]*\n", re.MULTILINE)


def encoding_of(value: str) -> Encoding:
    """Return the encoding that a Content-Transfer-Encoding names; "" for none and for unknown ones.

    Parameters, comments, quotes, blanks and case are passed over, as mail readers do.
    """
    if (usual := _USUAL.get(value.strip().lower())) is not None:
        return usual
    text = _ENCODED_WORD.sub(r"\1", value).lower()
    for _ in range(_NESTED if "(" in text else 0):
        text = _COMMENT.sub(" ", text)
    words = [_SIGNS.sub("", word) for word in _END.split(text.strip(" \t\n;,"))[0].split()]
    words = [word for word in words if word]
    return _NAMES.get(words[0]) or _NAMES.get("".join(words), "") if words else ""


def transfer_decode(body: bytes, encoding: str) -> bytes:
    """Return the body without its transfer encoding; damaged data gives what can be saved."""
    match encoding:
        case "base64":
            return base64(body)
        case "quoted-printable":
            return quoted_printable(body)
        case "x-uuencode":
            return uuencoded(body)
        case _:
            return body


def base64(data: bytes) -> bytes:
    """Return what base64 data hold, read to their end: several padded blocks follow each other."""
    pad = data.find(b"=")
    if pad < 0 or not data[pad:].strip(b"= \t\r\n"):
        try:
            return a2b_base64(data)
        except BinasciiError:
            return _block(_NOT_LETTERS.sub(b"", data))
    out: list[bytes] = []
    pieces: list[bytes] = []
    size = 0
    for match in _PADDED.finditer(_NOT_BASE64.sub(b"", data)):
        letters, pads = match.groups()
        pieces.append(letters)
        size += len(letters)
        if size % 4 >= 2 and size % 4 + len(pads) >= 4:  # other padding says nothing
            out.append(_block(b"".join(pieces)))
            pieces, size = [], 0
    return b"".join([*out, _block(b"".join(pieces))])


def _block(letters: bytes) -> bytes:
    """Return what the letters of one block of base64 hold; one letter too many tells nothing."""
    return a2b_base64(letters[: len(letters) - (len(letters) % 4 == 1)] + b"==")


def quoted_printable(data: bytes, *, header: bool = False) -> bytes:
    """Return what quoted-printable data hold; in a `header` an underscore is a blank."""
    if not header and (b"= " in data or b"=\t" in data):
        data = _SOFT_BREAK.sub(b"=", data)
    if b"==" in data:
        data = _LONE_EQUALS.sub(b"=3D", data)
    return a2b_qp(data, header=header)


def uuencoded(data: bytes) -> bytes:
    """Return what the uuencoded files of a body hold; without any `begin` line it is all data."""
    begins = list(_BEGIN.finditer(data))
    if not begins:
        return _uu_lines(data)
    ends = [match.start() for match in begins[1:]] + [len(data)]
    return b"".join([
        base64(data[match.end() : end].partition(b"\n====")[0])
        if match[1]
        else _uu_lines(data[match.end() : end].partition(b"\nend")[0])
        for match, end in zip(begins, ends, strict=True)
    ])  # fmt: skip


def _uu_lines(data: bytes) -> bytes:
    out: list[bytes] = []
    for line in data.split(b"\n"):
        if line.startswith((b"begin ", b"end")) or not line:
            continue
        try:
            out.append(a2b_uu(line))
        except BinasciiError:  # broken encoders pad with other signs: keep the counted bytes
            size = ((line[0] - 32) & 63) * 4 // 3 + 3
            try:
                out.append(a2b_uu(line[: size // 4 * 4 + 1]))
            except BinasciiError:
                continue
    return b"".join(out)
