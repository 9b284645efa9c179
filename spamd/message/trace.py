"""What the Received fields tell: the way a mail came before it reached us.

Hosts and addresses that handed it on, the domains they belong to, and what the servers said about
themselves. Not what comes once and never again: ids, moments, and whom the mail was for.

Only what was below us counts. A mail that we relayed has our X-Spam-Id on top of what it brought;
Received fields above that id are our own and those of later hops, which the mail didn't have when
it was judged, so they give nothing. An id in a mail that is just arriving is a forgery: `features`
takes it out before it is looked at here, as `relay` takes it out of the mail. In mail that never
came through us such a forgery hides the hops above it; it takes clues of either kind away and adds
none.

What a sender writes stands below what the servers near us wrote, so of many fields the topmost
count. Source: own runs (E-002).
"""

import re
from collections.abc import Iterable, Sequence
from itertools import islice

from spamd.message import url
from spamd.message.mime.parser import Field

_MAX_FIELDS = 12  # 99 % of real mail has no more, and those further down are the sender's word
_MAX_BYTES = 1_000  # of one field: the longest of 25,000 had 600
_FOR = re.compile(rb"for(?<=\sfor)\s")  # the letters first: found without trying each place
_ID = re.compile(rb"id(?<=\bid)\s+\S+")
_HOST = re.compile(r"[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})+")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}$")


def handed_on(fields: Sequence[Field]) -> Iterable[Field]:
    """Return the Received fields that the mail had when it came to us, topmost first."""
    names = [field.name for field in fields]
    start = names.index("x-spam-id") if "x-spam-id" in names else 0
    return islice((field for field in fields[start:] if field.name == "received"), _MAX_FIELDS)


def lasting(value: bytes) -> bytes:
    """Return what a Received field says of servers, without what comes once and never again."""
    said = _FOR.split(value[:_MAX_BYTES].partition(b";")[0], maxsplit=1)[0]
    return _ID.sub(b" ", said)


def host_tokens(text: str) -> list[str]:
    """Return hosts, addresses and domains that a Received field names."""
    found: list[str] = []
    for host in dict.fromkeys(_HOST.findall(text.lower())):
        if _ADDRESS.match(host):
            found.append(f"received:{host}")
        elif not host.replace(".", "").isdigit():  # a version
            found += (f"received:{host[-54:]}", f"received:@{url.registrable_domain(host)[-54:]}")
    return found
