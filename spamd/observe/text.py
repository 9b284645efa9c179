"""Text from strangers, made fit for a terminal or a log line."""

import unicodedata

UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control and format characters (CR, LF, ESC, text direction), surrogates, line separators."""


def printable(text: str, limit: int = 500) -> str:
    r"""Return text with each character that could steer a terminal as its escape (`\x1b`)."""
    if text.isascii() and text.isprintable() and len(text) <= limit:
        return text
    shown = "".join(
        char.encode("unicode_escape").decode("ascii")
        if unicodedata.category(char) in UNPRINTABLE
        else char
        for char in text[:limit]
    )
    return shown + "…" if len(text) > limit else shown
