"""A program that says who is behind a name: `users.command`, with the name as its last argument.

It prints the user, one a line. Ending with code 0 and no line, or with 67 (EX_NOUSER of sysexits.h,
as `doveadm user` does), it says that there is none; any other code is a fault.
"""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from contextlib import suppress

from spamd.errors import TemporaryError
from spamd.wording import reason

OUTPUT_BYTES = 64 * 1024
"""Read of what it prints."""

NOBODY = 67

END_S = 1.0
"""How long a program that was killed is waited for: one that it left behind may hold its output."""


class CommandLookup:
    """Asks a program, once for each name.

    Args:
        command: program and arguments.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command

    async def users(self, name: str) -> Sequence[str]:
        """Return who is behind a name; the program is killed when nobody waits any more.

        Raises:
            TemporaryError: it can't be run, or fails.
        """
        if name.startswith("-"):  # it would be an option
            return ()
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command, name, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise TemporaryError(f"users.command: {self._command[0]}: {reason(error)}") from error
        try:
            output = await _output(process)
            code = await process.wait()
        finally:
            if process.returncode is None:
                await _end(process)
        if code == NOBODY:
            return ()
        if code != 0:
            raise TemporaryError(f"users.command ended with code {code}")
        return output.decode("utf-8", "replace").split("\n")

    async def close(self) -> None:
        """Leave nothing behind: nothing runs between two questions."""


async def _end(process: Process) -> None:
    """Kill a program with what it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(END_S):
            await process.wait()


async def _output(process: Process) -> bytes:
    output = b""
    while process.stdout and (part := await process.stdout.read(OUTPUT_BYTES)):
        output += part
        if len(output) > OUTPUT_BYTES:
            raise TemporaryError("users.command prints more than 64 KiB")
    return output
