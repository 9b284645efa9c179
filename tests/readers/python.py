"""The reading of Python's `email`."""

from collections.abc import Iterator
from email import message_from_bytes, policy
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message

from .shown import Leaf, Shown, one_line


def shown(raw: bytes) -> Shown:
    """Return what Python's `email` shows of a mail, by the rules that never raise but rarely."""
    try:
        message = message_from_bytes(raw, policy=policy.compat32)
        leaves = tuple(_leaves(message))
        return Shown(
            subject=_text(message, "subject"), sender=_text(message, "from"), leaves=leaves
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return Shown(subject="", sender="", leaves=(), fault=type(error).__name__)


def _is_leaf(part: Message) -> bool:
    return not isinstance(part.get_payload(), list) or _is_report(part)


def _is_report(part: Message) -> bool:
    """Tell whether a part is a delivery report, which is taken apart like a header section."""
    return part.get_content_type() == "message/delivery-status"


def _leaves(part: Message) -> Iterator[Leaf]:
    if _is_leaf(part):
        yield _leaf(part)
        return
    for inside in part.get_payload():
        if isinstance(inside, Message):
            yield from _leaves(inside)


def _leaf(part: Message) -> Leaf:
    kind = (
        "text/plain"
        if part.is_multipart() is False and part.get_content_maintype() == "multipart"
        else part.get_content_type()
    )
    payload = part.get_payload()
    if isinstance(payload, list):
        content = b"\n".join(each.as_bytes() for each in payload if isinstance(each, Message))
    else:
        decoded = part.get_payload(decode=True)
        content = decoded if isinstance(decoded, bytes) else b""
    label = part.get_content_charset() or ""
    text = None
    if kind.startswith(("text/", "message/")):
        text = _decoded(content, label or "utf-8")
    return Leaf(type=kind, content=content, label=label, text=text)


def _text(message: Message, name: str) -> str:
    """Return the text of a field; raw bytes come as surrogates and are UTF-8 or nothing."""
    found = (value for key, value in message.raw_items() if key.lower() == name)
    line = next(found, "").encode("ascii", "surrogateescape").decode("utf-8", "replace")
    line = line.replace("\n", "").replace("\r", "")
    pieces: list[str] = []
    try:
        for piece, label in decode_header(line):
            if isinstance(piece, str):
                pieces.append(piece)
            else:
                pieces.append(_decoded(piece, label or "utf-8"))
    except (HeaderParseError, ValueError):
        return one_line(line)
    return one_line("".join(pieces))


def _decoded(data: bytes, label: str) -> str:
    try:
        return data.decode(label, "replace")
    except (LookupError, UnicodeError):
        return data.decode("utf-8", "replace")
