"""Where the page is, as the settings say it."""

import pytest

from spamd.listeners.web.options import WebOptions


@pytest.mark.parametrize(
    ("listen", "page"),
    [
        (("127.0.0.1:11333",), "http://127.0.0.1:11333/"),
        (("unix:/run/web", "[::1]:80"), "http://[::1]:80/"),
        (("0.0.0.0:8080",), "http://localhost:8080/"),
        (("[::]:8080",), "http://localhost:8080/"),
        (("10.0.0.0:8080",), "http://10.0.0.0:8080/"),
        (("unix:/run/web",), ""),
        ((), ""),
    ],
)
def test_the_page_is_where_a_browser_at_this_machine_finds_it(
    listen: tuple[str, ...], page: str
) -> None:
    assert WebOptions(listen=listen).page == page
