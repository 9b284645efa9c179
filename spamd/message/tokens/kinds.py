"""How a token is spelled tells where it comes from.

    Offer            a word of the text, a twin, a plain reading: neither `:` nor `=`
    subject=Offer    a word of the header field of that name: `=` before any `:`
    url:example.org  all else: a prefix and `:`

No word holds a `:` or `=`, no field name a `:` (RFC 5322 §2.2), and no prefix a `=`. So whatever a
message says, and whatever it calls its fields, none of its words is spelled like a token with a
prefix, and no two sources of tokens give the same text.
"""

OF_FIELD = "="
"""Stands between the name of a header field and a word of it."""


def prefix_of(text: str) -> str:
    """Return the prefix of a token that is no pair, or "field" or "word"."""
    before, colon, _ = text.partition(":")
    if OF_FIELD in before:
        return "field"
    return before if colon else "word"
