"""How late the event loop is: what a mail waits for although nothing is done for it.

A step that holds the loop delays everybody. No message may hold it for longer than 50 ms, whatever
it is; this job shows whether that holds in production.
"""

import asyncio

from spamd.observe.metrics import Metrics

EVERY_S = 0.1
"""Ten measurements a second cost a worker nothing that can be measured."""


class LoopLag:
    """The job that watches the event loop.

    Args:
        metrics: where the lateness is counted.
    """

    name = "lag"

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def run(self) -> None:
        """Measure until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + EVERY_S
            await asyncio.sleep(EVERY_S)
            self._metrics.late(max(0.0, loop.time() - due))
