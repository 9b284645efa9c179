"""How much a test of load does: enough for each change, or all of it (`make full`)."""

import os


def sized(daily: int, full: int) -> int:
    """Return `full` where the environment variable TEST_FULL is set, else `daily`."""
    return full if os.environ.get("TEST_FULL") else daily
