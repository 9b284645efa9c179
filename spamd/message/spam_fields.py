"""Our header fields: rendered, and spliced into the original bytes. Nothing is ever re-serialised.

`strip_and_prepend` removes every field that any reader may take for one of ours (a stranger may
have put them there) and places our block on top; every other byte stays. It works on messages as
they are meant, not dot-stuffed, with CRLF and with LF.

Readers don't agree where a header section ends. Postfix, Cyrus and Python end it at the first line
that is no field, Dovecot goes on to the first empty line, and names with signs that no name may
hold are names to some. So all lines before the first empty line count as header here, and a name is
read without the signs that are none. Behind the empty line nothing is touched.

What stands in front of the first field (a byte order mark, an mbox line, indented lines, lines that
are no field) is kept. Our block stands where all readers find it, and ends no header section: in
front of it all, but behind an mbox line, which counts as one on top only. Indented lines would
continue our last field, and in front of us they end Postfix's header section: they get a field of
their own to continue.
"""

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from itertools import chain

from spamd.message.header_top import header_end, may_be_forged, mbox_line_end, prepended

_WINDOW_BYTES = 64 * 1024  # searched at a time: 3 ms

CARRIER = b"X-Front:"
"""The field that indented lines in front of the header section continue once we stand there."""

_NO_NAME = rb"(?>(?:[^!-~\r\n]|\r?\n[ \t])*)"  # inside a name: folded, too
_FORGED = re.compile(
    rb"(?<![^\r\n])[^!-~\r\n]*+" + _NO_NAME.join([bytes([c]) for c in b"x-spam-"]), re.IGNORECASE
)
_NO_TEXT = rb"(?>(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff|[\x00-\x08\x0b\x0c\x0e-\x1f])*)"
_FIELD = re.compile(_NO_TEXT + rb"[!-9;-~]++[ \t]*+:")
HEADER_NAMES = (
    rb"(?:content-[a-z-]{1,40}+|x-[!-9;-~]{1,60}+|arc-[a-z-]{1,40}+|list-[a-z-]{1,40}+"
    rb"|subject|from|to|cc|date|sender|reply-to|received(?:-spf)?|message-id|mime-version|return-path"
    rb"|delivered-to|references|in-reply-to|dkim-signature|authentication-results|user-agent)"
)
"""Names of fields that no sentence begins with: behind lines that are no field they tell a header
section from a text."""

_ANY_FIELD = re.compile(rb"(?<![^\r\n])" + _NO_TEXT + HEADER_NAMES + rb"[ \t]*+:", re.IGNORECASE)
_REST = re.compile(rb"[^\r\n]*+(?>(?:(?:\r\n?|\n)[ \t][^\r\n]*+)*)(?:\r\n?|\n|\Z)")
_FOLDS = re.compile(rb"(?>(?:[ \t][^\n]*+\n)*)")
_MBOX_LINE = re.compile(rb">*From [^\n]*\n")
_START = re.compile(rb"[!-9;-~]++[ \t]*+:")
_BEFORE = re.compile(  # an mbox line, and indented lines that readers pass over to find the fields
    rb"(?:>*From [^\n]*\n)?(?:(?>(?:[ \t][^\n]*\n)+)(?=[!-9;-~]++[ \t]*+:))?"
)
_NAME = re.compile(r"[!-9;-~]{1,60}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u0085\u2028\u2029]+")
_LINE = 78  # RFC 5322 §2.1.1: lines should be no longer, excluding CRLF
_LONGEST = 900  # RFC 5322 §2.1.1: must not exceed 998; a word beyond is cut
_WORD_BYTES = 42  # of UTF-8 in one encoded word: 56 of base64 + 12 signs ≤ 75 (RFC 2047 §2)


def fields_start(data: bytes, position: int = 0) -> int:
    """Return where the fields start: behind an mbox line and indented lines, if there are some."""
    before = _BEFORE.match(data, position)
    return position if before is None else before.end()


