"""In Debian's Chromium: every view fits a phone and a wide screen, and asks nobody else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, async_playwright

from tests.admin.office import SPAM_WORDS, mail, office
from tests.listeners.web.clients import running
from tests.listeners.web.pages.test_views import EVIL, VIEWS
from tests.message.browser import PROGRAM
from tests.servers.base import require

WIDTHS = (360, 1600)


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Give a browser."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=PROGRAM, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield browser
        finally:
            await browser.close()


def complaints(page: Page, home: str) -> list[str]:
    """Return a list that gets what a page asks of others, and what its console says."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("console", lambda said: found.append(said.text) if said.type == "error" else None)
    page.on(
        "request",
        lambda asked: None if asked.url.startswith(home) else found.append(asked.url),
    )
    return found


@pytest.mark.parametrize("learned", [0, 12])
async def test_views_fit_every_screen_and_ask_nobody_else(tmp_path: Path, learned: int) -> None:
    require("chromium")
    async with office(tmp_path, learned=learned, full=True) as here:
        name = await here.scanned(mail(1, f"{EVIL} {SPAM_WORDS}", subject=EVIL), queue_id=EVIL[:40])
        async with running(administration=here.found) as web, chromium() as browser:
            home = f"http://localhost:{web.address[1]}/"
            page = await browser.new_page()
            found = complaints(page, home)
            for width in WIDTHS:
                await page.set_viewport_size({"width": width, "height": 800})
                for path in (*VIEWS, f"/mail/{name}", f"/mail/{name}/basis"):
                    await page.goto(home + path.lstrip("/"), wait_until="load")
                    wide = await page.evaluate("document.documentElement.scrollWidth")
                    assert wide <= width, (path, width)
                    assert await page.locator("h1").count() == 1, path
                    assert not found, (path, found)
