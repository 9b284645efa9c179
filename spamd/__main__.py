"""`python -m spamd` and the console script `spamd`."""

import os
import sys

from spamd.loading import loading

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""Set before numpy is loaded: our products are small, and starting threads for large ones takes a
third of the CPU of loading numpy, in every process."""

os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
"""Else pydantic opens the metadata of every distribution, to find one that watches validation."""


def main() -> int:
    """Run the command line and return the exit code."""
    with loading():
        from spamd.cli.main import run  # noqa: PLC0415 - an interrupt meanwhile is handled too

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
