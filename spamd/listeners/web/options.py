"""What an admin can set about this listener."""

from dataclasses import dataclass

from spamd.network.addresses import Listener, parse_listeners


@dataclass(frozen=True, slots=True, kw_only=True)
class WebOptions:
    """Where HTTP clients connect, and who of them may change something.

    listen          addresses, "host:port", "[v6]:port" or "unix:/path"; empty: off
    password_file   file whose first line "spamd password" wrote; it lets clients teach over TCP.
                    Empty: only at UNIX sockets and from relay.report_networks
    """

    listen: tuple[str, ...] = ()
    password_file: str = ""

    def __post_init__(self) -> None:
        _ = self.listeners  # each is an address

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Return every address to listen on."""
        return parse_listeners(self.listen, key="web.listen")
