"""Mail rewritten as bytes: what an evaluation takes away from it, and what an attacker does to it.

Only the header section and the first text part are touched, and nothing is parsed beyond that, so
that a rewritten mail goes through the product's whole way like any other.
"""

import re

ROUTE = re.compile(
    rb"(?:received|date|delivery-date|message-id|return-path|delivered-to|envelope-to|"
    rb"in-reply-to|references|reply-to|list-[^:]*|mailing-list|precedence|sender|errors-to|x-[^:]*"
    rb")[ \t]*:",
    re.IGNORECASE,
)
"""Fields that tell where and when a mail travelled: they leak the label on corpora that were
collected in different places (accuracy.md §6)."""

FIELD = re.compile(rb"[^\r\n]*\r?\n(?:[ \t][^\r\n]*\r?\n)*")
"""One header field with its continuation lines."""


def header_and_body(raw: bytes) -> tuple[bytes, bytes]:
    """Return the header section through its empty line, and the rest."""
    found = re.search(rb"\r?\n(?=\r?\n)", raw)
    if found is None:
        return raw, b""
    end = raw.index(b"\n", found.end()) + 1
    return raw[:end], raw[end:]


def without_route(raw: bytes) -> bytes:
    """Return the mail without date, route, list, reply and X- fields, otherwise unchanged."""
    head, body = header_and_body(raw)
    kept = [field for field in FIELD.findall(head) if not ROUTE.match(field)]
    # A last line without an end is not matched as a field, and stays.
    tail = head[sum(map(len, FIELD.findall(head))) :]
    return b"".join(kept) + tail + body
