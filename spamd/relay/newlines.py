r"""Bare CR and LF: how they are repaired before a message goes on.

Sent on as they are they could smuggle a second message into a next hop that takes LF.LF for the end
of data (CVE-2023-51764 to -51766). So a bare LF becomes CRLF and a bare CR a blank, as Postfix does
it. A line that begins with a dot only through this repair gets a second dot, and so does a lone dot
that was followed by a bare CR or LF: the reader then sees what the sender wrote, and no line of the
result is a lone dot.

    "a LF . LF b CRLF"      →  "a CRLF .. CRLF b CRLF"
    "CRLF . LF b CRLF"      →  "CRLF .. CRLF b CRLF"
    "CRLF . CR CRLF"        →  "CRLF ..␣ CRLF"
"""

import re
from collections.abc import Iterable, Iterator

_BARE = re.compile(
    rb"(?<=\r\n)\.(?=\n|\r(?!\n))"  # a lone dot, or one before a bare CR
    rb"|(?<!\r)\n(\.?)"  # bare LF, and the dot that begins the next line
    rb"|\r(?!\n)"  # bare CR
)
_UNDECIDED = (b"\r\n.\r", b"\r\n.", b"\r", b"\n")
"""Ends of a block whose treatment depends on what follows, the longest first."""


def _repaired(match: re.Match[bytes]) -> bytes:
    found = match[0]
    if found == b".":
        return b".."
    if found == b"\r":
        return b" "
    return b"\r\n.." if match[1] else b"\r\n"


def normalized(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the wire form of a message without bare CR and LF, in blocks of about the same size."""
    before = b"\r\n"  # the start of the message is the start of a line
    held = b""
    for block in blocks:
        text = before + held + block
        undecided = next((len(end) for end in _UNDECIDED if text.endswith(end)), 0)
        decided = max(len(before), len(text) - undecided)
        held = text[decided:]
        yield b"".join(_repair(text, len(before), decided))
        before = text[max(0, decided - 2) : decided]
    yield b"".join(_repair(before + held, len(before), len(before) + len(held)))


def _repair(text: bytes, start: int, end: int) -> Iterator[bytes]:
    """Yield the repaired pieces of text[start:end]; what stands around it is only looked at."""
    for match in _BARE.finditer(text, start):
        if match.start() >= end:
            break
        yield text[start : match.start()]
        yield _repaired(match)
        start = match.end()
    yield text[start:end]
