"""A request of the SPAMC protocol, from bytes: its head, then the pieces of its mail.

    VERB SPAMC/1.5 CRLF, header lines, an empty line, the mail

What SpamAssassin's spamd takes is taken, and what it refuses is refused with its words: the source
is its code (spamd.raw of 4.0.1), for the protocol's description leaves much open. Names of headers
are taken in any case; unknown headers are skipped; `Own` is ours alone. Version 1.0 has no headers.
A mail of an announced length ends there: white space behind it is ignored, anything else tells that
the length is wrong, and half a mail must not be judged, still less handed back as the whole.

No input or output here: bytes are fed in, pieces of the mail come out, and however the bytes are
cut the result is the same. Lengths are checked before anything is kept.
"""

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from spamd.sample import Label

MAX_HEADERS = 256
MAX_LINE_BYTES = 8 * 1024
PIECE_BYTES = 64 * 1024
"""Of a compressed mail so much is inflated at a time: a thousandth of it may have come."""

_FIRST = re.compile(rb"([A-Z_]+) SPAMC/([0-9]{1,4})\.([0-9]{1,4})[ \t]*")
_HEADER = re.compile(rb"([^:]+):[ \t]*(.*)", re.DOTALL)
_DIGITS = re.compile(rb"[0-9]{1,18}")
_CONTROL = re.compile(rb"[\x00-\x1f]")
_SPACE = re.compile(rb"[ \t\r\n]*")


class Code(StrEnum):
    """Response codes, of sysexits.h, each with what stands behind it on the wire."""

    TOO_LARGE = "65 Data Error"
    NO_USER = "67 No User"
    UNAVAILABLE = "69 Service Unavailable"
    INTERNAL = "70 Internal Error"
    TEMPORARY = "75 Temporary Failure"
    PROTOCOL = "76 Bad header line"
    TIMEOUT = "79 Timeout"


class Refused(Exception):
    """The request gets one line instead of an answer.

    Not a `SpamdError`: it never meets a client of SMTP.
    """

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text

    @property
    def line(self) -> bytes:
        """Return the line."""
        return f"SPAMD/1.0 {self.code}: {self.text}\r\n".encode("latin_1", "replace")


class Verb(StrEnum):
    """What is asked for."""

    CHECK = "CHECK"
    SYMBOLS = "SYMBOLS"
    REPORT = "REPORT"
    REPORT_IFSPAM = "REPORT_IFSPAM"
    HEADERS = "HEADERS"
    PROCESS = "PROCESS"
    TELL = "TELL"
    PING = "PING"
    SKIP = "SKIP"


@dataclass(slots=True, kw_only=True)
class Head:
    """The first line and the headers.

    version         of the protocol that the client speaks, which decides the shape of the reply
    user            whom the client says it asks for: unproven, and no path
    own             a TELL is for that user or for nobody; else, where that is no user, for the site
    length          of the mail in bytes, as it comes over the wire; None: as far as the end
    compressed      the mail is a zlib stream
    label           what a TELL says the mail is
    sets, removes   what a TELL asks for: "local" is our database, "remote" are services elsewhere
    """

    verb: Verb
    version: tuple[int, int]
    user: str = ""
    own: bool = False
    length: int | None = None
    compressed: bool = False
    label: Label | None = None
    sets: frozenset[str] = frozenset()
    removes: frozenset[str] = frozenset()

    @property
    def has_mail(self) -> bool:
        """Tell whether a mail follows."""
        return self.verb not in {Verb.PING, Verb.SKIP}

    @property
    def has_headers(self) -> bool:
        """Tell whether header lines follow the first line."""
        match self.verb:
            case Verb.PING | Verb.SKIP:
                return self.version >= (1, 5)  # older clients send no empty line either
            case Verb.TELL:
                return True
            case _:
                return self.version > (1, 0)


class RequestReader:
    """Takes the bytes of one client.

    Args:
        limit_bytes: the largest mail taken.

    Attributes:
        head: the head, once it is whole.
        complete: all of the request has come.
        size_bytes: of the mail, as far as it has come.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._line = bytearray()
        self._pending: Head | None = None  # its headers are being read
        self._headers = 0
        self._received = 0  # of the mail, as it comes over the wire
        self._inflater: _Inflater | None = None
        self.head: Head | None = None
        self.complete = False
        self.size_bytes = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take bytes, not empty, and yield the pieces of the mail that they hold.

        Raises:
            Refused: the request can't be taken.
        """
        at = 0
        while self.head is None and at < len(data):
            end = data.find(b"\n", at) + 1 or len(data)
            self._line += data[at:end]
            at = end
            if len(self._line) > MAX_LINE_BYTES:
                raise Refused(Code.PROTOCOL, "(header line too long)")
            if self._line.endswith(b"\n"):
                self._take_line()
        if at < len(data):
            yield from self._mail(data[at:] if at else data)

    def end(self) -> None:
        """Take it that no more bytes will come.

        Raises:
            Refused: the request is not whole.
        """
        if self._pending is None and self.head is None:
            if not self._line:
                raise Refused(Code.PROTOCOL, "(closed before headers)")
            self._take_line()
        head = self.head
        if head is None:
            raise Refused(Code.PROTOCOL, "(EOF during headers)")
        if not self.complete and head.length is not None:
            raise Refused(Code.PROTOCOL, _mismatch(head.length, str(self._received)))
        self.complete = True

    def _take_line(self) -> None:
        """Read the line that is whole."""
        line = bytes(self._line).removesuffix(b"\n").removesuffix(b"\r")
        self._line.clear()
        if self._pending is None:
            self._pending = first_line(line)
            if not self._pending.has_headers:
                self._headers_end(self._pending)
        elif not line:
            self._headers_end(self._pending)
        else:
            self._headers += 1
            if self._headers > MAX_HEADERS:
                raise Refused(Code.PROTOCOL, "(too many headers)")
            take_header(self._pending, line)

    def _headers_end(self, head: Head) -> None:
        check(head, self._limit_bytes)
        if head.compressed:
            self._inflater = _Inflater()
        self.head = head
        self.complete = not head.has_mail or head.length == 0

    def _mail(self, data: bytes) -> Iterator[bytes]:
        """Yield the pieces of the mail that these bytes hold."""
        head = self.head
        assert head is not None  # noqa: S101 - the mail comes behind it
        if not head.has_mail:
            return
        if head.length is None:
            self._grow(len(data))
            yield data
            return
        left = head.length - self._received
        if _SPACE.fullmatch(data, left) is None and left < len(data):
            raise Refused(Code.PROTOCOL, _mismatch(head.length, "more"))
        piece = data[:left]
        if not piece:
            return
        self._received += len(piece)
        last = self._received == head.length
        if self._inflater is None:
            self._grow(len(piece))
            yield piece
        else:
            for part in self._inflater.inflated(piece, last=last):
                self._grow(len(part))
                yield part
        self.complete = last

    def _grow(self, size: int) -> None:
        self.size_bytes += size
        if self.size_bytes > self._limit_bytes:
            raise too_large(self._limit_bytes)


