"""What the code knows and people read elsewhere: written from the code by `make docs`.

config/spamd.toml     every setting: the docstrings of the options classes, and their defaults
docs/operations.md    the commands: how each is called, and the first line of its help; the
                      metrics: their labels and their help
docs/listeners.md     the settings that name addresses to listen on
docs/architecture.md  the packages: what each holds, its modules and lines
config/grafana        the dashboard, from its panels (`dashboard.py`)
man                   the manual pages, from the command line (`manual.py`)

In a document, a table stands between `<!-- generated: NAME -->` and `<!-- end -->`.
`test_generated.py` fails when a file is not what the code says.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from textwrap import dedent, wrap
from typing import Any

import typer

from spamd.cli.main import commands
from spamd.observe import metrics
from spamd.settings import Settings, defaults
from spamd.settings.keys import toml
from tests.docs.dashboard import dashboard
from tests.docs.manual import pages

ROOT = Path(__file__).parents[2]

WIDTH = 98
"""Columns of config/spamd.toml."""

LISTEN = re.compile(r"\.listen(_\w+)?$")
"""Settings that name addresses to listen on."""

HEADER = """\
# All settings of spamd with their defaults, units and reasons. Delete what you don't change.
#
# Stronger than this file are, in this order: --set SECTION.KEY=VALUE on the command line, variables
# SPAMD_SECTION__KEY, and secret files spamd_section__key (in SPAMD_SECRETS, CREDENTIALS_DIRECTORY
# or /run/secrets). Unknown keys and wrong values stop the start; "spamd config check" says what is
# wrong, "spamd config show" what is in force and where it comes from.
#
# Names tell units: _s seconds, _bytes bytes, _mb MiB, _days days. Relative paths count from the
# folder in which spamd is started.
"""


def settings_file(_old: str) -> str:
    """Return config/spamd.toml."""
    sections: list[str] = []
    for name, field in Settings.model_fields.items():
        sections += _sections(name, field.get_default(call_default_factory=True))
    return "\n".join([HEADER, *sections])


def _sections(name: str, options: Any) -> Iterator[str]:
    """Yield a section of the settings, then those inside it."""
    intro, texts = documented(type(options))
    lines = [*_comment(intro), f"[{name}]"]
    inner = []
    for field in fields(options):
        value = getattr(options, field.name)
        if is_dataclass(value):
            inner.append((f"{name}.{field.name}", value))
        else:
            lines += [*_comment(_sentence(texts[field.name])), *_assigned(field.name, value)]
    yield "\n".join(lines) + "\n"
    for inside, value in inner:
        yield from _sections(inside, value)


def documented(options: type) -> tuple[str, dict[str, str]]:
    """Return what the docstring of an options class says before its keys, and of each key.

    A key is documented by a line `key   text` of the class, or by a docstring of its own.
    """
    names = {field.name for field in fields(options)}
    intro: list[str] = []
    texts: dict[str, list[str]] = {}
    for line in inspect.cleandoc(options.__doc__ or "").splitlines():
        key, _, text = line.partition(" ")
        if key in names and text:
            texts[key] = [text.strip()]
        elif texts:
            texts[list(texts)[-1]].append(line.strip())
        else:
            intro.append(line)
    found = {key: " ".join(" ".join(lines).split()) for key, lines in texts.items()}
    return "\n".join(intro).strip(), found | _attribute_docstrings(options)


def _attribute_docstrings(options: type) -> dict[str, str]:
    (tree,) = ast.parse(dedent(inspect.getsource(options))).body
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    for before, after in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(before, ast.AnnAssign) and isinstance(after, ast.Expr):
            assert isinstance(before.target, ast.Name)
            found[before.target.id] = " ".join(ast.literal_eval(after.value).split())
    return found


def _sentence(text: str) -> str:
    """Return a text with a capital at its beginning, if that is a word and no symbol or URL."""
    return text[:1].upper() + text[1:] if re.match(r"(a|[a-z-]{2,})[,;:]? ", text) else text


def _comment(text: str) -> Iterator[str]:
    """Yield the lines of a comment; what is indented stays as it is."""
    for number, paragraph in enumerate(text.split("\n\n")):
        indented = paragraph.startswith(" ")
        if number:
            yield "#"
        lines = paragraph.splitlines() if indented else _wrapped(paragraph)
        yield from (f"# {line}" for line in lines)


def _wrapped(text: str) -> list[str]:
    return wrap(text, WIDTH - 2, break_on_hyphens=False, break_long_words=False)


def _assigned(key: str, value: object) -> list[str]:
    """Return the lines that give a key its value; a long list takes several."""
    value = sorted(value) if isinstance(value, frozenset) else value
    line = f"{key} = {toml(value)}"
    if len(line) <= WIDTH or not isinstance(value, tuple):
        return [line]
    # A blank inside a text is no place to break.
    items = " ".join(f"{toml(item)},".replace(" ", "\0") for item in value)
    return [f"{key} = [", *(f"  {part}".replace("\0", " ") for part in _wrapped(items)), "]"]


def all_commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each command with its full name."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from all_commands(command, f"{prefix}{name} ")
        else:
            yield prefix + name, command


COMMANDS: Mapping[str, Any] = dict(all_commands(typer.main.get_command(commands())))


def commands_table() -> str:
    """Return the table of commands."""
    rows = [f"| `{_usage(name)}` | {_purpose(command)} |" for name, command in COMMANDS.items()]
    return "\n".join(["| command | what it does |", "|---|---|", *rows])


def _usage(name: str) -> str:
    command = COMMANDS[name]
    pieces = ["spamd", name]
    pieces += [_argument(param) for param in command.params if param.param_type_name == "argument"]
    return " ".join(pieces).replace("|", "\\|")


def _argument(param: Any) -> str:
    shown = f"{param.metavar}{'…' if param.nargs == -1 else ''}"
    return shown if param.required else f"[{shown}]"


def _purpose(command: Any) -> str:
    first: str = command.help.split("\n")[0]
    return first.removesuffix(".")


def metrics_table() -> str:
    """Return the table of metrics, in the order of their definition."""
    rows = [
        f"| `{name}` | {', '.join(f'`{label}`' for label in labels)} | {text} |"
        for name, labels, text in metrics_of()
    ]
    return "\n".join(["| metric | labels | meaning |", "|---|---|---|", *rows])


def metrics_of() -> list[tuple[str, tuple[str, ...], str]]:
    """Return name, labels and help of every metric, in the order of their definition."""
    return list(map(_metric, _definitions(ast.parse(inspect.getsource(metrics)))))


def _definitions(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="Counter" | "Gauge" | "Histogram" | "Current")):
                yield node
            case _:
                pass


def _metric(call: ast.Call) -> tuple[str, tuple[str, ...], str]:
    """Return name, labels and help of a metric."""
    arguments = [
        each for each in call.args if not isinstance(each, ast.Name)
    ]  # but where it counts
    name, text, *rest = map(ast.literal_eval, arguments)
    assert isinstance(call.func, ast.Name)
    suffix = "_total" if call.func.id == "Counter" else ""
    return name + suffix, rest[0] if rest else (), text.removesuffix(".")


def packages() -> Mapping[str, list[Path]]:
    """Return the modules of each package, by its path below `spamd`."""
    found: dict[str, list[Path]] = {}
    for path in sorted((ROOT / "spamd").rglob("*.py")):
        name = path.parent.relative_to(ROOT).as_posix()
        found.setdefault(name, []).extend([path] * (path.stem != "__init__"))
    return found


def packages_table() -> str:
    """Return the table of packages; lines are rounded to hundreds, so that it rarely changes."""
    rows = []
    for name, modules in packages().items():
        holds = ast.get_docstring(ast.parse((ROOT / name / "__init__.py").read_text("utf-8")))
        assert holds, name
        names = ", ".join(path.stem for path in modules)
        lines = sum(len(path.read_text("utf-8").splitlines()) for path in modules)
        first = holds.splitlines()[0].removesuffix(".")
        rows.append(f"| `{name}/` | {first} | {names} | {round(lines, -2):,} |")
    return "\n".join(["| package | what it holds | modules | lines |", "|---|---|---|---:|", *rows])


SPOKEN: Mapping[str, str] = {
    "relay.listen": "[SMTP](#smtp-and-lmtp); TLS by STARTTLS",
    "relay.listen_tls": "[SMTP](#smtp-and-lmtp), TLS from the first byte",
    "relay.listen_lmtp": "[LMTP](#smtp-and-lmtp)",
    "milter.listen": "[milter](#milter), version 6",
    "spamc.listen": "[SPAMC/1.5](#spamc), as SpamAssassin's daemon does",
    "web.listen": "[HTTP](#http), as rspamd does; [metrics and health](operations.md#metrics)",
}
"""What is spoken at the addresses of a setting."""


def listen_table() -> str:
    """Return the table of all settings that name addresses to listen on."""
    keys = {key: value for key, value in defaults().items() if LISTEN.search(key)}
    assert set(keys) == set(SPOKEN), set(keys) ^ set(SPOKEN)
    rows = [f"| `{key}` | {SPOKEN[key]} | {_addresses(value)} |" for key, value in keys.items()]
    return "\n".join(["| setting | what is spoken there | default |", "|---|---|---|", *rows])


def _addresses(value: Any) -> str:
    texts = [value] if isinstance(value, str) else value
    return ", ".join(f"`{text}`" for text in texts if text) or "off"


TABLES: Mapping[str, Callable[[], str]] = {
    "commands": commands_table,
    "listen": listen_table,
    "metrics": metrics_table,
    "packages": packages_table,
}


def with_tables(old: str) -> str:
    """Return a document with its generated tables as they are by now."""

    def written(match: re.Match[str]) -> str:
        return f"{match[1]}\n{TABLES[match[2]]()}\n{match[3]}"

    return re.sub(
        r"(<!-- generated: (\w+) -->)\n.*?\n(<!-- end -->)", written, old, flags=re.DOTALL
    )


FILES: Mapping[str, Callable[[str], str]] = {
    "config/spamd.toml": settings_file,
    "config/grafana/spamd.json": dashboard,
    **pages(),
    "docs/operations.md": with_tables,
    "docs/listeners.md": with_tables,
    "docs/architecture.md": with_tables,
}
"""What is generated: path, and what makes its text from the text that is there."""


def main(begin: str = "") -> None:
    """Write every file, of those whose names begin so, that is not what the code says."""
    for name, make in FILES.items():
        if not name.startswith(begin):
            continue
        file = ROOT / name
        old = file.read_text("utf-8") if file.exists() else ""
        if (new := make(old)) != old:
            file.write_text(new, "utf-8")
            print(f"{name} written anew")


if __name__ == "__main__":
    main(*sys.argv[1:])
