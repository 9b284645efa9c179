"""Deletes old rare tokens once a day, in a process of its own, so that no mail waits for it.

The process is started as `python -P -m spamd.pruning`: options on standard input, what was done on
standard output, both pickled, which is safe between a process and the child it has made. It is
killed when the daemon ends; what it has done by then is whole (`prune_tokens`).
"""

import asyncio
import os
import pickle
import signal
import sys
from asyncio.subprocess import PIPE
from dataclasses import asdict
from secrets import token_hex

from spamd.clock import WallClock
from spamd.errors import ConfigError, StorageUnavailable
from spamd.ports import Observer
from spamd.storage.engine import Database
from spamd.storage.maintenance.prune_tokens import Pruned, prune
from spamd.storage.options import DatabaseOptions, PruneOptions
from spamd.storage.store import Store

PRUNE = "prune"
"""The lease of the one worker of a site that deletes tokens."""

EVERY_S = 24 * 3600.0

AGAIN_S = 2 * 3600.0
"""Longer than a prune takes."""

NICE = 15
"""There is no hurry."""


async def prune_daily(store: Store, options: DatabaseOptions, observer: Observer) -> None:
    """Delete tokens unless that was done within a day anywhere in the site; say how many.

    What failed, or died on the way, is tried again after `AGAIN_S`, by whoever comes first.

    Raises:
        StorageUnavailable: the database does not answer, or the process was killed.
    """
    wanted, holder = options.prune, token_hex(8)
    if wanted and await store.leases.acquire(PRUNE, holder, AGAIN_S):
        done = await prune_apart(options, wanted)
        await store.leases.acquire(PRUNE, holder, EVERY_S)
        observer.happened("tokens.pruned", **asdict(done))


async def prune_apart(database: DatabaseOptions, options: PruneOptions) -> Pruned:
    """Delete old rare tokens in a process of its own.

    Raises:
        StorageUnavailable: the database does not answer, or the process was killed.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "spamd.pruning", stdin=PIPE, stdout=PIPE
    )
    try:
        said, _ = await process.communicate(pickle.dumps((database, options, NICE)))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    done = pickle.loads(said) if said else "the process that deletes tokens was killed"  # noqa: S301 - from our child
    if not isinstance(done, Pruned):
        raise StorageUnavailable(str(done))
    return done


async def _done(database: DatabaseOptions, options: PruneOptions) -> Pruned | str:
    try:
        opened = await Database.open(database)
        try:
            return await prune(opened, WallClock(), options, dry_run=False)
        finally:
            await opened.close()
    except (ConfigError, StorageUnavailable) as error:
        return str(error)


def main() -> None:
    """Do what the process that started us asks for."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    database, options, nice = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our parent
    os.nice(nice)
    done = asyncio.run(_done(database, options))
    sys.stdout.buffer.write(pickle.dumps(done))


if __name__ == "__main__":
    main()
