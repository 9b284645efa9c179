"""Which mail is this, whatever hop touched it.

The digest covers what stays the same from our door to the mailbox: sender, date, Message-ID,
subject and the decoded texts, and the attachments. It leaves out what hops change: trace fields,
other filters' fields and subject marks, line ends, white space, `>From ` quoting of mbox files,
transfer encoding of texts, list footers. Two different mails with one Message-ID are two mails.

The id is a name we give a mail when we scan it. It carries a keyed check, so that a stranger
can't name his mail after another one.
"""

import re
from hashlib import blake2b
from hmac import compare_digest

from spamd.message.parser import Message, Part
from spamd.message.reading import Reading, without_footer

DIGEST_BYTES = 16
"""128 bits: no two mails of a lifetime collide by chance, and 2**64 tries are needed by malice."""

_CHECK_BYTES = 8  # a forger has one try per mail; 2**-64 is enough
_QUOTED_FROM = re.compile(rb"(?m)^>+(?=From )")
_ID = re.compile(r"([0-9a-f]{8,64})-([0-9a-f]{16})")
_TEXT_BYTES = 1_048_576  # splitting into words makes 20 bytes of one: bounded here
_RULES = (b"____", b"-----", b"=====")  # one of them stands above a list footer
_BLANKS = b" \t\n\r\v\f"
_FIELDS = ("from", "date", "message-id")


def digest(message: Message, reading: Reading) -> bytes:
    """Return the identity of a mail's stable part, `DIGEST_BYTES` long."""
    state = blake2b(digest_size=DIGEST_BYTES, person=b"spamd mail")
    for name in _FIELDS:
        value = message.first(name) or b""
        state.update(b"%s:%s\n" % (name.encode(), value.translate(None, _BLANKS)))
    state.update(b"subject:" + "".join(reading.subject.split()).encode())
    for part in message.parts:
        if stable := _stable(part):
            state.update(b"\0")
            state.update(stable)
            state.update(part.body[_TEXT_BYTES:].rstrip() if _is_text(part) else b"")
    return state.digest()


def _is_text(part: Part) -> bool:
    return part.content_type.type.startswith(("text/", "message/"))


def _stable(part: Part) -> bytes:
    """Return what of a part no hop changes; of a text of more than a megabyte, its start."""
    if not _is_text(part):
        return part.body.rstrip()
    data = part.payload(_TEXT_BYTES)
    if b">From " in data:
        data = _QUOTED_FROM.sub(b"", data)
    if part.content_type.type == "text/plain" and any(rule in data[-2000:] for rule in _RULES):
        data = without_footer(data.decode("latin_1")).encode("latin_1")
    return data.translate(None, _BLANKS)


def new_id(random: bytes, key: bytes) -> str:
    """Return a new id made of `random` (at least 4 bytes) and its check under `key`."""
    return f"{random.hex()}-{_check(random, key)}"


def genuine(id: str, key: bytes) -> bool:  # noqa: A002 - the domain's word
    """Tell whether `id` was made by `new_id` under the same key."""
    match = _ID.fullmatch(id.strip().lower())
    if match is None or len(match[1]) % 2:
        return False
    return compare_digest(_check(bytes.fromhex(match[1]), key), match[2])


def _check(random: bytes, key: bytes) -> str:
    return blake2b(random, digest_size=_CHECK_BYTES, key=key[:64], person=b"spamd id").hexdigest()
