"""Whose large message is read next by one of a few extraction workers.

Of all that wait it is the message whose client has used least of the workers' time lately, smaller
messages before larger ones. Very large messages leave one worker to the rest. So neither one client
with many messages nor many very large messages keep others waiting for longer than one message
takes.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address, ip_network

from spamd.errors import Overloaded

VERY_LARGE_BYTES = 512 * 1024
"""A message of that size leaves one worker to the rest; 95 % of real mail is smaller."""

HALF_LIFE_S = 30.0
"""After that time half of what a client has used is forgotten."""

CLIENTS = 4_096
"""Clients whose use is remembered; those with the least are forgotten first."""

SECONDS_A_BYTE = 1.5e-7
"""What a large message costs, for the order of those that wait: 0.6 s for 4 MiB."""


@dataclass(eq=False, slots=True, kw_only=True)
class _Waiting:
    """A message that waits for a worker."""

    network: str
    size_bytes: int
    begin: asyncio.Future[None]

    @property
    def very_large(self) -> bool:
        return self.size_bytes > VERY_LARGE_BYTES


class FairQueue:
    """Gives out a few workers, each to one message at a time.

    free   workers that nobody holds
    """

    def __init__(self, workers: int) -> None:
        self.free = workers
        self._waiting: list[_Waiting] = []
        self._used: dict[str, tuple[float, float]] = {}  # client → seconds, and when they were so

    @property
    def waiting(self) -> int:
        """Return how many messages wait."""
        return len(self._waiting)

    @property
    def clients(self) -> int:
        """Return of how many clients the use is remembered."""
        return len(self._used)

    @asynccontextmanager
    async def worker(self, client: str, size_bytes: int, wait_s: float) -> AsyncIterator[None]:
        """Hold a worker as soon as it is this message's turn.

        Raises:
            Overloaded: it wasn't within `wait_s`.
        """
        network = network_of(client)
        one = _Waiting(
            network=network,
            size_bytes=size_bytes,
            begin=asyncio.get_running_loop().create_future(),
        )
        self._waiting.append(one)
        self._next()
        try:
            async with asyncio.timeout(wait_s):
                await one.begin
        except BaseException as error:
            if one.begin.done() and not one.begin.cancelled():  # it came just now
                self.free += 1
                self._next()
            else:
                self._waiting.remove(one)
            if isinstance(error, TimeoutError):
                raise Overloaded("no extraction worker was free in time") from None
            raise
        started = time.monotonic()
        try:
            yield
        finally:
            self.charge(network, time.monotonic() - started)
            self.free += 1
            self._next()

    def charge(self, network: str, seconds: float) -> None:
        """Note that a client has used a worker for that time."""
        self._used[network] = (self._seconds(network) + seconds, time.monotonic())
        if len(self._used) > CLIENTS:
            kept = sorted(self._used, key=self._seconds)[CLIENTS // 2 :]
            self._used = {network: self._used[network] for network in kept}

    def _next(self) -> None:
        """Give the free workers to those whose turn it is."""
        while self.free:
            allowed = [one for one in self._waiting if self.free > 1 or not one.very_large]
            if not allowed:
                return
            best = min(allowed, key=self._cost)
            self._waiting.remove(best)
            self.free -= 1
            best.begin.set_result(None)

    def _cost(self, one: _Waiting) -> float:
        return self._seconds(one.network) + one.size_bytes * SECONDS_A_BYTE

    def _seconds(self, network: str) -> float:
        """Return how much of the workers' time a client has used lately."""
        seconds, when = self._used.get(network, (0.0, 0.0))
        return seconds * 0.5 ** ((time.monotonic() - when) / HALF_LIFE_S) if seconds else 0.0


def network_of(client: str) -> str:
    """Return what counts as one client: an address of IPv4, a /64 of IPv6 (RFC 6177)."""
    try:
        address = ip_address(client)
    except ValueError:
        return client
    return client if address.version == 4 else str(ip_network((address, 64), strict=False))
