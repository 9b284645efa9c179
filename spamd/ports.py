"""What every use case needs of the outside world: time, somebody to tell, and how it is run.

What only one of them needs stands next to it: `relay/ports.py`, `feedback/ports.py`,
`training/ports.py`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Time, so that no test waits for it."""

    def now(self) -> datetime:
        """Return the time of day in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds since some fixed moment; never runs backwards."""
        ...


class Observer(Protocol):
    """Whom we tell what happened: log lines and metrics."""

    def happened(self, event: str, **details: str | float) -> None:
        """Tell of an event (`noun.past_participle`) worth a line at info."""
        ...

    def failed(self, event: str, error: BaseException, **details: str | float) -> None:
        """Tell of a fault to look at; the traceback goes to the log, never to a peer."""
        ...


class Service(Protocol):
    """Something that stands while the process runs: a pool of connections, a relay."""

    async def start(self) -> None:
        """Begin; on return it works.

        Raises:
            ConfigError: a setting makes it impossible.
        """
        ...

    async def stop(self) -> None:
        """Finish what is in flight, and end."""
        ...


class Job(Protocol):
    """Work that goes on for ever beside the services: following the corpus, watching folders."""

    @property
    def name(self) -> str:
        """Return its name, for the log."""
        ...

    async def run(self) -> None:
        """Work until cancelled; when it fails it is started again after a pause."""
        ...


class Application(Protocol):
    """Everything one process runs.

    Start: ground, jobs, doors. Stop: doors, jobs, ground; so nobody comes in before all stands, and
    the last mail still finds everything in place.
    """

    @property
    def observer(self) -> Observer:
        """Return whom to tell of starts, stops and faults."""
        ...

    @property
    def ground(self) -> Sequence[Service]:
        """Return what the others stand on: storage, the corpus in memory."""
        ...

    @property
    def jobs(self) -> Sequence[Job]:
        """Return what runs beside."""
        ...

    @property
    def doors(self) -> Sequence[Service]:
        """Return what lets others in: the relay, metrics."""
        ...

    def reload(self) -> None:
        """Read certificates and settings again.

        Raises:
            ConfigError: they can't be used; the old ones stay.
        """
        ...
