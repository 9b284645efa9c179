"""The process that makes views: `python -m spamd.viewing.worker DESCRIPTOR`.

Started by `process.ViewProcess`, which holds the other end of the line that the descriptor is. It
reads frames there: first the settings, then numbered questions; it answers each when it is done, in
any order. It ends with the line, so it never outlives the daemon; signals that end or reload
the daemon are left to the daemon. Mail goes first where processors are few.

A frame is four bytes of length, the greatest first, and as many bytes of content. The content is
pickled, which is safe between a process and the child it has made.
"""

import asyncio
import os
import pickle
import signal
import socket
import sys
import traceback
from contextlib import suppress

from spamd.errors import ConfigError
from spamd.listeners.web.pages.apart import Answered, Asked
from spamd.viewing.process import NICE, framed
from spamd.viewing.views import Views


async def work(line: socket.socket) -> None:
    """Answer until the line ends."""
    source, sink = await asyncio.open_unix_connection(sock=line)
    views = Views(pickle.loads(await _frame(source)))  # noqa: S301 - from our parent
    try:
        async with asyncio.TaskGroup() as group:
            while content := await _frame(source):
                number, asked = pickle.loads(content)  # noqa: S301 - from our parent
                group.create_task(_answer(views, number, asked, sink))
    finally:
        await views.close()


async def _answer(views: Views, number: int, asked: Asked, sink: asyncio.StreamWriter) -> None:
    answer: Answered | str
    try:
        answer = await views.answer(asked)
    except Exception as error:  # noqa: BLE001 - the fault of one view; the daemon logs it
        answer = "".join(traceback.format_exception(error))
    sink.write(framed(pickle.dumps((number, answer), pickle.HIGHEST_PROTOCOL)))


async def _frame(source: asyncio.StreamReader) -> bytes:
    """Return the next content, nothing at the end of the line."""
    try:
        return await source.readexactly(int.from_bytes(await source.readexactly(4), "big"))
    except (EOFError, OSError):
        return b""


def main() -> None:
    """Work for the process that started us."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICE)
    with suppress(ConfigError):  # the daemon would not run by such settings
        asyncio.run(work(socket.socket(fileno=int(sys.argv[1]))))


if __name__ == "__main__":
    main()
