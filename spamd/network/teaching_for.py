"""Who may teach for whom, by whatever way a lesson comes in.

That a client may teach at all, its listener has found: by `relay.report_networks`, by a password,
or because it could open our UNIX socket. Such a client may name any user, as a mail server does
whose one account teaches for all. Only where every account of the machine may open the socket does
each of them speak for itself, but for root and the account that we run as.
"""

from collections.abc import Iterable

from spamd.network.addresses import Listener

OTHERS_WRITE = 0o002


def open_to_all(listeners: Iterable[Listener]) -> bool:
    """Tell whether every account of the machine may open our UNIX sockets."""
    return any(each.path and (each.mode or 0) & OTHERS_WRITE for each in listeners)


def may_teach_for(user: str, account: str, *, trusted: bool) -> bool:
    """Tell whether a client may teach for a user.

    account   the client's account of this machine, "" when that is not known
    trusted   it is none of all that there are: it came by a network, by a password, by a socket
              that only some may open, or it is ours
    """
    return trusted or user == account
