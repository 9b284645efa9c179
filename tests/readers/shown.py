"""What one reader shows of one mail."""

import re
from dataclasses import dataclass

_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One part without children: type, bytes without transfer encoding, text if it is text."""

    type: str
    content: bytes
    label: str
    text: str | None
    encoding: str = ""
    encoded: bytes = b""  # the body as it came, of our own reading only

    @property
    def lines(self) -> bytes:
        """The bytes with one kind of line end, and without any around them."""
        return self.content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").strip(b"\n \t")

    @property
    def words(self) -> list[str]:
        """The words of the text, whatever stands between them."""
        return (self.text or "").replace("\0", "").replace("\ufeff", "").split()

    @property
    def key(self) -> tuple[str, ...] | bytes:
        """What two readers must agree on: the words of a text, the bytes of anything else."""
        return self.lines if self.text is None else tuple(self.words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Fields as decoded, and the parts in order; `fault` says why there is nothing."""

    subject: str
    sender: str
    leaves: tuple[Leaf, ...]
    fault: str = ""


def one_line(text: str) -> str:
    """Return a field's text with single blanks."""
    return _BLANKS.sub(" ", text.replace("\0", "")).strip()
