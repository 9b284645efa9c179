"""Training with the journal on SQLite: `spamd train` of the SpamAssassin corpus, whole command."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from spamd.evaluation.index import read_index
from spamd.sample import Label
from tests.benchmarks.measure import corpora, installed, table


def spamd(arguments: Sequence[str], database: Path) -> float:
    """Run one command on a database and return how many seconds it took."""
    started = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "spamd", *arguments, "--set", f"database.url=sqlite:///{database}"],
        check=False, stdout=subprocess.DEVNULL, timeout=900, env=installed(),
    )  # fmt: skip
    return time.monotonic() - started


def folders(corpus: Path, below: Path) -> dict[Label, Path]:
    """Return a folder of links to the mails of each label."""
    found = {label: below / label for label in Label}
    for folder in found.values():
        folder.mkdir()
    for mail in read_index(corpus / "index"):
        (found[mail.label] / mail.path.name).symlink_to(mail.path)
    return found


def run() -> None:
    """Measure and print."""
    with corpora() as corpus, tempfile.TemporaryDirectory() as name:
        below = Path(name)
        rows = []
        for label, folder in folders(corpus / "spamassassin", below).items():
            mails = sum(1 for _ in folder.iterdir())
            seconds = spamd(["train", label, str(folder)], below / "spamd.db")
            rows.append((f"spamd train {label}", mails, seconds, f"{mails / seconds:.0f}"))
        mails = sum(row[1] for row in rows)
        seconds = sum(row[2] for row in rows)
        rows.append(("both", mails, seconds, f"{mails / seconds:.0f}"))
        size = (below / "spamd.db").stat().st_size / 2**20
        table("training on SQLite, whole command", ("command", "mails", "seconds", "mails/s"), rows)
        print(f"\ndatabase: {size:.0f} MiB")
