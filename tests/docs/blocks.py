"""Every printed block of the documents, and how a test claims one.

A test that uses what a document prints asks for it by the block's beginning:

    SETTINGS = block("docs/operations.md", "[relay]\\nlisten = [\\"127.0.0.1:8025\\"]")

`test_blocks.py` looks for these calls in all tests: a block that no test asks for fails there. A
drawing or a formula is indented, or fenced as `text`, and is not executed.
"""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)(?:    .*\n)(?:(?:    .*)?\n)*")


class Block(NamedTuple):
    """One block of a document, as it is printed."""

    document: str
    heading: str
    language: str
    text: str


def documents() -> list[str]:
    """Return the documents that print something for people to use."""
    names = ["README.md", "CHANGELOG.md", *sorted(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))]
    return [name for name in names if (ROOT / name).exists()]


def blocks(document: str) -> list[Block]:
    """Return all fenced and indented blocks of a document in order."""
    text = (ROOT / document).read_text("utf-8")
    found = [(match.start(), match[2], match[3]) for match in FENCED.finditer(text)]
    # What is fenced is left out; list items that go on are indented by two.
    plain = FENCED.sub(lambda match: "\n" * match[0].count("\n"), text)
    found += [(text.find(match[0]), "indented", match[0]) for match in INDENTED.finditer(plain)]
    return [
        Block(document, _heading(text, place), language, content)
        for place, language, content in sorted(found)
    ]


def block(document: str, beginning: str) -> str:
    """Return the one block of a document that begins so."""
    found = [each.text for each in blocks(document) if each.text.startswith(beginning)]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} blocks of {document} begin with {beginning!r}")
    return found[0]


def _heading(text: str, place: int) -> str:
    headings: list[str] = re.findall(r"^#+ (.*)$", text[:place], re.MULTILINE)
    return headings[-1]
