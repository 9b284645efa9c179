"""Which kind a token is of: the one table of all prefixes.

    Offer            a word of the text, a twin, a plain reading: neither `:` nor `=`
    subject=Offer    a word of the header field of that name: `=` before any `:`
    url:example.org  all else: a prefix and `:`

No word holds a `:` or `=`, no field name a `:` (RFC 5322 §2.2), and no prefix a `=`. So whatever a
message says, and whatever it calls its fields, none of its words is spelled like a token with a
prefix, and no two sources of tokens give the same text.
"""

from spamd.sample import Kind

OF_FIELD = "="
"""Stands between the name of a header field and a word of it."""

PREFIXES = {
    "skip": Kind.WORD,
    "from": Kind.LINK,
    "to": Kind.LINK,
    "cc": Kind.LINK,
    "reply-to": Kind.LINK,
    "sender": Kind.LINK,
    "received": Kind.LINK,
    "url": Kind.LINK,
    "domain": Kind.LINK,
    "path": Kind.LINK,
    "port": Kind.LINK,
    "link": Kind.LINK,
    "scheme": Kind.LINK,
    "mail": Kind.LINK,
    "header": Kind.SHAPE,
    "missing": Kind.SHAPE,
    "zone": Kind.SHAPE,
    "count": Kind.SHAPE,
    "mailer": Kind.SHAPE,
    "type": Kind.SHAPE,
    "parts": Kind.SHAPE,
    "boundary": Kind.SHAPE,
    "charset": Kind.SHAPE,
    "attachment": Kind.SHAPE,
    "ending": Kind.SHAPE,
    "file": Kind.SHAPE,
    "defect": Kind.SHAPE,
    "trick": Kind.TRICK,
    "hidden": Kind.HIDDEN,
    "title": Kind.HIDDEN,
}
"""The prefix of every token but words and words of header fields, and the kind of the token."""


def prefix_of(text: str) -> str:
    """Return the prefix of a token that is no pair, or "field" or "word"."""
    before, colon, _ = text.partition(":")
    if OF_FIELD in before:
        return "field"
    return before if colon else "word"
