"""Debian's Chromium as the reference of what is shown: without network, without scripts.

`Browser.painted` gives the words that a page shows on a screen, `differences` compares them with
ours. Words are runs without white space, compared as multisets: two pieces of text that only their
places keep apart may count as one word or as two, so that a word which is missing while its parts
are there, or the other way round, is no difference.
"""

import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple, Self
from unicodedata import normalize

from playwright.sync_api import Page as Tab
from playwright.sync_api import Route, sync_playwright

from spamd.message.html.page import Page

PROGRAM = Path("/usr/bin/chromium")
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",
]
_ADDRESS = "http://page.invalid/"
_SCRIPT = Path(__file__).with_name("painted.js").read_text(encoding="utf-8")
_PREFERENCES = '{"webkit":{"webprefs":{"minimum_font_size":0,"minimum_logical_font_size":0}}}'
_POLICY = "default-src 'none'; style-src 'unsafe-inline' data:"


class Painted(NamedTuple):
    """The words of one page: of its text, and of its pictures, hints and fields."""

    shown: str
    spoken: str


class Browser:
    """One browser with one tab; `with` starts and ends it."""

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="chromium-")
        profile = Path(self._folder.name) / "Default"
        profile.mkdir()
        (profile / "Preferences").write_text(_PREFERENCES)
        self._playwright = sync_playwright().start()
        self._context = self._playwright.chromium.launch_persistent_context(
            self._folder.name,
            executable_path=PROGRAM,
            headless=True,
            java_script_enabled=False,
            args=_FLAGS,
            viewport={"width": 1024, "height": 768},
        )
        self._context.route("**/*", self._answer)
        self._tab: Tab = self._context.pages[0]
        self._source = ""
        return self

    def __exit__(self, *_: object) -> None:
        self._context.close()
        self._playwright.stop()
        self._folder.cleanup()

    def _answer(self, route: Route) -> None:
        if route.request.url == _ADDRESS and route.request.is_navigation_request():
            route.fulfill(
                status=200,
                content_type="text/html; charset=utf-8",
                headers={"content-security-policy": _POLICY},
                body=self._source,
            )
        else:
            route.abort()

    def painted(self, source: str) -> Painted:
        """Return what the browser shows of a page once it knows what it can't load."""
        self._source = source.encode("utf-8", "replace").decode()
        self._tab.goto(_ADDRESS, wait_until="load", timeout=60_000)
        found = self._tab.evaluate(_SCRIPT)
        return Painted(found["shown"], " ".join(found["spoken"]))


_MARKS = re.compile("[\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u2064\ufeff\ufffd\0-\x1f]+")


def words(text: str) -> Counter[str]:
    """Return the words of a text with their counts."""
    return Counter(normalize("NFKC", _MARKS.sub(" ", text)).casefold().split())


class Difference(NamedTuple):
    """Words that only one side shows."""

    browser: list[str]
    ours: list[str]


def difference(painted: Painted, text: str) -> Difference:
    """Return the words that only the browser shows and that only we show."""
    theirs, ours = words(f"{painted.shown} {painted.spoken}"), words(text)
    missing, extra = theirs - ours, ours - theirs
    if missing and extra:
        _join(missing, extra)
        _join(extra, missing)
    return Difference(sorted(missing.elements()), sorted(extra.elements()))


def _join(whole: Counter[str], parts: Counter[str]) -> None:
    """Take out words of one side that are two or more words of the other, put together."""
    for word in list(whole.elements()):
        rest = word
        used: list[str] = []
        while rest:
            part = next(
                (each for each in sorted(parts, key=len, reverse=True)
                 if parts[each] > used.count(each) and rest.startswith(each)),
                None,
            )  # fmt: skip
            if part is None:
                break
            used.append(part)
            rest = rest[len(part) :]
        if not rest:
            parts.subtract(used)
            for each in [each for each in parts if parts[each] <= 0]:
                del parts[each]
            whole[word] -= 1
            if not whole[word]:
                del whole[word]


SLACK = {
    "never closed": "a raw element, comment, tag or quote without end hides the rest in a browser",
    "in motion": "a marquee is only now and then in sight",
    "place": "where short text ends up depends on the widths of everything",
    "outlook": "mso-hide hides in Outlook alone",
    "has": ":has() asks for what stands inside, which a scanner meets behind its element",
}
"""Why words that only we show may be there, each reason with its explanation.

Words that only the browser shows are never excused.
"""


def reason(source: str, page: Page, found: Difference) -> str | None:
    """Return which reason of `SLACK` excuses the words that only we show, None for none."""
    text = source.lower()
    if page.cut or _OPEN_QUOTE.search(source) is not None:
        return "never closed"
    if "<marquee" in text:
        return "in motion"
    if ":has(" in text:
        return "has"
    if "left:-100px" in text or ("-9999px" in text and "<span" in text and found.ours == ["four"]):
        return "place"
    return None


_OPEN_QUOTE = re.compile(r"""=\s*"(?:[^"<>]*>|[^"]*\Z)|=\s*'(?:[^'<>]*>|[^']*\Z)""")
