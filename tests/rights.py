"""Being a user without rights for a while, where the tests run as root."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@contextmanager
def nobody() -> Iterator[None]:
    """Have the rights of nobody inside a block."""
    os.setresgid(NOBODY, NOBODY, 0)
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)


def closed(folder: Path) -> Path:
    """Return a folder that everybody can walk to, inside one that only its owner may look into."""
    inside = folder / "closed" / "inside"
    inside.mkdir(parents=True)
    inside.parent.chmod(0o700)
    for each in (folder, *folder.parents):
        if each == Path(tempfile.gettempdir()):
            break
        each.chmod(0o755)
    return inside
