"""Help pages: commands under headings, arguments without the names of Python's types.

Plain text: rich would make `--help` twice as slow.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from typer.core import TyperCommand, TyperGroup

from spamd.cli.exits import UsageProblem

TYPE = re.compile(r" <[\w\[\]|]+>$")
"""How typer names the type of an argument: `PATH <list[str]>`."""


def write_parameters(command: Any, ctx: Any, formatter: Any) -> None:
    """Write arguments, then options."""
    for title, kind in (("Arguments", "argument"), ("Options", "option")):
        records = [
            (TYPE.sub("", record[0]) if kind == "argument" else record[0], record[1])
            for param in command.get_params(ctx)
            if param.param_type_name == kind and (record := param.get_help_record(ctx)) is not None
        ]
        if records:
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (TYPE.sub("", name) if kind == "argument" else name, text)
                        for name, text in records
                    ]
                )


MANY = "…"
"""Ends the metavar of an option that takes all values up to the next option."""


def spread(options: Iterable[str], arguments: Sequence[str]) -> list[str]:
    """Return a command line on which each of these options stands before each of its values.

    Raises:
        UsageProblem: one has no value.
    """
    wanted = set(options)
    out: list[str] = []
    option = ""
    for place, argument in enumerate(arguments):
        if argument == "--":
            return [*out, *arguments[place:]]
        if argument in wanted:
            option = argument
            if place + 1 == len(arguments) or arguments[place + 1].startswith("--"):
                raise UsageProblem(f"option '{option}' requires an argument")
        elif argument.startswith("-") and argument != "-":
            option = ""
            out.append(argument)
        else:
            out += [option, argument] if option else [argument]
    return out


class Plain(TyperCommand):
    """A command with such a help page."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take options with many values as if they had been repeated."""
        many = [
            name
            for param in self.params
            if str(getattr(param, "metavar", None) or "").endswith(MANY)
            for name in param.opts
        ]
        return super().parse_args(ctx, spread(many, args) if many else args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options."""
        write_parameters(self, ctx, formatter)


class Grouped(TyperGroup):
    """A group of commands whose help page shows them by their `rich_help_panel`, in order."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write options, then the commands under their headings."""
        write_parameters(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands under their headings."""
        headings: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                heading = str(getattr(command, "rich_help_panel", None) or "Commands")
                headings.setdefault(heading, []).append((name, command.get_short_help_str(64)))
        width = max(len(name) for rows in headings.values() for name, _ in rows)
        for heading, rows in headings.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])
