"""Our own reading: the parts and fields as `spamd.message` has them before pages are rendered."""

from spamd.message.mime.charset import decode, header_text
from spamd.message.mime.parser import parse

from .shown import Leaf, Shown, one_line


def shown(raw: bytes) -> Shown:
    """Return what we read of a mail."""
    message = parse(raw)
    leaves: list[Leaf] = []
    for part in message.parts:
        label = part.content_type.parameters.get("charset", "")
        content = part.payload()
        text = None
        if part.content_type.main in ("text", "message"):
            text = decode(content, label).text
        leaves.append(
            Leaf(
                type=part.content_type.type,
                content=content,
                label=label,
                text=text,
                encoding=part.encoding,
                encoded=part.body,
            )
        )
    return Shown(
        subject=one_line(header_text(message.first("subject") or b"")),
        sender=one_line(header_text(message.first("from") or b"")),
        leaves=tuple(leaves),
    )
