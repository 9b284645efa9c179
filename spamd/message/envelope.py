"""The envelope of a message: what SMTP said about it, never what its header fields claim."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Who connected to us.

    address   IP address as text            helo      the name given in HELO, EHLO or LHLO
    port      TCP port at its side          name      what DNS calls the address, "" when unknown
    tls       the session is encrypted      login     who authenticated, None when nobody did
    protocol  "SMTP", "ESMTP", "ESMTPS", "LMTP" … as in RFC 3848
    bare      it is a stranger, whose mail is as he wrote it: no server of ours has put a field on
              top, or it does not show what it put there
    """

    address: str
    port: int
    helo: str
    name: str
    tls: bool
    login: str | None
    protocol: str
    bare: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """MAIL FROM and RCPT TO, verbatim, without angle brackets; an empty sender is a bounce.

    user   whose mail it is, where the client says so by name or address; b"" is the recipients'
    """

    sender: bytes
    recipients: tuple[bytes, ...]
    client: Client
    user: bytes = b""

    @property
    def readers(self) -> tuple[bytes, ...]:
        """Return for whom the message is judged."""
        return (self.user,) if self.user else self.recipients
