"""`make bench`, or `python -m tests.benchmarks relay scan …`: figures side by side in one run."""

import importlib
import os
import platform
import sys

PARTS = ("scan", "training", "commands", "relay", "floods", "listeners", "peers")


def main(wanted: list[str]) -> int:
    """Run the parts that are named, all by default."""
    unknown = [part for part in wanted if part not in PARTS]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 64
    print(
        f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores,"
    )
    print(f"load {os.getloadavg()[0]:.1f} at the start; compare within one run only.")
    for part in wanted or PARTS:
        importlib.import_module(f"tests.benchmarks.{part}").run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
