"""Visible words against what Chromium paints, on made pages (`make compare-browser`: on mail)."""

from collections.abc import Iterator
from itertools import islice

import pytest

from spamd.message.html.page import render
from tests.conftest import require
from tests.sizes import sized

from .made_pages import pages

STEP = sized(44, 11)
"""Of some 3,000 pages 95, or 270, and every one of those that stand alone."""


def chosen(kinds: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    mine = [(name, page) for name, page in pages() if name.startswith(kinds)]
    yield from islice(mine, 0, None, STEP)


def differences(some: Iterator[tuple[str, str]]) -> list[str]:
    require("chromium")
    from .browser import Browser, difference, reason

    found = []
    with Browser() as browser:
        for name, source in some:
            page = render(source)
            words = difference(browser.painted(source), page.text)
            if words.browser or (words.ours and reason(source, page, words) is None):
                found.append(f"{name}: missing {words.browser}, too many {words.ours}")
    return found


@pytest.mark.timeout(600)
def test_g5_made_pages_of_elements_show_the_words_that_chromium_paints() -> None:
    odd = [each for each in pages() if each[0].startswith("odd")]
    assert differences(iter([*chosen(("element", "left open")), *odd])) == []


@pytest.mark.timeout(600)
def test_g6_made_pages_of_styles_show_the_words_that_chromium_paints() -> None:
    kinds = ("rule", "late", "inline", "cell", "nested", "sheet", "style")
    assert differences(chosen(kinds)) == []
