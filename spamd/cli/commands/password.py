"""`spamd password`."""

import os
import sys
from getpass import getpass

from spamd.cli.exits import Exit
from spamd.cli.output import fault, line

SALT_BYTES = 16
LEAST = 8
"""Characters; who may teach decides what is spam."""


def password() -> int:
    """Read a password, print the line for web.password_file.

    On a terminal it is asked for twice and not shown; else it is the first line of the input.
    """
    from spamd.listeners.web.passwords import PasswordHash

    typed = _typed() if sys.stdin.isatty() else sys.stdin.buffer.readline().rstrip(b"\r\n")
    if typed is None:
        fault("these were two passwords")
        return Exit.TROUBLE
    if len(typed) < LEAST:
        fault(f"a password has at least {LEAST} characters")
        return Exit.TROUBLE
    line(str(PasswordHash.of(typed, os.urandom(SALT_BYTES))))
    return Exit.DONE


def _typed() -> bytes | None:
    """Return what is typed twice alike, None when it is not."""
    first, second = (getpass(f"Password{again}: ") for again in ("", " again"))
    return first.encode("utf-8", "surrogateescape") if first == second else None
