"""TELL: a client says what a mail is, or that it shall be forgotten.

Who may is decided before anything is learned: whoever could open our UNIX socket, and clients of
`relay.report_networks`. The protocol knows no password, and the user that it names is anybody's
word: what the journal keeps is what the operating system says, the account at a UNIX socket and the
address elsewhere. Services elsewhere ("remote") are none of ours: nothing is set there.
"""

import asyncio
import pwd
import socket
import struct

from spamd.listeners.spamc.mail import client_of
from spamd.listeners.spamc.request import Code, Head, Refused
from spamd.network.shared import Shared
from spamd.network.spool import SpooledMessage
from spamd.network.stream_listener import Connection
from spamd.ports import Taught
from spamd.sample import Label

SOURCE = "spamc"

_CREDENTIALS = struct.Struct("3i")  # unix(7): pid, uid, gid


class Teaching:
    """Learns and forgets what clients tell."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._turn = asyncio.Semaphore(1)  # for mails from the disk: one of them in memory

    def require(self, connection: Connection) -> None:
        """Let nobody teach who may not.

        Raises:
            Refused: this client may not.
        """
        client = client_of(connection.address)
        if not connection.local and not self._shared.limiter.may_report(client):
            text = "TELL commands are not enabled for this client, see relay.report_networks."
            raise Refused(Code.UNAVAILABLE, text)

    async def tell(
        self, connection: Connection, head: Head, message: SpooledMessage, start: int
    ) -> Taught:
        """Do what is asked with a mail, which begins at `start` of the message.

        Raises:
            TemporaryError: nothing has changed; the client may come again.
        """
        if "local" not in head.sets | head.removes:
            return Taught.UNKNOWN
        with connection.time_limit.of(self._shared.options.inspect_timeout_s):
            if not message.spooled:
                return await self._taught(connection, head, message.whole()[start:])
            async with self._turn:
                content = await asyncio.to_thread(lambda: b"".join(message.blocks(start)))
                return await self._taught(connection, head, content)

    async def _taught(self, connection: Connection, head: Head, content: bytes) -> Taught:
        teacher = self._shared.teacher
        if "local" in head.removes:
            return await teacher.forget(content)
        label = head.label or Label.HAM  # there is one: `request.check`
        actor = await actor_of(connection)
        return await teacher.learn(content, label, source=SOURCE, actor=actor)


async def actor_of(connection: Connection) -> str:
    """Return who teaches: the account at a UNIX socket, else the address."""
    if not connection.local:
        return connection.address
    sock = connection.writer.get_extra_info("socket")
    found = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(found)
    return await asyncio.to_thread(_account, uid)


def _account(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
