"""One difference between another reader and us."""

from dataclasses import dataclass
from functools import cached_property

from spamd.message.mime.parser import Message, parse

from .shown import Leaf


@dataclass(kw_only=True)
class Difference:
    """Where one reader and we differ: in a field, in a part of both, or one that only one has."""

    reader: str
    what: str
    raw: bytes
    our_text: str = ""
    their_text: str = ""
    our_leaf: Leaf | None = None
    their_leaf: Leaf | None = None

    @cached_property
    def message(self) -> Message:
        """The mail as we parse it."""
        return parse(self.raw)

    def __str__(self) -> str:
        if self.what != "part":
            return f"{self.reader} {self.what}: {self.our_text[:200]!r} {self.their_text[:200]!r}"
        one, two = self.our_leaf, self.their_leaf
        told = [
            "-"
            if leaf is None
            else f"{leaf.type} {leaf.label} {leaf.encoding} {leaf.lines[:150]!r}"
            for leaf in (one, two)
        ]
        words = []
        if one is not None and two is not None and one.lines == two.lines:
            words = [pair for pair in zip(one.words, two.words, strict=False) if pair[0] != pair[1]]
        return f"{self.reader} part: {told[0]} {told[1]} {words[:2]}"
