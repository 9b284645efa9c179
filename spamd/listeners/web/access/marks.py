"""What the head of a request tells of the way it came: a browser, a proxy, another site.

Browsers say with each request from where it was made (Sec-Fetch-Site, W3C Fetch Metadata), if they
reach us by HTTPS or at this machine; by plain HTTP some send only Origin (RFC 6454), with requests
that may change something.
"""

import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers

FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
BROWSERS = ("origin", "sec-fetch-site", "sec-fetch-mode", "referer", "cookie")

SAFE = ("GET", "HEAD")
"""Methods that change nothing."""


def passed_on(headers: Headers) -> bool:
    """Tell whether a proxy says that it has passed the request on."""
    return any(name in headers for name in FORWARDED)


def from_browser(headers: Headers) -> bool:
    """Tell whether a browser sent the request."""
    return any(name in headers for name in BROWSERS)


def from_elsewhere(method: str, headers: Headers) -> bool:
    """Tell whether the page of another site made a browser send the request.

    Whoever follows a link from elsewhere sees the page behind it; nothing else is let through.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        if site in {"same-origin", "none"}:
            return False
        followed = headers.get("sec-fetch-mode") == "navigate"
        return not (method in SAFE and followed and headers.get("sec-fetch-dest") == "document")
    if (origin := headers.get("origin")) is not None:
        return authority_of(origin) != headers.get("host", "").lower()
    return False


def is_same_origin(headers: Headers) -> bool:
    """Tell whether a browser says that a page of ours has sent the request."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = headers.get("origin")
    return origin is not None and authority_of(origin) == headers.get("host", "").lower()


def keeps_cookies(headers: Headers) -> bool:
    """Tell whether a browser takes a cookie that must not travel in the clear.

    Sec-Fetch-Site is only sent where it does: by HTTPS, and to this machine.
    """
    return "sec-fetch-site" in headers or headers.get("origin", "").startswith("https://")


def names_this_machine(headers: Headers) -> bool:
    """Tell whether the request was meant for this machine under a name that nobody can give away.

    A page elsewhere may have a name of its own point at 127.0.0.1 ("DNS rebinding"): the browser
    then takes us for that site.
    """
    try:
        name = urlsplit(f"//{headers.get('host', '')}").hostname or ""
    except ValueError:
        return False
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def authority_of(origin: str) -> str:
    """Return the host and port of an origin in lower case, as Host would have it."""
    return origin.partition("://")[2].lower()
