"""What an admin can set about this listener."""

from dataclasses import dataclass

from spamd.network.addresses import Listener, parse_listeners, parse_mode


@dataclass(frozen=True, slots=True, kw_only=True)
class WebOptions:
    """Where HTTP clients connect, and who of them may change something.

    listen          addresses, "host:port", "[v6]:port" or "unix:/path"; empty: off
    socket_mode     rights of the UNIX sockets, octal; who may write to one may also teach by it.
                    "0666" lets every account of the machine
    password_file   file whose first line "spamd password" wrote; it lets clients teach over TCP.
                    Empty: only at UNIX sockets and from relay.report_networks
    """

    listen: tuple[str, ...] = ()
    socket_mode: str = "0660"
    password_file: str = ""

    def __post_init__(self) -> None:
        _ = self.listeners  # each is an address

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Return every address to listen on."""
        mode = parse_mode(self.socket_mode, key="web.socket_mode")
        return parse_listeners(self.listen, key="web.listen", mode=mode)
