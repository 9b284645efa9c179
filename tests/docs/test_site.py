"""The site of the documents is made without network, and no link in it leads nowhere."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from mkdocs.exceptions import Abort

from tests.docs.blocks import ROOT
from tests.docs.site import made, staged, written

LOADED = re.compile(r'<(?:script|img|link)\b[^>]*\b(?:src|href)="([^"]+)"')
LINK = re.compile(r'<a\b[^>]*\bhref="([^"#]+)')


def test_the_site_holds_every_document_and_asks_no_other_host(tmp_path: Path) -> None:
    made(tmp_path)
    pages = {path.stem for path in tmp_path.glob("*.html")} - {"404"}
    assert pages == {"index", "CHANGELOG", *(path.stem for path in ROOT.glob("docs/*.md"))}
    for page in tmp_path.glob("*.html"):
        text = page.read_text("utf-8")
        loaded = LOADED.findall(text)
        assert loaded
        assert [each for each in loaded if "//" in each] == []
        if page.stem != "404":  # shown at any path
            links = [each for each in (*loaded, *LINK.findall(text)) if ":" not in each]
            assert [each for each in links if not (tmp_path / unquote(each)).exists()] == []


@pytest.mark.parametrize(
    "wrong",
    ["[there](nowhere.md)", "[there](users.md#no-heading)", "[there](config/none.toml)"],
)
def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path, wrong: str) -> None:
    staged(tmp_path / "docs")
    with (tmp_path / "docs/api.md").open("a") as page:
        page.write(f"\n{wrong}\n")
    with pytest.raises(Abort):
        written(tmp_path / "docs", tmp_path / "site")
