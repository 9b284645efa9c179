"""The wire to an IMAP server: all it sends is bounded in size, number and time, as it may lie.

`imaplib` reads what a server sends: a literal of any size, lines without number, and each read may
take its whole time-out again, so a byte a second keeps it for ever. `Wire` is its connection with a
reader of its own. Before each command `begin` says how much the answer may hold and when it must be
whole; what goes beyond ends the connection.

What one connection can make us hold is at most
    LINE_BYTES               of a line that has no end yet
    Allowance.answer_bytes   of lines and literals of one answer, each line counted with the memory
                             it takes in Python; nothing is kept from one command to the next
    Allowance.text_bytes     of lines, twenty times over while they are taken apart
and of a literal that is announced larger than what is left nothing is read.

Compression (RFC 4978) is never asked for. Nothing that a server sent before TLS is read after it.
"""

import imaplib
import re
import socket
import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

LINE_BYTES = 1_000_000
"""The longest line, as in `imaplib`: 90,000 UIDs."""

ANSWER_BYTES = 16 * 1024 * 1024
"""What one answer may hold: the headers of `feedback.chunk` mails at 32 KiB each."""

TEXT_BYTES = 2 * 1024 * 1024
"""Of these, lines: `imapclient` makes up to twenty times of them, byte by byte. An honest answer
has some 200 bytes for each of `feedback.chunk` mails beside their headers, or a line of UIDs."""

LINE_COST = 120
"""Bytes that a line takes in memory besides its text: the object, its place in a list."""

READ_BYTES = 64 * 1024
"""Asked of the network at a time; no record of TLS is larger, so none stays half read."""

_NEWS = re.compile(rb"\* (?:\d{1,10} (?:EXISTS|EXPUNGE)|VANISHED)\b", re.IGNORECASE)
_CHANGE = re.compile(rb"\* \d{1,10} FETCH\b", re.IGNORECASE)
_FLAGS = re.compile(rb"\bFLAGS \(([^()]*+)\)", re.IGNORECASE)
_LESSONS = {b"$junk", b"$notjunk", b"\\seen"}
_BYE = re.compile(rb"\* BYE\b", re.IGNORECASE)


class BreachError(imaplib.IMAP4.abort):
    """The server sent more than an answer can hold, or what no IMAP server sends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What the answer to one command may take.

    seconds       until it is whole
    answer_bytes  in memory, of lines and literals
    text_bytes    of lines, without what each costs besides
    """

    seconds: float
    answer_bytes: int = ANSWER_BYTES
    text_bytes: int = TEXT_BYTES


