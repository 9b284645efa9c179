"""Which header fields give tokens, and how.

The rule behind the table: a field that a later hop, a mailbox or another filter adds or rewrites
gives nothing, so that the mail we scan and the copy we are taught with have the same tokens
(`trace` says which Received fields are theirs). Everything else gives its name as spelled (mailers
have habits), and its words under the mark of the field.

Sources: P. Graham, "Better Bayesian Filtering" (2003) for marks; SpamBayes' tokeniser comments for
address parts, Message-ID host and field names; own runs for what is out.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from spamd.message import script, trace, url
from spamd.message.charset import header_text
from spamd.message.limits import Limits
from spamd.message.parser import Field, Message

_FOREIGN = re.compile(
    r"x-(?:.*spam|mime-autoconverted|.*virus|.*scan|amavis|rspamd|bogosity|crm114|dspam|sa-|asg-|barracuda|ironport|proofpoint"
    r"|forefront|microsoft-|ms-|exchange-|gmail-|gm-|google-|evolution|mozilla-|uid|keywords|status|sieve|dovecot"
    r"|original-to|delivered-to|envelope|real-to|rcpt-to|apparently-|resent|received|authentic|policyd|greylist|hashcash"
    r"|virtual|getmail|fetchmail|account-key|imap|pstn|perlmx|mailscanner|mimedefang|pyzor|razor|dcc|rbl|sonic|cron-)"
    r"|(?:delivered-to|return-path|received|received-spf|status|date|delivery-date|lines|xref|path|nntp-.*|bcc|envelope-.*"
    r"|original-recipient|resent-.*|authentication-results|arc-.*|list-archive"
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
_BOUNDARY = re.compile(r"boundary", re.IGNORECASE)
_ZONE = re.compile(rb"([+-][0-9]{4})[^0-9]*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderTokens:
    """The tokens of a header section.

    marked  mark and words of each field     links, shape  whole tokens
    """

    marked: list[tuple[str, list[str]]]
    links: list[str]
    shape: list[str]


def header_tokens(message: Message, limits: Limits, skip: re.Pattern[str] | None) -> HeaderTokens:
    """Return the tokens of the header fields but Subject, fields matching `skip` left out."""
    found = HeaderTokens(marked=[], links=[], shape=[])
    names = {field.name for field in message.fields}
    for name in _EXPECTED:
        if name not in names and (skip is None or not skip.match(name)):
            found.shape.append(f"missing:{name}")
    for field in message.fields:
        name = field.name
        if skip is not None and skip.match(name):
            continue
        if name in _SIGNED:
            found.shape.append(f"header:{name}")
            continue
        if name == "date":
            zone = _ZONE.search(field.value[:200].rstrip())
            found.shape.append(f"zone:{zone[1].decode()}" if zone else "zone:none")
            continue
        if is_foreign(name[:64]):
            continue
        found.shape.append(f"header:{field.spelled[:40]}")
        if name != "subject":
            _field(found, field, limits)
    if skip is None or not skip.match("received"):
        _trace(found, message, limits)
    return found


def _trace(found: HeaderTokens, message: Message, limits: Limits) -> None:
    for field in trace.handed_on(message.fields):
        hosts, words = trace.trace_tokens(field, limits)
        found.links.extend(hosts)
        found.marked.append(("received", words))


def _field(found: HeaderTokens, field: Field, limits: Limits) -> None:
    name, mark = field.name, field.name[:20]
    value = field.value[: limits.field_bytes]
    if name == "message-id":
        value = value.rpartition(b"@")[2].rstrip(b"> \t\n")
    text = header_text(value)
    if not text.isascii():
        text, _ = script.normalize(text)
    if name in _ADDRESSES:
        _addresses(found, mark, text)
    elif name in _MARKED_WHOLE:
        found.shape.append(f"{mark}:{'_'.join(text.split())[:40]}")
    elif name == "content-type":
        text = _BOUNDARY.split(text, maxsplit=1)[0]
    found.marked.append((mark, script.words(text)[: limits.field_words]))


def _addresses(found: HeaderTokens, mark: str, text: str) -> None:
    """Note each address and its registrable domain; how many there are, in powers of two."""
    addresses = _ADDRESS.findall(text)
    for user, name in addresses[:_MAX_ADDRESSES]:
        host = url.canonical_host(name)[:40]
        found.links.append(f"{mark}:{user.lower()[:24]}@{host}"[:64])
        found.links.append(f"{mark}:@{url.registrable_domain(host)}")
    found.shape.append(f"{mark}:count:{len(addresses).bit_length()}")
