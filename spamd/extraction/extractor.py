"""Reads large messages beside the event loop, in processes: one message at a time each.

Small messages never come here. A process needs no interpreter lock of ours, can be stopped in the
middle, and keeps its memory to itself. Processes are started when the first large message comes,
and end when none came for a while. Whose message is read next: `fair_queue.py`.

    extractor = Extractor(TokenizerOptions(), wait_s=10, work_s=10)
    features = await extractor.extract(read, size_bytes, client)     # or Overloaded
    features = await extractor.extract_start(read, client)           # what Overloaded leaves
    await extractor.close()
"""

import asyncio
import os
import pickle
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from spamd.errors import Overloaded
from spamd.extraction.fair_queue import FairQueue
from spamd.extraction.worker import START_BYTES, How, framed, hurried
from spamd.message.features import Features, extract
from spamd.message.tokens.tokenizer import TokenizerOptions

WORKERS = 2
"""Extraction workers of each process that takes mail; the second is not for very large messages."""

START_SHARE = 0.25
"""Of both times, what there is for a start: it must be done while the message's own time lasts."""

IDLE_S = 60.0
"""A worker without work ends after that time and gives back its 40 MB."""


class Extractor:
    """Reads large messages beside the event loop.

    Args:
        options: how bytes become features.
        wait_s: how long a message may wait for a worker.
        work_s: how long a worker may work on one message.

    queue   who waits
    idle    workers without work
    """

    def __init__(self, options: TokenizerOptions, *, wait_s: float, work_s: float) -> None:
        self._options = options
        self._hurried = hurried(options)
        self._wait_s = wait_s
        self._work_s = work_s
        self.queue = FairQueue(WORKERS)
        # Threads of its own: those of the event loop are for the delivery of mail.
        self._reader = ThreadPoolExecutor(WORKERS, "reader")
        self._starter = ThreadPoolExecutor(1, "starter")
        self.idle: list[WorkerProcess] = []
        self._leaving: list[WorkerProcess] = []
        self._closed = False

    async def extract(
        self, read: Callable[[], bytes], size_bytes: int, client: str, *, bare: bool = False
    ) -> Features:
        """Return the features of the message that `read` returns once its turn has come.

        `bare` as for `features.extract`.

        Raises:
            Overloaded: no worker was free in time or can be started, or it took too long.
        """
        how = How.BARE if bare else How.WHOLE
        return await self._by_worker(read, size_bytes, client, how)

    async def extract_start(
        self, read: Callable[[], bytes], client: str, *, bare: bool = False
    ) -> Features:
        """Return the features of the start of a message, in the time of a small one.

        Messages that came together have waited in vain together, so their starts are many at once:
        on the event loop fifty would hold it for two seconds (E-040). Without a worker a thread
        reads them, one after the other, which holds it for some milliseconds at a time.
        """
        how = How.START | (How.BARE if bare else How.WHOLE)
        try:
            return await self._by_worker(read, START_BYTES, client, how, START_SHARE)
        except Overloaded:
            return await asyncio.get_running_loop().run_in_executor(
                self._starter, lambda: extract(read(), self._hurried, arriving=True, bare=bare)
            )

    async def _by_worker(
        self,
        read: Callable[[], bytes],
        size_bytes: int,
        client: str,
        how: How,
        share: float = 1.0,
    ) -> Features:
        """Have a worker read a message, within this share of the times."""
        async with self.queue.worker(client, size_bytes, self._wait_s * share):
            try:
                worker = (
                    self.idle.pop() if self.idle else await WorkerProcess.started(self._options)
                )
            except OSError as error:
                raise Overloaded("no extraction worker can be started") from error
            try:
                async with asyncio.timeout(self._work_s * share):
                    content = await asyncio.get_running_loop().run_in_executor(self._reader, read)
                    features = await worker.extract(self._needed(content, how), how)
            except TimeoutError:
                raise Overloaded("the message took too long") from None
            except (OSError, EOFError) as error:
                raise Overloaded("an extraction worker ended") from error
            else:
                self._keep(worker)
                return replace(features, size_bytes=len(content))
            finally:
                if worker not in self.idle:  # stopped in the middle, for whatever reason
                    self._stop(worker)

    async def close(self) -> None:
        """End the workers."""
        self._closed = True
        while self.idle:
            self._stop(self.idle.pop())
        for worker in self._leaving:
            await worker.ended()
        self._reader.shutdown(wait=False)
        self._starter.shutdown(wait=False)

    def _needed(self, content: bytes, how: How) -> bytes:
        """Return as much of a message as a worker looks at; each LF may have a CR before it."""
        most = 2 * (self._hurried.limits.read_bytes + 1)
        return content[:most] if How.START in how else content

    def _keep(self, worker: "WorkerProcess") -> None:
        if not self._closed:
            self.idle.append(worker)
            worker.retire_in(IDLE_S, self.retire)

    def retire(self, worker: "WorkerProcess") -> None:
        """End a worker that has no work."""
        if worker in self.idle:
            self.idle.remove(worker)
            self._stop(worker)

    def _stop(self, worker: "WorkerProcess") -> None:
        worker.kill()
        self._leaving = [one for one in self._leaving if not one.gone] + [worker]


class WorkerProcess:
    """One extraction worker, from its start to its end."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._alarm: asyncio.TimerHandle | None = None

    @classmethod
    async def started(cls, options: TokenizerOptions) -> "WorkerProcess":
        """Start a worker; it is ready when the first message comes.

        Raises:
            OSError: the system has no room for a process.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "spamd.extraction.worker",
            stdin=PIPE, stdout=PIPE, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        worker = cls(process)
        worker._send(pickle.dumps(options))
        return worker

    async def extract(self, content: bytes, how: How) -> Features:
        """Return the features of a message.

        Raises:
            OSError, EOFError: the worker has ended.
        """
        if self._alarm is not None:
            self._alarm.cancel()
        source, sink = self._process.stdout, self._process.stdin
        assert source is not None and sink is not None  # noqa: S101, PT018 - made as pipes
        sink.write(framed(len(content) + 1))
        sink.write(bytes([how]))
        sink.write(content)
        await sink.drain()
        size = int.from_bytes(await source.readexactly(4), "big")
        answer = await source.readexactly(size)
        features: Features = pickle.loads(answer)  # noqa: S301 - from our child
        return features

    def retire_in(self, seconds: float, retire: "Callable[[WorkerProcess], None]") -> None:
        """Call `retire` after a time without work."""
        self._alarm = asyncio.get_running_loop().call_later(seconds, retire, self)

    def kill(self) -> None:
        """Stop the process at once; what it worked on is lost."""
        if self._alarm is not None:
            self._alarm.cancel()
        with suppress(ProcessLookupError):
            self._process.kill()

    @property
    def pid(self) -> int:
        """Return the id of the process."""
        return self._process.pid

    @property
    def gone(self) -> bool:
        """Tell whether the process has ended."""
        return self._process.returncode is not None

    async def ended(self) -> None:
        """Wait until the process has ended."""
        await self._process.wait()

    def _send(self, content: bytes) -> None:
        assert self._process.stdin is not None  # noqa: S101 - made as a pipe
        self._process.stdin.write(framed(len(content)))
        self._process.stdin.write(content)
