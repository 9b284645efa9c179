"""The daemon that programs pipe mail to, set up as docs/listeners.md prints it."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e.test_printed import Printed, in_place
from tests.listeners.agents import PIPE
from tests.servers.base import free_port


class PipeDaemon(Printed):
    """The daemon with the printed address, in its own folder."""

    def __init__(self) -> None:
        port = free_port()
        super().__init__(PIPE, port=port)
        self._printed = in_place(PIPE, [("/run/spamd", self.directory)])
        self._printed += (
            f'\n[relay]\nlisten = ["127.0.0.1:{port}"]\n[next_hop]\nurl = "smtp://[::1]:9"\n'
        )

    @property
    def address(self) -> str:
        return f"unix:{self.directory}/spamc"


@contextmanager
def daemon_that_learned() -> Iterator[PipeDaemon]:
    """Give a daemon that has learned ten mails of each label, and runs."""
    daemon = PipeDaemon()
    try:
        daemon.teach()
        daemon.start()
        yield daemon
    finally:
        daemon.close()
