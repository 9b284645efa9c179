"""Asking the daemon, by the protocol of spamc, at the addresses of `spamc.listen`.

    HEADERS  →  the header section of the mail with our fields on top
    TELL     →  what was learned or forgotten

Every wait ends when `deadline` (monotonic seconds) is over. What comes is never trusted to be whole
or true: a reply that is not exactly as announced is none.
"""

import time

from spamd.cli.pipe.faults import UnjudgedError
from spamd.cli.pipe.system import connected, socket
from spamd.network.address_text import reached_at, split_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spamd.cli.pipe.spool import Spool

REPLY_HEAD_BYTES = 8 * 1024
LARGEST_HEADER_BYTES = 8 * 1024 * 1024
"""No reply is longer than a header section that large, and our fields."""

AGAIN_S = 0.02
"""After so long a UNIX socket whose queue is full is tried again."""

TRY_LATER = (75, 79)
"""EX_TEMPFAIL and time-out: the daemon is there, and says that it has no verdict now."""


class NoAnswerError(Exception):
    """There is no daemon, or it did not say what a daemon says."""


class TryLaterError(UnjudgedError):
    """The daemon has no answer now."""


def ask(
    addresses: "Sequence[str]",
    verb: str,
    fields: "Mapping[str, str]",
    mail: "Spool",
    deadline: float,
) -> tuple[dict[str, str], bytes]:
    """Return the header fields of the reply, their names in lower case, and its body.

    Raises:
        NoAnswerError: nobody answers at any of the addresses, or not as a daemon does.
        TryLaterError: somebody answers that it is to be tried later, or does not in time.
    """
    lines = [f"{verb} SPAMC/1.5", *(f"{name}: {value}" for name, value in fields.items())]
    head = "\r\n".join([*lines, f"Content-length: {mail.size_bytes}", "", ""]).encode("ascii")
    connection = _connected(addresses, deadline)
    try:
        _send(connection, head, mail, deadline)
        return _reply(connection, mail.size_bytes, deadline)
    except TimeoutError as error:
        raise TryLaterError("the daemon did not answer in time") from error
    except OSError as error:
        raise NoAnswerError("the connection to the daemon was lost") from error
    finally:
        connection.close()


def _connected(addresses: "Sequence[str]", deadline: float) -> "socket.socket":
    fault: Exception | None = None
    for address in addresses:
        try:
            path, host, port = split_address(address, key="spamc.listen")
            if path:
                return _connected_unix(path, deadline)
            return connected(reached_at(host), port, _left_s(deadline))
        except (OSError, ValueError) as error:
            fault = error
    raise NoAnswerError("no daemon listens at spamc.listen") from fault


def _connected_unix(path: str, deadline: float) -> "socket.socket":
    connection = socket.socket(socket.AF_UNIX)
    try:
        while True:
            connection.settimeout(_left_s(deadline))
            try:
                connection.connect(path)
            except BlockingIOError:  # its queue is full; unlike TCP, this one does not wait
                time.sleep(AGAIN_S)
            else:
                return connection
    except BaseException:
        connection.close()
        raise


def _left_s(deadline: float) -> float:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def _send(connection: "socket.socket", head: bytes, mail: "Spool", deadline: float) -> None:
    """Send the request; a daemon that does not want all of it may have answered nevertheless."""
    try:
        connection.settimeout(_left_s(deadline))
        connection.sendall(head)
        for block in mail.blocks():
            connection.settimeout(_left_s(deadline))
            connection.sendall(block)
        connection.shutdown(socket.SHUT_WR)
    except (BrokenPipeError, ConnectionResetError):
        pass


def _reply(
    connection: "socket.socket", mail_bytes: int, deadline: float
) -> tuple[dict[str, str], bytes]:
    text = b""
    while b"\r\n\r\n" not in text and len(text) <= REPLY_HEAD_BYTES:
        piece = _received(connection, deadline)
        if not piece:
            break
        text += piece
    first, *rest = text.partition(b"\r\n\r\n")[0].split(b"\r\n")
    words = first.split(b" ", 2)
    if len(words) < 3 or not words[0].startswith(b"SPAMD/") or not words[1].isdigit():
        raise NoAnswerError("what answers at spamc.listen is no daemon")
    if int(words[1]) in TRY_LATER:
        raise TryLaterError("the daemon has no answer now")
    if int(words[1]) or b"\r\n\r\n" not in text:
        raise NoAnswerError("the daemon does not answer this")
    fields = {}
    for line in rest:
        name, _, value = line.decode("ascii", "replace").partition(":")
        fields[name.strip().lower()] = value.strip()
    length = fields.get("content-length", "0")
    most = min(mail_bytes, LARGEST_HEADER_BYTES) + 64 * 1024
    if not length.isdecimal() or int(length) > most:
        raise NoAnswerError("the daemon announced what it can't mean")
    body = text.partition(b"\r\n\r\n")[2]
    pieces, size = [body], len(body)
    while size < int(length) and (piece := _received(connection, deadline)):
        pieces.append(piece)
        size += len(piece)
    if size < int(length):
        raise NoAnswerError("the daemon broke off")
    return fields, b"".join(pieces)[: int(length)]


def _received(connection: "socket.socket", deadline: float) -> bytes:
    connection.settimeout(_left_s(deadline))
    return connection.recv(64 * 1024)
