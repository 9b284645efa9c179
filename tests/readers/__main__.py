"""`python -m tests.readers PATH…`: compare over mail in files, and say what is left by reason."""

import sys
from collections.abc import Iterator
from pathlib import Path

from .compare import compare


def mails(paths: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the mail files at and below the paths."""
    for path in map(Path, paths):
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and not file.name.startswith(("index", "MANIFEST")):
                yield str(file), file.read_bytes()


def main(paths: list[str]) -> int:
    """Compare, and end with 1 when a difference has no reason."""
    report = compare(mails(paths))
    print(f"{report.mails} mails, {report.parts} parts, {report.words} words of text")
    for (reader, name), count in sorted(report.reasons.items()):
        print(f"{count:7} {reader:7} {name}")
    print(f"{len(report.unexplained):7} without a reason")
    for name, difference in report.unexplained[:200]:
        print(f"{name}\n    {difference}")
    return 1 if report.unexplained else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
