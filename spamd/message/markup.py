"""Our header fields: rendered, and spliced into the original bytes. Nothing is ever re-serialised.

`strip_and_prepend` removes every `X-Spam-*` field of the header section (a stranger may have put
them there) and places our block on top; every other byte stays. It works on messages as
they are meant, not dot-stuffed, with CRLF and with LF.
"""

import re
from base64 import b64encode
from collections.abc import Sequence

_FIELD = re.compile(rb"[!-9;-~]+[ \t]*:[^\n]*(?:\n[ \t][^\n]*)*(?:\n|\Z)")
_START = re.compile(rb"[!-9;-~]+[ \t]*:")
_OURS = re.compile(rb"x-spam-[!-9;-~]*[ \t]*:", re.IGNORECASE)
_BLANK = re.compile(rb"\r?\n")
_BEFORE = re.compile(  # an mbox line, and indented lines that readers pass over to find the fields
    rb"(?:>?From [^\n]*\n)?(?:(?:[ \t][^\n]*\n)+(?=[!-9;-~]+[ \t]*:))?"
)
_NAME = re.compile(r"[!-9;-~]{1,60}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u0085\u2028\u2029]+")
_LINE = 78  # RFC 5322 §2.1.1: lines should be no longer, excluding CRLF
_LONGEST = 900  # RFC 5322 §2.1.1: must not exceed 998; a word beyond is cut
_WORD_BYTES = 42  # of UTF-8 in one encoded word: 56 of base64 + 12 signs ≤ 75 (RFC 2047 §2)


def header_end(data: bytes) -> int:
    """Return where the body starts: behind the blank line, or at the first line that is no field.

    It is `len(data)` when the header section has not ended within `data`.
    """
    position = _skip_fields(data, fields_start(data))
    blank = _BLANK.match(data, position)
    return position if blank is None else blank.end()


def fields_start(data: bytes, position: int = 0) -> int:
    """Return where the fields start: behind an mbox line and indented lines, if there are some."""
    before = _BEFORE.match(data, position)
    return position if before is None else before.end()


def _skip_fields(data: bytes, position: int) -> int:
    match_field = _FIELD.match
    while (match := match_field(data, position)) is not None:
        position = match.end()
    return position


def strip_and_prepend(head: bytes, block: bytes) -> bytes:
    """Return `head` without its `X-Spam-*` fields and with `block` in front of its fields.

    `head` is the start of a message through at least the end of its header section. An mbox
    line or an indented line on top stays there: behind our fields it would end the header section,
    or continue our last field.
    A message without any field gets a blank line behind the block.
    """
    top = position = fields_start(head)
    if head.lower().find(b"x-spam-") < 0 and (top == len(head) or _START.match(head, top)):
        return head[:top] + block + head[top:]  # the usual case: nothing to strip
    pieces = [head[:top], block]
    kept = top
    match_field, ours = _FIELD.match, _OURS.match
    while (match := match_field(head, position)) is not None:
        if ours(head, position) is not None:
            pieces.append(head[kept:position])
            kept = match.end()
        position = match.end()
    if position == top < len(head) and block and _BLANK.match(head, top) is None:
        # no header section: without a blank line a body that begins with white space would continue
        # our last field, and one that looks like a field would be taken for one
        pieces.append(b"\r\n" if block.endswith(b"\r\n") else b"\n")
    pieces.append(head[kept:])
    return b"".join(pieces)


def render(fields: Sequence[tuple[str, str]], newline: bytes) -> bytes:
    """Return the fields as header lines, folded, encoded where needed, each ended by `newline`.

    Control characters and line ends in a value become spaces: a value can't add a field of its own.

    Raises: ValueError when a name is no field name.
    """
    end = newline.decode("ascii")
    return "".join([_rendered(name, value, end) for name, value in fields]).encode("ascii")


def _rendered(name: str, value: str, newline: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} can't name a header field")
    usual = value.isascii() and value.isprintable() and value and "  " not in value
    if usual and value == value.strip() and len(name) + 2 + len(value) <= _LINE:
        return f"{name}: {value}{newline}"
    words = _CONTROL.sub(" ", value).split()
    lines = [f"{name}:"]
    for piece in _pieces(words) if value.isascii() else _encoded(words):
        if len(lines[-1]) + 1 + len(piece) > _LINE and lines[-1] != f"{name}:":
            lines.append(f" {piece}")
        else:
            lines[-1] += f" {piece}"
    return "".join([line + newline for line in lines])


def _pieces(words: list[str]) -> list[str]:
    """Return the words, those too long for any line cut."""
    return [word[at : at + _LONGEST] for word in words for at in range(0, len(word), _LONGEST)]


def _encoded(words: list[str]) -> list[str]:
    """Return the whole value as encoded words, cut between characters (RFC 2047 §5)."""
    out: list[str] = []
    chunk = b""
    for sign in " ".join(words):
        data = sign.encode("utf_8", "replace")
        if len(chunk) + len(data) > _WORD_BYTES:
            out.append(f"=?utf-8?B?{b64encode(chunk).decode('ascii')}?=")
            chunk = b""
        chunk += data
    return [*out, f"=?utf-8?B?{b64encode(chunk).decode('ascii')}?="] if chunk else out
