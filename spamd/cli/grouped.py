"""Help that lists commands under headings. Plain text: rich would make `--help` twice as slow."""

from typing import Any

from typer.core import TyperGroup


class Grouped(TyperGroup):
    """A group of commands whose help shows them by their `rich_help_panel`, in order."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands under their headings."""
        headings: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                heading = str(getattr(command, "rich_help_panel", None) or "Commands")
                headings.setdefault(heading, []).append((name, command.get_short_help_str(62)))
        width = max(len(name) for rows in headings.values() for name, _ in rows)
        for heading, rows in headings.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])
