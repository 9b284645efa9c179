"""Finds every pattern of a package, makes texts that would hurt it, and measures how work grows.

Patterns are collected from the modules as they are loaded (globals, class attributes, closures,
defaults, bound methods), so a new one is covered without anybody thinking of it; `hidden_patterns`
tells of those that the collection could miss. Texts are made from the parse tree of a pattern: each
of its repeats pumped up, with what stands before it, and an end that can't match.
"""

import ast
import gc
import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import BuiltinMethodType, FunctionType, ModuleType
from typing import Any

import regex

import spamd

Pattern = re.Pattern[Any] | regex.Pattern[Any]

_parser: Any = importlib.import_module("re._parser")  # the library's own, since 3.11

SINGLE = (_parser.IN, _parser.LITERAL, _parser.NOT_LITERAL, _parser.ANY)

MATCHERS = ("search", "match", "fullmatch", "findall", "finditer", "sub", "subn", "split")
SIZE = 2_000
"""Characters of the smaller text; the larger has four times as many."""

NOTHING_S = 0.004
"""CPU time that counts as none: a quadratic pattern takes 0.1 s for the larger text."""

GROWTH = 7.0
"""Four times the text may take that much more time: linear is 4, quadratic 16."""

SHORT_S = 0.0005
"""CPU time of one attempt on a text of at most 40 characters; an exponential pattern takes more."""


def modules(*names: str) -> list[ModuleType]:
    """Return the modules of that name and, of packages, all inside."""
    found = []
    for name in names:
        module = importlib.import_module(name)
        inner = pkgutil.walk_packages(getattr(module, "__path__", ()), f"{name}.")
        found += [module, *(importlib.import_module(one.name) for one in inner)]
    return found


def repeated_groups(pattern: re.Pattern[Any]) -> list[str]:
    """Return the groups of a pattern behind which a possessive quantifier stands.

    Python before 3.11.5 matches them wrongly (gh-106052), Debian 12's is one; an atomic group does
    the same and is right: `(?>(?:…)*)` instead of `(?:…)*+`.
    """
    flags = pattern.flags if isinstance(pattern.pattern, str) else pattern.flags & ~re.UNICODE
    return list(_repeated_groups(_parser.parse(pattern.pattern, flags)))


def _repeated_groups(tree: Any) -> Iterator[str]:
    for operation, argument in tree:
        if operation is _parser.POSSESSIVE_REPEAT:
            inner = argument[2]
            if len(inner) != 1 or inner[0][0] not in SINGLE:
                yield str(inner)
        for each in argument if isinstance(argument, tuple | list) else [argument]:
            for one in each if isinstance(each, list) else [each]:
                if isinstance(one, _parser.SubPattern):
                    yield from _repeated_groups(one)


def patterns(module: ModuleType) -> dict[str, Pattern]:  # noqa: C901 - one case for each kind of place
    """Return the compiled patterns that hang on a module, by where they hang."""
    found: dict[str, Pattern] = {}
    seen: set[int] = set()
    todo: list[tuple[str, object]] = [(name, value) for name, value in vars(module).items()]
    while todo:
        name, value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, re.Pattern | regex.Pattern):
            found[name] = value
        elif isinstance(value, BuiltinMethodType):
            todo.append((name, value.__self__))
        elif isinstance(value, dict):
            todo += [(f"{name}[{key!r}]", item) for key, item in value.items()]
        elif isinstance(value, list | tuple | set | frozenset):
            todo += [(f"{name}[{place}]", item) for place, item in enumerate(value)]
        elif getattr(value, "__module__", "") != module.__name__:
            continue
        elif isinstance(value, type):
            todo += [(f"{name}.{key}", item) for key, item in vars(value).items()]
        elif (inner := getattr(value, "__wrapped__", None)) is not None:
            if not inner.__code__.co_argcount and "re.Pattern" in str(inner.__annotations__):
                todo.append((f"{name}()", value()))  # type: ignore[operator]  # a cached function
            todo.append((name, inner))
        elif isinstance(value, FunctionType):
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            todo += [(name, item) for item in (*(value.__defaults__ or ()), *cells)]
            todo += [(name, item) for item in (value.__kwdefaults__ or {}).values()]
    return found


