"""What EHLO offers: an allow-list, cut down to what the next hop can do.

Offered when the next hop offers it: everything whose parameters we only pass on. Offered by us:
what we do ourselves (PIPELINING, CHUNKING, STARTTLS). Everything unknown is left out, since we
could not keep its promise.
"""

from collections.abc import Mapping

from spamd.relay.smtp.replies import Reply

PASSED_ON = (
    b"8BITMIME",  # RFC 6152
    b"SMTPUTF8",  # RFC 6531
    b"DSN",  # RFC 3461
    b"ENHANCEDSTATUSCODES",  # RFC 2034
    b"DELIVERBY",  # RFC 2852
    b"MT-PRIORITY",  # RFC 6710
    b"FUTURERELEASE",  # RFC 4865
    b"LIMITS",  # RFC 9422
)

FIELDS_BYTES = 4096
"""Room for the header fields that we add to a message."""

Capabilities = Mapping[bytes, bytes]
"""Keyword in upper case → its parameters as they came."""


def parse_capabilities(reply: Reply) -> Capabilities:
    """Return what an EHLO or LHLO reply offers."""
    offered: dict[bytes, bytes] = {}
    for line in reply.raw.split(b"\r\n")[1:]:
        keyword, _, parameters = line[4:].partition(b" ")
        if keyword:
            offered[keyword.upper()] = parameters
    return offered


def size_limit(ours: int, theirs: Capabilities) -> int:
    """Return the largest message that both sides take, our fields included."""
    parameter = theirs.get(b"SIZE", b"")
    # RFC 1870 §4: no number, or 0, is no limit
    limit = int(parameter) if parameter.isdigit() else 0
    return min(ours, limit or ours)


def ehlo_reply(
    hostname: str,
    theirs: Capabilities,
    max_message_bytes: int,
    *,
    starttls: bool,
    auth: bool,
    trusted: bool,
) -> bytes:
    """Return our reply to EHLO or LHLO, all lines.

    theirs    what the next hop offers          starttls, auth  whether these are possible now
    trusted   the client may name another one
    """
    size = max(1, size_limit(max_message_bytes, theirs) - FIELDS_BYTES)
    lines = [hostname.encode("ascii", "replace"), b"PIPELINING", b"SIZE %d" % size]
    for keyword in PASSED_ON:
        if keyword in theirs:
            parameters = theirs[keyword]
            lines.append(keyword + b" " + parameters if parameters else keyword)
    lines.append(b"CHUNKING")
    if starttls:
        lines.append(b"STARTTLS")
    if auth and b"AUTH" in theirs:
        lines.append(b"AUTH " + theirs[b"AUTH"])
    if trusted:
        lines.append(b"XCLIENT NAME ADDR PORT PROTO HELO LOGIN")
        lines.append(b"XFORWARD NAME ADDR PORT PROTO HELO IDENT SOURCE")
    last = lines.pop()
    return b"".join(b"250-" + line + b"\r\n" for line in lines) + b"250 " + last + b"\r\n"
