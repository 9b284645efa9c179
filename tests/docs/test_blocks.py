"""No document prints what nobody has tried: each block is claimed by a test (see `blocks.py`)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, Block, block, blocks, documents

TYPED = re.compile(
    r"^\s*(\$|spamd|make|docker|apt|pip|python|sudo|systemctl|curl|swaks)\b", re.MULTILINE
)
BLOCKS = [each for document in documents() for each in blocks(document)]


def claims() -> Iterator[tuple[str, str]]:
    """Yield document and beginning of every call of `block` with texts in the tests."""
    for file in (ROOT / "tests").rglob("*.py"):
        if file != Path(__file__):
            yield from _calls(ast.parse(file.read_text("utf-8")))


def _calls(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            values = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
            document, beginning = values if len(values) == 2 else ("", "")
            if node.func.id == "block" and isinstance(document, str) and isinstance(beginning, str):
                yield document, beginning


CLAIMS = set(claims())


def name_of(each: Block) -> str:
    return f"{each.document}: {each.heading}: {each.text.strip().splitlines()[0][:40]}"


@pytest.mark.parametrize("each", BLOCKS, ids=name_of)
def test_j12_a_printed_block_is_executed_by_a_test(each: Block) -> None:
    if each.language in {"text", "indented"} and not TYPED.search(each.text):
        return  # a drawing or a formula
    claimed = [start for name, start in CLAIMS if name == each.document]
    assert any(each.text.startswith(start) for start in claimed), (
        "nobody executes this block: claim it in a test by block(document, beginning)"
    )


@pytest.mark.parametrize(("document", "beginning"), sorted(CLAIMS))
def test_a_claimed_block_is_there(document: str, beginning: str) -> None:
    assert block(document, beginning)
