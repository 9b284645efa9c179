"""`python -m spamd` and the console script `spamd`."""

import sys


def main() -> int:
    """Run the command line and return the exit code."""
    from spamd.cli.main import run  # noqa: PLC0415 - an interrupt during the import is handled too

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
