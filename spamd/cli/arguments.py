"""Options that many commands have."""

from typing import Annotated

import typer

from spamd.cli.exits import UsageProblem

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
JsonLinesOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object for each mail.")
]
DaemonOption = Annotated[
    bool, typer.Option("--daemon", help="Have the daemon do it: of one mail on standard input, -.")
]


def refuse_daemon(context: typer.Context, *, daemon: bool) -> None:
    """Refuse --daemon where it makes no sense; where it does, `cli.pipe.entry` has dealt with it.

    Raises:
        UsageProblem: it was asked for.
    """
    if daemon:
        raise UsageProblem("--daemon takes one mail from standard input: -", context)
