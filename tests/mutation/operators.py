"""The mutants of a module: its text with one small fault.

Mutated are comparisons, arithmetic, constants, conditions, `and`/`or`, returned values, calls for
their effect, the bounds of min and max, break and continue. Left alone is what no behaviour hangs
on: annotations, docstrings, decorators, the texts of exceptions, `zip(…, strict=True)`.
"""

import ast
import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

SWAPS: Mapping[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Break: ast.Continue,
    ast.Continue: ast.Break,
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum"} | {
    "maximum": "minimum",
    "argmax": "argmin",
    "argmin": "argmax",
}


Node = TypeVar("Node", bound=ast.AST)
NAMED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One fault; `function` is empty for what runs when the module is imported."""

    module: str
    path: Path
    function: str
    before: str
    after: str
    source: str

    def __str__(self) -> str:
        """Name the mutant without its line, as the list of equivalent ones does."""
        return f"{self.module}:{self.function or '(module)'}: {self.before}  =>  {self.after}"


def mutants(path: Path, module: str) -> Iterator[Mutant]:
    """Return every mutant of the module, in the order of its text."""
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    for node, function, condition in _places(ast.parse(content), "", inside=False):
        last, column = node.end_lineno or 0, node.end_col_offset or 0
        start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
        end = sum(map(len, lines[: last - 1])) + column
        padding = b"\n" * (last - node.lineno)  # what follows keeps its line numbers
        for after in _replacements(node, condition=condition):
            text = ast.unparse(after).encode() + padding
            text = b"(" + text + b")" if isinstance(node, ast.expr) else text
            yield Mutant(
                module=module,
                path=path,
                function=function,
                before=" ".join(ast.unparse(node).split()),
                after=" ".join(ast.unparse(after).split()),
                source=(content[:start] + text + content[end:]).decode(),
            )


def _places(
    node: ast.AST, scope: str, *, inside: bool
) -> Iterator[tuple[ast.expr | ast.stmt, str, bool]]:
    """Walk over what may be mutated: the node, the function it runs in, whether a condition."""
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _left_alone(node, name, child):
                continue
            within, below = inside, scope
            if isinstance(node, NAMED) and name == "body" and not inside:
                within = not isinstance(node, ast.ClassDef)
                below = f"{scope}.{node.name}".lstrip(".")
            if isinstance(child, ast.expr | ast.stmt):
                yield child, below if within else "", name in {"test", "ifs"}
            if not isinstance(child, ast.JoinedStr):  # whose parts have no places of their own
                yield from _places(child, below, inside=within)


def _left_alone(node: ast.AST, field: str, child: ast.AST) -> bool:
    match node, child:
        case (
            (ast.Raise(), _) | (_, ast.Expr(value=ast.Constant())) | (_, ast.keyword(arg="strict"))
        ):
            return True
        case (_, ast.If(test=ast.Name(id="TYPE_CHECKING"))):
            return True
        case (ast.Call(func=ast.Name(id="cast" | "TypeVar" | "NewType")), _):
            return True
        case (ast.Assign(targets=[ast.Name(id="__all__" | "__slots__")]), _):
            return True
        case _:
            return field in {
                "annotation",
                "returns",
                "decorator_list",
                "bases",
                "targets",
                "target",
            }


def _replacements(node: ast.expr | ast.stmt, *, condition: bool = False) -> Iterator[ast.AST]:
    if condition and isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        yield ast.UnaryOp(ast.Not(), node)
    match node:
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield ast.Pass()
        case ast.Break() | ast.Continue():
            yield SWAPS[type(node)]()
        case ast.AugAssign():
            yield _with(node, op=SWAPS[type(node.op)]())
        case ast.expr():
            yield from _expressions(node)
        case _:
            return


def _expressions(node: ast.expr) -> Iterator[ast.AST]:
    match node:
        case ast.Constant():
            yield from _constants(node)
        case ast.JoinedStr():
            yield from _parts(node)
        case ast.Compare():
            for place, op in enumerate(node.ops):
                ops = [*node.ops[:place], SWAPS[type(op)](), *node.ops[place + 1 :]]
                yield _with(node, ops=ops)
        case ast.BinOp() | ast.BoolOp() if type(node.op) in SWAPS:
            yield _with(node, op=SWAPS[type(node.op)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield node.operand
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in NAMES:
            field = "id" if isinstance(node.func, ast.Name) else "attr"
            yield _with(node, func=_with(node.func, **{field: NAMES[name]}))
            if name.startswith(("min", "max")) and len(node.args) == 2:
                yield from node.args
        case _:
            return


def _with(node: Node, **changed: object) -> Node:
    new = copy.copy(node)
    for name, value in changed.items():
        setattr(new, name, value)
    return new


def _constants(node: ast.Constant) -> Iterator[ast.AST]:
    match node.value:
        case bool() as value:
            yield ast.Constant(not value)
        case int() as value:
            yield ast.Constant(value + 1)
        case float() as value:
            yield ast.Constant(value * 2 if value else 1.0)
        case str() as value:
            yield ast.Constant(f"XX{value}")
        case bytes() as value:
            yield ast.Constant(b"XX" + value)
        case _:
            return


def _parts(node: ast.JoinedStr) -> Iterator[ast.AST]:
    for place, part in enumerate(node.values):
        found: list[ast.expr] = []
        if isinstance(part, ast.Constant):
            found = [ast.Constant(f"XX{part.value!s}")]
        elif isinstance(part, ast.FormattedValue):
            inner = _expressions(part.value)
            found = [_with(part, value=new) for new in inner]
        for new in found:
            yield ast.JoinedStr([*node.values[:place], new, *node.values[place + 1 :]])
