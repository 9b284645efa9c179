"""Our fields on top of the usual header section, which needs no regular expression.

`spamd filter` runs once for each mail: loading regular expressions would take it as long as all
else. What is not usual is left to `spam_fields`.
"""

_LOWER = bytes(range(256)).lower()
_SIGNS = bytes(range(33, 58)) + bytes(range(59, 127))  # of a field name, RFC 5322 §2.2
_NO_SIGNS = bytes(code for code in range(256) if not 32 < code < 127)
"""Octets that no field name may hold, but for the colon."""

_NAME_BYTES = 1000  # a longer name is not usual


def header_end(head: bytes) -> int:
    """Return where the first empty line begins, `len(head)` if there is none."""
    if head.startswith((b"\n", b"\r\n")):
        return 0
    ends = [at + 1 for mark in (b"\n\r\n", b"\n\n") if (at := head.find(mark)) >= 0]
    return min(ends, default=len(head))


def newline_of(head: bytes) -> bytes:
    """Return how the first line of a message ends."""
    at = head.find(b"\n")
    return b"\r\n" if at > 0 and head[at - 1] == 13 else b"\n"


def mbox_line_end(head: bytes, end: int) -> int:
    """Return where the line behind an mbox line begins, 0 without one."""
    if not head.startswith((b"From ", b">")):
        return 0
    line_end = head.find(b"\n", 0, end) + 1
    return line_end if head[:line_end].lstrip(b">").startswith(b"From ") else 0


def begins_field(head: bytes, start: int) -> bool:
    """Tell whether a field begins there, if its name is not unusually long."""
    colon = head.find(b":", start, start + _NAME_BYTES)
    name = head[start:colon].rstrip(b" \t") if colon >= 0 else b""
    return bool(name) and not name.translate(None, _SIGNS)


def may_be_forged(header: bytes) -> bool:
    """Tell whether a field may be in there that some reader takes for one of ours."""
    return b"x-spam-" in header.translate(_LOWER, _NO_SIGNS)


def prepended(head: bytes, block: bytes) -> bytes | None:
    """Return `head` with `block` on top, None when that is not all there is to do.

    `head` is the start of a message through at least the empty line behind its header section.
    """
    end = header_end(head)
    top = mbox_line_end(head, end)
    if may_be_forged(head[:end]) or not (top == end or begins_field(head, top)):
        return None
    return head[:top] + block + head[top:]
