"""Mails of a stranger who wants his own field to be taken for one of ours, or our fields unseen."""

from itertools import product

FLAG = b"X-Spam-Flag: YES\r\n"
USUAL = b"From: a@x.test\r\nSubject: s\r\n"
MBOX = b"From a@x.test Thu Jan  1 00:00:00 1970\r\n"

SPELLINGS = {
    "plain": FLAG,
    "in another case": b"x-SPAM-fLAG: YES\r\n",
    "blank before the colon": b"X-Spam-Flag : YES\r\n",
    "tab before the colon": b"X-Spam-Flag\t: YES\r\n",
    "value folded": b"X-Spam-Flag:\r\n YES\r\n",
    "colon folded": b"X-Spam-Flag\r\n : YES\r\n",
    "name folded": b"X-Spam-\r\n Flag: YES\r\n",
    "NUL behind": b"X-Spam-Flag\0: YES\r\n",
    "NUL inside": b"X-Spam\0-Flag: YES\r\n",
    "NUL in front": b"\0X-Spam-Flag: YES\r\n",
    "DEL in front": b"\x7fX-Spam-Flag: YES\r\n",
    "8 bit inside": b"X-Spam-Flag\xe4: YES\r\n",
    "byte order mark": b"\xef\xbb\xbfX-Spam-Flag: YES\r\n",
    "soft hyphen": b"X-Spam\xc2\xad-Flag: YES\r\n",
    "no-break space": b"X-Spam-Flag\xc2\xa0: YES\r\n",
    "blank inside": b"X-Spam -Flag: YES\r\n",
    "indented": b" X-Spam-Flag: YES\r\n",
    "indented by a tab": b"\tX-Spam-Flag: YES\r\n",
    "form feed in front": b"\x0cX-Spam-Flag: YES\r\n",
    "behind a bare CR": b"Keywords: a\rX-Spam-Flag: YES\r\n",
    "behind a bare LF": b"Keywords: a\nX-Spam-Flag: YES\r\n",
    "behind two bare CR": b"Keywords: a\r\rX-Spam-Flag: YES\r\n",
    "ended by a bare CR": b"X-Spam-Flag: YES\r",
    "behind CR CR LF": b"Keywords: a\r\r\nX-Spam-Flag: YES\r\n",
    "a dot in front": b".X-Spam-Flag: YES\r\n",
    "twice": FLAG + FLAG,
}
"""How the field may be written."""

BEFORE = {
    "among fields": USUAL,
    "first": b"",
    "behind a line that is no field": USUAL + b"no field\r\n",
    "behind no field, first of all": b"no field\r\n",
    "behind no field in front": b"no field\r\n" + USUAL,
    "behind a folded line that is no field": USUAL + b"no field\r\n fold\r\n",
    "behind an 8 bit name": USUAL + b"\xe4\xf6: x\r\n",
    "behind a blank in a name": USUAL + b"a b: x\r\n",
    "behind no name": USUAL + b": x\r\n",
    "behind an mbox line": USUAL + MBOX,
    "behind an mbox line on top": MBOX + USUAL,
    "behind a quoted mbox line on top": b">" + MBOX + USUAL,
    "behind a NUL": USUAL + b"\0\r\n",
    "behind white space": USUAL + b"  \r\n",
    "behind a byte order mark": b"\xef\xbb\xbf" + USUAL,
    "behind a mark of UTF-16": b"\xff\xfe" + USUAL,
    "behind an indented line on top": b" indented\r\n" + USUAL,
    "behind an indented line": b" indented\r\n",
    "behind a delimiter": USUAL + b"--b\r\n",
    "behind a field of ours and no field": b"X-Spam-Status: No\r\nno field\r\n",
    "in a second header": USUAL + b"no field\r\n" + USUAL,
    "behind a line of 998": USUAL + b"a" * 998,
    "behind a line of 998 and its end": USUAL + b"a" * 998 + b"\r\n",
    "behind a field of 998": USUAL + b"Keywords: " + b"a" * 988,
    "behind a field of 1000": USUAL + b"Keywords: " + b"a" * 990,
    "behind a line of 2048": USUAL + b"a" * 2048,
    "behind a field of 2047": USUAL + b"Keywords: " + b"b" * 2037,
    "behind a field of 2048": USUAL + b"Keywords: " + b"b" * 2038,
    "behind a field of 4096": USUAL + b"Keywords: " + b"b" * 4086,
    "behind a field of 64 KiB": USUAL + b"Keywords: " + b"c" * 65_526,
    "behind a field of 102400": USUAL + b"Keywords: " + b"c" * 102_390,
    "behind 1200 fields": USUAL + b"".join([b"X-A%d: b\r\n" % n for n in range(1200)]),
    "behind 117 KB": USUAL + b"".join([b"X-A%d: %s\r\n" % (n, b"y" * 900) for n in range(130)]),
    "behind 117 KB of folds": USUAL + b"Keywords: a\r\n" + b" %s\r\n" % (b"y" * 900) * 130,
    "behind 117 KB and no field": USUAL
    + b"no field\r\n"
    + b"".join([b"X-A%d: %s\r\n" % (n, b"y" * 900) for n in range(130)]),
}
"""What may stand in front of it: there the header section ends for some readers."""

FRONTS = {
    "nothing": b"",
    "a byte order mark": b"\xef\xbb\xbf",
    "a byte order mark alone": b"\xef\xbb\xbf\r\n",
    "a mark of UTF-16": b"\xff\xfe",
    "an mbox line": MBOX,
    "a quoted mbox line": b">" + MBOX,
    "an mbox line behind a mark": b"\xef\xbb\xbf" + MBOX,
    "a blank": b" ",
    "a tab": b"\t",
    "a line of blanks": b"   \r\n",
    "an indented line": b" indented line\r\n",
    "a NUL": b"\0",
    "a bare CR": b"\r",
    "a line that is no field": b"this is no field\r\n",
    "a folded line that is no field": b"no field\r\n folded\r\n",
    "8 bits": b"\xe4\xf6\xfc no\r\n",
    "no name": b": x\r\n",
    "a delimiter": b"--b\r\n",
}
"""What may stand in front of the first header field."""


def shapes() -> list[bytes]:
    """Return mails, each a combination; those with much in front with few spellings only."""
    few = ("plain", "value folded", "colon folded", "indented", "behind a bare LF")
    pairs = [
        (before, spelling)
        for before, spelling in product(BEFORE, SPELLINGS)
        if spelling in few or (BEFORE[before] in (USUAL, b"", USUAL + b"no field\r\n"))
    ]
    return [
        BEFORE[before] + SPELLINGS[spelling] + b"Date: Thu, 1 Jan 2026 00:00:00 +0000\r\n"
        b"\r\nX-Spam-Flag: YES\r\nmail-%04d-\r\n" % number
        for number, (before, spelling) in enumerate(pairs)
    ]
