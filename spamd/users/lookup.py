"""Asking a database or a program who is behind a name, and remembering what it said.

An answer holds for `users.cache_s`, "nobody" too; the last `MOST` names are remembered. What does
not answer is left alone for `PAUSE_S`, so that it costs one mail some tenths of a second and not
each. Until it answers again, what it said before holds; of who is not remembered nothing is known.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence

from spamd.errors import TemporaryError
from spamd.ports import Observer
from spamd.users.ports import Lookup

MOST = 50_000
"""Names that are remembered: about 20 MB."""

AT_ONCE = 4
"""Names that are asked at the same time."""

PAUSE_S = 5.0
"""How long nothing is asked after a fault."""

Answer = tuple[str, ...]


class CachedLookup:
    """What was asked, remembered.

    Args:
        lookup: whom to ask.
        observer: is told once that it does not answer, and once that it does again.
        keep_s: how long an answer holds.
    """

    def __init__(self, lookup: Lookup, observer: Observer, *, keep_s: float) -> None:
        self._lookup = lookup
        self._observer = observer
        self._keep_s = keep_s
        self._known: OrderedDict[str, tuple[Answer, float]] = OrderedDict()
        self._paused_until = 0.0
        self._lost = False

    async def of(self, names: Collection[str], deadline: float) -> Mapping[str, Answer]:
        """Return what is known of each name by then; who could not be asked is not among them."""
        now = asyncio.get_running_loop().time()
        unasked = [name for name in names if not self._holds(name, now)]
        if unasked and now >= self._paused_until:
            await self._ask(unasked, deadline)
        return {name: self._known[name][0] for name in names if name in self._known}

    def _holds(self, name: str, now: float) -> bool:
        known = self._known.get(name)
        if known is None:
            return False
        self._known.move_to_end(name)
        return now < known[1] + self._keep_s

    async def _ask(self, names: Sequence[str], deadline: float) -> None:
        turn = asyncio.Semaphore(AT_ONCE)
        answered: list[str] = []
        faults: list[TemporaryError] = []

        async def ask(name: str) -> None:
            async with turn:
                if faults:
                    return
                try:
                    users = await self._lookup.users(name)
                except TemporaryError as error:
                    faults.append(error)
                    return
            self._remember(name, tuple(dict.fromkeys(users)))
            answered.append(name)

        try:
            async with asyncio.timeout_at(deadline), asyncio.TaskGroup() as group:
                for name in names:
                    group.create_task(ask(name))
        except TimeoutError:
            if not answered:
                faults.append(TemporaryError("users.timeout_s: no answer in time"))
        self._told(faults)

    def _told(self, faults: Sequence[TemporaryError]) -> None:
        if faults:
            self._paused_until = asyncio.get_running_loop().time() + PAUSE_S
            if not self._lost:
                self._observer.failed("users.lost", faults[0])
        elif self._lost:
            self._observer.happened("users.regained")
        self._lost = bool(faults)

    def _remember(self, name: str, users: Answer) -> None:
        self._known[name] = users, asyncio.get_running_loop().time()
        self._known.move_to_end(name)
        if len(self._known) > MOST:
            self._known.popitem(last=False)

    async def close(self) -> None:
        """Leave whom we ask."""
        await self._lookup.close()
