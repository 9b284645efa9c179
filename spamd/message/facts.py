"""Message and Reading → facts: structured attributes with few values, and a handful of numbers.

The discrete ones feed categorical naive Bayes, SPODE and AODE; the continuous ones Gaussian naive
Bayes. Continuous facts are logarithms and shares, because Gauss's curve fits those far better
than raw sizes; they are integers in units of 1/1024, so that sums of them can be taken back
exactly.
"""

import math
import re

import numpy as np
from numpy.typing import NDArray

from spamd.message.mime.charset import codec_of
from spamd.message.mime.parser import Message
from spamd.message.reading import Reading
from spamd.sample import FIXED_POINT, FactSchema

SCHEMA = FactSchema(
    discrete=(
        ("charset", ("none", "ascii", "utf-8", "western", "cyrillic", "cjk", "other", "bad")),
        ("form", ("none", "plain", "html", "both")),
        ("attachment", ("none", "image", "document", "archive", "program", "message", "other")),
        ("recipients", ("none", "undisclosed", "one", "few", "many")),
        ("authentication", ("none", "pass", "fail", "mixed")),
        ("list", ("no", "unsubscribe", "list")),
        ("reply", ("no", "yes", "claimed")),
        ("subject", ("none", "lower", "normal", "capitals", "signs")),
        ("links", ("none", "one", "few", "many")),
        ("script", ("none", "latin", "cyrillic", "cjk", "arabic", "other")),
        ("priority", ("none", "normal", "high", "low")),
        ("sender", ("none", "bare", "named", "other-reply")),
        ("tricks", ("none", "hidden", "masked")),
        ("mailer", ("none", "named")),
    ),
    continuous=("size", "words", "capitals", "digits", "foreign", "links_per_kb"),
)
"""Names and values; the order of both is the order of the arrays of a `Sample`."""

_INDEX = [{value: place for place, value in enumerate(values)} for _, values in SCHEMA.discrete]
_ADDRESS = re.compile(rb"[^\s<>@,;:\"]{1,64}@[^\s<>@,;:\"]{1,255}")
_DOCUMENT = {
    "pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "ods", "rtf", "csv", "txt", "ics",
    "docm", "xlsm",
}  # fmt: skip
_ARCHIVE = {
    "zip", "rar", "7z", "gz", "tgz", "tar", "bz2", "xz", "ace", "arj", "cab", "iso", "img", "lzh",
}  # fmt: skip
_PROGRAM = {
    "exe", "scr", "pif", "com", "bat", "cmd", "vbs", "js", "jse", "wsf", "hta", "jar", "msi", "lnk",
    "ps1", "htm", "html", "shtml",
}  # fmt: skip
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
_BEYOND_LATIN = re.compile("[^\0-\u036f]+")  # whatever may belong to one of the others
_SCRIPTS = {
    "cyrillic": re.compile("[\u0400-\u052f]"),
    "arabic": re.compile("[\u0590-\u08ff]"),
    "cjk": re.compile("[\u2e80-\u9fff\uac00-\ud7af]"),
    "other": re.compile("[\u0370-\u03ff\u0530-\u058f\u0900-\u1fff]"),
}
_SCRIPT_CHARS = 1_000  # of the start: the script of a mail shows in its first lines


def discrete(message: Message, reading: Reading, authentication: str = "none") -> NDArray[np.uint8]:
    """Return the index of the value of each discrete fact, in the order of `SCHEMA`.

    `authentication` is what proves the sender (`Proof.fact`).
    """
    values = (
        _charset(reading),
        _form(reading),
        _attachment(message, reading),
        _recipients(message),
        authentication,
        _list(message),
        _reply(message, reading),
        _subject(reading),
        _links(reading),
        _script(reading),
        _priority(message),
        _sender(message),
        _tricks(reading),
        _mailer(message),
    )
    found = bytearray([index[value] for index, value in zip(_INDEX, values, strict=True)])
    return np.frombuffer(found, np.uint8)


def continuous(message: Message, reading: Reading, tokens: int) -> NDArray[np.int64]:
    """Return the continuous facts in units of 1/1024.

    size = log2(1 + bytes of the parts)           words = log2(1 + tokens)
    links_per_kb = log2(1 + links / kB of text)
    capitals, digits, foreign = shares of letters, characters, characters, each 0 … 1
    """
    text = reading.text
    data = text.encode("ascii", "replace")
    size = len(data)
    codes = np.frombuffer(data, np.uint8)
    capitals = _among(codes, "A", "Z")
    small = _among(codes, "a", "z")
    digits = _among(codes, "0", "9")
    foreign = 0 if text.isascii() else data.count(b"?") - text.count("?")
    values = (
        math.log2(1 + sum([len(part.body) for part in message.parts])),
        math.log2(1 + tokens),
        capitals / max(1, capitals + small),
        digits / max(1, size),
        foreign / max(1, size),
        math.log2(1 + len(reading.links) * 1024 / max(256, size)),
    )
    return np.array([round(value * FIXED_POINT) for value in values], np.int64)


