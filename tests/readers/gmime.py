"""GMime's reading of mails, as lines of JSON: run by Debian's Python, which has its bindings.

    /usr/bin/python3 gmime.py < mails

Reads a mail in base64 from each line of standard input; answers each with one line.
"""

import base64
import json
import sys
from typing import Any

import gi  # type: ignore[import-not-found, unused-ignore]  # Debian's python3-gi, no package of ours

gi.require_version("GMime", "3.0")
from gi.repository import GMime  # type: ignore[import-not-found, unused-ignore]  # noqa: E402


def written(part: Any) -> bytes:
    """Return a part without transfer encoding."""
    if part.get_content() is None:
        return b""
    stream = GMime.StreamMem.new()
    part.get_content().write_to_stream(stream)
    return bytes(stream.get_byte_array() or b"")


def text_of(part: Any) -> str | None:
    """Return the text of a part; None for other parts, and where the bindings can't give it."""
    if not isinstance(part, GMime.TextPart):
        return None
    try:
        return part.get_text() or ""
    except (UnicodeDecodeError, TypeError):  # bytes that are no UTF-8, or NULL
        return None


def leaf(kind: str, content: bytes, label: str, text: str | None) -> dict[str, str | None]:
    """Return one part as it is handed over."""
    data = base64.b64encode(content).decode()
    return {"type": kind, "content": data, "label": label, "text": text}


def leaves(entity: Any, found: list[dict[str, str | None]]) -> None:
    """Add what an entity holds, in order."""
    if isinstance(entity, GMime.Multipart):
        if entity.get_count() == 0:
            text = entity.get_prologue() or ""
            found.append(leaf("text/plain", text.encode("utf-8", "surrogateescape"), "", text))
        for number in range(entity.get_count()):
            leaves(entity.get_part(number), found)
    elif isinstance(entity, GMime.MessagePart):
        inside = entity.get_message()
        if inside is not None and inside.get_mime_part() is not None:
            leaves(inside.get_mime_part(), found)
    elif isinstance(entity, GMime.Part):
        kind = entity.get_content_type()
        name = kind.get_mime_type().lower()
        content = written(entity)
        inside = parsed(content) if name == "message/rfc822" else None  # it was encoded
        if inside is not None and inside.get_mime_part() is not None:
            leaves(inside.get_mime_part(), found)
        else:
            label = kind.get_parameter("charset") or ""
            found.append(leaf(name, content, label, text_of(entity)))


def parsed(raw: bytes) -> Any:
    """Return a message parsed."""
    return GMime.Parser.new_with_stream(GMime.StreamMem.new_with_buffer(raw)).construct_message(
        None
    )


def shown(raw: bytes) -> dict[str, Any]:
    """Return what GMime shows of a mail."""
    message = parsed(raw)
    found: list[dict[str, str | None]] = []
    if message is None:
        return {"subject": "", "sender": "", "leaves": [], "fault": "no message"}
    if message.get_mime_part() is not None:
        leaves(message.get_mime_part(), found)
    return {
        "subject": message.get_header("Subject") or "",
        "sender": message.get_header("From") or "",
        "leaves": found,
        "fault": "",
    }


GMime.init()
for line in sys.stdin:
    print(json.dumps(shown(base64.b64decode(line))), flush=True)
