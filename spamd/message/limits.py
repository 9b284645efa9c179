"""Every size, depth and count limit of reading a message, each with its reason.

All limits are checked before the work they bound, so that time and memory grow linearly with the
message and stop growing where a limit stands. Reaching one that bounds the parser or the text is a
defect of the message (and a token), reaching another is nothing. None is an error: the mail is
still judged by what was read, and still delivered.
"""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is read of one message, at most. A limit that is reached never refuses a mail."""

    message_bytes: int = 4_194_304
    """Bytes behind the header looked for parts in, lines ended by LF. Of a large message no more is
    held in memory while it is relayed, and no other way looks further, so that all agree."""
    header_bytes: int = 262_144
    """Bytes of one header section; Postfix cuts at 102,400, real ones stay below 64 KiB."""
    fields: int = 1_000
    """Header fields of the whole message; the longest of 8,000 real messages had 120."""
    field_bytes: int = 16_384
    """Bytes of one header field that are decoded; 5,000 addresses in To fit no reader's screen."""
    depth: int = 50
    """Nested multiparts and messages; readers stop near 50, a bomb nests thousands."""
    parts: int = 500
    """Entities of one message; the richest real digest had about 120."""
    part_bytes: int = 1_048_576
    """Encoded bytes of one text part that are decoded; a person reads no megabyte."""
    text_bytes: int = 2_097_152
    """Encoded bytes of all text parts of a message that are decoded: two such parts, since most
    mail says the same in plain text and in HTML."""
    text_chars: int = 262_144
    """Visible characters turned into words: of more, the first and the last half of this."""
    guesses: int = 5
    """Charsets guessed for header fields, and for texts: mail that says nothing about its charset
    says nothing a few times; a guess takes a millisecond."""
    html_nodes: int = 20_000
    """Tags of all HTML parts followed one by one; the rest is stripped of its tags in one sweep."""
    links: int = 300
    """Distinct URLs taken apart."""
    word_chars: int = 40
    """Characters of a word; longer ones become `skip:` tokens."""
    token_chars: int = 64
    """Characters of any token text: fits every database index (at most 256 bytes of UTF-8)."""
    field_words: int = 60
    """Words taken from one header field other than Subject; the rest is lists and noise."""
    tokens: int = 4_000
    """Distinct tokens kept; 99 % of real messages have fewer (see `tokenizer.choose`)."""
    occurrences: int = 20
    """Highest count of one token in one message: repeating a word buys nothing beyond it."""
    gram_bytes: int = 3_000
    """Bytes of the start of the message turned into character 4-grams (E-003)."""

    @property
    def read_bytes(self) -> int:
        """Return how much of the start of a message is looked at at most, lines ended by LF."""
        return self.message_bytes + self.header_bytes

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 1:
                raise ValueError(f"{field.name} must be at least 1")
        if self.occurrences > 255:
            raise ValueError("occurrences must be at most 255: it is kept in one byte")
        if self.token_chars < self.word_chars + 24:
            raise ValueError(
                "token_chars must exceed word_chars by 24, the longest prefix of a field"
            )
