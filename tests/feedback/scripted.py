"""An IMAP server that plays a script: for what no well-behaved server does."""

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

Answer = Callable[[str, str], list[str] | None]
"""From a tag and the rest of a command line to the lines to send; None hangs up."""


class ImapPeer:
    """A server on a port of its own: each connection is talked to in a thread (`talk`)."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
            assert not thread.is_alive()
        for one in self._sockets:
            one.close()

    def talk(self, client: socket.socket) -> None:
        """Talk to one client until it goes or we do."""
        raise NotImplementedError

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._sockets.append(client)
            thread = threading.Thread(target=self.talk, args=(client,), daemon=True)
            self._threads.append(thread)
            thread.start()


class ScriptedImap(ImapPeer):
    """Greets, then answers each line by `answer`; `lines` holds what clients sent."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self._answer = answer
        self.lines: list[str] = []

    def talk(self, client: socket.socket) -> None:
        try:
            client.sendall(b"* OK scripted\r\n")
            with client.makefile("rb") as lines:
                for raw in lines:
                    line = raw.decode("latin-1").rstrip("\r\n")
                    self.lines.append(line)
                    tag, _, rest = line.partition(" ")
                    answer = self._answer(tag, rest)
                    if answer is None:
                        break
                    client.sendall("".join(f"{one}\r\n" for one in answer).encode("latin-1"))
            client.shutdown(socket.SHUT_RDWR)
        except OSError:
            return


def plain(tag: str, rest: str, *, capabilities: str = "IMAP4rev1 IDLE") -> list[str] | None:
    """Answer as a server with one empty folder; scripts change what they are about."""
    match rest.split(" ", maxsplit=1)[0].upper():
        case "CAPABILITY":
            return [f"* CAPABILITY {capabilities}", f"{tag} OK done"]
        case "LIST":
            return ['* LIST () "/" INBOX', '* LIST (\\Junk) "/" Junk', f"{tag} OK done"]
        case "STATUS":
            name = rest.split(" ")[1]
            return [f"* STATUS {name} (MESSAGES 0 UIDNEXT 1 UIDVALIDITY 1)", f"{tag} OK done"]
        case "EXAMINE":
            return [
                "* FLAGS ()",
                "* 0 EXISTS",
                "* OK [UIDVALIDITY 1] x",
                "* OK [UIDNEXT 1] x",
                f"{tag} OK [READ-ONLY] x",
            ]
        case "LOGOUT":
            return ["* BYE bye", f"{tag} OK done"]
        case _:
            return [f"{tag} OK done"]
