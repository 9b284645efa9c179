"""Put each mutant into the code and run the tests that belong to it, until one of them fails.

    make mutants                                       (all, about an hour)
    make mutants MUTANTS="rule spamd.bayes.fusion"     (these parts or modules)
    make mutants COUNT=20                              (no more than 20 mutants of each module)
    make mutants ONLY=FILE                             (those that an earlier run printed into FILE)

Nothing is written into the tree. The tests are collected once; for each mutant a forked process
exchanges the code of the one function and runs the tests that call it, quickest first. What runs
when its module is imported is tried where everything is imported anew, the mutant among it. A
sample holds the same mutants each time.

A survivor is an error unless `equivalent.txt` lists it with the reason; so is a listed mutant that
does not exist (any more).
"""

import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import pairwise
from multiprocessing import Pipe
from pathlib import Path
from types import FrameType

import hypothesis
import pytest

from tests.mutation.operators import Mutant, mutants
from tests.mutation.processes import OPTIONS, Held, each, forked, survives_anew

ROOT = Path(__file__).parents[2]
LISTED = Path(__file__).with_name("equivalent.txt")
PARTS: Mapping[str, tuple[str, str, Sequence[tuple[str, str]]]] = {
    "bayes": (
        "spamd/bayes",
        "tests/bayes",
        (
            ("batch classifiers/[cfgl]*", "test_classifiers test_reference test_options"),
            ("classifiers/multinomial", "test_*_multinomial test_classifiers test_reference"),
            ("classifiers/dependence", "test_dependence test_options test_learning"),
            ("classifiers/mixed", "test_mixed* test_*_facts test_options test_learning"),
            ("fact*", "test_mixed test_learning"),
            ("counts", "test_counts"),
            ("decision", "test_decision test_options"),
            ("evidence", "test_evidence"),
            ("fusion", "test_fusion test_options"),
            ("learning model", "test_learning test_model"),
        ),
    ),
    "rule": (
        "spamd/feedback/watching",
        "tests/feedback",
        (("lesson_rule", "test_lesson_rule"), ("kept_rule", "test_kept_rule")),
    ),
    "replies": ("spamd/relay/smtp", "tests/relay", (("replies", "test_replies"),)),
    "trainer": ("spamd/training", "tests", (("trainer", "test_training"),)),
    "message": (
        "spamd/message",
        "tests/message",
        (
            ("identity", "test_identity*"),
            ("spam_fields", "test_spam_fields"),
            (
                "tokens/*",
                "test_features test_golden test_grams test_headers test_shape test_t[or]*",
            ),
        ),
    ),
}
"""Of each part its two folders, and which tests belong to which modules."""

Function = tuple[str, str]  # file and qualified name


