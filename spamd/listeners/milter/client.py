"""What the mail server tells of the client and of the envelope: by commands and by macros."""

from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address

from spamd.listeners.milter.packets import connection, macros
from spamd.message.envelope import Client, Envelope
from spamd.network.connection_limiter import is_stranger

_KNOWN = {
    b"C": {b"client_addr"},
    b"H": {b"tls_version"},
    b"M": {b"i", b"auth_authen", b"tls_version"},
    b"R": {b"i", b"rcpt_mailer"},
    b"T": {b"i"},
    b"L": {b"i"},
    b"N": {b"i"},
    b"B": {b"i"},
    b"E": {b"i"},
}
"""The macros that are kept, by the command they come before."""

NAME_BYTES = 255
"""Of a name of a host (RFC 5321 §4.5.3.1.2), of who has logged in, of any macro: what is kept."""

_ID_BYTES = 64  # of a queue id; Postfix's long ones have 20
_NAMELESS = {"unknown", "unavailable", "localhost.localdomain"}


class Greeting:
    """Who the client is, and which macros hold now."""

    def __init__(self) -> None:
        self._macros: dict[bytes, dict[bytes, bytes]] = {}
        self._name = ""
        self._address = ""
        self._port = 0
        self._helo = ""

    def macros(self, data: bytes) -> None:
        """Take macros: a command they belong to, then names and values."""
        if (known := _KNOWN.get(data[:1])) is not None:
            found = {name: value[:NAME_BYTES] for name, value in macros(data[1:]) if name in known}
            self._macros[data[:1]] = found

    def connected(self, data: bytes) -> None:
        """Take who has connected to the mail server.

        Raises:
            RemoteProtocolError: it can't be read.
        """
        name, address, self._port = connection(data)
        text = name[:NAME_BYTES].decode("ascii", "replace")
        self._name = "" if text.startswith("[") or text.lower() in _NAMELESS else text
        self._address = _written(self._macro(b"C", b"client_addr")) or _written(address)

    def greeted(self, data: bytes) -> None:
        """Take the name by which the client greets; it may do so again."""
        self._helo = data.partition(b"\0")[0][:NAME_BYTES].decode("utf-8", "surrogateescape")

    @property
    def address(self) -> str:
        """The client's IP address, "" when it has none."""
        return self._address

    @property
    def queue_id(self) -> str:
        """The id under which the mail server knows the message, "" when it did not say it."""
        found = (self._macro(stage, b"i") for stage in (b"E", b"B", b"N", b"L", b"T", b"R", b"M"))
        return next(filter(None, found), b"")[:_ID_BYTES].decode("ascii", "replace")

    def refused(self) -> bool:
        """Tell whether the recipient that comes now was refused by the mail server itself."""
        return self._macros.pop(b"R", {}).get(b"rcpt_mailer") == b"error"

    def envelope(self, sender: bytes, recipients: Sequence[bytes]) -> Envelope:
        """Return the envelope of a message."""
        login = self._macro(b"M", b"auth_authen")
        client = Client(
            address=self._address,
            port=self._port,
            helo=self._helo,
            name=self._name,
            tls=bool(self._macro(b"M", b"tls_version") or self._macro(b"H", b"tls_version")),
            login=login.decode("utf-8", "surrogateescape") or None,
            protocol="ESMTP",
            bare=is_stranger(self._address),
        )
        return Envelope(sender=sender, recipients=tuple(recipients), client=client)

    def forget_message(self) -> None:
        """Forget what was said about one message."""
        for stage in _KNOWN.keys() - {b"C", b"H"}:
            self._macros.pop(stage, None)

    def _macro(self, stage: bytes, name: bytes) -> bytes:
        return self._macros.get(stage, {}).get(name, b"")


def path(data: bytes) -> bytes:
    """Return the address of MAIL or RCPT without its brackets; what else there is counts nothing.

    Mail that is made on the mail server comes without brackets.
    """
    address = data.partition(b"\0")[0]
    bracketed = address[:1] == b"<" and address[-1:] == b">"
    return address[1:-1] if bracketed else address


def _written(text: bytes) -> str:
    """Return an IP address as all listeners write it, "" when it is none."""
    word = text.decode("ascii", "replace")
    if word[:5].lower() == "ipv6:":
        word = word[5:]
    try:
        address = ip_address(word.partition("%")[0])
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
