"""A transaction that is tried again while another writer is in the way."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from spamd.errors import StorageUnavailable
from spamd.training import TrainingOptions

T = TypeVar("T")


async def again(attempt: Callable[[], Awaitable[T]], options: TrainingOptions) -> T:
    """Return the attempt's result; try again a few times while the database refuses."""
    pause_s = options.pause_s
    for _ in range(options.attempts - 1):
        try:
            return await attempt()
        except StorageUnavailable:
            await asyncio.sleep(pause_s)
            pause_s *= 2
    return await attempt()
