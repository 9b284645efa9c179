"""Writing: Unicode forms, invisible signs, look-alike letters, words in every script.

A word is a run of letters, marks, digits and the signs `' $ ! -` (`.` and `,` between digits), in any
script that puts spaces between words; scripts that don't (Chinese, Japanese, Thai, Lao, Khmer, Burmese,
Tibetan) give the overlapping pairs of their characters. Case is kept, compatibility forms are folded
(NFKC). The alphabet is P. Graham's ("Better Bayesian Filtering", 2003) with all other letters added.
"""

import re
import unicodedata

import regex

INVISIBLE = regex.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]+"
)
"""Characters that a reader doesn't see: fillers, joiners, direction marks, variation selectors, tags."""

_SPLIT = regex.compile(
    r"(?<=[\p{Latin}\p{Cyrillic}\p{Greek}])"
    + INVISIBLE.pattern
    + r"(?=[\p{Latin}\p{Cyrillic}\p{Greek}])"
)
_WORD = re.compile(
    r"[A-Za-z0-9$!][A-Za-z0-9$!'-]*(?:(?<=[0-9])[.,][0-9][A-Za-z0-9$!'-]*)*(?<![-'])"
)
_SPACELESS = (
    r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}\p{Bopomofo}"
)
_ANY_WORD = regex.compile(
    rf"""(?V1)[{_SPACELESS}]+
    |[[\p{{L}}\p{{N}}$€£¥!]--[{_SPACELESS}]]
     (?:[[\p{{L}}\p{{M}}\p{{N}}$€£¥!'’-]--[{_SPACELESS}]]|(?<=[0-9])[.,](?=[0-9]))*(?<![-'’])""",
    regex.VERBOSE,
)
_SPACELESS_START = regex.compile(rf"[{_SPACELESS}]")

# Letters that look like a Latin one in the fonts of mail readers: the confusables of Unicode TS 39,
# cut down to the Cyrillic, Greek, Armenian and Cherokee letters that were seen in spam.
_LOOK_ALIKE = str.maketrans(
    "аɑαеєοоοрρсϲуүγхχіιјԁһոսѕԛԝвкмнтԍӏґАΑВΒЕΕНΗІΙЈКΚМΜОΟРΡСТΤХΧУΥΝΖЅԌԚԜ",
    "aaaeeoooppccyyyxxiijdhnusqwbkmhtgirAABBEEHHIIJKKMMOOPPCTTXXYYNZSGQW",
)
_LATIN = regex.compile(r"\p{Latin}")
_OTHER = regex.compile(r"[\p{Cyrillic}\p{Greek}\p{Armenian}\p{Cherokee}ɑ]")
_LEET = str.maketrans("013457$@!", "oieastsai")
_LEET_WORD = re.compile(
    r"^(?=[^\n]{4,20}$)[A-Za-z]+[013457$@!]+(?:[A-Za-z]+[013457$@!]*)+$", re.MULTILINE
)
_SPACED = re.compile(r"(?<![^\W_])[$]?[A-Za-z](?:[ \t.*_\-]{1,2}[A-Za-z$]){3,24}(?![^\W_])")


def normalize(text: str) -> tuple[str, bool]:
    """Return text without invisible characters and in NFKC, and whether a word was split by them."""
    if text.isascii():
        return text, False
    split = False
    if INVISIBLE.search(text) is not None:
        split = _SPLIT.search(text) is not None
        text = INVISIBLE.sub("", text)
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text)
    return text, split


def words(text: str) -> list[str]:
    """Return the words of normalised text in order; character pairs where a script has no spaces."""
    if text.isascii():
        return _WORD.findall(text)
    out: list[str] = []
    spaceless = _SPACELESS_START.match
    for word in _ANY_WORD.findall(text):
        if len(word) > 1 and spaceless(word):
            out += [word[at : at + 2] for at in range(len(word) - 1)]
        else:
            out.append(word)
    return out


def unmasked(word: str) -> str | None:
    """Return a word of mixed scripts as a reader sees it, None for a word that hides nothing."""
    if word.isascii() or _OTHER.search(word) is None or _LATIN.search(word) is None:
        return None
    folded = word.translate(_LOOK_ALIKE)
    return folded if folded != word and _OTHER.search(folded) is None else None


def leet(distinct: list[str]) -> list[str]:
    """Return the plain reading of the words that are written with digits or signs for letters."""
    return [word.translate(_LEET) for word in _LEET_WORD.findall("\n".join(distinct))]


def spaced_out(text: str) -> list[str]:
    """Return the words written letter by letter: "V I A G R A", "v.i.a.g.r.a"."""
    return [re.sub(r"[^A-Za-z$]", "", run) for run in _SPACED.findall(text)]
