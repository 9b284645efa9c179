"""The documents as a site, made by mkdocs without network: `make site`.

README.md is its first page. What documents link to outside docs/ comes along, so that every link
leads somewhere; mkdocs refuses one that does not, heading or file.
"""

import logging
import shutil
import sys
import tempfile
from pathlib import Path

from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

ROOT = Path(__file__).parents[2]

BESIDE = ("CHANGELOG.md", "config", "man")
"""What docs/ links to."""


def staged(folder: Path) -> None:
    """Lay all that the site shows into one folder, with the links as they are there."""
    shutil.copytree(ROOT / "docs", folder, dirs_exist_ok=True)
    for name in BESIDE:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
        copy(ROOT / name, folder / name)
    for page in (ROOT / "docs").glob("*.md"):
        text = page.read_text("utf-8").replace("](../README.md", "](index.md")
        (folder / page.name).write_text(text.replace("](../", "]("), "utf-8")
    first = (ROOT / "README.md").read_text("utf-8").replace("](docs/", "](")
    (folder / "index.md").write_text(first, "utf-8")


def made(target: Path) -> None:
    """Write the site."""
    with tempfile.TemporaryDirectory() as work:
        staged(Path(work) / "docs")
        written(Path(work) / "docs", target)


def written(pages: Path, target: Path) -> None:
    """Write the site of these pages.

    Raises:
        Abort: a link leads nowhere, or a page is in no menu.
    """
    settings = str(ROOT / "mkdocs.yml")
    build(load_config(settings, docs_dir=str(pages), site_dir=str(target), strict=True))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        made(Path(sys.argv[1]).absolute())
    except Abort as error:
        sys.exit(f"the site was not made: {error}")
