"""Scan in process: bytes → ScanReport on one core, on real mail, against a million tokens.

The model is taught the SpamAssassin corpus and filled up with random tokens. CPU of each mail is
taken by the thread's own clock; the table also splits a scan into its two halves, reading and
weighing. A second table changes only the size of the corpus: the cost must stay flat. bogofilter
scans the same mails with the same training in the same run.
"""

import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from spamd.bayes.counts import TokenCounts, distinct
from spamd.bayes.decision import DecisionOptions
from spamd.bayes.learning import Given, learn
from spamd.bayes.model import BayesOptions, Model
from spamd.clock import WallClock
from spamd.evaluation.index import read_index
from spamd.message.facts import SCHEMA
from spamd.message.features import extract
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.sample import Label
from spamd.scanning import Scanner
from tests.benchmarks.measure import Spread, corpora, table

SIZES = (10_000, 100_000, 1_000_000, 3_000_000)
MILLION = 1_000_000
MAILS = 1_500
"""Mails timed of each corpus, spread evenly over it."""


def run() -> None:
    """Measure and print."""
    with corpora() as folder:
        indexes = [folder / name / "index" for name in ("spamassassin", "modern")]
        mails = {
            path.parent.name: [(mail.label, mail.path) for mail in read_index(path)]
            for path in indexes
        }
        model = taught(mails["spamassassin"])
        fill(model, MILLION)
        rows = [
            _row(name, spread_out([path for _, path in some]), model)
            for name, some in mails.items()
        ]
        hostile = sorted(path for path in (folder / "hostile").rglob("*") if path.is_file())
        rows.append(_row("hostile", hostile, model))
        table(
            f"scan in process, {len(model.tokens):,} tokens, CPU ms a mail",
            ("corpus", "mails", "mean", "p50", "p99", "worst", "reading", "weighing"),
            rows,
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"\nresident: {peak:.0f} MiB at most")
        some = spread_out([path for _, path in mails["spamassassin"]])
        _flat(some)
        _bogofilter(mails["spamassassin"], some)


def taught(mails: Sequence[tuple[Label, Path]]) -> Model:
    """Return a model that was taught these mails."""
    model = Model.empty(SCHEMA, BayesOptions())
    options = TokenizerOptions()
    samples = [(label, extract(path.read_bytes(), options).sample) for label, path in mails]
    ids = distinct(sample.ids for _, sample in samples)
    model.tokens.merge(ids, TokenCounts.zeros(len(ids)))
    learn(model, [Given(sample=sample, label=label) for label, sample in samples], proof=False)
    return model


def fill(model: Model, size: int) -> None:
    """Add random tokens until the model holds `size` of them."""
    missing = size - len(model.tokens)
    if missing <= 0:
        return
    ids = np.unique(np.random.default_rng(1).integers(-(2**63), 2**63 - 1, missing, np.int64))
    cells = np.ones((len(ids), 5), np.int32)
    model.tokens.merge(ids, TokenCounts.of_cells(cells))


def spread_out(paths: Sequence[Path]) -> list[Path]:
    """Return `MAILS` of the paths, evenly spread."""
    return list(paths[:: max(1, len(paths) // MAILS)])


def _row(name: str, paths: Sequence[Path], model: Model) -> tuple[object, ...]:
    scanner = Scanner(
        model=lambda: model, decision=DecisionOptions(), tokenizer=TokenizerOptions(),
        clock=WallClock(), key=b"key", random=os.urandom,
    )  # fmt: skip
    whole, reading = [], []
    for path in paths:
        content = path.read_bytes()
        scanner.scan(content)  # the pages of the table this mail needs, and the caches, are warm
        started = time.thread_time()
        features = scanner.extract(content)
        read = time.thread_time()
        scanner.judge(features, 0.0)
        whole.append((time.thread_time() - started) * 1e3)
        reading.append((read - started) * 1e3)
    spread, half = Spread.of(whole), Spread.of(reading)
    weighing = spread.mean - half.mean
    return name, len(paths), spread.mean, spread.p50, spread.p99, spread.worst, half.mean, weighing


def _flat(paths: Sequence[Path]) -> None:
    samples = [extract(path.read_bytes()).sample for path in paths]
    models = {}
    for size in SIZES:
        models[size] = Model.empty(SCHEMA, BayesOptions())
        fill(models[size], size)
    times: dict[int, list[float]] = {size: [] for size in SIZES}
    for sample in samples:
        for size, model in models.items():
            started = time.thread_time()
            model.weigh(sample)
            times[size].append((time.thread_time() - started) * 1e3)
    first = Spread.of(times[SIZES[0]]).mean
    rows = [
        (f"{size:,}", Spread.of(ms).mean, f"{Spread.of(ms).mean / first:.2f}")
        for size, ms in times.items()
    ]
    table(
        "weighing by size of the corpus, CPU ms a mail", ("tokens", "mean", "to the smallest"), rows
    )


def _bogofilter(mails: Sequence[tuple[Label, Path]], paths: Sequence[Path]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for label, flag in ((Label.SPAM, "-s"), (Label.HAM, "-n")):
            names = "\n".join(str(path) for kind, path in mails if kind is label)
            _cpu_s(["bogofilter", "-C", "-d", folder, flag, "-b"], names)
        scan = ["bogofilter", "-C", "-d", folder, "-v", "-b"]
        start = _cpu_s(scan, str(paths[0]))
        whole = _cpu_s(scan, "\n".join(map(str, paths)))
    table(
        "bogofilter on the same mails, CPU ms a mail (start of the process taken off)",
        ("mails", "mean"),
        [(len(paths), (whole - start) / (len(paths) - 1) * 1e3)],
    )


def _cpu_s(command: list[str], names: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # its exit code is the verdict on the last mail
    subprocess.run(command, input=names.encode(), stdout=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
