"""Heavy mail: taken apart by helper processes, one mail at a time, in a fair order.

Light mail never comes here. A helper needs no interpreter lock of ours, can be stopped in the
middle, and keeps its memory to itself. Helpers are started when the first heavy mail comes, and
end when none came for a while.

Who goes next: of all that wait, the mail whose client has used least of the helpers' time lately,
smaller mails before larger ones. Very heavy mail leaves one helper to the rest. So neither one
client with many mails nor many such mails keep others waiting for longer than one mail takes.

    extractor = Extractor(TokenizerOptions(), wait_s=10, work_s=10)
    features = await extractor.extract(read, size_bytes, client)     # or Overloaded
    await extractor.close()
"""

import asyncio
import os
import pickle
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address, ip_network

from spamd.errors import Overloaded
from spamd.extraction.worker import framed
from spamd.message.features import Features
from spamd.message.tokens.tokenizer import TokenizerOptions

HELPERS = 2
"""Processes for each worker. The second one is for mail that isn't very heavy."""

VERY_HEAVY_BYTES = 512 * 1024
"""Mail of that size leaves one helper to the rest; 95 % of real mail is smaller."""

IDLE_S = 60.0
"""A helper without work ends after that time and gives back its 40 MB."""

HALF_LIFE_S = 30.0
"""After that time half of what a client has used is forgotten."""

CLIENTS = 4_096
"""Clients whose use is remembered; those with the least are forgotten first."""

SECONDS_A_BYTE = 1.5e-7
"""What a heavy mail costs, for the order of those that wait: 0.6 s for 4 MiB."""


class Extractor:
    """Takes heavy mail apart beside the event loop.

    Args:
        options: how bytes become features.
        wait_s: how long a mail may wait for its turn.
        work_s: how long a helper may work on one mail.
    """

    def __init__(self, options: TokenizerOptions, *, wait_s: float, work_s: float) -> None:
        self._options = options
        self._wait_s = wait_s
        self._work_s = work_s
        self._turns = Turns(HELPERS)
        # Threads of its own: those of the event loop are for the delivery of mail.
        self._reader = ThreadPoolExecutor(HELPERS, "reader")
        self._idle: list[Helper] = []
        self._leaving: list[Helper] = []
        self._closed = False

    async def extract(self, read: Callable[[], bytes], size_bytes: int, client: str) -> Features:
        """Return the features of the message that `read` returns once its turn has come.

        Raises:
            Overloaded: its turn did not come in time, it took too long, or no helper can work.
        """
        async with self._turns.of(client, size_bytes, self._wait_s):
            try:
                helper = self._idle.pop() if self._idle else await Helper.started(self._options)
            except OSError as error:
                raise Overloaded("no helper process can be started") from error
            try:
                async with asyncio.timeout(self._work_s):
                    content = await asyncio.get_running_loop().run_in_executor(self._reader, read)
                    features = await helper.extract(content)
            except TimeoutError:
                raise Overloaded("the message took too long") from None
            except (OSError, EOFError) as error:
                raise Overloaded("a helper process ended") from error
            else:
                self._keep(helper)
                return features
            finally:
                if helper not in self._idle:  # stopped in the middle, for whatever reason
                    self._stop(helper)

    async def close(self) -> None:
        """End the helpers."""
        self._closed = True
        while self._idle:
            self._stop(self._idle.pop())
        for helper in self._leaving:
            await helper.ended()
        self._reader.shutdown(wait=False)

    def _keep(self, helper: "Helper") -> None:
        if not self._closed:
            self._idle.append(helper)
            helper.retire_in(IDLE_S, self._retire)

    def _retire(self, helper: "Helper") -> None:
        if helper in self._idle:
            self._idle.remove(helper)
            self._stop(helper)

    def _stop(self, helper: "Helper") -> None:
        helper.kill()
        self._leaving = [one for one in self._leaving if not one.gone] + [helper]


