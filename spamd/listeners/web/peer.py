"""Who has connected, as an endpoint sees it: `request.state.peer`."""

from collections.abc import Callable
from dataclasses import dataclass

from spamd.network.spool import Share


@dataclass(slots=True, kw_only=True)
class Peer:
    """The client of one connection.

    address  its IP address, "" at a UNIX socket
    unix     it came by a UNIX socket of ours: whoever may open that file
    network  who shares with whom (`connection_limiter.network_of`)
    share    what it may hold of the memory and disk for mail
    answer   writes a whole answer as it stands and ends the connection
    rspamc   it speaks the protocol that rspamd had before HTTP
    """

    address: str
    unix: bool
    network: str
    share: Share
    answer: Callable[[bytes], None]
    rspamc: bool = False
