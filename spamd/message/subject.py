"""Subject marks of other filters, which are no words of the sender.

A filter on the way writes `***SPAM***`, `[SUSPECTED SPAM]`, `{Definitely Spam?}` or `Spam:` in
front of Subject, and the next one does it again. The mail stays the same mail, so a mark is neither
a word nor part of its identity. A mark stands in front, maybe behind the tag of a mailing list or
behind `Re:`; it is framed (brackets, stars, signs, a colon) and says nothing but its verdict. All
else that is framed stays: `[Spambayes]` is a list.
"""

import re

_ITEM = re.compile(
    r"""\s*+(?:
        [\[{(<>*\#_=~|%!+$«【]{1,20}+\s*+([^\]\[{}()<>*\#_=~|%!+$»】\n]{1,60}+)
            (?:\([^()\n]{0,20}\)\s*+)?[\]})<>*\#_=~|%!?+$»】]{1,20}+(?>(?:\s*+:)?)
        |-{1,20}+\s*+([^-\n]{1,60}+)-{1,20}+(?>(?:\s*+:)?)
        |([^:\n\[\]{}*<>]{1,40}+):(?!//)
        |(spam|unsure|ham),(?=\S)
    )\s*+""",
    re.VERBOSE | re.IGNORECASE,
)
_MOST = 12  # marks and tags in front of one subject
_WORD = re.compile(r"[^\W\d_]+")
_VERDICTS = frozenset((
    "spam", "junk", "spammail", "junkmail", "spamverdacht", "pourriel", "спам", "垃圾邮件",
    "スパム", "迷惑メール",
))  # fmt: skip
_FRAMED = _VERDICTS | {
    "ham", "unsure", "bulk", "unsolicited", "spammy", "suspicious", "suspected", "phishing",
    "phish", "virus", "malware", "fraud", "scam", "infected", "disarmed", "unchecked", "spoofed",
    "spoof", "uce", "ube", "graymail", "greymail", "external", "ext", "dangerous", "blocked",
    "deseado", "indésirable",
}  # fmt: skip
_HOW_SURE = frozenset((
    "definitely", "definite", "probable", "probably", "possible", "possibly", "likely", "maybe",
    "potential", "potentially", "suspected", "suspect", "confirmed", "detected", "low", "med",
    "medium", "high", "mail", "email", "e", "message", "msg", "warning", "caution", "alert",
    "score",
))  # fmt: skip
_WITH_THEM = _FRAMED | _HOW_SURE | {
    "suspicion", "certain", "certainly", "attention", "very", "sender", "content", "contents",
    "attachment", "this", "is", "a", "may", "be", "might", "of", "or", "and", "by", "from", "the",
    "not", "level", "hits", "rating", "probability", "tagged", "marked", "flagged", "identified",
    "as", "filter", "domain", "attempt", "link", "links", "verdacht", "auf", "wahrscheinlich",
    "vielleicht", "posible", "probablemente", "correo", "no", "probablement", "peut", "être",
}  # fmt: skip


def without_marks(subject: str) -> str:
    """Return the subject without the marks that other filters put in front of it."""
    kept: list[str] = []
    position = start = 0
    for _ in range(_MOST):
        match = _ITEM.match(subject, position)
        if match is None:
            break
        position = match.end()
        framed = match[1] or match[2] or match[4]
        if _is_framed_mark(framed) if framed else _is_mark(_words(match[3]), _VERDICTS, _HOW_SURE):
            kept.append(subject[start : match.start()])
            start = position
        elif not framed and len(_words(match[3])) > 1:
            break  # a sentence, no `Re:`
    return "".join([*kept, subject[start:]]).strip()


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _is_framed_mark(framed: str) -> bool:
    """Tell whether the words say a verdict and nothing else; in capitals they may say by whom."""
    words = _words(framed)
    return _is_mark(words, _FRAMED, _WITH_THEM) or (
        framed.isupper() and len(words) <= 4 and not words.isdisjoint(_VERDICTS)
    )


def _is_mark(words: set[str], verdicts: frozenset[str], others: frozenset[str]) -> bool:
    return not words.isdisjoint(verdicts) and words <= verdicts | others
