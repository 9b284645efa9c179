"""Style, script and htmx: files of ours, sent with a tag by which a browser need not ask twice.

Their paths hold a part of that tag, so a browser keeps them for a year and never has an old one.
"""

import hashlib
from dataclasses import dataclass
from importlib.resources import files

TYPES = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "htmx-2.0.11.min.js": "text/javascript; charset=utf-8",
    "htmx-2.0.11.LICENSE.txt": "text/plain; charset=utf-8",
    "icon.svg": "image/svg+xml",
}

KEPT = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """A file as it is sent."""

    content: bytes
    media_type: str
    etag: str


class Assets:
    """The files that pages name."""

    def __init__(self) -> None:
        folder = files(__package__).joinpath("static")
        self._found: dict[str, Asset] = {}
        for name, media_type in TYPES.items():
            content = folder.joinpath(name).read_bytes()
            etag = hashlib.sha256(content).hexdigest()[:16]
            self._found[name] = Asset(content=content, media_type=media_type, etag=f'"{etag}"')

    def path(self, name: str) -> str:
        """Return the path at which a file is asked for."""
        return f"/static/{self._found[name].etag[1:9]}/{name}"

    def of(self, name: str) -> Asset | None:
        """Return a file by its name."""
        return self._found.get(name)
