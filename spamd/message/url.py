"""URLs: found in text, cleaned as browsers clean them, and cut into the pieces that tell something.

The canonical host is lower case, in Unicode form when its `xn--` labels round-trip (a false one
stays as it is), and without a trailing dot. Percent signs are decoded in host and path. What
browsers repair is repaired: white space and control characters inside, backslashes, any number of
slashes. What people write to slip through filters is read: `hxxp://`, `example[.]com`.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from publicsuffixlist import PSLFILE

from spamd.message import unicode

_REST = re.compile(r"[^\s<>\"'\x60{}|\\^]{0,2048}")
_BEFORE = re.compile(r"(?:https?|hxxps?|ftp)$", re.IGNORECASE)
_ANCHORS = ("://", "www.", "WWW.", ":\\\\")
_HOST = re.compile(  # a host in ASCII, and signs without a blank before them that are none of it
    rf"[A-Za-z0-9.-]{{1,253}}\.([A-Za-z]{{2,24}})"
    rf"(?=[,()]|[{unicode.SPACELESS}]|。(?![A-Za-z0-9]))(?!\(dot\))"
)
_TRAILING = ".,;:!?)]*_"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,20}):")
_DEFANGED = re.compile(r"\[\.\]|\[dot\]|\(dot\)", re.IGNORECASE)
_BLANKS = re.compile(r"[\s\x00-\x20\x7f]+")
_QUERY = re.compile(r"[?#]")
_PIECES = re.compile(r"[^\W_]{2,40}")
_HEX = re.compile(r"(?=[0-9a-f]*[0-9])[0-9a-f]{8,}$")
_ADDRESS4 = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}$|0x[0-9a-f]+$|\d{8,10}$")
_MAX_PIECES = 12  # a path is cut there: tracking parameters behind are noise
_SUFFIX_LABELS = 9  # more than any rule of the list has
_WEB = ("http", "https", "ftp", "hxxp", "hxxps")


class Link(NamedTuple):
    """One URL taken apart; `host` is empty for the schemes that have none."""

    scheme: str
    host: str = ""
    port: str = ""
    user: bool = False
    pieces: tuple[str, ...] = ()

    @property
    def is_address(self) -> bool:
        """The host is an IP address, perhaps in a disguise."""
        return bool(_ADDRESS4.match(self.host)) or self.host.startswith("[")


def cut_out(text: str) -> tuple[list[str], str]:
    """Return the URLs that stand in running text, and the text without them.

    Their pieces are tokens of another kind than words. The full stop or bracket behind a URL is
    none of it, nor are letters of a script without spaces around its host. Looks for `://` and
    `www.` first: a search for the schemes costs ten times as much.
    """
    spans = sorted(span for anchor in _ANCHORS if anchor in text for span in _spans(text, anchor))
    if not spans:
        return [], text
    found: list[str] = []
    kept: list[str] = []
    position = 0
    for start, end in spans:
        if start >= position:
            found.append(text[start:end].rstrip(_TRAILING))
            kept.append(text[position:start])
            position = end
    kept.append(text[position:])
    return found, " ".join(kept)


def _spans(text: str, anchor: str) -> Iterator[tuple[int, int]]:
    """Yield where the URLs around an anchor start and end."""
    at = text.find(anchor)
    while at >= 0:
        end = at + len(anchor)
        if anchor[0] == ":":
            scheme = _BEFORE.search(text, max(0, at - 5), at)
            start = at if scheme is None else scheme.start()
            usable = scheme is not None
        else:
            start, before = at, text[at - 1 : at]
            usable = not before.isalnum() or unicode.is_spaceless(before) is not None
        if usable and (stop := _stop(text, start if anchor[0] in "wW" else end, end)) > end:
            end = stop
            yield start, end
        at = text.find(anchor, end)


def _stop(text: str, host: int, start: int) -> int:
    """Return where the URL stops whose host begins at `host` and that is read up to `start`."""
    closed = _HOST.match(text, host)
    if closed is not None and closed[1].lower() in _rules():
        return closed.end()
    rest = _REST.match(text, start)
    return start if rest is None else rest.end()


def take_apart(url: str) -> Link | None:
    """Return the pieces of a URL, or None when it names nothing (`#top`, `about:blank`)."""
    url = url[:2048]
    if not url.isprintable() or " " in url:
        url = _BLANKS.sub("", url)
    url = _DEFANGED.sub(".", url) if "[" in url or "(" in url else url
    match = _SCHEME.match(url)
    if match is None:
        if not url.lower().startswith(("www", "//")):
            return None
        scheme, rest = "http", url
    else:
        scheme, rest = match[1].lower().replace("hxxp", "http"), url[match.end() :]
    if scheme == "mailto":
        user, at, host = unquote(rest).partition("?")[0].rpartition("@")
        if not at or not host:
            return None
        return Link(scheme=scheme, host=canonical_host(host), pieces=(user.lower()[:40],))
    if scheme not in _WEB:
        return Link(scheme=scheme)
    return _web(scheme, rest.replace("\\", "/").lstrip("/"))


def _web(scheme: str, rest: str) -> Link:
    """Return the pieces of what follows `scheme://`."""
    authority, slash, path = rest.partition("/")
    if not slash:
        authority, _, path = _QUERY.sub("/", rest, count=1).partition("/")
    user, at, host = authority.rpartition("@")
    name, colon, port = host.rpartition(":")
    if colon and (port.isdigit() or not port):
        host = name
    else:
        port = ""
    return Link(
        scheme=scheme,
        host=canonical_host(host),
        port=port,
        user=bool(at and user),
        pieces=_path_pieces(path),
    )


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
    return ".".join(host_label(label) for label in host.split("."))


def _folded(host: str) -> str:
    for dot in "。．｡":  # RFC 3490 §3.1: three more characters count as a full stop
        host = host.replace(dot, ".")
    return host


def host_label(label: str) -> str:
    """Return a label in Unicode when it is an `xn--` one that round-trips, else as it is."""
    if not label.startswith("xn--") or len(label) > 63:
        return label
    try:
        text = label[4:].encode("ascii").decode("punycode")
        return text if "xn--" + text.encode("punycode").decode("ascii") == label and text else label
    except (UnicodeError, ValueError, OverflowError):
        return label


@cache
def _rules() -> frozenset[str]:
    """Return the lines of the public suffix list; read when the first host comes.

    A rule is a line; what else stands there looks like no host. Taking each line apart, as
    `PublicSuffixList` does, takes ten times as long. Hosts come in their Unicode form
    (`canonical_host`), as the list has them.
    """
    with open(PSLFILE, encoding="utf-8") as lines:  # noqa: PTH123 - where the package keeps it
        return frozenset(lines.read().split("\n"))


@lru_cache(maxsize=4_096)  # the same few hosts come again and again
def registrable_domain(host: str) -> str:
    """Return what somebody registered ("example.co.uk" of "www.example.co.uk"), else the host."""
    if "." not in host or _ADDRESS4.match(host):
        return host
    labels = host.removesuffix(".").split(".")  # the dot of the root says nothing
    start = 0 if "" in labels else _suffix_start(labels)
    return ".".join(labels[start - 1 :]) if start else host


def _suffix_start(labels: list[str]) -> int:
    """Return at which label the public suffix starts: the longest that a rule names, or the last.

    `*.ck` makes what stands before `ck` a suffix, and `ck` too; `!www.ck` takes one out again.
    """
    rules = _rules()
    for start in range(max(0, len(labels) - _SUFFIX_LABELS), len(labels)):
        name = ".".join(labels[start:])
        if f"!{name}" in rules:
            return start + 1
        if f"*.{name}" in rules:
            return max(0, start - 1)
        if name in rules:
            return start
    return len(labels) - 1
