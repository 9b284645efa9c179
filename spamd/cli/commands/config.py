"""`spamd config show` and `spamd config check`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spamd.cli.arguments import JsonOption
from spamd.cli.exits import Exit
from spamd.cli.help import Grouped, Plain
from spamd.cli.output import fault, json_line, line
from spamd.cli.session import session
from spamd.wording import counted

if TYPE_CHECKING:
    from spamd.settings import Configuration

app = typer.Typer(help="Show and check the settings.", rich_markup_mode=None, cls=Grouped)


@app.command(cls=Plain)
def show(
    context: typer.Context,
    *,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only what differs from the defaults.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print every setting in force and where it comes from.

    The output is a settings file itself, headed by the thresholds that the decision leads to.
    Passwords are hidden.
    """
    from spamd.bayes.decision import thresholds

    found = session(context).configuration
    bounds = thresholds(found.settings.decision)
    if as_json:
        json_line(
            {
                "file": str(found.file.absolute()) if found.file else None,
                "settings": {
                    key: {"value": value, "origin": found.origin(key)}
                    for key, value in found.shown()
                },
                "thresholds": bounds,
            }
        )
        return
    line(f"# settings file: {found.read_from}")
    line("# thresholds by decision: " + ", ".join(f"{c} from {p:.4f}" for c, p in bounds.items()))
    _print(found, changed_only=changed)


def _print(found: "Configuration", *, changed_only: bool) -> None:
    from spamd.settings.keys import toml

    section = ""
    for key, value in found.shown():
        origin = found.origin(key)
        if changed_only and origin == "default":
            continue
        table, _, name = key.rpartition(".")
        if table != section:
            line(f"\n[{table}]")
            section = table
        line(f"{f'{name} = {toml(value)}':<44} # {origin}")


@app.command(cls=Plain)
def check(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Settings file, instead of --config.")
    ] = None,
    *,
    as_json: JsonOption = False,
) -> int:
    """Check the settings and the files they name."""
    from spamd.settings import check as checked

    here = session(context)
    found, faults = checked(file or here.config, here.overrides)
    if as_json:
        json_line({"file": str(found.file.absolute()) if found.file else None, "faults": faults})
    else:
        what = (
            counted(len(faults), "fault")
            if faults
            else f"{counted(len(found.origins), 'setting')}, no fault"
        )
        line(f"{found.file or 'no settings file, all defaults'}: {what}")
    for each in () if as_json else faults:
        fault(each)
    return Exit.CONFIG if faults else Exit.DONE
