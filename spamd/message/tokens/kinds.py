"""Who made a token: the one table of all makers.

    Offer            a word of the text, a twin, a plain reading: neither `:` nor `=`
    subject=Offer    a word of the header field of that name: `=` before any `:`
    url:example.org  all else: the maker's mark and `:`

No word holds a `:` or `=`, no field name a `:` (RFC 5322 §2.2), and no mark a `=`. So whatever a
mail says, and whatever it calls its fields, none of it is spelled like a token with a mark. Marks
differ from each other, hence so do the texts of two makers.
"""

from spamd.sample import Kind

OF_FIELD = "="
"""Stands between the name of a header field and a word of it."""

MARKS = {
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
"""The mark of every maker but words and header fields, and the kind of its tokens."""


def maker(text: str) -> str:
    """Return who made a token that is no pair: a mark, or "field" or "word"."""
    before, colon, _ = text.partition(":")
    if OF_FIELD in before:
        return "field"
    return before if colon else "word"
