"""Hashed character 4-grams of the start of a message.

Every four adjacent bytes give a number below 2**20, by one multiplication (Fibonacci hashing). A
table of that size holds the weights of the learner that uses them; it sees through spelling
tricks and needs no notion of a word, so it works in every script. Sources: D. Sculley & G.
Wachman (SIGIR 2007) for 4-grams with a linear learner; D. Knuth, TAOCP vol. 3 §6.4 for the hash.
"""

import numpy as np
from numpy.typing import NDArray

from spamd.message.limits import Limits
from spamd.message.mime.charset import header_text
from spamd.message.mime.parser import Message
from spamd.message.reading import Reading

BITS = 20
"""The buckets of the hash are 2**BITS; 551,000 distinct 4-grams were seen in 6,046 mails."""

_FACTOR = np.uint32(2_654_435_769)  # 2**32 divided by the golden ratio, odd
_FIELDS = ("from", "to", "reply-to", "content-type", "x-mailer", "user-agent", "mime-version")
_ROUTE = ("x-", "reply-to")
_LEAST_FIELD = 3  # bytes: "to:"; as many as that many fields fill the room
_FIELD_BYTES = 120  # of each field, so that a list of addresses leaves room for the text


def gram_source(message: Message, reading: Reading, limits: Limits, *, route: bool = True) -> bytes:
    """Return what the grams are taken from: fields that no hop rewrites, then the visible text."""
    room = limits.gram_bytes
    lines = [reading.subject[:_FIELD_BYTES]]
    fields = [
        field
        for field in message.fields
        if field.name in _FIELDS and (route or not field.name.startswith(_ROUTE))
    ]
    lines += [
        f"{field.name}:{header_text(field.value[:_FIELD_BYTES], guess=place < limits.guesses)}"
        for place, field in enumerate(fields[: room // _LEAST_FIELD])
    ]
    # A line end counts as a blank: a bare CR is the one here and the other behind the relay.
    lines.append(reading.text[:room].replace("\n", " "))
    return "\n".join(lines).encode()[:room]


def grams(source: bytes) -> NDArray[np.uint32]:
    """Return the buckets of the 4-grams of `source`, sorted and distinct."""
    data = np.frombuffer(source, np.uint8).astype(np.uint32)
    if len(data) < 4:
        return np.empty(0, np.uint32)
    windows = (
        data[:-3]
        | data[1:-2] << np.uint32(8)
        | data[2:-1] << np.uint32(16)
        | data[3:] << np.uint32(24)
    )
    buckets = np.sort((windows * _FACTOR) >> np.uint32(32 - BITS))
    keep = np.empty(len(buckets), np.bool_)
    keep[0] = True
    np.not_equal(buckets[1:], buckets[:-1], out=keep[1:])
    return buckets[keep]
