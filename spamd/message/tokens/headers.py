"""Which header fields give tokens, and how.

The rule behind the table: a field that a later hop, a mailbox or another filter adds or rewrites
gives nothing, so that the mail we scan and the copy we are taught with have the same tokens
(`trace` says which Received fields are theirs). Everything else gives its name as spelled (mailers
have habits), and its words under the field's name.

Sources: P. Graham, "Better Bayesian Filtering" (2003) for words under
their field's name; SpamBayes' tokeniser comments for
address parts, Message-ID host and field names; own runs for what is out.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from spamd.message import trace, unicode, url
from spamd.message.limits import Limits
from spamd.message.mime.charset import header_text
from spamd.message.mime.parser import Message
from spamd.message.tokens.kinds import OF_FIELD

_FOREIGN = re.compile(
    r"x-(?:.*spam|mime-autoconverted|.*virus|.*scan|.*filter|amavis|rspamd|bogosity|crm114|dspam|sa-|asg-|barracuda|ironport|proofpoint"
    r"|forefront|microsoft-|ms-|exchange-|gmail-|gm-|google-|evolution|mozilla-|uid|keywords|status|sieve|dovecot"
    r"|front$|original-to|delivered-to|envelope|real-to|rcpt-to|apparently-|resent|received|authentic|policyd|greylist|hashcash"
    r"|virtual|getmail|fetchmail|account-key|imap|pstn|perlmx|mailscanner|mimedefang|pyzor|razor|dcc|rbl|sonic|cron-"
    r"|original(?:-authentic|arrivaltime)|mimetrack|md(?:aemon|remoteip|rcpt|arrival|av|.*lookup)|return-path|cyrus|tuid"
    r"|offlineimap|hmailserver|brightmail|pmx|tm-as|tmase|quarantine|junk|dkim|(?:cm|cnfs|authority)-analysis|eop|incoming)"
    r"|(?:delivered-to|return-path|received|received-spf|status|date|delivery-date|lines|xref|path|nntp-.*|bcc|envelope-.*"
    r"|original-recipient|resent-.*|authentication-results(?:-original)?|arc-.*|list-archive|(?:dkim|dmarc)-filter|ironport-.*"
    r"|content-length|auto-submitted-by|old-.*|replied|forwarded|content-transfer-encoding|errors-to)$"
)
"""Names of fields that later hops, mailboxes and other filters own: no tokens at all. Of Received
fields `trace` tells which are theirs."""


@lru_cache(maxsize=1_024)  # the names that mail uses are few
def is_foreign(name: str) -> bool:
    """Tell whether a field of that lower-case name belongs to hops, mailboxes or other filters."""
    return _FOREIGN.match(name) is not None


ROUTE = re.compile(
    r"(?:received|date|message-id|return-path|delivered-to|list-.*|in-reply-to|references|reply-to|x-.*)$"
)
"""Names of fields that tell the way and not the content: out with `without = {"route"}` (E-002)."""

_ADDRESSES = ("from", "to", "cc", "reply-to", "sender")
_ADDRESS = re.compile(r"<?([^\s<>@,;:\"()]{1,64})@([^\s<>@,;:\"()]{1,255})>?")
_EXPECTED = ("from", "to", "subject", "date", "message-id")  # a proper mail has them all
_MAX_ADDRESSES = 20  # of one field; a longer list says no more than its start
_MARKED_WHOLE = ("x-mailer", "user-agent")  # whole as well: versions mean more than their words
_SIGNED = ("dkim-signature", "domainkey-signature")
_NAME = 20  # characters of a field's name that stand in front of its words
_SHORT = 200  # bytes of a value that is worth remembering
_BOUNDARY = re.compile(r"boundary", re.IGNORECASE)
_ZONE = re.compile(rb"(?:\s|:[0-9]{2})([+-][0-9]{4})(?![0-9])")  # behind the time, before a comment


class FieldTokens(NamedTuple):
    """The tokens of one header field.

    words  alone    named  the same behind the field's name    links, shape  whole
    """

    words: Sequence[str]
    named: Sequence[str]
    links: Sequence[str] = ()
    shape: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        name: str,
        words: list[str],
        longest: int,
        links: Sequence[str] = (),
        shape: Sequence[str] = (),
    ) -> "FieldTokens":
        """Return the tokens of a field of that lower-case name and these words."""
        kept = unicode.counted(words, longest)
        return cls(kept, [f"{name[:_NAME]}{OF_FIELD}{word}" for word in kept], links, shape)


class HeaderTokens(NamedTuple):
    """The tokens of a header section: those of its fields, and of what it is made of."""

    fields: list[FieldTokens]
    shape: list[str]


def header_tokens(message: Message, limits: Limits, skip: re.Pattern[str] | None) -> HeaderTokens:
    """Return the tokens of the header fields but Subject, fields matching `skip` left out."""
    found = HeaderTokens([], [])
    guesses = limits.guesses
    found.shape.extend([
        f"missing:{name}"
        for name in _EXPECTED
        if name not in message.topmost and not (skip and skip.match(name))
    ])  # fmt: skip
    for field in message.fields:
        name = field.name
        if skip and skip.match(name):
            continue
        if name in _SIGNED:
            found.shape.append(f"header:{name}")
        elif name == "date":
            zone = _ZONE.search(field.value[:200])
            found.shape.append(f"zone:{zone[1].decode()}" if zone else "zone:none")
        elif not is_foreign(name[:64]):
            found.shape.append(f"header:{field.spelled[:40]}")
            if name != "subject":
                value = field.value[: limits.field_bytes]
                plain = value.isascii() and value.find(b"=?") < 0
                tokens = _tokens(name, value, limits, guess=plain or guesses > 0)
                guesses -= not plain
                found.fields.append(tokens)
                found.shape.extend(tokens.shape)
    if not (skip and skip.match("received")):
        for field in trace.handed_on(message.fields):
            value = trace.lasting(field.value)
            found.fields.append(_tokens("received", value, limits, guess=False))
    return found


def _tokens(name: str, value: bytes, limits: Limits, *, guess: bool) -> FieldTokens:
    """Return the tokens of a field; most mail says most of what it says again and again."""
    if name == "message-id":
        _, at, host = value.partition(b">")[0].rpartition(b"@")
        value = host.rstrip(b" \t\n") if at else b""
    read = _remembered if len(value) <= _SHORT else _read
    return read(name, value, limits.field_words, limits.word_chars, guess=guess)


def _read(name: str, value: bytes, most: int, longest: int, *, guess: bool) -> FieldTokens:
    """Return the tokens of a field: of its `most` first words, cut when longer than `longest`."""
    text = header_text(value, guess=guess)
    if not text.isascii():
        text, _ = unicode.normalize(text)
    links: list[str] = []
    shape: list[str] = []
    if name in _ADDRESSES:
        links, count = _addresses(name, text)
        shape.append(f"count:{name}:{count.bit_length()}")
    elif name in _MARKED_WHOLE:
        shape.append(f"mailer:{name}:{'_'.join(text.split())[:40]}")
    elif name == "content-type":
        text = _BOUNDARY.split(text, maxsplit=1)[0]
    elif name == "received":
        links = trace.host_tokens(text)
    return FieldTokens.of(name, unicode.words(text)[:most], longest, links, shape)


_remembered = lru_cache(maxsize=2_048)(_read)  # some 3 KB each


def _addresses(name: str, text: str) -> tuple[list[str], int]:
    """Return each address and its registrable domain, and how many addresses there are."""
    addresses = _ADDRESS.findall(text)
    found: list[str] = []
    for user, domain in addresses[:_MAX_ADDRESSES]:
        host = url.canonical_host(domain)[:40]
        found.append(f"{name}:{user.lower()[:24]}@{host}"[:64])
        found.append(f"{name}:@{url.registrable_domain(host)}")
    return found, len(addresses)
