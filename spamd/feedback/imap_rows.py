"""Takes the answers to UID FETCH and LIST apart, and believes only what names its mail or folder.

A server may send rows that nobody asked for, at any time: `* 7 FETCH (FLAGS ($Junk))` is about the
mail that is number 7 now, which may be any after an EXPUNGE. So a row without UID belongs to no
mail. Of two rows of one mail the later flags count; where they quote its header or text differently
none is believed, as if it had not been answered.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from imapclient.response_parser import parse_fetch_response

from spamd.feedback.folders import Listed
from spamd.feedback.mailbox import decoded

LIST_LINE = re.compile(
    rb'\(([^()]{0,2000})\) (?:NIL|"\\?([^\r\n]?)") (?:"((?:[^"\\]|\\.)*)"|(\{\d+\})|(.+))',
    re.IGNORECASE,
)


QUOTED_PAIR = re.compile(rb"\\(.)")
CONTROL = re.compile(rb"[\x00-\x1f\x7f]")

Part = bytes | tuple[bytes, bytes]
"""As `imaplib` gives it: a line, or a line that ends in a literal and that literal."""


def rows(data: Sequence[Part | None], wanted: Collection[int]) -> dict[int, dict[bytes, Any]]:
    """Return what an answer says of the mails that were asked for, by UID.

    Raises:
        ValueError: it can't be read (`imapclient` has errors of its own for that as well).
    """
    found: dict[int, dict[bytes, Any]] = {}
    torn: set[int] = set()
    for parts in _responses(data):
        for row in parse_fetch_response(parts, False, False).values():  # noqa: FBT003 - its API
            uid = row.get(b"UID")
            if not isinstance(uid, int) or uid not in wanted:
                continue
            before = found.setdefault(uid, {})
            for name, value in row.items():
                said = before.get(name, value)
                if name.startswith((b"BODY", b"INTERNALDATE")) and said != value:
                    torn.add(uid)
                before[name] = value
    return {uid: row for uid, row in found.items() if uid not in torn}


def _responses(data: Sequence[Part | None]) -> Iterator[list[Part]]:
    """Yield the parts of each response: literals with what stands before them, then a line."""
    parts: list[Part] = []
    for part in data:
        if part is None:
            continue
        parts.append(part)
        if isinstance(part, bytes):
            yield parts
            parts = []
    if parts:
        yield parts


def folders(data: Sequence[bytes | tuple[bytes, bytes] | None]) -> Iterator[Listed]:
    """Yield the folders of a LIST answer; the name may be quoted, an atom or a literal."""
    for row in data:
        line, literal = row if isinstance(row, tuple) else (row, b"")
        found = LIST_LINE.fullmatch(line) if line else None
        if found is None:
            continue
        flags, delimiter, quoted, sized, atom = found.groups()
        raw = literal if sized else atom or QUOTED_PAIR.sub(rb"\1", quoted or b"")
        if not raw or CONTROL.search(raw):
            continue  # in a command, a line end would begin one of the server's own choice
        text = raw.decode("latin-1")
        yield Listed(
            name=decoded(text),
            raw=text,
            attributes=frozenset(flag.decode("latin-1").lower() for flag in flags.split()),
            delimiter=(delimiter or b"").decode("latin-1"),
        )