def hidden_patterns(source: str) -> list[str]:
    """Return the lines of a module where a pattern is made that `patterns` can't find.

    Those are calls of `re.search` and the like, which compile on the way, and patterns compiled
    inside a function that takes arguments.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _of_library(node.func) in MATCHERS:
            found.append(f"line {node.lineno}: {ast.unparse(node.func)}")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
            cached = "cache" in map(ast.unparse, decorators) and not ast.unparse(node.args)
            found += [
                f"line {call.lineno}: {ast.unparse(call)}"
                for call in ast.walk(node)
                if isinstance(call, ast.Call) and _of_library(call.func) == "compile" and not cached
            ]
    return found


def _of_library(called: ast.expr) -> str:
    """Return the name of a function of `re` or `regex` that is called, else ""."""
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        return called.attr if called.value.id in ("re", "regex") else ""
    return ""


def sources(names: Sequence[ModuleType]) -> dict[str, str]:
    """Return the source of modules by their name."""
    return {
        module.__name__: Path(module.__file__).read_text() for module in names if module.__file__
    }


def methods_used(module: str, name: str) -> set[str]:
    """Return which methods of a pattern the program uses; all when it is unclear.

    A pattern that is only ever matched where it stands need not be linear in a search.
    """
    base = name.partition("[")[0].partition("(")[0].rpartition(".")[2]
    used: set[str] = set()
    for path in Path(spamd.__file__).parent.rglob("*.py"):
        source = path.read_text()
        home = module.replace(".", "/") in str(path)
        if base not in source or not (home or module.rpartition(".")[2] in source):
            continue
        if not home and base.startswith("_"):
            continue
        used |= {
            node.attr
            for node in _attributes(path)
            if node.attr in MATCHERS and _last_name(node.value) == base
        }
    return used or {"search", "match", "fullmatch"}


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call | ast.Subscript):
        return _last_name(node.func if isinstance(node, ast.Call) else node.value)
    return ast.unparse(node).rpartition(".")[2]


_trees: dict[Path, list[ast.Attribute]] = {}


def _attributes(path: Path) -> list[ast.Attribute]:
    if path not in _trees:
        tree = ast.parse(path.read_text())
        _trees[path] = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return _trees[path]


# Texts

_MANY = 8
_CATEGORIES = {"CATEGORY_DIGIT": "5", "CATEGORY_SPACE": " \n", "CATEGORY_WORD": "w_"}
TAILS = ("", "\0", "\n", "a", "-")


def texts(pattern: Pattern, size: int) -> Iterator[str]:
    """Yield texts of about `size` characters made to hurt a pattern."""
    alphabet, pumps = _seeds(pattern)
    for before, unit, after in pumps:
        for tail in TAILS:
            yield before + unit * (size // len(unit)) + tail
        for end in after:
            yield before + unit * (size // len(unit)) + end
        whole = before + unit * 30
        for tail in ("", "\0", " ", "\n"):
            yield (whole + tail) * (size // len(whole + tail) + 1)
    for sign in alphabet:
        yield sign * size
        for other in alphabet:
            yield (sign + other) * (size // 2)
            yield sign * (size // 2) + other * (size // 2) + "\0"


def short_texts(pattern: Pattern) -> Iterator[str]:
    """Yield texts of 10 to 40 characters, for patterns that look no further."""
    alphabet, pumps = _seeds(pattern)
    for length in (14, 19, 24, 40):
        for before, unit, after in pumps:
            for tail in {*TAILS, *after}:
                fill = max(1, (length - len(before) - len(tail)) // len(unit))
                yield before + unit * fill + tail
                for sign in alphabet:
                    yield before + sign + unit * (fill - 1) + tail
                    yield before + unit * (fill // 2) + sign * 2 + unit * (fill // 2) + tail


_seed_cache: dict[Pattern, tuple[list[str], list[tuple[str, str, list[str]]]]] = {}


def _seeds(pattern: Pattern) -> tuple[list[str], list[tuple[str, str, list[str]]]]:
    """Return signs of a pattern, and (what comes before, what is repeated, what may follow)."""
    if pattern not in _seed_cache:
        source = pattern.pattern
        text = source.decode("latin_1") if isinstance(source, bytes) else source
        text = re.sub(r"\\p\{\w+\}", "A-Za-zа-я", text)  # the library doesn't know properties
        parsed = _parser.parse(text.replace("[A-Za-zа-я]", "[A-Za-zа-я]"), re.DOTALL)
        signs = list(dict.fromkeys(_signs(parsed)))
        step = max(1, len(signs) // 7)
        pumps = list(dict.fromkeys((b, u, tuple(a)) for b, u, a in _pumps(parsed, "") if u))
        _seed_cache[pattern] = (
            signs[::step][:8],
            [(before, unit, list(after)) for before, unit, after in pumps[:60]],
        )
    return _seed_cache[pattern]


def _signs(parsed: Any) -> Iterator[str]:  # noqa: C901 - one case for each kind of node
    for kind, value in parsed:
        match str(kind):
            case "LITERAL" | "NOT_LITERAL":
                yield chr(value)
            case "IN":
                yield from _of_class(value)
            case "ANY":
                yield "x"
            case "BRANCH":
                for branch in value[1]:
                    yield from _signs(branch)
            case "SUBPATTERN":
                yield from _signs(value[3])
            case "ATOMIC_GROUP":
                yield from _signs(value)
            case "ASSERT" | "ASSERT_NOT":
                yield from _signs(value[1])
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                yield from _signs(value[2])
            case _:
                pass


def _of_class(items: Any) -> list[str]:
    """Return some signs of a character class."""
    found: list[str] = []
    negated = False
    for kind, value in items:
        match str(kind):
            case "NEGATE":
                negated = True
            case "LITERAL":
                found.append(chr(value))
            case "RANGE":
                found += [chr(value[0]), chr(value[1])]
            case "CATEGORY":
                found += {
                    "CATEGORY_DIGIT": "5",
                    "CATEGORY_SPACE": " \n",
                    "CATEGORY_WORD": "w_",
                }.get(str(value), "x.")
            case _:
                pass
    if negated:
        return [sign for sign in "a A1.-=\n\"'<;é" if sign not in found][:6]
    return found


def _samples(parsed: Any, most: int = 3) -> list[str]:
    """Return a few texts that a sequence matches, look-arounds not asked."""
    found = [""]
    for kind, value in parsed:
        match str(kind):
            case "LITERAL":
                options = [chr(value)]
            case "NOT_LITERAL":
                options = ["a" if value != ord("a") else "b"]
            case "IN":
                signs = _of_class(value) or ["a"]
                options = [signs[0], signs[-1], signs[len(signs) // 2]]
            case "ANY":
                options = ["x", "-"]
            case "BRANCH":
                options = [text for branch in value[1][:12] for text in _samples(branch, 1)]
            case "SUBPATTERN":
                options = _samples(value[3])
            case "ATOMIC_GROUP":
                options = _samples(value)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                options = [text * max(1, value[0]) for text in _samples(value[2])]
            case _:
                options = [""]
        options = list(dict.fromkeys(options))
        found = [text + option for text in found for option in options][: most * 4]
    return list(dict.fromkeys(found))[: most * 2]


def _pumps(  # noqa: C901, PLR0912 - one case for each kind of node
    parsed: Any, before: str
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield (text before, text repeated, possible ends) for each repeat inside a sequence."""
    items = list(parsed)
    for place, (kind, value) in enumerate(items):
        heads = [before + text for text in _samples(items[:place], 1)[:2]] or [before]
        after = tuple(_samples(items[place + 1 :], 1)[:2])
        match str(kind):
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                for head in heads:
                    if value[1] > _MANY:
                        for unit in _samples(value[2]):
                            yield head, unit, after
                    yield from _pumps(value[2], head)
            case "SUBPATTERN":
                for head in heads:
                    yield from _pumps(value[3], head)
            case "ATOMIC_GROUP":
                for head in heads:
                    yield from _pumps(value, head)
            case "BRANCH":
                for branch in value[1]:
                    for head in heads:
                        yield from _pumps(branch, head)
            case "ASSERT" | "ASSERT_NOT":
                for head in heads:
                    yield from _pumps(value[1], head)
            case _:
                pass


def distinct(found: Iterable[str]) -> Iterator[str]:
    """Yield each text once; two streams of one pattern at two sizes stay in step."""
    return iter(dict.fromkeys(found))


# Time


def cpu_s(work: Callable[[Any], object], text: Any, tries: int = 1) -> float:
    """Return the least CPU time that some work on a text took in several tries.

    Without the garbage collector: what it takes grows with all that this process holds.
    """
    best = float("inf")
    gc.disable()
    try:
        for _ in range(tries):
            started = time.thread_time()
            work(text)
            best = min(best, time.thread_time() - started)
    finally:
        gc.enable()
    return best


def growth(work: Callable[[Any], object], small: Any, large: Any) -> float:
    """Return how many times as long the fourfold text takes; 0 when it takes no time at all.

    What looks bad is measured again, because others use the machine too.
    """
    if cpu_s(work, large) < NOTHING_S:
        return 0.0
    ratio = after = 0.0
    for tries in (1, 3, 7, 21):
        after = cpu_s(work, large, tries)
        ratio = after / max(cpu_s(work, small, tries), NOTHING_S / 16)
        if ratio <= GROWTH or after < NOTHING_S:
            break
    return ratio if after >= NOTHING_S else 0.0