def first_line(line: bytes) -> Head:
    """Return what the first line asks for.

    Raises:
        Refused: it is none of the protocol.
    """
    found = _FIRST.fullmatch(line)
    if found is None or found[1].decode() not in Verb.__members__:
        raise Refused(Code.PROTOCOL, _shown(line))
    return Head(verb=Verb[found[1].decode()], version=(int(found[2]), int(found[3])))


def take_header(head: Head, line: bytes) -> None:
    """Take what a header line says.

    Raises:
        Refused: it says nothing that could be.
    """
    found = _HEADER.fullmatch(line)
    if found is None:
        raise Refused(Code.PROTOCOL, "(header not in 'Name: value' format)")
    take = _HEADERS.get(found[1].rstrip().lower())
    if take is not None:
        take(head, found[2].rstrip())


def _length(head: Head, value: bytes) -> None:
    if _DIGITS.fullmatch(value) is None:
        raise Refused(Code.PROTOCOL, "(Content-Length contains non-numeric bytes)")
    head.length = int(value)


def _user(head: Head, value: bytes) -> None:
    if _CONTROL.search(value):
        raise Refused(Code.PROTOCOL, "(User header contains control chars)")
    head.user = value.decode("utf_8", "replace")


def _own(head: Head, value: bytes) -> None:
    head.own = value.lower() == b"yes"


def _compress(head: Head, value: bytes) -> None:
    if value.lower() != b"zlib":
        raise Refused(Code.PROTOCOL, f"(compression type not supported: {_shown(value)})")
    head.compressed = True


def _message_class(head: Head, value: bytes) -> None:
    try:
        head.label = Label(value.lower().decode("latin_1"))
    except ValueError:
        text = "(Message-class header contains invalid class)"
        raise Refused(Code.PROTOCOL, text) from None


def _set(head: Head, value: bytes) -> None:
    head.sets = _places(value)


def _remove(head: Head, value: bytes) -> None:
    head.removes = _places(value)


_HEADERS: dict[bytes, Callable[[Head, bytes], None]] = {
    b"content-length": _length,
    b"user": _user,
    b"own": _own,
    b"compress": _compress,
    b"message-class": _message_class,
    b"set": _set,
    b"remove": _remove,
}


def check(head: Head, limit_bytes: int) -> None:
    """See that a whole head makes sense.

    Raises:
        Refused: it makes none.
    """
    if head.compressed and head.length is None:
        raise Refused(Code.UNAVAILABLE, "Compress requires Content-length header")
    for place in ("local", "remote"):
        if place in head.sets & head.removes:
            text = f"Unable to set {place} and remove {place} in the same operation."
            raise Refused(Code.PROTOCOL, text)
    if head.verb is Verb.TELL and "local" in head.sets and head.label is None:
        raise Refused(Code.PROTOCOL, "(Message-class header missing)")
    if head.length is not None and head.length > limit_bytes:
        raise too_large(limit_bytes)


def too_large(limit_bytes: int) -> Refused:
    """Return what a mail gets that is larger than what is taken."""
    return Refused(Code.TOO_LARGE, f"the message is larger than {limit_bytes} bytes")


def _shown(data: bytes) -> str:
    """Return the start of what a client sent, without what could make a line of its own."""
    return _CONTROL.sub(b"?", data[:80]).decode("latin_1")


def _places(value: bytes) -> frozenset[str]:
    lower = value.lower()
    return frozenset(place for place in ("local", "remote") if place.encode() in lower)


def _mismatch(expected: int, got: str) -> str:
    return f"(Content-Length mismatch: Expected {expected} bytes, got {got} bytes)"


class _Inflater:
    """Inflates one zlib stream, a bounded piece at a time."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj()

    def inflated(self, data: bytes, *, last: bool) -> Iterator[bytes]:
        """Yield what these bytes hold.

        Raises:
            Refused: they are no zlib stream, or `last` and it does not end here.
        """
        stream = self._stream
        while True:
            try:
                piece = stream.decompress(data, PIECE_BYTES)
            except zlib.error:
                raise Refused(Code.UNAVAILABLE, "zlib: the data are damaged") from None
            data = stream.unconsumed_tail
            if piece:
                yield piece
            elif not data:
                break
        if stream.unused_data:
            raise Refused(Code.UNAVAILABLE, "zlib: there are data behind the stream")
        if last and not stream.eof:
            raise Refused(Code.UNAVAILABLE, "zlib: failed to find end of zlib stream")
