"""Bytes → text, whatever the label says.

Order: pure ASCII; UTF-8, because text that happens to be valid UTF-8 is UTF-8 whatever it is
called (276 of 324 non-ASCII parts of real mail); the declared charset, if we know the name; a
guess by chardet over at most 1 KiB; Windows-1252. Labels are looked up in a fixed table, never in
Python's codec machinery: that one imports modules by the label's name and holds codecs that are
no charsets.

Never raises. The text holds no lone surrogates and no NUL.
"""

import re
from encodings.aliases import aliases
from typing import NamedTuple

from spamd.message.mime.transfer import base64, quoted_printable

_SIGNS = re.compile(r"[^a-z0-9]+")
_NOT_CHARSETS = {
    "base64", "bz2", "hex", "quopri", "rot_13", "uu", "zlib", "mbcs", "punycode", "idna",
}  # fmt: skip
_AS_READERS_DO = {  # charsets that mail readers take for a superset (WHATWG Encoding Standard §4.2)
    "ascii": "cp1252", "latin_1": "cp1252", "iso8859_9": "cp1254", "iso8859_11": "cp874",
    "tis_620": "cp874", "gb2312": "gb18030", "gbk": "gb18030", "big5": "big5hkscs",
    "euc_kr": "cp949", "shift_jis": "cp932", "iso2022_jp": "iso2022_jp_ext",
}  # fmt: skip
_MORE_LABELS = {  # of mail, unknown to Python
    "8bit": "cp1252", "unknown_8bit": "cp1252", "x_unknown": "cp1252", "x_gbk": "gb18030",
    "euc_cn": "gb18030", "gb_2312_80": "gb18030", "x_x_big5": "big5hkscs",
    "cn_big5": "big5hkscs", "ks_c_5601_1987": "cp949", "x_sjis": "cp932", "ms_kanji": "cp932",
    "windows_31j": "cp932", "windows_874": "cp874", "iso_8859_8_i": "iso8859_8",
    "iso_8859_8_e": "iso8859_8", "iso_8859_6_i": "iso8859_6", "utf": "utf_8",
    "unicode_1_1_utf_7": "utf_7", "hz_gb_2312": "hz", "x_mac_roman": "mac_roman",
    "x_euc_jp": "euc_jp",
}  # fmt: skip
_MORE_CODECS = ("cp874", "cp1006", "koi8_t", "koi8_u", "mac_roman", "cp737", "cp856", "cp720")
_CODECS = (
    {name: codec for name, codec in aliases.items() if not codec.endswith("_codec")}
    | {codec: codec for codec in aliases.values() if not codec.endswith("_codec")}
    | {name: name for name in _MORE_CODECS}
    | _MORE_LABELS
)
KNOWN = {
    _SIGNS.sub("_", name): _AS_READERS_DO.get(codec, codec)
    for name, codec in _CODECS.items()
    if codec not in _NOT_CHARSETS
}
"""Charset label, lower case and with `_` for every other sign → Python codec."""

_STATEFUL = {"utf_7", "utf_16", "utf_16_le", "utf_16_be", "utf_32", "utf_32_le", "utf_32_be", "hz"}
_ISO_2022 = re.compile(rb"\x1b\$[@B()A]|\x1b\([BJI]")  # RFC 1468, RFC 1557: shift sequences
_GUESS_BYTES = 1024  # chardet takes 2 ms for them; more bytes changed no guess
_ENOUGH = 24  # high bytes that a guess by statistics needs
_LOW_BYTES = bytes(range(128))
_SURROGATES = re.compile("[\ud800-\udfff]")
_HIGH = re.compile(rb"[\x80-\xff]")


class Decoded(NamedTuple):
    """Text, the Python codec that gave it, and whether the label was no help."""

    text: str
    codec: str
    mislabelled: bool = False


def codec_of(label: str) -> str | None:
    """Return the codec that mail readers use for a charset label, None for one nobody knows."""
    if not label:
        return None
    label = label.lower()
    known = KNOWN.get(label.replace("-", "_"))  # as nearly all are spelled
    return known or KNOWN.get(_SIGNS.sub("_", label).strip("_"))


