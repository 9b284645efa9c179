"""How much a test of load or breadth does: a share for each change, or all of it (`make full`).

A share is the same in every run, on every machine: nothing of it is drawn by lot.
"""

import os
from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def sized(daily: T, full: T) -> T:
    """Return `full` where the environment variable TEST_FULL is set, else `daily`."""
    return full if os.environ.get("TEST_FULL") else daily


def share(files: Iterable[Path], one_of: int) -> list[Path]:
    """Return one of so many files of each folder, never none of one; all with TEST_FULL.

    Hostile mail lies in a folder for each project that collected it: every kind is in the share.
    """
    folders = groupby(sorted(files, key=lambda path: (path.parent, path)), attrgetter("parent"))
    step = sized(one_of, 1)
    return [path for _, paths in folders for path in list(paths)[::step]]
