"""Which mail is this, whatever hop touched it.

The digest covers what a reader is shown: From, Reply-To, To, Cc, Date, Subject, the decoded texts
with their types and charsets, attachments with their names, how all that is nested, the header of
messages inside, and Message-ID. It leaves out what hops change: trace fields, other filters' fields
and subject marks, line ends, white space, `>From ` quoting of mbox files, transfer encoding of
texts, list footers. Two different mails with one Message-ID are two mails.

A footer is left out only if it is a list manager's form, word by word, that names one list at one
domain: whatever else stands below a rule is text like any other. Mail that a hop behind us changed
otherwise is found by its id. So is mail of which only the start is at hand where it lies
(`feedback.max_message_bytes`): the digest of a mail that is larger than what is read stands for all
of its body.

The id is a name we give a mail when we scan it. It carries a keyed check, so that a stranger
can't name his mail after another one.
"""

import re
from collections.abc import Iterable
from hashlib import blake2b
from hmac import compare_digest

from spamd.message.mime.parser import Message, Part
from spamd.message.reading import Reading
from spamd.message.url import registrable_domain

DIGEST_BYTES = 16
"""128 bits: no two mails of a lifetime collide by chance, and 2**64 tries are needed by malice."""

_CHECK_BYTES = 8  # a forger has one try per mail; 2**-64 is enough
_QUOTED_FROM = re.compile(rb"(?m)^>+(?=From )")
_ID = re.compile(r"([0-9a-f]{8,64})-([0-9a-f]{16})")
_TEXT_BYTES = 1_048_576  # splitting into words makes 20 bytes of one: bounded here
_BLANKS = b" \t\n\r\v\f"
_FIELDS = ("from", "reply-to", "to", "cc", "date", "message-id")
_NOBODY = re.compile(
    rb"[^:]*:;"
)  # "undisclosed-recipients:;", which servers add where To is missing
_TAIL_BYTES = 2_000
_RULES = (b"_" * 30, b"-" * 50, b"=" * 50)  # one of them stands above a list footer
_AT = rb"[\w.+-]{1,64}@[\w.-]{1,120}"
_LINES = (  # of the footers that Mailman 2 and 3 and ezmlm make
    rb"[\w.+-]{1,64} mailing list(?: -- " + _AT + rb")?",
    rb"(?:to unsubscribe send an email to )?" + _AT,
    rb"(?:to unsubscribe|for additional commands), e-mail: " + _AT,
    rb"https?://[\w.-]{1,120}/(?:mailman/listinfo|(?:mailman3?/)?postorius/lists)/[\w.+-]{1,120}/?",
    rb"",
)
_FOOTER = re.compile(
    rb"(?:\A|\n)(?:_{30,}|-{50,}|={50,})[ \t]*\n"
    rb"((?:(?:" + rb"|".join(_LINES) + rb")[ \t]*(?:\n|\Z)){1,8})\s*\Z",
    re.IGNORECASE,
)
_NAMED = re.compile(
    rb"(?<![\w.+-])([\w.+-]++)@([\w.-]++)|//([\w.-]++)/(?:[\w-]++/)+([\w+-]++)"
    rb"|(?<![\w.+-])([\w.+-]++) mailing",
    re.IGNORECASE,
)
_EMPTY_LINE = re.compile(rb"(?:\r?\n|\r(?!\n))(?:\r?\n|\r(?!\n))")
CUT = "message cut"
"""The defect of a mail that is larger than what is read of it."""

_COMMAND = re.compile(rb"-(?:leave|unsubscribe|help|request)\Z")


