"""Mail rewritten as bytes: what an evaluation takes away from it, and what an attacker does to it.

Only the header section and the first text part are touched, and nothing is parsed beyond that, so
that a rewritten mail goes through the product's whole way like any other.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from email import message_from_bytes
from email.message import Message
from html import escape

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


Edit = Callable[[str, bool], str]
"""What is done to the text of a part; told whether it is HTML."""


def edited(raw: bytes, edit: Edit, *, everywhere: bool = False, as_html: bool = False) -> bytes:
    """Return the mail with its first text part edited, or with `everywhere` all of them.

    The edited parts become UTF-8, with `as_html` also HTML; a mail without any text gets its edit
    as a line at the end.
    """
    message = message_from_bytes(raw)
    parts = [part for part in message.walk() if part.get_content_maintype() == "text"]
    parts = [part for part in parts if not part.is_multipart()]
    try:
        for part in parts if everywhere else parts[:1]:
            content = part.get_payload(decode=True)
            text = _decoded(content if isinstance(content, bytes) else b"", part)
            html = part.get_content_subtype() == "html"
            if as_html and not html:
                text, html = f"<html><body><pre>{escape(text)}</pre></body></html>", True
                part.set_type("text/html")
            new = edit(text, html)
            del part["Content-Transfer-Encoding"]
            part.set_payload(new.encode("utf-8", "replace").decode("ascii", "surrogateescape"))
            part["Content-Transfer-Encoding"] = "8bit"
            part.set_param("charset", "utf-8")
        if parts:
            return message.as_bytes()
    except (ValueError, LookupError, TypeError, AttributeError):
        pass  # a header that the library can't write again: the attacker falls back to appending
    return raw + b"\n" + edit("", False).encode("utf-8", "replace")  # noqa: FBT003 — not HTML


def _decoded(content: bytes, part: Message) -> str:
    try:
        return content.decode(part.get_content_charset("utf-8"))
    except (UnicodeDecodeError, LookupError):
        return content.decode("latin-1")


def appended(words: Sequence[str]) -> Edit:
    """Return the edit that writes these words below the text."""
    return lambda text, html: _at_end(
        text, f"\n<p>{' '.join(words)}</p>\n" if html else _lines(words)
    )


def hidden(words: Sequence[str]) -> Edit:
    """Return the edit that adds the words to an HTML part where no reader sees them."""
    block = f'<div style="display:none">{" ".join(words)}</div>'
    return lambda text, _: _at_end(text, f"\n{block}\n")


def commented(words: Sequence[str]) -> Edit:
    """Return the edit that adds the words to an HTML part as a comment."""
    return lambda text, _: _at_end(text, f"\n<!-- {' '.join(words)} -->\n")


def in_header(raw: bytes, words: Sequence[str]) -> bytes:
    """Return the mail with the words in header fields that nobody shows."""
    lines = [b"Keywords: " + " ".join(words[i : i + 8]).encode() for i in range(0, len(words), 8)]
    newline = b"\r\n" if b"\r\n" in raw[:1000] else b"\n"
    return b"".join(line + newline for line in lines) + raw


def disguised(words: Iterable[str], disguise: Callable[[str], str]) -> Edit:
    """Return the edit that writes each of these words in disguise, outside HTML tags."""
    alternatives = "|".join(sorted(map(re.escape, words), key=len, reverse=True))
    wanted = re.compile(rf"(<[^>]*>)|\b({alternatives})\b", re.IGNORECASE)
    return lambda text, _: wanted.sub(
        lambda found: found[0] if found[1] else disguise(found[2]), text
    )


LOOKALIKES = str.maketrans("aceiopsxyABCEHIKMOPTX", "асеіорѕхуАВСЕНІКМОРТХ")
"""Latin letters to the Cyrillic ones that look the same."""


def lookalike(word: str) -> str:
    """Return the word in letters of another script."""
    return word.translate(LOOKALIKES)


def split_invisibly(word: str) -> str:
    """Return the word with a zero-width space after each letter."""
    return "\N{ZERO WIDTH SPACE}".join(word)


def spaced(word: str) -> str:
    """Return the word as w-o-r-d."""
    return "-".join(word)


def poison(words: Sequence[str]) -> bytes:
    """Return a mail of all these words and nothing else, to be learned as spam."""
    return b"From: friend@example.org\nSubject: hello\n\n" + _lines(words).encode()


def _lines(words: Sequence[str]) -> str:
    return "\n" + "\n".join(" ".join(words[i : i + 10]) for i in range(0, len(words), 10)) + "\n"


def _at_end(text: str, block: str) -> str:
    """Put a block before the end of an HTML body, or below a text."""
    place = text.lower().rfind("</body")
    return text + block if place < 0 else text[:place] + block + text[place:]
