"""Files that pages name: ours alone, and small."""

import gzip
import re
from importlib.resources import files

from spamd.listeners.web.pages.assets import TYPES, Assets

FOLDER = files("spamd.listeners.web.pages")


def test_every_file_of_the_folder_is_served_under_its_own_path() -> None:
    assets = Assets()
    assert {path.name for path in FOLDER.joinpath("static").iterdir()} == set(TYPES)
    assert len({assets.path(name) for name in TYPES}) == len(TYPES)
    assert assets.of("../texts/en.toml") is None


def test_all_that_a_browser_loads_with_a_page_is_small() -> None:
    assets = Assets()
    loaded = [
        found.content for name in TYPES if (found := assets.of(name)) and "LICENSE" not in name
    ]
    assert sum(len(gzip.compress(content)) for content in loaded) < 30_000


def test_style_and_script_name_no_other_host() -> None:
    for name in ("page.css", "page.js"):
        text = FOLDER.joinpath("static", name).read_text("utf-8")
        assert not re.search(r"https?://|//\w+\.|@import|url\(", text), name


def test_templates_hold_no_script_or_style_of_their_own() -> None:
    for path in FOLDER.joinpath("templates").iterdir():
        text = path.read_text("utf-8")
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?! src=)|hx-on|\|\s*safe", text), (
            path
        )