class Helper:
    """One helper process, from its start to its end."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._alarm: asyncio.TimerHandle | None = None

    @classmethod
    async def started(cls, options: TokenizerOptions) -> "Helper":
        """Start a helper; it is ready when the first message comes.

        Raises:
            OSError: the system has no room for a process.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "spamd.extraction.worker",
            stdin=PIPE, stdout=PIPE, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        helper = cls(process)
        helper._send(pickle.dumps(options))
        return helper

    async def extract(self, content: bytes) -> Features:
        """Return the features of a message that is not empty.

        Raises:
            OSError, EOFError: the helper has ended.
        """
        if self._alarm is not None:
            self._alarm.cancel()
        source, sink = self._process.stdout, self._process.stdin
        assert source is not None and sink is not None  # noqa: S101, PT018 - made as pipes
        self._send(content)
        await sink.drain()
        size = int.from_bytes(await source.readexactly(4), "big")
        answer = await source.readexactly(size)
        features: Features = pickle.loads(answer)  # noqa: S301 - from our child
        return features

    def retire_in(self, seconds: float, retire: "Callable[[Helper], None]") -> None:
        """Call `retire` after a time without work."""
        self._alarm = asyncio.get_running_loop().call_later(seconds, retire, self)

    def kill(self) -> None:
        """Stop the process at once; what it worked on is lost."""
        if self._alarm is not None:
            self._alarm.cancel()
        with suppress(ProcessLookupError):
            self._process.kill()

    @property
    def gone(self) -> bool:
        """Tell whether the process has ended."""
        return self._process.returncode is not None

    async def ended(self) -> None:
        """Wait until the process has ended."""
        await self._process.wait()

    def _send(self, content: bytes) -> None:
        assert self._process.stdin is not None  # noqa: S101 - made as a pipe
        self._process.stdin.write(framed(content))
        self._process.stdin.write(content)


@dataclass(eq=False, slots=True, kw_only=True)
class _Waiting:
    """A mail that waits for its turn."""

    network: str
    size_bytes: int
    turn: asyncio.Future[None]

    @property
    def very_heavy(self) -> bool:
        return self.size_bytes > VERY_HEAVY_BYTES


class Turns:
    """Gives out a few places in a fair order."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: list[_Waiting] = []
        self._used: dict[str, tuple[float, float]] = {}  # client → seconds, and when they were so

    @asynccontextmanager
    async def of(self, client: str, size_bytes: int, wait_s: float) -> AsyncIterator[None]:
        """Hold a place as soon as it is this mail's turn.

        Raises:
            Overloaded: it wasn't within `wait_s`.
        """
        network = network_of(client)
        one = _Waiting(
            network=network,
            size_bytes=size_bytes,
            turn=asyncio.get_running_loop().create_future(),
        )
        self._waiting.append(one)
        self._next()
        try:
            async with asyncio.timeout(wait_s):
                await one.turn
        except BaseException as error:
            if one.turn.done() and not one.turn.cancelled():  # it came just now
                self._free += 1
                self._next()
            else:
                self._waiting.remove(one)
            if isinstance(error, TimeoutError):
                raise Overloaded("no helper was free in time") from None
            raise
        started = time.monotonic()
        try:
            yield
        finally:
            self._charge(network, time.monotonic() - started)
            self._free += 1
            self._next()

    def _next(self) -> None:
        """Give the free places to those whose turn it is."""
        while self._free:
            allowed = [one for one in self._waiting if self._free > 1 or not one.very_heavy]
            if not allowed:
                return
            best = min(allowed, key=self._weight)
            self._waiting.remove(best)
            self._free -= 1
            best.turn.set_result(None)

    def _weight(self, one: _Waiting) -> float:
        return self._seconds(one.network) + one.size_bytes * SECONDS_A_BYTE

    def _seconds(self, network: str) -> float:
        """Return how much of the places a client has used lately."""
        seconds, when = self._used.get(network, (0.0, 0.0))
        return seconds * 0.5 ** ((time.monotonic() - when) / HALF_LIFE_S) if seconds else 0.0

    def _charge(self, network: str, seconds: float) -> None:
        self._used[network] = (self._seconds(network) + seconds, time.monotonic())
        if len(self._used) > CLIENTS:
            kept = sorted(self._used, key=self._seconds)[CLIENTS // 2 :]
            self._used = {network: self._used[network] for network in kept}


def network_of(client: str) -> str:
    """Return what counts as one client: an address of IPv4, a /64 of IPv6 (RFC 6177)."""
    try:
        address = ip_address(client)
    except ValueError:
        return client
    return client if address.version == 4 else str(ip_network((address, 64), strict=False))