def decode(data: bytes, label: str = "", *, guess: bool = True) -> Decoded:
    """Return the text of `data`, which its sender labelled `label` ("" when it did not).

    Without `guess` what no label explains is Windows-1252: a guess takes as long as a small mail,
    and a mail can ask for thousands (`Limits.guesses`).
    """
    codec = codec_of(label)
    unknown = bool(label) and codec is None
    if data.find(b"\x1b") >= 0 and codec not in _STATEFUL and _ISO_2022.search(data) is not None:
        codec = "iso2022_kr" if b"\x1b$)C" in data else "iso2022_jp_ext"
        return Decoded(_clean(data.decode(codec, "replace")), codec, unknown)
    if data.isascii() and codec not in _STATEFUL:
        return Decoded(_clean(data.decode("ascii")), "ascii", unknown)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Decoded(_clean(data.decode("utf_16", "replace")), "utf_16")
    if codec not in _STATEFUL:
        try:
            return Decoded(_clean(data.decode("utf_8")), "utf_8", unknown)
        except UnicodeDecodeError:
            pass
    if codec is not None:
        text = _clean(data.decode(codec, "replace"))
        high = len(data.translate(None, _LOW_BYTES))
        if text.count("\ufffd") * 8 <= max(high, len(text) // 4 if codec in _STATEFUL else 0):
            return Decoded(text, codec)
    return _guess(data) if guess else _decoded(data, "cp1252")


def _decoded(data: bytes, codec: str) -> Decoded:
    return Decoded(_clean(data.decode(codec, "replace")), codec, mislabelled=True)


def _guess(data: bytes) -> Decoded:
    """Return the text by the charset that chardet believes in, else by Windows-1252.

    A text with few high bytes is Western and not worth asking about: scripts other than Latin are
    all but made of them.
    """
    codec = "cp1252"
    text = data.decode("utf_8", "replace")
    if text.count("\ufffd") * 8 <= len(data.translate(None, _LOW_BYTES)):  # a few broken characters
        return Decoded(_clean(text), "utf_8", mislabelled=True)
    if _mostly_high(data):
        import chardet  # noqa: PLC0415 - few mails need it, and loading it takes 15 ms

        high = _HIGH.search(data)
        start = 0 if high is None else max(0, high.start() - 64)
        codec = (
            codec_of(chardet.detect(data[start : start + _GUESS_BYTES])["encoding"] or "") or codec
        )
    return _decoded(data, codec)


def _mostly_high(data: bytes) -> bool:
    start = data[:4096]
    high = len(start.translate(None, _LOW_BYTES))
    return high * 2 > len(start) or (high * 8 > len(start) and high >= _ENOUGH)


def _clean(text: str) -> str:
    if "\0" in text:  # a NUL can't be stored by PostgreSQL and is shown by no reader
        text = text.replace("\0", "")
    try:
        if not text.isascii():
            text.encode()  # faster than to look for surrogates
    except UnicodeEncodeError:
        text = _SURROGATES.sub("\ufffd", text)
    return text


_ENCODED = re.compile(  # senders leave `?` and blanks unencoded, but no word starts inside another
    rb"=\?([!-)+-<>@-~]{0,64})(?:\*[A-Za-z-]{0,64})?\?([bBqQ])\?((?>(?:[^?\n=]|=(?!\?[^=])|\?(?!=))*))\?="
)


def header_text(value: bytes, *, guess: bool = True) -> str:
    """Return the text of an unstructured header field, its encoded words decoded (RFC 2047).

    With `guess` the charset of one piece that no label explains is guessed; it is that of all.

    Adjacent encoded words of one charset are joined before they are decoded, because many senders
    cut characters in two (RFC 2047 §5 forbids it); the white space between them goes (§6.2).
    """
    value = value.replace(b"\n", b"").strip()
    if value.find(b"=?") < 0:  # before Python 3.12 `in` makes an exception first
        if value.isascii():
            return value.decode("ascii").replace("\0", "")
        return decode(value, guess=guess).text
    read = _Decoder(guess=guess)
    out: list[str] = []
    label, joined, end = b"", b"", 0
    for match in _ENCODED.finditer(value):
        between = value[end : match.start()]
        end = match.end()
        if between.strip() or not joined:
            out += read.text(joined, label), read.text(between)
            joined = b""
        elif match[1].lower() != label:
            out.append(read.text(joined, label))
            joined = b""
        label, joined = match[1].lower(), joined + _payload(match[2], match[3])
    out += read.text(joined, label), read.text(value[end:])
    return "".join(out).replace("\n", " ").replace("\r", " ")


class _Decoder:
    """Decodes the pieces of one field, and guesses once at most."""

    def __init__(self, *, guess: bool) -> None:
        self.guess = guess
        self.label = ""  # the codec that was guessed

    def text(self, data: bytes, label: bytes = b"") -> str:
        """Return the text of a piece."""
        if not data:
            return ""
        found = decode(data, label.decode("ascii"), guess=self.guess)
        if found.mislabelled and self.guess and found.codec not in ("ascii", "utf_8"):
            self.guess, self.label = False, found.codec
        elif found.mislabelled and self.label:
            found = decode(data, self.label, guess=False)
        return found.text


def _payload(encoding: bytes, data: bytes) -> bytes:
    """Return the bytes of one encoded word; what holds none stays as it is written."""
    return quoted_printable(data, header=True) if encoding in b"qQ" else base64(data) or data
