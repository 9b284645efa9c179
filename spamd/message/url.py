"""URLs: found in text, cleaned as browsers clean them, and cut into the pieces that tell something.

The canonical host is lower case, in Unicode form when its `xn--` labels round-trip (a false one stays
as it is), and without a trailing dot. Percent signs are decoded in host and path. What browsers repair
is repaired: white space and control characters inside, backslashes, any number of slashes. What people
write to slip through filters is read: `hxxp://`, `example[.]com`.
"""

import re
from dataclasses import dataclass
from functools import cache
from urllib.parse import unquote

from publicsuffixlist import PublicSuffixList

_IN_TEXT = re.compile(
    r"""(?:\b(?:https?|hxxps?|ftp):[/\\]{1,8}|\bwww[0-9]{0,2}\.)[^\s<>"'\x60{}|]{1,2048}""",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,20}):")
_DEFANGED = re.compile(r"\[\.\]|\[dot\]|\(dot\)", re.IGNORECASE)
_BLANKS = re.compile(r"[\s\x00-\x20\x7f]+")
_PIECES = re.compile(r"[^\W_]{2,40}")
_HEX = re.compile(r"(?=[0-9a-f]*[0-9])[0-9a-f]{8,}$")
_ADDRESS4 = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}$|0x[0-9a-f]+$|\d{8,10}$")
_MAX_PIECES = 12  # a path is cut there: tracking parameters behind are noise
_WEB = ("http", "https", "ftp", "hxxp", "hxxps")


@dataclass(frozen=True, slots=True)
class Link:
    """One URL taken apart; `host` is empty for the schemes that have none."""

    scheme: str
    host: str
    port: str
    user: bool
    pieces: tuple[str, ...]

    @property
    def is_address(self) -> bool:
        """The host is an IP address, perhaps in a disguise."""
        return bool(_ADDRESS4.match(self.host)) or self.host.startswith("[")


def in_text(text: str) -> list[str]:
    """Return the URLs that stand in running text, without the full stop or bracket behind them."""
    if "://" not in text and "www" not in text and ":\\" not in text and "://" not in text.lower():
        return []
    return [match.rstrip(".,;:!?)]*_") for match in _IN_TEXT.findall(text)]


def without_urls(text: str) -> str:
    """Return the text with its URLs blanked: their pieces are tokens of another kind."""
    return _IN_TEXT.sub(" ", text)


def take_apart(url: str) -> Link | None:
    """Return the pieces of a URL as written, or None when it names nothing (`#top`, `about:blank`)."""
    url = _BLANKS.sub("", url[:2048])
    url = _DEFANGED.sub(".", url) if "[" in url or "(" in url else url
    match = _SCHEME.match(url)
    if match is None:
        if not url.lower().startswith(("www", "//")):
            return None
        scheme, rest = "http", url
    else:
        scheme, rest = match[1].lower().replace("hxxp", "http"), url[match.end() :]
    if scheme == "mailto":
        user, _, host = unquote(rest).partition("?")[0].rpartition("@")
        return (
            Link("mailto", canonical_host(host), "", False, (user.lower()[:40],)) if host else None
        )
    if scheme not in _WEB:
        return Link(scheme, "", "", False, ())
    rest = rest.replace("\\", "/").lstrip("/")
    authority, slash, path = rest.partition("/")
    if not slash:
        authority, _, path = re.sub(r"[?#]", "/", rest, count=1).partition("/")
    user, at, host = authority.rpartition("@")
    name, colon, port = host.rpartition(":")
    if colon and (port.isdigit() or not port):
        host = name
    else:
        port = ""
    return Link(scheme, canonical_host(host), port, bool(at and user), _path_pieces(path))


def _path_pieces(path: str) -> tuple[str, ...]:
    if not path:
        return ()
    pieces = _PIECES.findall(unquote(path[:512]).lower())
    return tuple(
        [piece for piece in pieces if not piece.isdigit() and not _HEX.match(piece)][:_MAX_PIECES]
    )


def canonical_host(host: str) -> str:
    """Return the one spelling of a host name that both its Unicode and its `xn--` form lead to."""
    host = unquote(host) if "%" in host else host
    host = host[:255].lower().strip(".")
    if "xn--" not in host:
        return host if host.isascii() else _folded(host)
    return ".".join(_label(label) for label in host.split("."))


def _folded(host: str) -> str:
    for dot in "。．｡":  # RFC 3490 §3.1: three more characters count as a full stop
        host = host.replace(dot, ".")
    return host


def _label(label: str) -> str:
    if not label.startswith("xn--") or len(label) > 63:
        return label
    try:
        text = label[4:].encode("ascii").decode("punycode")
        return text if "xn--" + text.encode("punycode").decode("ascii") == label and text else label
    except (UnicodeError, ValueError, OverflowError):
        return label


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()  # 128 ms, so not before the first link is read


def registrable_domain(host: str) -> str:
    """Return what somebody registered: "example.co.uk" of "www.example.co.uk", else the host itself."""
    if "." not in host or _ADDRESS4.match(host):
        return host
    return _suffixes().privatesuffix(host) or host