def digest(message: Message, reading: Reading) -> bytes:
    """Return the identity of a mail's stable part, `DIGEST_BYTES` long.

    Of a mail that is larger than what is read, of its header: `with_rest` adds the body.
    """
    state = blake2b(digest_size=DIGEST_BYTES, person=b"spamd mail")

    def add(kind: bytes, data: bytes) -> None:
        """Take in something that can't run into the next: its length stands in front."""
        state.update(b"%s %d:" % (kind, len(data)))
        state.update(data)

    for name in _FIELDS:
        value = (message.first(name) or b"").translate(None, _BLANKS)
        add(name.encode(), b"" if value.endswith(b":;") and _NOBODY.fullmatch(value) else value)
    add(b"subject", "".join(reading.subject.split()).encode())
    if CUT in message.defects:
        add(b"type", message.content_type.type.encode("utf-8", "replace"))
        return state.digest()
    for lines in message.strays:
        add(b"stray", lines.translate(None, _BLANKS))
    for field in message.nested:
        if field.name != "content-transfer-encoding":
            add(field.spelled.lower().encode(), field.value.translate(None, _BLANKS))
    for part in message.parts:
        stable, footer = _stable(part)
        if stable or not footer:
            add(b"part", _shown_as(part))
            add(b"body", stable)
            add(b"more", part.body[_TEXT_BYTES:].rstrip() if _is_text(part) else b"")
    # multipart/mixed shows one after the other, and lists wrap mails in it for a footer's sake
    around = [kind for kind in message.containers if kind != "multipart/mixed"]
    add(b"nested", " ".join(around).encode())
    return state.digest()


def rest_of(blocks: Iterable[bytes]) -> bytes:
    """Return what stands for the whole body of a mail that is larger than what is read of it.

    Line ends, white space and what quotes `From ` lines don't count; a text that a hop encodes
    otherwise does. One pass, in little memory.
    """
    state = blake2b(digest_size=DIGEST_BYTES, person=b"spamd rest")
    before: bytes | None = b"\n"  # the end of what came, as long as it is header
    for block in blocks:
        body = block
        if before is not None:
            text = before + block
            empty = _EMPTY_LINE.search(text)
            before = text[-3:] if empty is None else None
            body = b"" if empty is None else text[empty.end() :]
        state.update(body.translate(None, _BLANKS + b">"))
    return state.digest()


def with_rest(header: bytes, rest: bytes) -> bytes:
    """Return the identity of a large mail by its digest and what stands for its body."""
    return blake2b(header + rest, digest_size=DIGEST_BYTES, person=b"spamd large").digest()


def _is_text(part: Part) -> bool:
    return part.content_type.type.startswith(("text/", "message/"))


def _shown_as(part: Part) -> bytes:
    """Return what decides how a part is shown: type, charset, name, place and number."""
    charset = part.content_type.parameters.get("charset", "").strip().lower()
    disposition = (part.first("content-disposition") or b"").partition(b";")[0].strip().lower()
    cid = (part.first("content-id") or b"").strip()
    known = "" if charset in ("us-ascii", "unknown-8bit") else charset
    about = (part.content_type.type, known, part.name)
    return b"\n".join([*(word.encode("utf-8", "replace") for word in about), disposition, cid])


def _stable(part: Part) -> tuple[bytes, bool]:
    """Return what of a part no hop changes, and whether a footer was left out.

    Of a text of more than a megabyte, its start.
    """
    if not _is_text(part):
        return part.body.rstrip(), False
    data = part.payload(_TEXT_BYTES)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    if b">From " in data:
        data = _QUOTED_FROM.sub(b"", data)
    start = len(data)
    if part.content_type.type == "text/plain":
        start = _footer_start(data)
    return data[:start].translate(None, _BLANKS), start < len(data)


def _footer_start(data: bytes) -> int:
    """Return where the footer of a list manager begins, the end of the text without one."""
    tail = data[-_TAIL_BYTES:]
    footer = _FOOTER.search(tail) if max(map(tail.find, _RULES)) >= 0 else None
    if footer is None:
        return len(data)
    lists, domains = set(), set()
    for user, host, site, page, title in _NAMED.findall(footer[1]):
        lists.add(_COMMAND.sub(b"", (user or page or title).lower()))
        if host or site:
            domains.add(registrable_domain((host or site).decode("latin_1").lower()))
    one_list = len(lists) == 1 and len(domains) == 1
    return len(data) - len(tail) + footer.start() if one_list else len(data)


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