def _among(codes: NDArray[np.uint8], first: str, last: str) -> int:
    """Return how many of the codes are from the first to the last; lower ones wrap around."""
    return int(np.count_nonzero(codes - np.uint8(ord(first)) <= ord(last) - ord(first)))


def _charset(reading: Reading) -> str:
    if "bad charset" in reading.defects:
        return "bad"
    if not reading.charsets:
        return "none"
    label = reading.charsets[-1]
    codec = codec_of(label) or label
    if label in ("us-ascii", "ascii"):
        return "ascii"
    if codec.startswith(("utf_8", "utf-8")):
        return "utf-8"
    if codec in ("cp1252", "cp1250", "iso8859_15", "iso8859_2", "cp1254", "mac_roman"):
        return "western"
    if codec in ("koi8_r", "koi8_u", "cp1251", "iso8859_5", "cp866"):
        return "cyrillic"
    return (
        "cjk"
        if codec.startswith(("gb", "big5", "cp9", "euc", "iso2022", "hz", "shift"))
        else "other"
    )


def _form(reading: Reading) -> str:
    if reading.pages:
        return "both" if reading.plain else "html"
    return "plain" if reading.plain else "none"


def _attachment(message: Message, reading: Reading) -> str:
    worst = "none"
    for attachment in reading.attachments:
        ending = attachment.name.rpartition(".")[2].lower()
        if ending in _PROGRAM:
            return "program"
        if ending in _ARCHIVE:
            worst = "archive"
        elif worst != "archive" and (ending in _DOCUMENT or attachment.type == "application/pdf"):
            worst = "document"
        elif worst in ("none", "image", "other"):
            worst = "image" if attachment.type.startswith("image/") else "other"
    if worst == "none" and message.nested:
        return "message"
    return worst


def _recipients(message: Message) -> str:
    to = b",".join([*message.all("to"), *message.all("cc")])[:65_536]
    count = to.count(b"@")
    if count == 0:
        return "undisclosed" if to.strip() else "none"
    return "one" if count == 1 else "few" if count < 6 else "many"


def _list(message: Message) -> str:
    if message.first("list-id") is not None or message.first("list-post") is not None:
        return "list"
    bulk = (message.first("precedence") or b"").strip().lower() in (b"bulk", b"list")
    return "unsubscribe" if message.first("list-unsubscribe") is not None or bulk else "no"


def _reply(message: Message, reading: Reading) -> str:
    if message.first("in-reply-to") is not None or message.first("references") is not None:
        return "yes"
    return "claimed" if reading.subject[:3].lower() in ("re:", "aw:", "sv:") else "no"


def _subject(reading: Reading) -> str:
    subject = reading.subject
    if not subject:
        return "none"
    if subject.count("!") + subject.count("$") + subject.count("?") > 2:
        return "signs"
    if subject.isupper() and len(subject) > 3:
        return "capitals"
    return "lower" if subject.islower() else "normal"


def _links(reading: Reading) -> str:
    count = len(reading.links)
    return "none" if count == 0 else "one" if count == 1 else "few" if count < 10 else "many"


def _script(reading: Reading) -> str:
    start = f"{reading.subject}\n{reading.text[:_SCRIPT_CHARS]}"
    if start.isascii():
        return "none" if start.isspace() else "latin"
    foreign = "".join(_BEYOND_LATIN.findall(start))
    if not foreign:
        return "latin"
    number, script = max([(len(each.findall(foreign)), name) for name, each in _SCRIPTS.items()])
    # a mail in another script still holds Latin names, links and words
    return script if number * 3 > len(_LATIN.findall(start)) else "latin"


def _priority(message: Message) -> str:
    value = (
        message.first("x-priority")
        or message.first("importance")
        or message.first("priority")
        or b""
    ).strip()
    if not value:
        return "none"
    if value[:1] in b"12" or value.lower().startswith((b"high", b"urgent")):
        return "high"
    return (
        "low"
        if value[:1] in b"45" or value.lower().startswith((b"low", b"non-urgent"))
        else "normal"
    )


def _sender(message: Message) -> str:
    value = (message.first("from") or b"")[:4096]
    address = _ADDRESS.search(value)
    if address is None:
        return "none"
    reply = _ADDRESS.search((message.first("reply-to") or b"")[:4096])
    if (
        reply is not None
        and reply[0].rpartition(b"@")[2].lower() != address[0].rpartition(b"@")[2].lower()
    ):
        return "other-reply"
    return "bare" if value.strip().strip(b"<>") == address[0] else "named"


def _tricks(reading: Reading) -> str:
    if reading.tricks:
        return "masked"
    return "hidden" if reading.hidden else "none"


def _mailer(message: Message) -> str:
    named = message.first("x-mailer") is not None or message.first("user-agent") is not None
    return "named" if named else "none"
