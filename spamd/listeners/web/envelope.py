"""What the fields of a request say about a message: its envelope.

rspamd's fields that name files of the server (File, Path, Shm) mean nothing here, nor do those that
steer rspamd's own modules (Settings, Flags, Pass, Classifier …).
"""

import ipaddress
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from spamd.message.envelope import Client, Envelope

_ADDRESSES = re.compile(rb'(?:"(?:[^"\\]|\\.)*+"|[^",])++')
"""Addresses between commas; one of them may hold a comma in quotes."""

Fields = Mapping[str, Sequence[bytes]]


def fields_of(raw: Sequence[tuple[bytes, bytes]]) -> Fields:
    """Return the values of each field of a request, by its name in lower case."""
    fields: defaultdict[str, list[bytes]] = defaultdict(list)
    for name, value in raw:
        fields[name.decode("latin_1")].append(value)
    return fields


def text(fields: Fields, name: str) -> str:
    """Return the last value of a field, "" when there is none."""
    values = fields.get(name)
    return values[-1].decode("utf-8", "replace").strip() if values else ""


def envelope_of(fields: Fields, peer: str) -> Envelope:
    """Return the envelope that the fields of a request name; `peer` is who sent the request.

    It is judged for whom Deliver-To names, else for the recipients, else for the User, who logged
    in at the mail server to send it.
    """
    recipients = tuple(
        address
        for value in fields.get("rcpt", ())
        for each in _ADDRESSES.findall(value)
        if (address := _bare(each))
    )
    user = _bare(fields["deliver-to"][-1]) if "deliver-to" in fields else b""
    if not user and not recipients and "user" in fields:
        user = fields["user"][-1].strip()
    return Envelope(
        sender=_bare(fields["from"][-1]) if "from" in fields else b"",
        recipients=recipients,
        user=user,
        client=Client(
            address=_address(text(fields, "ip")) or peer,
            port=0,
            helo=text(fields, "helo"),
            name=text(fields, "hostname"),
            tls="tls-cipher" in fields or "tls-version" in fields,
            login=text(fields, "user") or None,
            protocol="HTTP",
        ),
    )


def _bare(address: bytes) -> bytes:
    address = address.strip()
    return address[1:-1] if address.startswith(b"<") and address.endswith(b">") else address


def _address(value: str) -> str:
    """Return an IP address as text, "" for anything else."""
    try:
        return str(ipaddress.ip_address(value.strip("[]")))
    except ValueError:
        return ""
