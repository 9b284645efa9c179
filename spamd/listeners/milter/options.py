"""What an admin can set about this listener."""

from dataclasses import dataclass

from spamd.network.addresses import Listener, parse_listeners, parse_mode


@dataclass(frozen=True, slots=True, kw_only=True)
class MilterOptions:
    """Where servers that speak milter connect, and what becomes of spam there.

    listen        addresses, "host:port", "[v6]:port" or "unix:/path"; empty: off
    socket_mode   rights of the UNIX sockets, octal: the mail server must be able to write
    quarantine    what would be rejected is put into the mail server's quarantine (Postfix: the
                  hold queue) instead; rejected where the server offers none
    """

    listen: tuple[str, ...] = ()
    socket_mode: str = "0660"
    quarantine: bool = False

    def __post_init__(self) -> None:
        _ = self.listeners  # each is an address

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Return every address to listen on."""
        mode = parse_mode(self.socket_mode, key="milter.socket_mode")
        return parse_listeners(self.listen, key="milter.listen", mode=mode)
