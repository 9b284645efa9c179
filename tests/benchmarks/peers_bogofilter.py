"""bogofilter and spamd over the same mail, in the same order, counted by the same rates.

    python -m tests.benchmarks.peers_bogofilter INDEX [--seed N …] [--json]
    python -m tests.benchmarks.peers_bogofilter INDEX --unseen OTHER_INDEX
    python -m tests.benchmarks.peers_bogofilter INDEX --attack [--seed N]

The first form is the protocol "online": score, then learn, both with the shipped settings. The
second learns INDEX, then scores OTHER_INDEX. The third attacks bogofilter as `spamd evaluate
--attack` attacks spamd.
"""

import argparse
import json
import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from spamd.bayes.model import BayesOptions
from spamd.evaluation.attacks.attack import AttackOptions, assault
from spamd.evaluation.attacks.target import Calls, Floats, Lesson, Reader
from spamd.evaluation.index import LabelledMail, read_index, shuffled
from spamd.evaluation.material import prepare
from spamd.evaluation.protocol import EvaluationOptions, run
from spamd.evaluation.protocol import transfer as carried
from spamd.evaluation.rates import CALLED_HAM, CALLED_SPAM, CALLED_UNSURE, Outcomes, rates
from spamd.evaluation.results import WINDOWS
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.sample import Label

PROGRAM = "bogofilter"

EXIT_CODES = {0: CALLED_SPAM, 1: CALLED_HAM, 2: CALLED_UNSURE}

CERTAIN = 40.0
"""Log-odds for a spamicity printed as exactly 0 or 1; it has sixteen decimals."""

Judged = tuple[float, int]
"""Log-odds of spam, and the verdict as an index into `CALLED`."""


class Bogofilter:
    """A word list of its own in a temporary folder, in memory where the system has such a place."""

    def __init__(self) -> None:
        shared = Path("/dev/shm")
        self._folder = tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None)
        self.folder = self._folder.name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the word list."""
        self._folder.cleanup()

    def judge(self, raw: bytes) -> Judged:
        """Score one message; before the first lesson it can't, which counts as unsure."""
        if not (Path(self.folder) / "wordlist.db").exists():
            return 0.0, CALLED_UNSURE
        done = self._run(["-TT"], raw)
        if done.returncode not in EXIT_CODES:
            raise RuntimeError(done.stderr.decode(errors="replace"))
        return log_odds(float(done.stdout.split()[-1])), EXIT_CODES[done.returncode]

    def learn(self, raw: bytes, label: Label) -> None:
        """Learn one message."""
        self._run(["-s" if label is Label.SPAM else "-n"], raw).check_returncode()

    def _run(self, arguments: list[str], raw: bytes) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(
            [PROGRAM, "-C", "-d", self.folder, *arguments],
            input=raw,
            capture_output=True,
            check=False,
        )


def log_odds(spamicity: float) -> float:
    """Return ln(p/(1 − p)), bounded."""
    if not 0.0 < spamicity < 1.0:
        return math.copysign(CERTAIN, spamicity - 0.5)
    return max(-CERTAIN, min(CERTAIN, math.log(spamicity) - math.log1p(-spamicity)))


class Attacked:
    """bogofilter as the target of attacks."""

    def __init__(self) -> None:
        self._peer: Bogofilter | None = None

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Start anew from these messages."""
        if self._peer is not None:
            self._peer.close()
        self._peer = Bogofilter()
        for raw, label in lessons:
            self._peer.learn(raw, label)

    def judge(self, mails: Sequence[bytes]) -> tuple[Floats, Calls]:
        """Score without learning."""
        assert self._peer is not None, "learn comes first"
        judged = [self._peer.judge(raw) for raw in mails]
        odds = np.array([[odds] for odds, _ in judged])
        return odds, np.array([[called] for _, called in judged], dtype=np.int8)


def attacked(index: Sequence[LabelledMail], seed: int | None) -> None:
    """Print what attacks do to bogofilter."""
    mail = [(one.read(), one.label) for one in shuffled(index, seed)]
    options = AttackOptions(seed=seed)
    reader = Reader(TokenizerOptions(), options.jobs)
    for row in assault(mail, options, reader, {"": Attacked}):
        print(f"{row.attack:32}{row.caught:8.1f}{row.ham_lost:8.2f}{row.spam_called:8.1f}")


def outcomes(labels: Sequence[Label], judged: Sequence[Judged]) -> Outcomes:
    """Return what bogofilter said as the evaluation counts it."""
    return Outcomes(
        spam=np.array([label is Label.SPAM for label in labels]),
        log_odds=np.array([odds for odds, _ in judged]),
        called=np.array([called for _, called in judged], dtype=np.int8),
    )


def online(index: Sequence[LabelledMail]) -> Outcomes:
    """Score, then learn, one message after the other."""
    judged = []
    with Bogofilter() as peer:
        for mail in index:
            raw = mail.read()
            judged.append(peer.judge(raw))
            peer.learn(raw, mail.label)
    return outcomes([mail.label for mail in index], judged)


def transfer(learned: Sequence[LabelledMail], unseen: Sequence[LabelledMail]) -> Outcomes:
    """Learn one collection, then score another."""
    with Bogofilter() as peer:
        for mail in learned:
            peer.learn(mail.read(), mail.label)
        judged = [peer.judge(mail.read()) for mail in unseen]
    return outcomes([mail.label for mail in unseen], judged)


def spamd(
    index: Sequence[LabelledMail], seed: int | None, unseen: Sequence[LabelledMail] = ()
) -> Outcomes:
    """Return what spamd said in the same order, or on other mail."""
    options, tokenizer = EvaluationOptions(seed=seed), TokenizerOptions()
    material = prepare(index, tokenizer)
    if unseen:
        return carried(material, prepare(unseen, tokenizer), options, BayesOptions()).fused
    return run(material, options, BayesOptions()).fused


def table(name: str, run: Outcomes) -> dict[str, dict[str, float | int]]:
    """Return the rates of a run as a whole and by windows."""
    parts = {f"{name}, {window}": run.part(part) for window, part in WINDOWS}
    return {name: rates(run).to_json()} | {
        part: rates(found).to_json() for part, found in parts.items() if len(found)
    }


def main() -> None:
    """Print the rates."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("index", type=Path)
    parser.add_argument("--seed", type=int, nargs="*", help="orders beside that of the index")
    parser.add_argument("--unseen", type=Path, help="score this index after learning the first")
    parser.add_argument("--attack", action="store_true", help="attack it")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if shutil.which(PROGRAM) is None:
        sys.exit(f"{PROGRAM} is not installed")
    index = read_index(given.index)
    if given.attack:
        attacked(index, given.seed[0] if given.seed else None)
        return
    found: dict[str, dict[str, float | int]] = {}
    if given.unseen:
        unseen = read_index(given.unseen)
        found |= {"bogofilter, unseen": rates(transfer(index, unseen)).to_json()}
        found |= {"spamd, unseen": rates(spamd(index, None, unseen)).to_json()}
    else:
        for seed in given.seed or [None]:
            name = "index" if seed is None else f"seed {seed}"
            found |= table(f"bogofilter, {name}", online(shuffled(index, seed)))
            found |= table(f"spamd, {name}", spamd(index, seed))
    if given.json:
        print(json.dumps(found))
        return
    columns = list(next(iter(found.values())))
    print(f"{'':30}", *(f"{column[:10]:>10}" for column in columns))
    for name, row in found.items():
        print(f"{name:30}", *(f"{row[column]:10.3f}" for column in columns))


if __name__ == "__main__":
    main()
