"""In Debian's Chromium: every view fits a phone and a wide screen, is read and used by everybody.

One load serves both widths and both colour schemes: what a page asks for and what it says in the
console come from loading it, what is too wide or too faint from showing it.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, async_playwright

from tests.admin.office import HAM_WORDS, SPAM_WORDS, mail, office
from tests.listeners.web.clients import running
from tests.listeners.web.pages.test_views import EVIL, VIEWS
from tests.message.browser import PROGRAM
from tests.servers.base import require

PHONE, WIDE = 360, 1600
GRAVE = {"serious", "critical"}
RULES = {"resultTypes": ["violations"], "elementRef": False}
COLOURS = {**RULES, "runOnly": ["color-contrast"]}


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


async def barriers(page: Page, options: dict[str, Any]) -> list[str]:
    """Return what keeps somebody from reading a page or using it, as axe finds it."""
    found = (await Axe().run(page, options=options)).response["violations"]
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:300]} {each['nodes'][0]['failureSummary']}"
        for each in found
        if each["impact"] in GRAVE
    ]


async def look(browser: Browser, home: str, paths: Iterable[str], *, dark: bool) -> None:
    """Fail where a view does not fit, keeps somebody out, asks others, or complains."""
    page = await browser.new_page(reduced_motion="reduce")
    found = complaints(page, home)
    for path in paths:
        await page.emulate_media(color_scheme="light")
        await page.set_viewport_size({"width": PHONE, "height": 800})
        await page.goto(home + path.lstrip("/"), wait_until="load")
        await page.wait_for_selector("[hx-trigger=load]", state="detached")
        assert await page.locator("h1").count() == 1, path
        assert await width(page) <= PHONE, path
        assert await barriers(page, RULES) == [], path
        await page.set_viewport_size({"width": WIDE, "height": 800})
        assert await width(page) <= WIDE, path
        if dark:
            await page.emulate_media(color_scheme="dark")
            assert await barriers(page, COLOURS) == [], path
        assert not found, (path, found)
    await page.close()


async def width(page: Page) -> int:
    """Return how wide a page is."""
    return int(await page.evaluate("document.documentElement.scrollWidth"))


async def test_views_fit_every_screen_keep_nobody_out_and_ask_nobody_else(tmp_path: Path) -> None:
    require("chromium")
    async with chromium() as browser:
        for learned in (0, 12):
            folder = tmp_path / str(learned)
            folder.mkdir()
            async with office(folder, learned=learned, full=True) as here:
                evil = mail(1, f"{EVIL} {SPAM_WORDS}", subject=EVIL)
                name = await here.scanned(evil, queue_id=EVIL[:40])
                async with running(administration=here.found) as web:
                    home = f"http://localhost:{web.address[1]}/"
                    paths = (*VIEWS, f"/mail/{name}", f"/mail/{name}/basis")
                    await look(browser, home, paths, dark=learned > 0)


async def press(page: Page, *keys: str) -> None:
    """Press keys, one after the other."""
    for key in keys:
        await page.keyboard.press(key)


async def tab_to(page: Page, selector: str) -> None:
    """Go on with the tabulator until an element has the focus, and it can be seen that it has."""
    for _ in range(60):
        await page.keyboard.press("Tab")
        if await page.evaluate("wanted => document.activeElement.matches(wanted)", selector):
            outline = "getComputedStyle(document.activeElement).outlineStyle"
            assert await page.evaluate(outline) != "none", selector
            return
    raise AssertionError(f"no tabulator leads to {selector}")


async def test_a_mail_is_found_taught_and_forgotten_by_keyboard_alone(tmp_path: Path) -> None:
    require("chromium")
    async with office(tmp_path, learned=12) as here:
        name = await here.scanned(mail(500, f"{HAM_WORDS} harbour"))
        before = (await here.store.totals()).ham
        async with running(administration=here.found) as web, chromium() as browser:
            home = f"http://localhost:{web.address[1]}/"
            page = await browser.new_page(reduced_motion="reduce")
            found = complaints(page, home)
            await page.goto(home)
            await tab_to(page, ".skip")
            await tab_to(page, "nav a[href='/history']")
            await press(page, "Enter")
            await page.wait_for_url(home + "history")
            await press(page, "/")
            await page.keyboard.type(name[:6])
            await press(page, "Enter")
            await page.wait_for_url("**id=*")
            await press(page, "j", "Enter")
            await page.wait_for_url(f"{home}mail/{name}")
            await tab_to(page, "button[value=ham]")
            await press(page, "Enter")
            await page.wait_for_selector("[role=status]:focus")
            assert (await here.store.totals()).ham == before + 1
            assert await page.locator("[role=status] .change .p").count() == 2
            await tab_to(page, "button[value=forget]")
            await press(page, "Space")
            await page.wait_for_selector("button[value=forget]", state="detached")
            assert (await here.store.totals()).ham == before
            assert not found, found
