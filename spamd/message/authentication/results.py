"""Authentication-Results (RFC 8601 §2.2): what a server found out about a message.

    authserv-id [version] *( ; method [/version] = result [reason = value] *( property = value ) )

Read as strictly as its use needs: senders have a say in some values, and a value that runs into a
comment, a quotation without an end, or words that are no property may be theirs. Then the field
says nothing at all. Comments stand wherever the RFC has them, nested too. One pass.

`authres` (Apache-2.0) reads the same, but its last release is of 2019, it refuses fields of
properties that were registered since, and its time grows with the square of the length.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

_FIELD_BYTES = 8_000
"""Longer ones say nothing: Gmail's, with ARC, have 2,000."""

_RESULTS = 50

_BLANK = re.compile(r"\s+")
_COMMENT = re.compile(r"[^()\\]+|\\.|[()]", re.DOTALL)
_WORD = re.compile(r"[0-9A-Za-z_-]+")
_DOTTED = re.compile(r"[0-9A-Za-z._-]+")
_QUOTED = re.compile(r'"((?>(?:[^"\\]|\\.)*))"')
_VALUE = re.compile(r"[^\s;()\"\\]+")
_ID = re.compile(r"[^\s;()\"\\=]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one method found, in lower case, and its properties: ("header.d", "example.org") …."""

    method: str
    result: str
    properties: tuple[tuple[str, str], ...] = ()

    def of(self, name: str) -> str:
        """Return the value of a property, "" without it or with several."""
        values = {value for key, value in self.properties if key == name}
        return values.pop() if len(values) == 1 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """One field: the server that says so, and what it found."""

    server: str
    results: tuple[Result, ...]


@lru_cache(maxsize=512)
def results_of(value: bytes) -> Results | None:
    """Return what the value of an Authentication-Results field says, None when it is malformed."""
    if len(value) > _FIELD_BYTES:
        return None
    try:
        return _Reader(value.decode("utf-8")).field()
    except (_MalformedError, UnicodeDecodeError):
        return None


class _MalformedError(ValueError):
    pass


class _Reader:
    """Goes through the text once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def field(self) -> Results:
        self._blank()
        server = self._quoted() or self._take(_ID)
        self._blank()
        if self._at < len(self._text) and self._peek() != ";" and self._take(_WORD) != "1":
            raise _MalformedError  # RFC 8601 §2.2: the version
        self._blank()
        found: list[Result] = []
        while self._at < len(self._text):
            self._expect(";")
            if self._at == len(self._text):
                break
            if (result := self._result()) is not None:
                found.append(result)
            if len(found) > _RESULTS:
                raise _MalformedError
        return Results(server=server.lower(), results=tuple(found))

    def _result(self) -> Result | None:
        method = self._take(_WORD).lower()
        self._blank()
        if method == "none" and (self._at == len(self._text) or self._peek() == ";"):
            return None
        if self._sign("/"):
            self._take(_WORD)
            self._blank()
        self._expect("=")
        result = self._take(_WORD).lower()
        self._blank()
        properties: list[tuple[str, str]] = []
        while self._at < len(self._text) and self._peek() != ";":
            name = self._name()
            self._expect("=")
            properties.append((name, self._value()))
        return Result(method=method, result=result, properties=tuple(properties))

    def _name(self) -> str:
        """Take `ptype.property`; a name without a dot (`reason`) is one as well."""
        name = self._take(_DOTTED)
        self._blank()
        if self._sign("."):
            name = f"{name}.{self._take(_DOTTED)}"
            self._blank()
        elif name.endswith("."):
            name += self._take(_DOTTED)
            self._blank()
        return name.lower()

    def _value(self) -> str:
        """Take a value: what follows it must be a blank, a `;` or the end."""
        quoted = self._quoted()
        rest = _VALUE.match(self._text, self._at)
        if rest is not None:
            self._at = rest.end()
        if quoted is None and rest is None:
            raise _MalformedError
        end = self._at
        if end < len(self._text) and self._text[end] != ";" and not self._text[end].isspace():
            raise _MalformedError  # "pass.example(comment).of.the.sender"
        self._blank()
        return (quoted or "") + (rest[0] if rest else "")

    def _quoted(self) -> str | None:
        found = _QUOTED.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        return found[1]

    def _take(self, pattern: re.Pattern[str]) -> str:
        self._blank()
        found = pattern.match(self._text, self._at)
        if found is None:
            raise _MalformedError
        self._at = found.end()
        return found[0]

    def _peek(self) -> str:
        return self._text[self._at]

    def _sign(self, sign: str) -> bool:
        """Take a sign and the blanks behind it, if it stands here."""
        if not self._text.startswith(sign, self._at):
            return False
        self._at += 1
        self._blank()
        return True

    def _expect(self, sign: str) -> None:
        if not self._sign(sign):
            raise _MalformedError

    def _blank(self) -> None:
        """Pass over white space and comments, nested ones too (RFC 5322 §3.2.2)."""
        while True:
            if (blank := _BLANK.match(self._text, self._at)) is not None:
                self._at = blank.end()
            if not self._text.startswith("(", self._at):
                return
            depth = 0
            while True:
                piece = _COMMENT.match(self._text, self._at)
                if piece is None:
                    raise _MalformedError  # a comment without an end
                self._at = piece.end()
                depth += (piece[0] == "(") - (piece[0] == ")")
                if not depth:
                    break
