"""Little mails and what came out of them."""

from spamd.message.features import Features, extract
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.sample import Kind


def mail(body: str = "Hello world", *fields: str, charset: str = "utf-8") -> bytes:
    """Return a plain mail with the given further header fields, lines ended by LF."""
    head = ["From: Ann <ann@example.org>", "To: bob@example.net", *fields]
    if not any(field.lower().startswith("content-type:") for field in fields):
        head.append(f"Content-Type: text/plain; charset={charset}")
    return "\n".join([*head, "", body]).encode(charset)


def page(body: str, *fields: str) -> bytes:
    """Return a mail whose only part is HTML."""
    return mail(body, *fields, "Content-Type: text/html; charset=utf-8")


def tokens(raw: bytes, options: TokenizerOptions | None = None) -> set[str]:
    """Return the texts of all tokens of a mail."""
    return set(extract(raw, options or TokenizerOptions()).texts)


def of_kind(raw: bytes, kind: Kind) -> set[str]:
    """Return the texts of the tokens of one kind."""
    found = extract(raw)
    return {
        text for text, flags in zip(found.texts, found.sample.kinds, strict=True) if flags & kind
    }


def words(raw: bytes) -> set[str]:
    """Return the words of the visible text."""
    return of_kind(raw, Kind.WORD)


def count(found: Features, text: str) -> int:
    """Return how often a token was seen."""
    return int(found.sample.occurrences[list(found.texts).index(text)])
