"""The command `spamd`: the list of commands, the global options, and what each error exits with."""

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from spamd.cli.exits import Exit
from spamd.cli.help import Grouped, Plain
from spamd.cli.output import ENCODING_FAULTS, fault, line, note
from spamd.cli.session import Session, session
from spamd.errors import ConfigError, SpamdError, TemporaryError
from spamd.wording import reason

ANYWHERE = ("--config", "-c", "--set")
"""Global options with a value; they may stand behind the command too."""

EPILOG = (
    "--config and --set may stand behind the command too. Exit codes: 0 done, 1 partly done"
    " (named), 3 trouble, 64 usage, 75 try again later, 78 configuration; of spamd scan on one"
    " message 0 spam, 1 ham, 2 unsure, 3 trouble."
)

COMPLETION = "_SPAMD_COMPLETE"
"""Set by a shell that asks what may follow, or that wants its script (docs/operations.md)."""

UNWRITABLE = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""What the output can meet with: nobody reads it, or the disk under it is full or broken."""

RUN, TEACH, JUDGE, KEEP = "Run", "Teach", "Judge", "Maintain"

COMMANDS = (
    ("serve", "serve.serve", RUN),
    ("bootstrap", "bootstrap.bootstrap", TEACH),
    ("train", "train.train", TEACH),
    ("retrain", "train.retrain", TEACH),
    ("forget", "forget.forget", TEACH),
    ("rollback", "forget.rollback", TEACH),
    ("scan", "scan.scan", JUDGE),
    ("filter", "scan.filter_", JUDGE),
    ("explain", "scan.explain", JUDGE),
    ("evaluate", "evaluate.evaluate", JUDGE),
    ("status", "status.status", KEEP),
    ("doctor", "doctor.doctor", KEEP),
    ("password", "password.password", KEEP),
)
"""Name, module and function, heading in the help page."""

GROUPS = (
    ("feedback", "feedback.app", TEACH),
    ("lessons", "lessons.app", TEACH),
    ("allow", "people.lists.allow", TEACH),
    ("deny", "people.lists.deny", TEACH),
    ("user", "people.users.app", TEACH),
    ("database", "database.app", KEEP),
    ("config", "config.app", KEEP),
)


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code; every error becomes a line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors=ENCODING_FAULTS)  # type: ignore[union-attr] # both are text
    here = Session()
    front, rest = hoisted(arguments)
    try:
        if COMPLETION in os.environ:
            _complete()
        command = typer.main.get_command(commands(rest[0] if rest else None))
        wanted = front + rest if arguments else ["--help"]
        code: int = command.main(wanted, "spamd", standalone_mode=False, obj=here) or Exit.DONE
        sys.stdout.flush()
    except typer.TyperException as error:
        return _usage(error)
    except ConfigError as error:
        return _said(here.located(str(error)), Exit.CONFIG)
    except TemporaryError as error:
        return _said(f"{error}; try again later", Exit.LATER)
    except SpamdError as error:
        return _said(str(error), Exit.TROUBLE)
    except (KeyboardInterrupt, typer.Abort):
        return _said("interrupted", Exit.INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the border of the process: the exit code must be ours
        if isinstance(error, OSError) and error.errno in UNWRITABLE:
            # The interpreter must not complain once more when it flushes.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            enough = error.errno == errno.EPIPE  # whoever read our output
            return Exit.TROUBLE if enough else _said(f"can't write: {reason(error)}", Exit.TROUBLE)
        traceback.print_exc()
        return _said(f"this is a bug: {type(error).__name__}", Exit.TROUBLE)
    return code if arguments else Exit.USAGE


def commands(only: str | None = None) -> typer.Typer:
    """Return the application with one of its commands; with all, if there is none of this name.

    Only the module of a command that is there is loaded.
    """
    known = {name for name, *_ in (*COMMANDS, *GROUPS)}
    app = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        cls=Grouped,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(epilog=EPILOG)(spamd)
    for name, function, heading in COMMANDS:
        if only == name or only not in known:
            app.command(name, cls=Plain, rich_help_panel=heading)(_loaded(function))
    for name, group, heading in GROUPS:
        if only == name or only not in known:
            app.add_typer(_loaded(group), name=name, rich_help_panel=heading)
    return app


def _complete() -> None:
    """Make typer know the shells; it does so by itself only where it adds options to install."""
    from typer.completion import completion_init  # type: ignore[attr-defined]  # theirs, unnamed

    completion_init()


def _loaded(place: str) -> Any:
    """Return what "module.name" means in this package."""
    module, _, name = place.rpartition(".")
    return getattr(import_module(f"spamd.cli.commands.{module}"), name)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    """Print the version and end, whatever else the command line says."""
    if wanted:
        from importlib.metadata import version

        line(f"spamd {version('spamd')}")
        raise typer.Exit


def spamd(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="Settings file. Else SPAMD_CONFIG, /etc/spamd/spamd.toml, config/spamd.toml.",
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="SECTION.KEY=VALUE",
            help="Override one setting, for example database.url=sqlite:///tmp/try.sqlite.",
        ),
    ] = None,
    *,
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """A spam filter that stands in front of your mail server and learns from what people do.

    Start it with "spamd serve", teach it with "spamd train", ask it with "spamd explain".
    """
    here = session(context)
    here.config = config
    here.overrides = list(overrides or ())


def hoisted(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the global options of a command line, and the rest: it begins with the command."""
    front: list[str] = []
    rest: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        if argument == "--":
            return front, [*rest, argument, *remaining]
        if argument in ANYWHERE:
            front += [argument, *[value for value in [next(remaining, None)] if value is not None]]
        elif argument.startswith(("--config=", "--set=")):
            front.append(argument)
        else:
            rest.append(argument)
    return front, rest


def _usage(error: typer.TyperException) -> int:
    context: typer.Context | None = getattr(error, "ctx", None)
    text = error.format_message().replace("Value error, ", "")
    fault(f"{text[:1].lower()}{text[1:].removesuffix('.')}")
    if context is not None:
        note(f"{context.get_usage()}\nTry '{context.command_path} --help' for help.")
    return Exit.USAGE


def _said(text: str, code: Exit) -> int:
    fault(text)
    return code
