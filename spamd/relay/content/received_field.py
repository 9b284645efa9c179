"""The trace of a message: our Received field, and how often it has been on its way already."""

import re
from datetime import datetime
from functools import lru_cache

from spamd.message.envelope import Client

MAX_RECEIVED = 100
"""RFC 5321 §6.3: a limit of at least 100 Received fields tells loops from long ways."""

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_USUAL = re.compile(r"[0-9A-Za-z._-]{1,255}|\[[0-9A-Za-z.:-]{1,100}\]")  # RFC 5321 §4.1.3
_HARMLESS = str.maketrans(dict.fromkeys('()<>[]\\"\r\n', "?"))


def received_count(header: bytes) -> int:
    """Return the number of Received fields of a header section, counted no further than a line."""
    lowered = header.lower()
    return lowered.count(b"\nreceived:") + lowered.startswith(b"received:")


def received_field(client: Client, hostname: str, now: datetime, protocol: str) -> bytes:
    """Return our trace field as one folded header field with CRLF.

    Source: RFC 5321 §4.4; RFC 3848 for the names of protocols. The client's own words are cut down
    to harmless characters: they must not end the comment they stand in. An address literal is the
    one name with brackets.
    """
    helo = client.helo if _USUAL.fullmatch(client.helo) else _harmless(client.helo)[:255]
    address = f"[IPv6:{client.address}]" if ":" in client.address else f"[{client.address}]"
    source = f"{_harmless(client.name)} {address}" if client.name else address
    return (
        f"Received: from {helo or 'unknown'} ({source})\r\n"
        f"\tby {hostname} (spamd) with {protocol};\r\n"
        f"\t{date(now)}\r\n"
    ).encode("ascii", "replace")


def _harmless(words: str) -> str:
    return words.encode("ascii", "replace").decode("ascii").translate(_HARMLESS)


def date(now: datetime) -> str:
    """Return a moment in UTC as RFC 5322 §3.3 writes it; `email.utils` takes ten times as long."""
    return _written(now.replace(microsecond=0))


@lru_cache(1)
def _written(now: datetime) -> str:
    """Return a whole second, written once for all mails that come in it."""
    return (
        f"{DAYS[now.weekday()]}, {now.day:02} {MONTHS[now.month - 1]} {now.year}"
        f" {now.hour:02}:{now.minute:02}:{now.second:02} +0000"
    )
