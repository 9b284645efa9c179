"""`make compare-browser`: visible words of all HTML parts of the corpora against Chromium's.

Prints each page that differs, then pages, words, and the differences by reason. Words that only
the browser shows, and words without a reason, make it fail.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Error

from spamd.message import reading
from spamd.message.html.page import Page, render
from spamd.message.limits import Limits
from spamd.message.mime.parser import parse
from spamd.message.reading import read
from tests.benchmarks.measure import corpora

from .browser import SLACK, Browser, difference, reason
from .made_pages import pages

CORPORA = ("spamassassin", "modern", "hostile")


def sources(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield every HTML text that reading the mails of a folder renders."""
    found: list[str] = []

    def noted(text: str, limits: Limits = Limits()) -> Page:  # noqa: B008 - a frozen value
        found.append(text)
        return render(text, limits)

    vars(reading)["render"] = noted
    try:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name != "index":
                read(parse(path.read_bytes()))
                yield from ((f"{folder.name}/{path.name}", text) for text in found)
                found.clear()
    finally:
        vars(reading)["render"] = render


def compare(some: Iterator[tuple[str, str]], browser: Browser) -> Counter[str]:
    """Print the differences of some pages; return how many there are by reason."""
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    for name, source in some:
        if source in seen:
            continue
        seen.add(source)
        try:
            painted = browser.painted(source)
        except Error as error:  # a page that leads away at once
            counts["not painted"] += 1
            print(f"{name}: {str(error).splitlines()[0]}")
            continue
        page = render(source)
        words = difference(painted, page.text)
        counts["pages"] += 1
        counts["words"] += len(f"{painted.shown} {painted.spoken}".split())
        if not words.browser and not words.ours:
            continue
        why = None if words.browser else reason(source, page, words)
        counts[why or "UNEXPLAINED"] += 1
        print(f"{name}: {why}; missing {words.browser[:8]}, too many {words.ours[:8]}")
    return counts


def main() -> int:
    """Compare made pages and mail."""
    failed = 0
    with corpora() as folder, Browser() as browser:
        for name, some in [
            ("made", pages()), *((each, sources(folder / each)) for each in CORPORA)
        ]:  # fmt: skip
            counts = compare(iter(some), browser)
            failed += counts["UNEXPLAINED"]
            print(f"{name}: {dict(counts)}")
    for why, explanation in SLACK.items():
        print(f"{why}: {explanation}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
