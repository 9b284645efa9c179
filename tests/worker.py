"""A worker as the supervisor starts it, with a relay that needs no database.

    python -m tests.worker NEXT_HOP_URL [--broken]

It takes its sockets and its line as `spamd serve` does.
"""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from socket import socket

from spamd.clock import WallClock
from spamd.daemon import run_as_worker
from spamd.network.shared import Shared
from spamd.ports import Observer
from spamd.relay.listener import Relay
from spamd.relay.options import NextHopOptions, RelayOptions, TlsOptions
from spamd.supervisor import EXIT_CONFIG
from tests.fakes import FakeInspector, FakeObserver, NoTeacher


@dataclass
class SmallApplication:
    """A relay and nothing else (`daemon.Application`)."""

    relay: Relay
    observer: Observer

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        await self.relay.start()
        try:
            yield
        finally:
            await self.relay.stop()

    def reload(self) -> None:
        self.relay.reload_tls()


def application(url: str, sockets: Sequence[socket]) -> SmallApplication:
    """Return a relay on these sockets in front of a next hop."""
    observer = FakeObserver()
    options = RelayOptions(listen=("127.0.0.1:0",) * len(sockets), hostname="mx.test")
    relay = Relay(
        options=options,
        next_hop=NextHopOptions(url=url),
        tls=TlsOptions(),
        shared=Shared.of(options, FakeInspector(), NoTeacher(), observer, WallClock()),
        sockets=sockets,
    )
    return SmallApplication(relay, observer)


def main(arguments: Sequence[str]) -> int:
    if "--broken" in arguments:
        return EXIT_CONFIG
    return run_as_worker(
        lambda sockets, _: application(arguments[0], sockets), {"settings": "none"}
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
