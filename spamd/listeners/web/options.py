"""What an admin can set about this listener."""

import ipaddress
import re
from dataclasses import dataclass

from spamd.admin.roles import Role
from spamd.network.address_text import reached_at
from spamd.network.addresses import Listener, parse_listeners, parse_mode

_FIELD = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110 §5.1: a token
AT_SOCKETS = "unix"
ANYBODY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebOptions:
    """Where HTTP clients connect, and who of them may see or change something.

    listen                addresses, "host:port", "[v6]:port" or "unix:/path"; empty: off
    socket_mode           rights of the UNIX sockets, octal; who may write to one may also teach by
                          it. "0666" lets every account of the machine
    password_file         file whose first line "spamd password" wrote: who logs in with it, or
                          sends it as clients of rspamd do, may teach. Empty: only at this machine,
                          at UNIX sockets, and from relay.report_networks
    reader_password_file  likewise, for who may only read; it lets nobody teach
    token_file            file of lines that "spamd password --token" wrote, for programs
    local_role            what everybody at this machine may do as long as there is neither a
                          password nor a user_header: "teacher", "reader" or "nobody"
    trusted_proxies       networks of proxies whose user_header is believed; "unix": who connects
                          to a UNIX socket
    user_header           field in which such a proxy names who has logged in there, as
                          "Remote-User"; it must remove what clients send under that name
    teachers              names in user_header that may teach, "*": all; the others only read
    idle_hours            a session ends when it was not used for so long
    session_hours         and so long after the login, whatever happens
    """

    listen: tuple[str, ...] = ()
    socket_mode: str = "0660"
    password_file: str = ""
    reader_password_file: str = ""
    token_file: str = ""
    local_role: Role = Role.TEACHER
    trusted_proxies: tuple[str, ...] = ()
    user_header: str = ""
    teachers: tuple[str, ...] = ()
    idle_hours: float = 12.0
    session_hours: float = 168.0

    def __post_init__(self) -> None:
        """Check that what is believed can be believed."""
        _ = self.listeners  # each is an address
        for network in self.trusted_proxies:
            if network == AT_SOCKETS:
                continue
            try:
                ipaddress.ip_network(network)
            except ValueError as error:
                raise ValueError(f"web.trusted_proxies: {error}") from None
        if self.user_header and not _FIELD.fullmatch(self.user_header):
            raise ValueError(f'web.user_header: "{self.user_header}" is no name of a field')
        if self.user_header and not self.trusted_proxies:
            raise ValueError("web.user_header needs web.trusted_proxies: who may send it")
        if self.teachers and not self.user_header:
            raise ValueError("web.teachers needs web.user_header: who says the name")
        if not 0 < self.idle_hours <= self.session_hours <= 24 * 366:
            raise ValueError("0 < web.idle_hours ≤ web.session_hours ≤ 8784 must hold")

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Return every address to listen on."""
        mode = parse_mode(self.socket_mode, key="web.socket_mode")
        return parse_listeners(self.listen, key="web.listen", mode=mode)

    @property
    def page(self) -> str:
        """Return where a browser at this machine finds the page; empty: at UNIX sockets only."""
        for listener in self.listeners:
            if not listener.path:
                everywhere = reached_at(listener.host) != listener.host
                host = "localhost" if everywhere else listener.host
                host = f"[{host}]" if ":" in host else host
                return f"http://{host}:{listener.port}/"
        return ""
