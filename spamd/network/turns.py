"""Sessions take turns: what one client may do at once is small, however much it has sent.

The event loop is fair to sockets, not to clients: a session with ten thousand commands in its
buffer would carry out all of them before any other session runs. So a session does a little at
once, and for more it takes *turns* (a few commands, a block of a message, the beginning of a
session, a message to be judged). In one round of the loop only `TURNS_PER_ROUND` turns are taken,
so that a round stays short; networks come round-robin, and so do the connections of one network.

A turn that is free is taken at once.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from weakref import WeakValueDictionary

TURNS_PER_ROUND = 2
"""Turns in one round of the event loop: a message passes about twenty rounds, each of them then
longer by two turns at most (0.1 ms each)."""

HANDSHAKES = 4
"""TLS handshakes of one network at a time: each costs up to a millisecond that nobody can share."""


class _Network:
    """Who waits of one network: beginnings and mails, and those who go on, by turns."""

    __slots__ = ("_first", "_lanes")

    def __init__(self) -> None:
        self._lanes: tuple[deque[Callable[[], None]], deque[Callable[[], None]]] = deque(), deque()
        self._first = True

    def append(self, go: Callable[[], None], *, first: bool) -> None:
        self._lanes[not first].append(go)

    def pop(self) -> Callable[[], None]:
        lane = self._lanes[not self._first] or self._lanes[self._first]
        self._first = not self._first
        return lane.popleft()

    def __bool__(self) -> bool:
        return bool(self._lanes[0] or self._lanes[1])


class Turns:
    """Hands out turns; a turn is a callback that is called when it has come."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, _Network] = OrderedDict()
        self._left = TURNS_PER_ROUND
        self._armed = False

    def take(self, network: str, go: Callable[[], None], *, first: bool = False) -> bool:
        """Take a turn now if one is free; else `go` is called when it has come.

        network  who shares with whom: its connections wait for each other, not others for them
        first    a session begins, or a mail is to be judged: not behind those who only go on
        """
        if self._left > 0 and not self._waiting:
            self._use()
            return True
        queue = self._waiting.get(network)
        if queue is None:
            queue = self._waiting[network] = _Network()
        queue.append(go, first=first)
        return False

    async def wait(self, network: str, *, first: bool = False) -> None:
        """Wait for a turn."""
        if self._left > 0 and not self._waiting:
            self._use()
            return
        come: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def go() -> None:
            if not come.done():
                come.set_result(None)

        if not self.take(network, go, first=first):
            await come

    def take_all(self) -> None:
        """Use up what is left of this round, for work that is as much as many turns."""
        self._use(self._left)

    def _use(self, turns: int = 1) -> None:
        self._left -= turns
        if not self._armed:
            self._armed = True
            asyncio.get_running_loop().call_soon(self._next_round)

    def _next_round(self) -> None:
        self._armed = False
        self._left = TURNS_PER_ROUND
        while self._left > 0 and self._waiting:
            network, queue = self._waiting.popitem(last=False)
            go = queue.pop()
            if queue:
                self._waiting[network] = queue  # behind all others
            self._use()
            go()


class HandshakeLimiter:
    """Lets each network shake hands a few times at once; the others of it wait."""

    def __init__(self) -> None:
        self._semaphores: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, network: str) -> asyncio.Semaphore:
        """Return what a connection of this network holds during its handshake."""
        semaphore = self._semaphores.get(network)
        if semaphore is None:
            semaphore = self._semaphores[network] = asyncio.Semaphore(HANDSHAKES)
        return semaphore
