"""What every test may use: real servers, public mail, golden files.

Servers and corpora that are missing here are skipped with the reason, and the closing summary names
them; the environment variable TEST_REQUIRE turns such a skip into a failure
(`tests.servers.base.require`).
"""

import fcntl
import gc
import re
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

from tests.servers.base import CORPORA, REQUIREMENT_NEEDS, require

__all__ = ["require"]

pytest_plugins = [
    "tests.servers.postfix",
    "tests.servers.dovecot",
    "tests.servers.exim",
    "tests.servers.haraka",
    "tests.servers.cyrus",
    "tests.servers.postgresql",
    "tests.servers.stranger",
]


def pytest_collection_finish() -> None:
    """Leave what was collected to no garbage collection: it takes tests' time, and is measured."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the expected files under tests/golden; review the difference",
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten instead of compared."""
    return bool(request.config.getoption("--update-golden"))


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Name what was missing, so that no kind of test is left out unseen."""
    found: Counter[str] = Counter()
    for report in terminalreporter.getreports("skipped"):
        if match := re.search(rf"{REQUIREMENT_NEEDS}([\w-]+): ", str(report.longrepr)):
            found[match[1]] += 1
    for name, count in sorted(found.items()):
        terminalreporter.line(f"NOT TESTED here, {name} is missing: {count} tests", yellow=True)


def unpacked(corpus: str, folder: Path) -> Path:
    """Return the folder of a corpus, unpacked once for all processes of this run."""
    require("corpora")
    with (folder / f"{corpus}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / f"{corpus}.done"
        if not done.exists():
            with tarfile.open(CORPORA / f"{corpus}.tar.xz") as archive:
                # Debian 12's own Python has no filters yet; from 3.14 on this one is the default.
                archive.extraction_filter = getattr(tarfile, "data_filter", None)
                archive.extractall(folder)
            done.touch()
    return folder / corpus


@pytest.fixture(scope="session")
def corpora_folder(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Path:
    """The folder that all processes of this run share for corpora."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if hasattr(request.config, "workerinput") else base
    folder = shared / "corpora"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def spamassassin_corpus(corpora_folder: Path) -> Path:
    """6,046 mails of 2002 with labels; the file `index` gives their order."""
    return unpacked("spamassassin", corpora_folder)


@pytest.fixture(scope="session")
def modern_corpus(corpora_folder: Path) -> Path:
    """Mails of 2019 to 2025."""
    return unpacked("modern", corpora_folder)


@pytest.fixture(scope="session")
def hostile_corpus(corpora_folder: Path) -> Path:
    """Broken and nasty mails that other products' tests collected."""
    return unpacked("hostile", corpora_folder)
