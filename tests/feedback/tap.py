"""A wire tap: a TCP relay that writes down what the client sends, and can go silent or hang up."""

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self


class Tap:
    """Listens on `port` and passes everything on to a port of this machine.

    `sent` holds the lines that clients sent. `mute` stops passing anything on while connections
    stay open, as a pulled cable does.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._muted = False
        self._closing = False
        self.sent = b""

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing = True
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.hang_up()
        for thread in self._threads:
            thread.join(5)

    def mute(self) -> None:
        self._muted = True

    def unmute(self) -> None:
        self._muted = False

    def hang_up(self) -> None:
        """Close all connections."""
        sockets, self._sockets = self._sockets, []
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def commands(self) -> set[str]:
        """Return the commands that were sent: the second word of each line, or "UID X"."""
        found = set()
        for line in self.sent.decode("latin-1").split("\r\n"):
            words = line.split(" ")
            if len(words) == 1 and words[0] != "DONE":
                continue
            if words[0] == "DONE":
                found.add("DONE")
            elif words[1] == "UID":
                found.add(f"UID {words[2]}")
            else:
                found.add(words[1])
        return found

    def _start(self, work: object, *args: socket.socket) -> None:
        assert callable(work)
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closing:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                client.close()
                continue
            self._sockets += [client, server]
            if self._closing:  # it came while the others were closed
                self.hang_up()
                return
            self._start(self._pump, client, server)
            self._start(self._pump, server, client)

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        from_client = source.getsockname()[1] == self.port
        try:
            while data := source.recv(65536):
                if self._muted:
                    continue
                if from_client:
                    self.sent += data
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)
        except OSError:
            return
