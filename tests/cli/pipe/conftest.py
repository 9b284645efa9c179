"""A database that has learned, for all tests of a module."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import made_up
from tests.cli.pipe.agent import (
    environment,
)


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a database that has learned twelve mails of each label."""
    tmp_path = tmp_path_factory.mktemp("taught")
    for label in ("spam", "ham"):
        (tmp_path / label).mkdir()
        for number in range(12):
            (tmp_path / label / f"{number}.eml").write_bytes(made_up(label, number))
        subprocess.run(
            [sys.executable, "-m", "spamd", "train", label, label],
            cwd=tmp_path, env=environment(tmp_path), check=True, capture_output=True, timeout=120,
        )  # fmt: skip
    return tmp_path
