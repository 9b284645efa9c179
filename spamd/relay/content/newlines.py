r"""Bare CR and LF: how they are repaired before a message goes on.

Sent on as they are they could smuggle a second message into a next hop that takes LF.LF for the end
of data (CVE-2023-51764 to -51766). So a bare LF becomes CRLF and a bare CR a blank, as Postfix does
it. A line that begins with a dot only through this repair gets a second dot, and so does a lone dot
that was followed by a bare CR or LF: the reader then sees what the sender wrote, and no line of the
result is a lone dot.

    "a LF . LF b CRLF"      →  "a CRLF .. CRLF b CRLF"
    "CRLF . LF b CRLF"      →  "CRLF .. CRLF b CRLF"
    "CRLF . CR CRLF"        →  "CRLF ..␣ CRLF"

Whole blocks are repaired by replacing, not line by line: 50 MB of bare LF must not stop the others.
"""

from collections.abc import Iterable, Iterator

_UNDECIDED = (b"\r\n.\r", b"\r\n.\n", b"\r\n.", b"\r\n", b"\r", b"\n")
"""Ends of a block whose treatment depends on what follows, the longest first."""


def normalized(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the wire form of a message without bare CR and LF, in blocks of about the same size."""
    held = b"\r\n"  # the start of the message is the start of a line
    surplus = 2
    for block in blocks:
        text = held + block
        held = next((end for end in _UNDECIDED if text.endswith(end)), b"")
        done = _repaired(text[: len(text) - len(held)])
        yield done[surplus:]
        surplus = max(0, surplus - len(done))
    yield _repaired(held)[surplus:]


def _repaired(text: bytes) -> bytes:
    """Return a piece of a message, which does not hold CRLF.CRLF, in whole lines."""
    # A dot behind a bare LF gets a second one: first behind each LF, then not behind CRLF.
    text = text.replace(b"\n.", b"\n..").replace(b"\r\n..", b"\r\n.")
    # A lone dot in front of a bare LF or CR would become a line of its own.
    text = text.replace(b"\r\n.\n", b"\r\n..\n").replace(b"\r\n.\r", b"\r\n..\r")
    return text.replace(b"\r\n", b"\n").replace(b"\r", b" ").replace(b"\n", b"\r\n")
