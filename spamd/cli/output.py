"""What every command prints with: lines, tables, JSON, a progress bar.

Results go to standard output, everything else to standard error. With `--json` standard output
holds JSON only, one object a line. File names are made fit for a terminal; in JSON they are exact.
Where the terminal's encoding has no bars and arrows, plain signs of the same width stand for them.
"""

import codecs
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from spamd.wording import masked_urls

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    from spamd.feedback.ports import AccountState, Held
    from spamd.sample import Label

PIPE_WIDTH = 110
"""Columns of a table that goes into a file or a pipe."""

PLAIN = {"█": "#", "→": ">", "—": "-", "…": "~"}
"""What stands for the signs that we draw with where the encoding has none."""

ENCODING_FAULTS = "spamd.plain"
"""The name of the error handler that does it (`codecs.register_error`)."""


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return a plain sign for one that can't be encoded, or its escape, and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    error.end = error.start + 1
    sign = PLAIN.get(error.object[error.start])
    return (sign, error.end) if sign else codecs.backslashreplace_errors(error)


codecs.register_error(ENCODING_FAULTS, _plain)


def line(text: str = "") -> None:
    """Print a line of the result."""
    typer.echo(text)


def note(text: str) -> None:
    """Print a line that is not part of the result."""
    typer.echo(text, err=True)


def fault(text: str) -> None:
    """Print what went wrong, in the one form that all commands have; passwords are hidden."""
    note(f"spamd: {masked_urls(text)}")


def json_line(value: object) -> None:
    """Print a value as one line of JSON."""
    typer.echo(json.dumps(value, default=str, allow_nan=False))


def console() -> "Console":
    """Return what prints tables."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)


def show(table: "Table", *, spare: bool = False) -> None:
    """Print a table. What a narrow terminal has no room for is never cut: lines get longer.

    Only columns that fold (`overflow="fold"`) become narrower, down to their longest word; with
    `spare` the last column goes before that.
    """
    from rich.measure import Measurement

    out = console()
    wide = out.options.update_width(10 * PIPE_WIDTH)
    for column in table.columns:
        if column.overflow != "fold":
            cells = (column.header, *column.cells)
            column.no_wrap = True
            column.min_width = max(Measurement.get(out, wide, cell).maximum for cell in cells)
    if spare and Measurement.get(out, wide, table).minimum > out.width:
        table.columns.pop()
    out.width = max(out.width, Measurement.get(out, wide, table).minimum)
    out.print(table)


@contextmanager
def progress(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal, nothing in a pipe; yield what advances it."""
    if not sys.stderr.isatty() or total == 0:
        yield _nothing
        return
    with _bar() as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.update(task, advance=done)


@contextmanager
def stages() -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar for each stage of long work; yield what is told (stage, done, total)."""
    if not sys.stderr.isatty():
        yield _no_stage
        return
    with _bar() as bar:
        tasks: dict[str, Any] = {}

        def told(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=total)
            bar.update(tasks[stage], completed=done)

        yield told


def _bar() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _nothing(_done: int) -> None:
    """Stand in for a progress bar."""


def _no_stage(_stage: str, _done: int, _total: int) -> None:
    """Stand in for progress bars."""


class QuietObserver:
    """Tells nobody: the command's own output says all there is to say."""

    def learned(
        self, label: "Label", source: str, outcome: str, before: float, after: float
    ) -> None:
        """Ignore it: the summary counts lessons."""

    def held(self, lesson: "Held") -> None:
        """Ignore it: the summary counts them."""

    def watched(self, accounts: "Mapping[AccountState, int]") -> None:
        """Ignore it: the summary names what went wrong."""

    def happened(self, event: str, **details: str | float) -> None:
        """Ignore it: the summary counts."""

    def failed(self, event: str, error: BaseException, **details: str | float) -> None:
        """Ignore it: the summary names faults."""
