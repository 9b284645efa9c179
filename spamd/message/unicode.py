"""Writing: Unicode forms, invisible signs, look-alike letters, words in every script.

A word is a run of letters, marks, digits and the signs `' $ ! -` (`.` and `,` between digits), in
any script that puts spaces between words; scripts that don't (Chinese, Japanese, Thai, Lao,
Khmer, Burmese, Tibetan) give the overlapping pairs of their characters. Case is kept,
compatibility forms are folded (NFKC). The alphabet is P. Graham's ("Better Bayesian Filtering",
2003) with all other letters added.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import filterfalse, groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]+"
)
"""What a reader doesn't see: fillers, joiners, direction marks, variation selectors, tags."""

_LETTER = r"[\p{Latin}\p{Cyrillic}\p{Greek}]"


@cache  # like all patterns that ask for a script, made when the first text needs it: 20 ms
def _latin() -> "regex.Pattern[str]":
    import regex  # noqa: PLC0415 - a text in ASCII needs none of it

    return regex.compile(r"\p{Latin}")


@cache
def _other_letter() -> "regex.Pattern[str]":
    import regex  # noqa: PLC0415 - a text in ASCII needs none of it

    return regex.compile(r"[\p{Cyrillic}\p{Greek}\p{Armenian}\p{Cherokee}ɑ]")


@cache
def _split_word() -> "regex.Pattern[str]":
    import regex  # noqa: PLC0415 - a text in ASCII needs none of it

    return regex.compile(f"(?<={_LETTER}){INVISIBLE.pattern}(?={_LETTER})")


def _ranges(wanted: Iterable[object], start: int) -> str:
    """Return the body of a character class: of the characters from `start` on those wanted.

    The `re` module tests such a class with one look-up, as long as it stays below U+10000; that is
    five times as fast as `regex` with its properties.
    """
    flags = bytes(map(bool, wanted))
    return "".join(
        f"{chr(start + run.start())}-{chr(start + run.end() - 1)}" for run in _ONES.finditer(flags)
    )