class Wire(imaplib.IMAP4):
    """A connection to an IMAP server as `imapclient` uses it.

    Args:
        host: name or address; port: number.
        context: for TLS from the first byte; None: in the clear, or STARTTLS later.
        greeting: what may pass until the server has greeted and named its capabilities.
    """

    def __init__(
        self, host: str, port: int, context: ssl.SSLContext | None, greeting: Allowance
    ) -> None:
        self._context = context
        self._buffer = bytearray()
        self._searched = 0
        self._ended = False
        self.begin(greeting)
        super().__init__(host, port)

    def begin(self, allowance: Allowance) -> None:
        """Set what the next answer may take, and forget what was said beside earlier ones."""
        self._allowance = allowance
        self._left = allowance.answer_bytes
        self._text_left = allowance.text_bytes
        self._until = time.monotonic() + allowance.seconds
        self.untagged_responses = {}

    # ── what imaplib calls ──────────────────────────────────────────────────────────────────────

    def open(
        self,
        host: str = "",
        port: int = 143,
        timeout: float | None = None,  # noqa: ARG002 - `begin` sets the time
    ) -> None:
        """Connect, with TLS from the first byte where it is wanted."""
        self.host, self.port = host, port
        self.sock = socket.create_connection((host, port), timeout=self._patience())
        if self._context is not None:
            try:
                self.sock = self._secured(self._context)
            except BaseException:
                self.sock.close()
                raise

    def starttls(
        self, ssl_context: ssl.SSLContext | None = None
    ) -> tuple[Literal["OK"], list[None]]:
        """Ask for TLS and go on in it."""
        kind, _ = self._simple_command("STARTTLS")
        if kind != "OK":
            raise self.error("the server refuses STARTTLS")
        if ssl_context is None:
            raise ValueError("STARTTLS needs a TLS context")
        # RFC 9051 §11.2: what came in the clear may be anybody's (CVE-2021-38371).
        self._buffer.clear()
        self._searched = 0
        self.sock = self._secured(ssl_context)
        self._tls_established = True
        self._get_capabilities()
        return "OK", [None]

    def read(self, size: int) -> bytes:
        """Return a literal.

        Raises:
            BreachError: it is larger than what is left of the answer.
        """
        if size > self._left:
            self._breach()
        self._left -= size
        while len(self._buffer) < size:
            self._receive()
        with memoryview(self._buffer) as held:
            literal = bytes(held[:size])
        del self._buffer[:size]
        self._searched = 0
        return literal

    def readline(self) -> bytes:
        """Return a line with its end.

        Raises:
            BreachError: it has no end, or is one too many.
        """
        while (line := self._line()) is None:
            self._receive()
        return line

    def send(self, data: "Buffer") -> None:
        """Send all of some bytes."""
        self.sock.settimeout(self._patience())
        self.sock.sendall(data)

    def shutdown(self) -> None:
        """Close the connection, and let go of what it brought."""
        self._buffer.clear()
        self._searched = 0
        self.untagged_responses = {}
        self.sock.close()

    def _log(self, line: str) -> None:
        """Keep no log of lines: `imaplib` would hold the last ten, of any size."""

    # ── IDLE (RFC 2177) ─────────────────────────────────────────────────────────────────────────

    def idle_begin(self) -> tuple[bytes, bool]:
        """Send IDLE; return its tag, and whether the server told of news before it went idle."""
        tag = self._new_tag()
        self.send(tag + b" IDLE\r\n")
        told = False
        while not (line := self.readline()).startswith(b"+"):
            told |= self._tells(line)
            if line.startswith(tag):
                raise BreachError("the server refuses IDLE")
        return tag, told

    def idle_news(self, seconds: float) -> bool:
        """Wait for a line at most so long; return whether it tells of changes."""
        line = self._line()
        if line is None:
            self.sock.settimeout(max(0.001, min(seconds, self._patience())))
            try:
                self._take(self.sock.recv(READ_BYTES))
            except (TimeoutError, ssl.SSLWantReadError):
                return False
            line = self._line()
        return line is not None and self._tells(line)

    def idle_end(self, tag: bytes) -> None:
        """Send DONE and read to the end of the answer."""
        self.send(b"DONE\r\n")
        while not (line := self.readline()).startswith(tag + b" "):
            self._tells(line)
        self.tagged_commands.pop(tag, None)

    def _tells(self, line: bytes) -> bool:
        """Return whether a line within IDLE means that something happened that may be a lesson.

        "Still here" does not. Of a mail that was read it is known at once when that was: an hour
        later it would look like one of many. Where flags change without being named, nobody knows.
        """
        if _BYE.match(line):
            raise BreachError("the server ended the session (BYE)")
        if not _CHANGE.match(line):
            return _NEWS.match(line) is not None
        flags = _FLAGS.search(line)
        return flags is None or not _LESSONS.isdisjoint(flags[1].lower().split())

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    def _line(self) -> bytes | None:
        """Return the next line if it is here whole."""
        end = self._buffer.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._buffer)
            if self._searched > LINE_BYTES:
                raise BreachError(f"a line is longer than {LINE_BYTES:,} bytes")
            return None
        self._searched = 0
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        self._left -= len(line) + LINE_COST
        self._text_left -= len(line)
        if self._left < 0 or self._text_left < 0 or end > LINE_BYTES:
            self._breach()
        return line

    def _receive(self) -> None:
        """Wait for more; an end that came in the middle of an answer is a broken connection."""
        self.sock.settimeout(self._patience())
        try:
            self._take(self.sock.recv(READ_BYTES))
        except TimeoutError:
            self._patience()
            raise

    def _take(self, block: bytes) -> None:
        if not block:
            raise self.abort("the connection ended")
        self._buffer += block

    def _patience(self) -> float:
        """Return the seconds that are left.

        Raises:
            TimeoutError: there are none.
        """
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"no whole answer within {self._allowance.seconds:g} s")
        return left

    def _breach(self) -> None:
        most = self._allowance
        raise BreachError(
            f"an answer is larger than {most.answer_bytes:,} bytes, or its lines than"
            f" {most.text_bytes:,}"
        )

    def _secured(self, context: ssl.SSLContext) -> ssl.SSLSocket:
        self.sock.settimeout(self._patience())  # for the whole handshake
        return context.wrap_socket(self.sock, server_hostname=self.host)