def holds_fields(head: bytes) -> bool:
    """Tell whether there is a header section: the first line is a field, or a later one certainly.

    `head` holds no empty line before its end. Lines beyond the first 64 KiB are not asked.
    """
    mbox_line = _MBOX_LINE.match(head)
    top = 0 if mbox_line is None else mbox_line.end()
    return bool(_START.match(head, top) or _ANY_FIELD.search(head, top, _WINDOW_BYTES))


def strip_and_prepend(head: bytes, block: bytes) -> bytes:
    """Return `head` without what may pass for an `X-Spam-*` field, and with `block` in front.

    `head` is the start of a message through at least the empty line behind its header section.
    A message without any field gets an empty line behind the block: else a body that begins with
    white space would continue our last field, and one that looks like a field be taken for one.
    """
    if (usual := prepended(head, block)) is not None:
        return usual
    end = header_end(head)
    top = mbox_line_end(head, end)
    if not may_be_forged(head[:end]) and (top == end or _START.match(head, top)):
        return head[:top] + block + head[top:]
    if block and top < end and not holds_fields(head[:end]):
        return head[:top] + block + (b"\r\n" if block.endswith(b"\r\n") else b"\n") + head[top:]
    if block and head[top : top + 1] in (b" ", b"\t"):
        block += CARRIER + (b"\r\n" if block.endswith(b"\r\n") else b"\n")
    return b"".join([head[:top], block, _without_ours(head, top, end), head[end:]])


def forged_names(head: bytes) -> list[str]:
    """Return the names of fields that `strip_and_prepend` removes, each once, as they are spelled.

    `head` is as there. A name that no other program could name is left out.
    """
    end = header_end(head)
    if not may_be_forged(head[:end]):
        return []
    names = (
        head[first : head.find(b":", first, last)].strip().decode("latin_1")
        for first, last in _forged(head, mbox_line_end(head, end), end)
    )
    return list(dict.fromkeys(name for name in names if _NAME.fullmatch(name)))


def _without_ours(head: bytes, start: int, end: int) -> bytes:
    """Return a piece of the header section without what may pass for one of our fields."""
    kept: list[bytes] = []
    for first, last in _forged(head, start, end):
        kept.append(head[start:first])
        start = last
    return b"".join([*kept, head[start:end]])


def _forged(head: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where lines begin and end, with their folds, that may pass for fields of ours."""
    fold_end, in_field = start, False  # of the last line looked at because one of its folds was
    done = start
    for match in chain.from_iterable(
        _FORGED.finditer(head, *window) for window in _windows(head, start, end)
    ):
        first = match.start()
        if first < done:
            continue
        if head[first] in b" \t":  # a fold of a real field is text of that field
            if first >= fold_end:
                line = _line_of(head, done, first)
                fold_end = _logical_end(head, line, end)
                in_field = _FIELD.match(head, line) is not None
            if in_field:
                continue
        last = _logical_end(head, first, end)
        if head.find(b":", match.end(), last) >= 0:
            yield first, last
            done = last


def _windows(head: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where pieces of whole lines begin and end.

    Between two searches another thread has its turn. A piece ends where no fold follows, unless
    folds go on for as long again: no reader takes a name that is folded like that.
    """
    while start < end:
        stop = head.find(b"\n", start + _WINDOW_BYTES, end) + 1 or end
        folds = _FOLDS.match(head, stop, min(end, stop + _WINDOW_BYTES))
        stop = stop if folds is None else folds.end()
        yield start, stop
        start = stop


def _line_of(head: bytes, start: int, fold: int) -> int:
    """Return where the line begins that the folded line at `fold` belongs to."""
    while fold > start and head[fold] in b" \t":
        fold = max(start, head.rfind(b"\n", start, fold - 1) + 1)
    return fold


def _logical_end(head: bytes, start: int, end: int) -> int:
    rest = _REST.match(head, start, end)
    return end if rest is None else rest.end()


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
