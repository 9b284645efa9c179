"""The one patience of the tests: look again and again until something is so, or fail.

What is waited for happens in another thread or process, which tells nobody. Where an event can be
awaited, a test does that instead.
"""

import asyncio
import os
import time
from collections.abc import Callable

PATIENCE_S = 120.0
"""A busy machine takes seconds for what takes milliseconds else."""


BUSY = 10
"""How much longer all may take beside other tests, on a slow machine."""


def within_s(promised_s: float) -> float:
    """Return how many seconds something may take: as promised in `make full`, with room daily.

    What would come in the end by another way, as by the next poll, must take longer than either.
    """
    return promised_s if os.environ.get("TEST_FULL") else promised_s * BUSY


async def until(condition: Callable[[], object], *, deadline_s: float = PATIENCE_S) -> float:
    """Wait until `condition` holds; return how many seconds that took."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < deadline_s, f"not within {deadline_s:g} s"
        await asyncio.sleep(0.01)
    return time.monotonic() - started


def wait_until(
    condition: Callable[[], object],
    *,
    what: str,
    deadline_s: float = PATIENCE_S,
    pause_s: float = 0.01,
) -> None:
    """Block until `condition` holds; raise TimeoutError naming `what` when it never does."""
    deadline = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {deadline_s:g} s")
        time.sleep(pause_s)
