"""Where mail goes, as the settings name it.

    smtp://host:port    lmtp://host:port    lmtp+unix:///path    maildir:///path

Anything else raises ValueError naming the settings key. Ports default to 25 (smtp) and 24 (lmtp).
"""

from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit


class Scheme(StrEnum):
    """What the next hop speaks, or is."""

    SMTP = "smtp"
    LMTP = "lmtp"
    LMTP_UNIX = "lmtp+unix"
    MAILDIR = "maildir"


@dataclass(frozen=True, slots=True, kw_only=True)
class NextHopUrl:
    """One place mail goes to; `path` for UNIX sockets and Maildirs, else `host` and `port`."""

    scheme: Scheme
    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def lmtp(self) -> bool:
        """Tell whether there is one reply per recipient."""
        return self.scheme in {Scheme.LMTP, Scheme.LMTP_UNIX}

    def __str__(self) -> str:
        """Return the URL, for logs."""
        if self.host:
            host = f"[{self.host}]" if ":" in self.host else self.host
            return f"{self.scheme}://{host}:{self.port}"
        return f"{self.scheme}://{self.path}"


def parse_next_hop(url: str, *, key: str) -> NextHopUrl:
    """Return the parts of a next hop's URL."""
    try:
        parts = urlsplit(url)
        scheme = Scheme(parts.scheme)
        port = parts.port
    except ValueError:
        known = ", ".join(f"{scheme}://" for scheme in Scheme)
        raise ValueError(f"{key}: {url!r} must begin with one of {known}") from None
    if scheme in {Scheme.MAILDIR, Scheme.LMTP_UNIX}:
        path = url.removeprefix(f"{scheme}://")
        if not path or path.strip("/.") == "":
            raise ValueError(f"{key}: {url!r} needs a path, as in {scheme}:///var/mail")
        return NextHopUrl(scheme=scheme, path=path)
    if not parts.hostname or parts.path.strip("/") or parts.username:
        raise ValueError(f"{key}: {url!r} is no {scheme}://host:port")
    default = 25 if scheme is Scheme.SMTP else 24
    return NextHopUrl(scheme=scheme, host=parts.hostname, port=port or default)
