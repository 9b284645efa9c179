"""`python -m spamd` and the console script `spamd`."""

import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""Set before numpy is loaded: our products are small, and starting threads for large ones takes a
third of the CPU of loading numpy, in every process."""

os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
"""Else pydantic opens the metadata of every distribution, to find one that watches validation."""


def main() -> int:
    """Run the command line and return the exit code."""
    arguments = sys.argv[1:]
    if "filter" in arguments:
        from spamd.cli.pipe.entry import filtered  # noqa: PLC0415 - loaded for this only

        code = filtered(arguments, run)
        if code is not None:
            return code
    if "--daemon" in arguments:
        from spamd.cli.pipe.entry import taught  # noqa: PLC0415 - likewise

        return taught(arguments, run)
    return run(arguments)


def run(arguments: "list[str]") -> int:
    """Run any command line and return the exit code."""
    from spamd.loading import loading  # noqa: PLC0415 - `spamd filter` needs none of it

    with loading():
        from spamd.cli.main import run as run_command  # noqa: PLC0415 - an interrupt meanwhile is handled too

    return run_command(arguments)


if __name__ == "__main__":
    sys.exit(main())
