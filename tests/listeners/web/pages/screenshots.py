"""Pictures of the page for the documents: `make screenshots` writes docs/images.

python -m tests.listeners.web.pages.screenshots FOLDER [all]    all: every view, at two widths
"""

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image
from playwright.async_api import Browser

from spamd.admin.ports import ScanFilter, ScanRow
from tests.admin.office import Office, office
from tests.listeners.web.clients import running
from tests.listeners.web.pages.made_up import month
from tests.listeners.web.pages.test_browser import chromium

VIEWS = {
    "overview": "/?span=week",
    "history": "/history",
    "word": "/words?word=free",
    "words": "/words",
    "lessons": "/lessons",
    "rollback": "/lessons/rollback?source=imap",
    "accounts": "/accounts",
    "account": "/account?name=anna",
    "settings": "/settings",
    "evaluation": "/evaluation",
    "no-match": "/history?id=nothing",
}
IN_DOCUMENTS = ("overview", "history", "mail")
WIDE, PHONE = 1280, 360
HEIGHT = 1240
"""Of a picture in a document, at most: a list goes on."""

ALL = 100_000

BY_PROXY = {
    "trusted_proxies": ["127.0.0.0/8", "::1"],
    "user_header": "Remote-User",
    "teachers": ["*"],
}


async def picture(
    browser: Browser,
    url: str,
    path: Path,
    *,
    width: int = WIDE,
    scheme: str = "light",
    most: int = HEIGHT,
) -> None:
    """Write a picture of a page in few colours: flat areas need no more."""
    context = await browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
        locale="en-GB",
        timezone_id="UTC",
        reduced_motion="reduce",
        extra_http_headers={"Remote-User": "anna"},
    )
    page = await context.new_page()
    await page.goto(url, wait_until="networkidle")
    await page.screenshot(path=path, full_page=True)
    await context.close()
    with Image.open(path) as image:
        shown = image.crop((0, 0, image.width, min(image.height, most)))
        flat = shown.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    flat.save(path, optimize=True)


async def taken(folder: Path, *, every: bool) -> None:
    """Write them."""
    most = ALL if every else HEIGHT
    with tempfile.TemporaryDirectory() as work:
        async with (
            month(Path(work)) as (here, ids),
            chromium() as browser,
            running(administration=here.found, web=BY_PROXY) as web,
        ):
            views = {**VIEWS, **_mails(await here.store.records.scans(ScanFilter(), None, 50))}
            if every:
                views["basis"] = f"{views['mail']}/basis"
                views["old"] = f"/mail/{ids[0]}"
                await _evaluated(here)
            home = f"http://localhost:{web.address[1]}"
            for name in views if every else IN_DOCUMENTS:
                await picture(browser, home + views[name], folder / f"{name}.png", most=most)
                if every:
                    phone = folder / f"{name}-phone.png"
                    await picture(browser, home + views[name], phone, width=PHONE, most=most)
            for name in views if every else IN_DOCUMENTS[:1]:
                dark = folder / f"{name}-dark.png"
                await picture(browser, home + views[name], dark, scheme="dark", most=most)
            if every:
                await _empty(browser, folder)


def _mails(rows: Sequence[ScanRow]) -> dict[str, str]:
    """Return the newest mail of each verdict."""
    newest = {row.verdict: f"/mail/{row.id}" for row in reversed(rows)}
    return {"mail" if verdict == "unsure" else verdict: path for verdict, path in newest.items()}


async def _evaluated(here: Office) -> None:
    evaluation = here.found.evaluation
    await evaluation.ask()
    job = asyncio.ensure_future(evaluation.run())
    while not (await evaluation.found()).figures:  # noqa: ASYNC110 - another process finds them
        await asyncio.sleep(0.2)
    job.cancel()


async def _empty(browser: Browser, folder: Path) -> None:
    """Write what a first run looks like."""
    with tempfile.TemporaryDirectory() as work:
        async with (
            office(Path(work), learned=0) as here,
            running(administration=here.found) as web,
        ):
            home = f"http://localhost:{web.address[1]}"
            for name in (each for each in VIEWS if each not in ("account", "no-match")):
                for width, end in ((WIDE, ""), (PHONE, "-phone")):
                    path = folder / f"empty-{name}{end}.png"
                    await picture(browser, home + VIEWS[name], path, width=width, most=ALL)


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    asyncio.run(taken(Path(sys.argv[1]), every="all" in sys.argv[2:]))
