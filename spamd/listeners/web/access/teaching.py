"""Who may teach by the API of rspamd.

    a UNIX socket of ours     whoever may open its file
    relay.report_networks     without a password, but never a browser: any page may make one send
    everybody else            with the password of `web.password_file`, else not at all

A request that was passed on by a proxy is everybody else's, for the proxy's own address says
nothing. For whom they may, `network.teaching_for` says; HTTP knows no accounts of the machine.
"""

from starlette.requests import Request

from spamd.admin.roles import Role
from spamd.listeners.web.access.marks import from_browser, passed_on
from spamd.listeners.web.access.tries import WRONG, PasswordTries
from spamd.listeners.web.answers import Refusal
from spamd.listeners.web.peer import Peer
from spamd.message.envelope import Client
from spamd.network.shared import Shared
from spamd.network.teaching_for import may_teach_for

OFF = "learning over TCP is off: set web.password_file, or use a UNIX socket in web.listen"

FOR_OTHERS = "for a user it takes the password: every account of the machine may come here"


class Access:
    """Decides who may change something.

    Args:
        passwords: tells whose a password is.
        shared: what all listeners share.
        to_all: every account of the machine may open a UNIX socket of ours.
    """

    def __init__(self, passwords: PasswordTries, shared: Shared, *, to_all: bool) -> None:
        self._passwords = passwords
        self._shared = shared
        self._to_all = to_all

    async def require(self, request: Request, user: str = "") -> str:
        """Return who may change something, for a user or for all; as the journal keeps it.

        Raises:
            Refusal: this client may not.
        """
        peer: Peer = request.state.peer
        forwarded = passed_on(request.headers)
        password = _password(request)
        if peer.unix and not forwarded:
            if not user or may_teach_for(user, "", trusted=not self._to_all):
                return "unix"
            if not password:
                raise Refusal(401, FOR_OTHERS)
        if not (password or forwarded or from_browser(request.headers)) and self._may_report(peer):
            return peer.address
        if Role.TEACHER not in self._passwords.roles:
            raise Refusal(403, OFF)
        if not password or await self._passwords.role_of(password, peer) is not Role.TEACHER:
            raise Refusal(401, WRONG)
        return peer.address or "unix"

    def _may_report(self, peer: Peer) -> bool:
        nobody = Client(
            address=peer.address, port=0, helo="", name="", tls=False, login=None, protocol="HTTP"
        )
        return self._shared.limiter.may_report(nobody)


def _password(request: Request) -> bytes:
    """Return the password that comes with a request, as it was typed; empty for none."""
    given = request.headers.get("password", "").encode("latin_1")
    return given or request.query_params.get("password", "").encode("utf-8", "replace")
