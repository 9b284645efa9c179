"""What the tests of programs that pipe mail share."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.listeners.pipe_daemon import PipeDaemon, daemon_that_learned


@pytest.fixture(scope="module")
def pipe_daemon() -> Iterator[PipeDaemon]:
    with daemon_that_learned() as running:
        yield running


@pytest.fixture
def home() -> Iterator[Path]:
    """Give a folder that every account may walk to: agents change theirs."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)
