"""Mail into features, in two processes when there is enough of it.

Order is kept. Mail waiting between the processes is bounded in number and bytes.
"""

import signal
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

from spamd.cli.mail.files import Mail, Unreadable
from spamd.message.features import Features, extract
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.storage.corpus.codec import pack

if TYPE_CHECKING:
    from concurrent.futures import Future

JOBS = 2
"""Processes; the third, which learns, is busy too."""

WORTH_A_PROCESS = 150
"""Mails from which on the start of further processes (about half a second) pays."""

CHUNK = 32
"""Mails handed to a process at once, or fewer when they are large."""

CHUNK_BYTES = 2 * 1024 * 1024
PENDING = 24
"""Chunks on their way: enough that no process waits while a batch is written."""

Extracted = tuple[str, Features]


def extracted(
    found: Iterable[Mail | Unreadable], options: TokenizerOptions, *, packed: bool = False
) -> Iterator[Extracted | Unreadable]:
    """Yield (name, features) of each mail, and what is unreadable as it is, in their order.

    `packed` features are ready to be stored.
    """
    waiting = iter(found)
    first = list(islice(waiting, WORTH_A_PROCESS))
    if len(first) < WORTH_A_PROCESS:
        yield from _worked(first, options, packed=packed)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("forkserver")  # safe whatever threads this process has
    context.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(JOBS, context, initializer=_leave_interrupts) as pool:
        pending: deque[Future[list[Extracted | Unreadable]]] = deque()
        try:
            for chunk in _chunks(chain(first, waiting)):
                pending.append(pool.submit(_worked, chunk, options, packed=packed))
                if len(pending) >= PENDING:
                    yield from pending.popleft().result()
            while pending:
                yield from pending.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _chunks(found: Iterable[Mail | Unreadable]) -> Iterator[list[Mail | Unreadable]]:
    chunk: list[Mail | Unreadable] = []
    size = 0
    for one in found:
        chunk.append(one)
        size += len(one.content) if isinstance(one, Mail) else 0
        if len(chunk) == CHUNK or size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _worked(
    found: Iterable[Mail | Unreadable], options: TokenizerOptions, *, packed: bool
) -> list[Extracted | Unreadable]:
    return [
        (one.name, _read(one.content, options, packed=packed)) if isinstance(one, Mail) else one
        for one in found
    ]


def _read(content: bytes, options: TokenizerOptions, *, packed: bool) -> Features:
    features = extract(content, options)
    return pack(features) if packed else features


def _leave_interrupts() -> None:
    """Leave Ctrl-C to the process that started us; it ends us in order."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
