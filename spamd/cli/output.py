"""What every command prints with: lines, tables, JSON, a progress bar.

Results go to standard output, everything else to standard error. With `--json` standard output
holds JSON only, one object a line. File names are made fit for a terminal; in JSON they are exact.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 110
"""Columns of a table that goes into a file or a pipe."""


def line(text: str = "") -> None:
    """Print a line of the result."""
    typer.echo(text)


def note(text: str) -> None:
    """Print a line that is not part of the result."""
    typer.echo(text, err=True)


def json_line(value: object) -> None:
    """Print a value as one line of JSON."""
    typer.echo(json.dumps(value, default=str, allow_nan=False))


def console() -> "Console":
    """Return what prints tables."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)


@contextmanager
def progress(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal, nothing in a pipe; yield what advances it."""
    if not sys.stderr.isatty() or total == 0:
        yield _nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns: list[Any] = [TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.update(task, advance=done)


def _nothing(_done: int) -> None:
    """Stand in for a progress bar."""


def counted(number: int, noun: str) -> str:
    """Return "1 message", "1,234 messages"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
