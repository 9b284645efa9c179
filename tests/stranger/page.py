"""The page in Debian's Chromium, from within the network of a bare system.

A program of its own, as a process can't change its network for one call: `opened` runs it there.
"""

import json
import subprocess
import sys

from playwright.sync_api import sync_playwright

from tests.message.browser import PROGRAM


def opened(network: str, address: str) -> list[str]:
    """Return what a browser shows of the overview, the history and its first mail.

    Raises:
        AssertionError: it complains, or shows something else.
    """
    done = subprocess.run(
        ["ip", "netns", "exec", network, sys.executable, "-m", "tests.stranger.page", address],
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen: list[str] = json.loads(done.stdout)
    return seen


def look(address: str) -> list[str]:
    """Open the page as somebody does who was given its address, and follow its links."""
    seen: list[str] = []
    complaints: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=PROGRAM, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        seen.append(f"{page.title()}: {page.locator('h1').inner_text()}")
        page.get_by_role("link", name="History").first.click()
        page.wait_for_url("**/history**")
        seen.append(f"{page.title()}: {page.locator('h1').inner_text()}")
        page.locator("a[href^='/mail/']").first.click()
        page.wait_for_url("**/mail/**")
        seen.append(f"{page.title()}: {page.locator('h1').inner_text()}")
        browser.close()
    assert not complaints, complaints
    return seen


if __name__ == "__main__":
    print(json.dumps(look(sys.argv[1])))
