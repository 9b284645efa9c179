"""Every route of the page refuses whoever may not see or change it; none is forgotten."""

from pathlib import Path
from typing import Any, cast

import pytest

from spamd.listeners.web.pages.site import pages
from tests.listeners.web.clients import BOUNDS
from tests.listeners.web.test_access import (
    ELSEWHERE,
    HERE,
    OURS,
    cookie_of,
    guarded,
    log_in,
    who,
)

OPEN = {"/login", "/static/{tag}/{name}"}
ROUTES = [
    (route.path, method)
    for route in pages(cast("Any", None), cast("Any", None), BOUNDS)
    for method in sorted(route.methods or ())
    if route.path not in OPEN and method != "HEAD"
]
READING = [path.replace("{name}", "x") for path, method in ROUTES if method == "GET"]
CHANGING = [path.replace("{name}", "x") for path, method in ROUTES if method == "POST"]
EVIL = "Origin: https://evil.example"


@pytest.mark.parametrize("host", [HERE, ELSEWHERE])
async def test_whoever_has_not_logged_in_is_sent_there(host: str, tmp_path: Path) -> None:
    assert READING
    async with guarded(tmp_path) as here:
        for path in READING:
            answer = await here.get(path, [host])
            assert answer.status == 303, path
            assert answer.fields["location"].startswith("/login?ended=1&next="), path
        for path in CHANGING:
            answer = await here.post(path, b"", [host, OURS])
            assert (answer.status, answer.body) == (303, b""), path
            assert answer.fields["location"] == "/login?ended=1&next=/"


@pytest.mark.parametrize("password", ["correct horse", "only looking"])
async def test_a_form_that_is_not_of_a_page_of_ours_changes_nothing(
    password: str, tmp_path: Path
) -> None:
    assert CHANGING
    async with guarded(tmp_path) as here:
        cookie = cookie_of(await log_in(here, password))
        csrf = (await who(here, ELSEWHERE, cookie))[1]["csrf"]
        form = "Content-Type: application/x-www-form-urlencoded"
        right = f"csrf={csrf}".encode()
        for path in CHANGING:
            for fields, body in (
                ([OURS], b""),
                ([OURS], b"csrf=guess"),
                ([EVIL], right),
                (["Sec-Fetch-Site: cross-site"], right),
                ([], right),
            ):
                answer = await here.post(path, body, [ELSEWHERE, cookie, form, *fields])
                assert answer.status == 403, (path, fields, body)


async def test_a_reader_changes_nothing(tmp_path: Path) -> None:
    async with guarded(tmp_path) as here:
        cookie = cookie_of(await log_in(here, "only looking"))
        csrf = (await who(here, ELSEWHERE, cookie))[1]["csrf"]
        form = "Content-Type: application/x-www-form-urlencoded"
        fields = [ELSEWHERE, cookie, OURS, form]
        for path in CHANGING:
            if path != "/logout":
                answer = await here.post(path, f"csrf={csrf}".encode(), fields)
                assert answer.status == 403, path
        assert (await here.post("/logout", f"csrf={csrf}".encode(), fields)).status == 303
