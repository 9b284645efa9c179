"""The code keeps the sizes that docs/architecture.md promises."""

import ast
import tomllib
from collections.abc import Iterator

from tests.docs.generated import ROOT, packages

FILE_LINES, CLASS_LINES, CLASS_METHODS, PACKAGE_MODULES = 400, 300, 30, 13
MODULES = [path for modules in packages().values() for path in modules]


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield f"{path.relative_to(ROOT)}: {node.name}", node


CLASSES = dict(classes())


def test_no_file_is_longer_than_a_person_reads() -> None:
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in MODULES}

    assert len(lines) > 150
    assert {name: count for name, count in lines.items() if count > FILE_LINES} == {}


def test_no_class_is_too_large() -> None:
    lines = {name: (node.end_lineno or 0) - node.lineno + 1 for name, node in CLASSES.items()}

    assert len(lines) > 250
    assert {name: count for name, count in lines.items() if count > CLASS_LINES} == {}


def test_no_class_has_too_many_methods() -> None:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    methods = {
        name: sum(isinstance(each, kinds) for each in node.body) for name, node in CLASSES.items()
    }

    assert {name: count for name, count in methods.items() if count > CLASS_METHODS} == {}


def test_no_package_has_too_many_modules() -> None:
    modules = {name: len(paths) for name, paths in packages().items() if name != "spamd"}

    assert {name: count for name, count in modules.items() if count > PACKAGE_MODULES} == {}


def test_every_package_is_shipped() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    shipped = set(project["tool"]["setuptools"]["packages"])
    assert shipped - {"spamd.migrations", "spamd.migrations.versions"} == {
        name.replace("/", ".") for name in packages()
    }
