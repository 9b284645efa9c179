"""Our relay with scanning off: `python -m tests.benchmarks.passing PORT NEXT_PORT`."""

import asyncio
import sys
import traceback
from collections.abc import Callable

import uvloop

from spamd.clock import WallClock
from spamd.message.envelope import Envelope
from spamd.network.shared import Shared
from spamd.network.sockets import open_sockets
from spamd.relay.listener import Relay
from spamd.relay.options import NextHopOptions, RelayOptions, TlsOptions
from spamd.report import ScanReport, Verdicts
from tests.fakes import HAM, FakeInspector, FakeObserver, NoTeacher


class Silent(FakeObserver):
    """Hears everything and keeps nothing, so that memory stays flat."""

    def scanned(self, report: ScanReport, *, listener: str, reply: bytes, recipients: int) -> None:
        pass

    def failed(self, event: str, error: BaseException, **details: str | float) -> None:
        traceback.print_exception(error)
        sys.stderr.flush()


class Blind(FakeInspector):
    """Has seen nothing."""

    async def inspect(
        self,
        read: Callable[[], bytes],
        size_bytes: int,
        envelope: Envelope,
        rest: Callable[[], bytes],
    ) -> Verdicts:
        return Verdicts(site=HAM)


async def serve(port: int, next_port: int) -> None:
    """Relay from one port to the other until the process is ended."""
    options = RelayOptions(
        listen=(f"127.0.0.1:{port}",),
        max_connections=2000,
        max_connections_per_client=0,
        max_connections_per_network=0,
    )
    relay = Relay(
        options=options,
        next_hop=NextHopOptions(url=f"smtp://127.0.0.1:{next_port}"),
        tls=TlsOptions(),
        shared=Shared.of(options, Blind(), NoTeacher(), Silent(), WallClock()),
        sockets=open_sockets(options.listeners, 1)[0],
    )
    await relay.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(int(sys.argv[1]), int(sys.argv[2])))