SPACELESS = (  # the body of a character class
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0eef\u0f00-\u0fda\u1000-\u109f\u1780-\u17d3\u19e0-\u19ff"
    "\u2e80-\u2fd5\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
"""Letters and marks of scripts that put no spaces between words."""

_SPACELESS_SIGN = re.compile(f"[{SPACELESS}]")
is_spaceless = _SPACELESS_SIGN.match
_INNER_STOP = re.compile(rb"\.(?<=[0-9]\.)(?=[0-9])")
_INNER_COMMA = re.compile(rb",(?<=[0-9],)(?=[0-9])")
_KEPT = {**{ord(sign): ord(sign) for sign in "$!'-"}, 1: ord("."), 2: ord(",")}
_BLANKED = bytes(
    code if code < 128 and chr(code).isalnum() else _KEPT.get(code, 32) for code in range(256)
)
_EDGE_DASH = re.compile(rb"-(?:(?![A-Za-z0-9$!])|(?<![A-Za-z0-9$!]-))")
_EDGE_QUOTE = re.compile(rb"'(?:(?![A-Za-z0-9$!])|(?<![A-Za-z0-9$!]'))")

# Letters that look like a Latin one in the fonts of mail readers: the confusables of Unicode TS 39,
# cut down to the Cyrillic, Greek, Armenian and Cherokee letters that were seen in spam.
_LOOK_ALIKES = "аɑαеєοоοрρсϲуүγхχіιјԁһոսѕԛԝвкмнтԍӏґАΑВΒЕΕНΗІΙЈКΚМΜОΟРΡСТΤХΧУΥΝΖЅԌԚԜ"
_LOOK_ALIKE = str.maketrans(
    _LOOK_ALIKES, "aaaeeoooppccyyyxxiijdhnusqwbkmhtgirAABBEEHHIIJKKMMOOPPCTTXXYYNZSGQW"
)
_has_look_alike = re.compile(f"[{_LOOK_ALIKES}]").search
_LEET = str.maketrans("013457$@!", "oieastsai")
_LEET_WORD = re.compile(
    r"(?=.{4,20}$)[A-Za-z]++[013457$@!]++[A-Za-z][A-Za-z013457$@!]*+$"  # no run can be split
)
_WHOLE_PHRASES = "\ufdfa\ufdfb"  # one sign that NFKC makes 18 and 8 of: a bomb
_MARKS = 30  # on one letter
_MAYBE_MARK = (
    "[^\0-\u02ff\u0370-\u0482\u048a-\u0590\u1e00-\u20cf\u2100-\u2cee\u3030-\u3098"
    "\u309b-\ua66e\uac00-\ufb1d]"
)
"""A sign of a block in which there are marks: most texts need no table of these."""

_MAYBE_MARKS = re.compile(f"{_MAYBE_MARK}{_MAYBE_MARK}{{{_MARKS}}}")
_EXPANDED = 1_000  # signs that NFKC may make of a short text; of a long one twice as many as it has
_COMMON = "aAI0123456789$!"  # words of one letter, and signs
_RARE_SIGNS = frozenset(map(chr, range(128))).difference(_COMMON)  # each alone is no word
_is_dashed = re.compile(r"(?:[A-Za-z]-){3,20}[A-Za-z]").fullmatch
_RUN = re.compile(r"[A-Za-z]{4,25}")
_ONES = re.compile(b"\1+")


@cache
def _word() -> re.Pattern[str]:
    """Return the pattern of a word; made when the first text needs it, as that takes 20 ms."""
    signs = "".join(map(chr, range(0x80, 0x10000)))
    spaced = _SPACELESS_SIGN.sub(" ", signs)
    wanted = [unicodedata.category(sign)[0] in "LMN" for sign in spaced]
    letters = "A-Za-z0-9$!€£¥" + _ranges(wanted, 0x80)
    return re.compile(
        f"[{SPACELESS}]+|[{letters}]+(?:(?:['’-]|(?<=[0-9])[.,](?=[0-9]))[{letters}]+)*"
        # pictures, and rare letters: each a word of its own
        "|[\u2600-\u27bf]|[\U00010000-\U000e0000]"
    )


def normalize(text: str) -> tuple[str, bool]:
    """Return text in NFKC without invisible characters, and whether these split a word."""
    if text.isascii():
        return text, False
    split = False
    if INVISIBLE.search(text) is not None:
        split = _split_word().search(text) is not None
        text = INVISIBLE.sub("", text)
    if not unicodedata.is_normalized("NFKC", text):
        for ligature in _WHOLE_PHRASES:
            text = text.replace(ligature, " ")
        room = max(_EXPANDED, 2 * len(text))
        text = unicodedata.normalize("NFKC", _stream_safe(text))[:room]
    return text, split


@cache
def _marks(start: int, end: int) -> str:
    """Return the body of a character class: the marks from `start` to `end`."""
    combining = unicodedata.combining
    wanted = [
        combining(sign)
        or (
            unicodedata.decomposition(sign)
            and all(map(combining, unicodedata.normalize("NFKD", sign)))
        )
        for sign in map(chr, range(start, end))
    ]
    return _ranges(wanted, start)


@cache
def _long_run() -> re.Pattern[str]:
    """Return the pattern of more marks on one letter than any language writes; takes 20 ms."""
    mark = f"(?:[{_marks(0x80, 0x10000)}]|[{_marks(0x10000, 0x1F000)}])"
    return re.compile(f"({mark}{{{_MARKS}}}){mark}++")


def _stream_safe(text: str) -> str:
    """Return the text with at most 30 marks on a letter (UAX #15 §13, Stream-Safe Text Format).

    Putting a run of marks in order takes the square of its length.
    """
    return text if _MAYBE_MARKS.search(text) is None else _long_run().sub(r"\1", text)


def words(text: str) -> list[str]:
    """Return the words of normalised text; character pairs where a script has no spaces.

    No word goes over the end of a line, so each line takes the cheapest way that it can.
    """
    if text.isascii():
        return _ascii_words(text)
    out: list[str] = []
    for ascii_only, lines in groupby(text.split("\n"), str.isascii):
        block = "\n".join(lines)
        out += _ascii_words(block) if ascii_only else _words_by_pattern(block)
    return out


def _words_by_pattern(text: str) -> list[str]:
    out: list[str] = []
    for word in _word().findall(text):
        if len(word) > 1 and is_spaceless(word) is not None:
            out += [word[at : at + 2] for at in range(len(word) - 1)]
        else:
            out.append(word)
    return out


def _ascii_words(text: str) -> list[str]:
    """Return the words of ASCII text by table look-up, four times as fast as by the pattern."""
    data = text.encode("ascii")
    if "\1" in text or "\2" in text:
        data = data.replace(b"\1", b" ").replace(b"\2", b" ")
    if "." in text:
        data = _INNER_STOP.sub(b"\1", data)
    if "," in text:
        data = _INNER_COMMA.sub(b"\2", data)
    # `'` and `-` belong to a word only between two other signs of it
    if "-" in text:
        data = _EDGE_DASH.sub(b" ", data)
    if "'" in text:
        data = _EDGE_QUOTE.sub(b" ", data)
    return data.translate(_BLANKED).decode("ascii").split()


def counted(words: list[str], limit: int) -> list[str]:
    """Return the words that count: no numbers, and of one that is too long only a sign of it.

    The sign is its first character and the number of bits of its length.
    """
    kept = list(filterfalse(str.isdigit, words))
    if not kept or max(map(len, kept)) <= limit:
        return kept
    return [
        word if len(word) <= limit else f"skip:{word[0]}:{len(word).bit_length()}" for word in kept
    ]


def unmasked(word: str) -> str | None:
    """Return what a reader takes a word for that borrows letters from another alphabet.

    None for a word that hides nothing: one in Latin letters only, or one that holds letters no
    Latin one looks like.
    """
    if word.isascii() or _has_look_alike(word) is None:
        return None
    folded = word.translate(_LOOK_ALIKE)
    if _other_letter().search(folded) is not None or _latin().search(word) is None:
        return None
    return folded


def latin(text: str) -> str:
    """Return text with the Latin letters that others look like."""
    return text if text.isascii() else text.translate(_LOOK_ALIKE)


def leet(mixed: Iterable[str]) -> list[str]:
    """Return the plain reading of the words that are written with digits or signs for letters.

    `mixed` are the words of the text, each once, that hold other signs than letters.
    """
    return [word.translate(_LEET) for word in mixed if _LEET_WORD.match(word) is not None]


def spaced_out(words: list[str], distinct: Mapping[str, object], mixed: Iterable[str]) -> list[str]:
    """Return the words written letter by letter: "V I A G R A", "v.i.a.g.r.a", "V-I-A-G-R-A".

    `words` are those of the text in order, `distinct` each of them once, `mixed` as for `leet`.
    """
    joined = [word.replace("-", "") for word in mixed if word[1:2] == "-" and _is_dashed(word)]
    single = distinct.keys() & _RARE_SIGNS
    single.update([word for word in filterfalse(str.isascii, distinct) if len(word) == 1])
    if len(single) < 2:
        return joined
    letters = "".join([word if len(word) == 1 else " " for word in words])
    return joined + _RUN.findall(letters)
