"""Takes the answers to UID FETCH, LIST, STATUS and EXAMINE apart, and believes them with care.

A server may send rows that nobody asked for, at any time: `* 7 FETCH (FLAGS ($Junk))` is about the
mail that is number 7 now, which may be any after an EXPUNGE. So a row without UID belongs to no
mail. Of two rows of one mail the later flags count; where they quote its header or text differently
none is believed, as if it had not been answered.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from imapclient.response_parser import parse_fetch_response

from spamd.feedback.mailboxes.folders import Listed
from spamd.feedback.mailboxes.mailbox import decoded

LIST_LINE = re.compile(
    rb'\(([^()]{0,2000})\) (?:NIL|"\\?([^\r\n]?)") (?:"((?:[^"\\]|\\.)*)"|(\{\d+\})|(.+))',
    re.IGNORECASE,
)

UID_MOST = 2**32 - 1  # RFC 3501 §2.3.1.1: an unsigned 32-bit value, as UIDVALIDITY and EXISTS are
MODSEQ_MOST = 2**63 - 1  # RFC 7162 §3.1

DIGITS = 20
"""Of the largest number that IMAP knows (64 bits)."""

QUOTED_PAIR = re.compile(rb"\\(.)")
CONTROL = re.compile(rb"[\x00-\x1f\x7f]")

Part = bytes | tuple[bytes, bytes]
"""As `imaplib` gives it: a line, or a line that ends in a literal and that literal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A folder's state: `validity` and `modseq` are 0 where the server has none."""

    validity: int
    next_uid: int
    modseq: int
    messages: int

    def differs(self, other: "Status") -> bool:
        """Return whether the folder changed; what one of the two answers left out doesn't count."""
        pairs = [
            (self.validity, other.validity),
            (self.next_uid, other.next_uid),
            (self.modseq, other.modseq),
        ]
        changed = any(mine and theirs and mine != theirs for mine, theirs in pairs)
        return changed or self.messages != other.messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One mail as FETCH tells it.

    fault   why it can't be read; empty when it can
    """

    uid: int
    flags: frozenset[str]
    delivered: datetime | None
    header: bytes
    fault: str = ""


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


def status_of(found: Mapping[bytes, Any], messages: bytes) -> Status:
    """Return a folder's state; `messages` is what the answer calls their number."""
    return Status(
        validity=_number(found.get(b"UIDVALIDITY"), UID_MOST),
        next_uid=_number(found.get(b"UIDNEXT"), UID_MOST),
        modseq=_number(found.get(b"HIGHESTMODSEQ"), MODSEQ_MOST),
        messages=_number(found.get(messages), UID_MOST),
    )


def digits(text: object) -> int | None:
    """Return the number that some bytes are, None for none."""
    plain = isinstance(text, bytes) and text.isdigit() and len(text) <= DIGITS
    return int(text) if plain and isinstance(text, bytes) else None


def _number(value: object, most: int) -> int:
    """Return a number of the protocol, 0 (the server has none) for what can't be one."""
    return value if isinstance(value, int) and 0 <= value <= most else 0


def header_of(data: dict[bytes, Any]) -> bytes | None:
    """Return the header fields that a row quotes, None for none."""
    for name, value in data.items():
        if name.upper().startswith(b"BODY[HEADER") and isinstance(value, bytes):
            return value
    return None


def modseq_of(data: dict[bytes, Any]) -> int:
    """Return the mod-sequence that a row tells, 0 for none."""
    value = data.get(b"MODSEQ")
    return _number(value[0], MODSEQ_MOST) if isinstance(value, tuple) and len(value) == 1 else 0


def row_of(uid: int, data: dict[bytes, Any]) -> Row:
    """Return what an answer says of a mail."""
    delivered = data.get(b"INTERNALDATE")
    return Row(
        uid=uid,
        flags=frozenset(flag.decode("latin-1") for flag in data.get(b"FLAGS", ())),
        delivered=delivered if isinstance(delivered, datetime) else None,
        header=header_of(data) or b"",
    )


def unreadable_row(uid: int, fault: str) -> Row:
    """Return the row of a mail whose answer can't be read."""
    return Row(uid=uid, flags=frozenset(), delivered=None, header=b"", fault=fault)
