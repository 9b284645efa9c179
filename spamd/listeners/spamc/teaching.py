"""TELL: a client says what a mail is, or that it shall be forgotten.

Who may is decided before anything is learned: whoever could open our UNIX socket, and clients of
`relay.report_networks`; for whom, `network.teaching_for` says. The protocol knows no password: what
the journal of the site keeps is what the operating system says, the account at a UNIX socket and
the address elsewhere. Where people have filters of their own the lesson is for the user that is
named; where that is none, for the site. Services elsewhere ("remote") are none of ours: nothing is
set there.
"""

import asyncio
import os
import pwd
import socket
import struct

from spamd.listeners.spamc.mail import client_of
from spamd.listeners.spamc.request import Code, Head, Refused
from spamd.network.shared import Shared
from spamd.network.spool import SpooledMessage
from spamd.network.stream_listener import Connection
from spamd.network.teaching_for import may_teach_for
from spamd.ports import Taught
from spamd.sample import Label

SOURCE = "spamc"

_CREDENTIALS = struct.Struct("3i")  # unix(7): pid, uid, gid


class Teaching:
    """Learns and forgets what clients tell.

    Args:
        shared: what all listeners share.
        to_all: every account of the machine may open a UNIX socket of ours.
    """

    def __init__(self, shared: Shared, *, to_all: bool) -> None:
        self._shared = shared
        self._to_all = to_all
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
            Refused: this client may not teach for that user, or there is none and it is theirs.
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
        uid = _uid_of(connection)
        actor = connection.address if uid is None else await asyncio.to_thread(_account, uid)
        user = head.user if teacher.personal else ""
        trusted = uid in {None, 0, os.getuid()} or not self._to_all
        if user and not may_teach_for(user, actor, trusted=trusted):
            text = "TELL commands for other users are not enabled for this account."
            raise Refused(Code.UNAVAILABLE, text)
        if head.own and not await teacher.knows(user):
            raise Refused(Code.NO_USER, "nobody of that name has a filter of their own.")
        if "local" in head.removes:
            return await teacher.forget(content, user=user)
        label = head.label or Label.HAM  # there is one: `request.check`
        return await teacher.learn(content, label, source=SOURCE, actor=actor, user=user)


def _uid_of(connection: Connection) -> int | None:
    """Return the account at a UNIX socket, None elsewhere."""
    if not connection.local:
        return None
    sock = connection.writer.get_extra_info("socket")
    found = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    uid: int
    _, uid, _ = _CREDENTIALS.unpack(found)
    return uid


def _account(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
