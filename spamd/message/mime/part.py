"""One entity of a message: its fields, and what they say of type, encoding and file name.

Of several Content-Type fields readers take the first or the last: the one that is a multipart
counts, else the first; of several transfer encodings that one which the body has.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from spamd.message.mime.content_type import PLAIN, ContentType, content_type, disposition_parameters
from spamd.message.mime.transfer import Encoding, encoding_of, transfer_decode
from spamd.message.spam_fields import HEADER_NAMES

_NO_SIGNS = rb"(?>(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff|[\x00-\x08\x0b\x0c\x0e-\x1f])*)"
FIELD_AT = re.compile(_NO_SIGNS + rb"([!-9;-~]++)[ \t]*+:([^\n]*+(?>(?:\n[ \t][^\n]*+)*))\n?")
"""A header field, maybe behind signs that no name can hold: a byte order mark, a NUL."""

_STRAYS = rb"(?:(?!--)[^\n]++\n){1,20}?(?=" + _NO_SIGNS
_MESSAGE_STRAYS = re.compile(_STRAYS + HEADER_NAMES + rb"[ \t]*+:)", re.IGNORECASE)
_PART_STRAYS = re.compile(_STRAYS + rb"content-[a-z-]{1,40}+[ \t]*+:)", re.IGNORECASE)
_FIELD_BYTES = 16_384  # of a Content-Disposition or Content-Transfer-Encoding that are looked at
_AS_BASE64 = re.compile(rb"[ \t\n]*+[A-Za-z0-9+/]{4,}={0,2}[ \t]*(?:\n|\Z)")


class Field(NamedTuple):
    """One header field; `value` is what follows the colon, folds kept as LF and white space."""

    name: str  # lower case
    spelled: str  # as written
    value: bytes


@dataclass(frozen=True, kw_only=True)  # without slots, to keep what was decoded
class Part:
    """One MIME entity without children; its file name is "" when it has none."""

    fields: tuple[Field, ...]
    content_type: ContentType
    encoding: Encoding
    name: str
    body: bytes
    depth: int

    def first(self, name: str) -> bytes | None:
        """Return the value of the first field of that lower-case name."""
        return next((field.value for field in self.fields if field.name == name), None)

    def payload(self, limit: int | None = None) -> bytes:
        """Return the body, transfer-decoded; only its first `limit` encoded bytes when given."""
        if limit is None or limit >= len(self.body):
            return self._decoded
        return transfer_decode(self.body[:limit], self.encoding)

    @cached_property
    def _decoded(self) -> bytes:
        return transfer_decode(self.body, self.encoding)


def strays_at(data: bytes, position: int, stop: int, *, of_message: bool) -> int:
    """Return where the fields go on behind lines that are none, 0 where they don't."""
    if position >= stop or data[position] == 10:
        return 0
    if of_message:
        strays = _MESSAGE_STRAYS.match(data, position, stop)
    else:
        strays = _PART_STRAYS.match(data, position, stop)
    return 0 if strays is None else strays.end()


def ends_blank(value: bytes) -> bool:
    """Tell whether the last line of a folded value is blank: readers take it for the blank line."""
    _, folded, last = value.rpartition(b"\n")
    return bool(folded) and not last.strip()


def came_with(fields: Sequence[Field]) -> bool:
    """Tell whether a message had fields before it reached us and the hops behind us."""
    added = ("x-spam-", "x-front", "received", "return-path", "delivered-to")
    return any(not field.name.startswith(added) for field in fields)


def file_name(fields: tuple[Field, ...], kind: ContentType) -> str:
    """Return the file name that an entity with these fields has."""
    for field in fields:
        if field.name == "content-disposition":
            given = disposition_parameters(field.value[:_FIELD_BYTES])
            if name := given.get("filename", given.get("name", "")):
                return name
    return kind.parameters.get("name", "")


def kind_of(fields: tuple[Field, ...], most: int, *, in_digest: bool) -> ContentType:
    """Return the type of an entity, of which the first `most` bytes of a field are read."""
    kind: ContentType | None = None
    for field in fields:
        if field.name == "content-type":
            found = content_type(field.value[:most])
            if kind is None or "boundary" in found.parameters:
                kind = found
            if "boundary" in kind.parameters:
                break
    if kind is None:
        return ContentType("message/rfc822") if in_digest else PLAIN  # RFC 2046 §5.1.5
    return kind


def transfer_encoding_of(fields: tuple[Field, ...], data: bytes, start: int) -> Encoding:
    """Return the transfer encoding of an entity whose body begins at `start` of the data."""
    found = dict.fromkeys(
        encoding_of(field.value[:_FIELD_BYTES].decode("latin_1"))
        for field in fields
        if field.name == "content-transfer-encoding"
    )
    if len(found) > 1:
        encoded = _AS_BASE64.match(data, start) is not None
        return next((each for each in found if each and (each == "base64") == encoded), "")
    return next(iter(found), "")


def is_named_message(part: Part) -> bool:
    """Tell whether a part is a message by its file name only."""
    kind = part.content_type
    return (kind.main == "application" or kind.type == "text/plain") and (
        part.name.lower().rstrip(". ").endswith(".eml")
    )
