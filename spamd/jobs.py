"""What goes on beside the listeners of a process, and is started again when it fails."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from spamd.backoff import Backoff
from spamd.errors import StorageUnavailable
from spamd.ports import Observer
from spamd.storage.store import Store
from spamd.store_opening import StoreOpening


class Job(Protocol):
    """Work that goes on for ever: following the corpus, watching folders."""

    @property
    def name(self) -> str:
        """Return its name, for the log."""
        ...

    async def run(self) -> None:
        """Work until cancelled; when it fails it is started again after a pause."""
        ...


class RunningListener(Protocol):
    """One way in."""

    async def start(self) -> None:
        """Listen; on return every address takes connections."""

    async def stop(self) -> None:
        """Take no more mail, finish what is in flight, and end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """A job that ends when its work is done."""

    name: str
    work: Callable[[], Awaitable[object]]

    async def run(self) -> None:
        """Do the work."""
        await self.work()


@dataclass(frozen=True, slots=True, kw_only=True)
class Periodic:
    """A job that asks something of the database again and again, and waits while it is away."""

    name: str
    every_s: float
    work: Callable[[Store], Awaitable[object]]
    opening: StoreOpening

    async def run(self) -> None:
        """Work until cancelled; the first failure of a row is told, and its end."""
        store = await self.opening.ready()
        while True:
            await asyncio.sleep(self.every_s)
            try:
                await self.work(store)
            except StorageUnavailable as error:
                self.opening.lost(self.name, error)
            else:
                self.opening.regained(self.name)


@asynccontextmanager
async def running(jobs: Iterable[Job], observer: Observer) -> AsyncIterator[None]:
    """Run jobs while the context lasts."""
    fault: Exception | None = None
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_kept_up(job, observer), name=job.name) for job in jobs]
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised below, outside of the group
            fault = error
        finally:
            for task in tasks:
                task.cancel()
    if fault is not None:
        raise fault


async def _kept_up(job: Job, observer: Observer) -> None:
    """Run a job for ever: the border around one service."""
    backoff = Backoff()
    while True:
        try:
            await job.run()
        except Exception as error:  # noqa: BLE001 - one job's fault must not end the others
            observer.failed("job.failed", _alone(error), job=job.name)
        else:
            return
        await asyncio.sleep(backoff.next())


def _alone(error: Exception) -> Exception:
    """Return what a group of exceptions holds when it is one: the group says nothing besides."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