@dataclass
class Plugin:
    """Runs inside pytest: hypothesis without memory or chance, our loop for pytest's."""

    loop: Callable[[pytest.Session], None] | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """Let every run try the same examples, and lose no time with making them smaller."""
        hypothesis.settings.register_profile(
            "mutants",
            database=None,
            derandomize=True,
            deadline=None,
            max_examples=25,
            phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        hypothesis.settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Try mutants instead of running every test once."""
        if self.loop is not None:
            self.loop(session)
        return self.loop and True


@dataclass
class Part:
    """One part: its mutants, and which of them survived."""

    tests: Sequence[str]
    mutants: Sequence[Mutant]
    jobs: int
    survivors: list[Mutant] = field(default_factory=list)
    quickest: list[str] = field(default_factory=list)
    callers: dict[Function, list[pytest.Item]] = field(default_factory=lambda: defaultdict(list))

    def run(self) -> None:
        """Try all mutants."""
        pytest.main([*OPTIONS, *self.tests], plugins=[Plugin(self._exchanged)])
        if not self.quickest:
            raise SystemExit(f"{' '.join(self.tests)}: a test fails without any mutant")
        unharmed = [replace(self.mutants[0], function="", source=self.mutants[0].path.read_text())]
        if not all(survived for _, survived in each(unharmed, self._survives_anew, 1)):
            raise SystemExit(f"{' '.join(self.tests)}: a test fails where all is imported anew")
        anew = [mutant for mutant in self.mutants if not self._runs_in_tests(mutant)]
        self._try(anew, self._survives_anew)

    def _try(self, found: Sequence[Mutant], survives: Callable[[Mutant], bool]) -> None:
        for mutant, survived in each(found, survives, self.jobs):
            if survived:
                self.survivors.append(mutant)
                print(mutant, file=sys.__stderr__, flush=True)

    def _runs_in_tests(self, mutant: Mutant) -> bool:
        return bool(mutant.function) and (str(mutant.path), mutant.function) in self.callers

    def _exchanged(self, session: pytest.Session) -> None:
        manager = session.config.pluginmanager
        manager.unregister(manager.get_plugin("terminalreporter"))
        held = Held()
        self._measure(session, held)
        inside = [mutant for mutant in self.mutants if self._runs_in_tests(mutant)]

        def survives(mutant: Mutant) -> bool:
            held.exchange(mutant)
            _run(session, self.callers[str(mutant.path), mutant.function])
            return session.testsfailed == 0

        self._try(inside, survives)

    def _survives_anew(self, mutant: Mutant) -> bool:
        return survives_anew(mutant, self.quickest, Plugin())

    def _measure(self, session: pytest.Session, held: Held) -> None:
        """Find out which tests call which function, and which are quick; all must pass."""
        ours, theirs = Pipe(duplex=False)

        def work() -> bool:
            seen: list[tuple[float, int, set[Function]]] = []
            for place, test in enumerate(session.items):
                called: set[Function] = set()

                def note(
                    frame: FrameType, event: str, _: object, to: set[Function] = called
                ) -> None:
                    if event == "call":
                        to.add((frame.f_code.co_filename, frame.f_code.co_qualname))

                held.forget()
                began = time.process_time()
                sys.setprofile(note)
                _run(session, [test])
                sys.setprofile(None)
                seen.append((time.process_time() - began, place, called))
            theirs.send([] if session.testsfailed else sorted(seen, key=lambda one: one[0]))
            return True

        forked(work, cpu_s=3600)
        theirs.close()
        for _, place, called in ours.recv():
            self.quickest.append(session.items[place].nodeid)
            for function in called:
                self.callers[function].append(session.items[place])
        os.wait()


def _run(session: pytest.Session, tests: Sequence[pytest.Item]) -> None:
    for test, following in pairwise([*tests, None]):
        if test is not None and not session.testsfailed:
            session.config.hook.pytest_runtest_protocol(item=test, nextitem=following)


def chosen(paths: Sequence[Path], names: Sequence[str], count: int) -> list[Mutant]:
    """Return the mutants of these modules, or of those with these names; of each up to `count`."""
    found: list[Mutant] = []
    only = os.environ.get("ONLY")
    again = set(Path(only).read_text().splitlines()) if only else None
    for path in paths:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if not names or module in names:
            every = {
                sha256(one.source.encode()).digest(): one
                for one in mutants(path, module)
                if again is None or str(one) in again
            }
            found += [every[digest] for digest in sorted(every)][:count]
    return found


def files(folder: str, patterns: str) -> list[Path]:
    """Return the files that fit; none is a mistake in the table."""
    found = [path for name in patterns.split() for path in sorted(ROOT.glob(f"{folder}/{name}.py"))]
    if not found:
        raise SystemExit(f"no file in {folder} is named {patterns}")
    return found


def every() -> set[str]:
    """Return the names of all mutants there are."""
    rows = [(code, modules) for code, _, own in PARTS.values() for modules, _ in own]
    return {str(one) for code, modules in rows for one in _of(files(code, modules))}


def _of(paths: Sequence[Path]) -> Iterator[Mutant]:
    for path in paths:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        yield from mutants(path, module)


def listed() -> dict[str, str]:
    """Return the mutants that may survive, each with its reason."""
    lines = [line for line in LISTED.read_text().splitlines() if line and line[0] != "#"]
    return {mutant: reason for mutant, _, reason in (line.partition("  ## ") for line in lines)}


def main(names: Sequence[str]) -> int:
    """Try the mutants of these parts or modules, print what came of it, return the exit code."""
    reasons = listed()
    count = int(os.environ.get("COUNT") or sys.maxsize)
    jobs = int(os.environ.get("JOBS") or os.cpu_count() or 1)
    stale = reasons.keys() - every()
    for line in sorted(stale):
        print(f"listed, but no mutant: {line}")
    unlisted = len(stale)
    for name, (code, tests, rows) in PARTS.items():
        within = () if name in names else tuple(one for one in names if one not in PARTS)
        if names and name not in names and not within:
            continue
        for modules, own in rows:
            if found := chosen(files(code, modules), within, count):
                part = Part([str(path) for path in files(tests, own)], found, jobs)
                part.run()
                unlisted += _show(part, reasons)
    return 1 if unlisted else 0


def _show(part: Part, reasons: Mapping[str, str]) -> int:
    """Print the figures of each module and what survived unlisted; return how many did."""
    alive = Counter(mutant.module for mutant in part.survivors if str(mutant) not in reasons)
    excused = Counter(mutant.module for mutant in part.survivors if str(mutant) in reasons)
    for module, total in sorted(Counter(mutant.module for mutant in part.mutants).items()):
        killed = total - alive[module] - excused[module]
        counted = f"{killed:5} killed {excused[module]:4} listed {alive[module]:4} alive"
        print(f"{module:42}{total:5} mutants {counted}")
    for line in sorted({str(mutant) for mutant in part.survivors} - set(reasons)):
        print(line)
    return alive.total()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
