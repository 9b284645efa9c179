"""Our header fields in what a judge says, and their place on top of a mail.

Whoever judged, the bytes of the mail are those that came in: of the answer only fields that are
plainly ours are taken, and they are put on top here.
"""

from spamd.cli.pipe.faults import UnjudgedError
from spamd.message.header_top import header_end, newline_of, prepended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from spamd.cli.pipe.spool import Spool

OURS = b"x-spam-"
LARGEST_BYTES = 16 * 1024
"""All our fields together are far smaller."""

LINE_BYTES = 998
"""RFC 5322 §2.1.1."""

HEADER_BYTES = 8 * 1024 * 1024
"""A header section that is larger is none: the mail stays as it is."""

NEVER = bytes(code for code in range(256) if not 32 <= code < 127)
"""No octet of a line of ours."""

VERDICTS = ("spam", "ham", "unsure", "unscanned")


class NotOursError(ValueError):
    """An answer does not hold our fields as we write them."""


class HeaderTooLargeError(UnjudgedError):
    """The header section of the mail is too large for fields to be put on top."""


def fields_of(header: bytes) -> tuple[str, list[bytes]]:
    """Return the verdict, and the lines of our fields: those at the top of a header section.

    Raises:
        NotOursError: they are not plainly ours.
    """
    lines: list[bytes] = []
    for ended in header[:LARGEST_BYTES].split(b"\n"):
        line = ended.removesuffix(b"\r")
        if not lines and line.lstrip(b">").startswith(b"From "):
            continue  # an mbox line
        if not line.lower().startswith(OURS) and not (lines and line[:1] in {b" ", b"\t"}):
            break
        if len(line) > LINE_BYTES or line.translate(None, NEVER) != line:
            raise NotOursError("a line that is none of ours")
        lines.append(line)
    else:
        if len(header) > LARGEST_BYTES:
            raise NotOursError("too many fields")
    return _verdict(lines), lines


def _verdict(lines: list[bytes]) -> str:
    names = [line.partition(b":")[0].lower() for line in lines]
    if names.count(b"x-spam-status") != 1:
        raise NotOursError("no X-Spam-Status")
    status = b" ".join(lines[names.index(b"x-spam-status") :])
    verdict = status.partition(b" verdict=")[2].split(b" ", 1)[0].decode("ascii")
    if verdict not in VERDICTS:
        raise NotOursError("no verdict")
    return verdict


def on_top(mail: "Spool", lines: list[bytes]) -> tuple[bytes, int]:
    """Return the header section with these fields on top, and where in the mail the rest begins.

    Raises:
        HeaderTooLargeError: there is no place for them.
    """
    head = _header_of(mail)
    newline = newline_of(head)
    block = b"".join(line + newline for line in lines)
    usual = prepended(head, block)
    if usual is None:
        from spamd.message.spam_fields import strip_and_prepend

        usual = strip_and_prepend(head, block)
    return usual, len(head)


def _header_of(mail: "Spool") -> bytes:
    """Return the start of a mail through its first empty line, or all of it."""
    start = b""
    for limit in (64 * 1024, HEADER_BYTES):
        start = mail.first(limit)
        if end := start.find(b"\n", header_end(start)) + 1:
            return start[:end]
        if len(start) == mail.size_bytes:
            return start
    from spamd.message.spam_fields import holds_fields

    head = start[: start.rfind(b"\n") + 1] or start
    if holds_fields(head):
        raise HeaderTooLargeError("the header section is too large")
    return head
