"""`spamd password`."""

import os
import secrets
import sys
from getpass import getpass
from typing import Annotated, Literal

import typer

from spamd.cli.exits import Exit
from spamd.cli.output import fault, line

SALT_BYTES = 16
LEAST = 8
"""Characters; who may teach decides what is spam."""

TOKEN_BYTES = 32


def password(
    token: Annotated[
        str | None,
        typer.Option("--token", metavar="NAME", help="Make a token for a program instead."),
    ] = None,
    role: Annotated[
        Literal["reader", "teacher"], typer.Option(help="What the token lets its program do.")
    ] = "reader",
) -> int:
    """Print the line that keeps a password, or a program's token.

    A password, for web.password_file, is asked for twice on a terminal and not shown; else it is
    the first line of the input. A token, for web.token_file, is printed on standard error.
    """
    return _password() if token is None else _token(token, role)


def _password() -> int:
    from spamd.listeners.web.access.passwords import PasswordHash

    typed = _typed() if sys.stdin.isatty() else sys.stdin.buffer.readline().rstrip(b"\r\n")
    if typed is None:
        fault("these were two passwords")
        return Exit.TROUBLE
    if len(typed) < LEAST:
        fault(f"a password has at least {LEAST} characters")
        return Exit.TROUBLE
    line(str(PasswordHash.of(typed, os.urandom(SALT_BYTES))))
    return Exit.DONE


def _token(name: str, role: Literal["reader", "teacher"]) -> int:
    from spamd.admin.roles import Role
    from spamd.listeners.web.access.tokens import NAME, Token

    if not NAME.fullmatch(name):
        fault("the name of a token is 1 to 64 letters, digits, or . _ @ -")
        return Exit.USAGE
    secret = secrets.token_urlsafe(TOKEN_BYTES)
    line(str(Token.of(secret, name, Role(role))))
    sys.stderr.write(f"token of {name}, shown only now: {secret}\n")
    return Exit.DONE


def _typed() -> bytes | None:
    """Return what is typed twice alike, None when it is not."""
    first, second = (getpass(f"Password{again}: ") for again in ("", " again"))
    return first.encode("utf-8", "surrogateescape") if first == second else None
