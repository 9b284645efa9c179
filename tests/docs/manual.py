"""The manual pages, man/*.1: written by `make man` from the command line, for `man spamd`.

One for the whole, and one for each command or group of commands, as git has them. They say what
`--help` says: there is one place where a command is described.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import typer

from spamd.cli.help import TYPE
from spamd.cli.main import EPILOG, commands

ROOT: Any = typer.main.get_command(commands())

FILES_READ = (
    ("/etc/spamd/spamd.toml", "The settings; --config and SPAMD_CONFIG name another file."),
)


def pages() -> dict[str, Callable[[str], str]]:
    """Return what makes each page, by its file."""
    made: dict[str, Callable[[str], str]] = {"man/spamd.1": lambda _: _whole()}
    for name, command in ROOT.commands.items():
        made[f"man/spamd-{name}.1"] = partial(_page, name, command)
    return made


def _whole() -> str:
    lines = [*_head("spamd", ROOT.help), *_synopsis("spamd", ROOT), *_text(ROOT.help)]
    lines += _options(ROOT, "spamd")
    lines.append(".SH COMMANDS")
    for name, command in ROOT.commands.items():
        lines += _entry(_bold(f"spamd-{name}") + "(1)", _first(command.help))
    lines += [
        ".SH FILES",
        *(each for name, text in FILES_READ for each in _entry(_bold(name), text)),
    ]
    lines += [".SH EXIT STATUS", *_paragraphs(EPILOG)]
    lines += _see([f"spamd-{name}" for name in ROOT.commands])
    return _joined(lines)


def _page(name: str, command: Any, _old: str) -> str:
    title = f"spamd-{name}"
    subcommands: Mapping[str, Any] = getattr(command, "commands", {})
    lines = [*_head(title, command.help), ".SH SYNOPSIS"]
    for words, each in _each(name, command):
        lines += _usage(f"spamd {words}", each)
    lines += _text(command.help)
    if subcommands:
        lines.append(".SH COMMANDS")
        for words, each in _each(name, command):
            lines += [f".SS {_plain(f'spamd {words}')}", *_paragraphs(each.help)]
            lines += _entries(each, f"spamd {words}")
    else:
        lines += _options(command, f"spamd {name}")
    return _joined([*lines, *_see(["spamd"])])


def _each(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield name, command
        return
    for inner, each in command.commands.items():
        yield from _each(f"{name} {inner}", each)


def _head(title: str, help_text: str) -> list[str]:
    first = _first(help_text)
    return [
        f'.TH {title.upper()} 1 "" spamd "Manual of spamd"',
        ".SH NAME",
        f"{_plain(title)} \\- {_plain(first[:1].lower() + first[1:].removesuffix('.'))}",
    ]


def _synopsis(words: str, command: Any) -> list[str]:
    return [".SH SYNOPSIS", *_usage(words, command)]


def _usage(words: str, command: Any) -> list[str]:
    context = _context(command, words)
    rest = " ".join(command.collect_usage_pieces(context))
    return [".PP", f"{_bold(words)} {_plain(rest)}"]


def _text(help_text: str) -> list[str]:
    return [".SH DESCRIPTION", *_paragraphs(help_text)]


def _options(command: Any, words: str) -> list[str]:
    return [".SH OPTIONS", *_entries(command, words)]


def _context(command: Any, words: str) -> typer.Context:
    return typer.Context(command, info_name=words, help_option_names=["-h", "--help"])


def _entries(command: Any, words: str) -> Iterator[str]:
    context = _context(command, words)
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record is not None:
            yield from _entry(_bold(TYPE.sub("", record[0])), record[1])


def _entry(title: str, text: str) -> list[str]:
    return [".TP", title, *_lines(text)]


def _paragraphs(text: str) -> Iterator[str]:
    for part in re.split(r"\n\s*\n", text.replace("\b", "").strip()):
        yield ".PP"
        yield from _lines(part)


def _lines(text: str) -> list[str]:
    return [_plain(line.strip()) for line in text.strip().splitlines() if line.strip()] or ["\\&"]


def _see(others: Iterable[str]) -> list[str]:
    return [".SH SEE ALSO", ",\n".join(f"{_bold(each)}(1)" for each in sorted(others))]


def _first(text: str) -> str:
    return text.strip().split("\n")[0]


def _plain(text: str) -> str:
    """Return a text as roff shows it and takes nothing of it for a request."""
    shown = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    shown = "".join(each if each.isascii() else f"\\[u{ord(each):04X}]" for each in shown)
    return f"\\&{shown}" if shown[:1] in {".", "'"} else shown


def _bold(text: str) -> str:
    return f"\\fB{_plain(text)}\\fR"


def _joined(lines: Iterable[str]) -> str:
    text = "\n".join(['.\\" Written by `make man` from the command line.', *lines]) + "\n"
    return re.sub(r"^(\.S[HS] .*\n)\.PP\n", r"\1", text, flags=re.MULTILINE)
