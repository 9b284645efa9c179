"""Relay without scanning: smtp-source → candidate → smtp-sink, against the direct line.

Candidates in turn in one run: the direct line (the limit), our relay, aiosmtpd as it comes with a
stream client, and Postfix's own before-queue proxy (`smtpd_proxy_filter`). Rates are ratios to the
direct line of the same round; CPU is that of the candidate's own processes for each mail.
"""

import statistics
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass

from tests.benchmarks.measure import cpu_s, in_turn, table, tree
from tests.benchmarks.programs import Program, Sink
from tests.servers.base import Server, group_members
from tests.servers.postfix import Postfix, PostfixOptions

CELLS = (
    ("5 KB persistent", 5_000, 4_000, False),
    ("5 KB one a session", 5_000, 2_000, True),
    ("100 KB persistent", 100_000, 800, False),
    ("100 KB one a session", 100_000, 600, True),
)
"""Name, bytes a mail, mails a round, whether each mail has a session of its own."""

ROUNDS = 3
SESSIONS = 10
COUNTS = (1, 10, 100, 500)
"""Sessions at a time, to see whether a mail costs more the more there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Where mail goes in, and whose CPU counts (None: nobody's)."""

    port: int
    server: Server | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One load: mails a second, and CPU microseconds a mail."""

    rate: float
    cpu_us: float


def load(
    candidate: Candidate, size: int, mails: int, *, one_a_session: bool, sessions: int = SESSIONS
) -> Round:
    """Send one round of mail and measure it."""
    server = candidate.server
    pids = [] if server is None else sorted({*tree(server.pid), *group_members(server.pid)})
    before = cpu_s(pids)
    started = time.monotonic()
    subprocess.run(
        [
            "/usr/sbin/smtp-source", *(["-d"] if not one_a_session else []),
            "-s", str(sessions), "-m", str(mails), "-l", str(size),
            "-f", "a@x.test", "-t", "b@y.test", f"127.0.0.1:{candidate.port}",
        ],
        check=True, timeout=300,
    )  # fmt: skip
    seconds = time.monotonic() - started
    # Postfix starts its smtpd processes on demand: take those that came during the load too.
    after = [] if server is None else sorted({*tree(server.pid), *group_members(server.pid), *pids})
    return Round(rate=mails / seconds, cpu_us=(cpu_s(after) - before) / mails * 1e6)


def run() -> None:
    """Measure all cells and print one table each."""
    with ExitStack() as stack:
        sink = stack.enter_context(Sink())
        passing = stack.enter_context(Program("tests.benchmarks.passing", str(sink.port)))
        stock = stack.enter_context(Program("tests.benchmarks.stock", str(sink.port)))
        postfix = stack.enter_context(
            Postfix(
                PostfixOptions(
                    smtpd=(f"smtpd_proxy_filter=127.0.0.1:{sink.port}",),
                    main={"smtpd_client_connection_count_limit": "0"},
                )
            )
        )
        candidates = {
            "direct": Candidate(port=sink.port, server=None),
            "spamd": Candidate(port=passing.port, server=passing),
            "aiosmtpd as it comes": Candidate(port=stock.port, server=stock),
            "Postfix smtpd_proxy_filter": Candidate(port=postfix.port, server=postfix),
        }
        for title, size, mails, one_a_session in CELLS:
            found: dict[str, list[Round]] = {name: [] for name in candidates}
            for name in in_turn(list(candidates), ROUNDS):
                found[name].append(load(candidates[name], size, mails, one_a_session=one_a_session))
            _print(title, found)
        _by_sessions(candidates["spamd"])


def _by_sessions(ours: Candidate) -> None:
    """Print what a mail of 5 KB costs with one to hundreds of persistent sessions."""
    found: dict[int, list[float]] = {count: [] for count in COUNTS}
    for count in in_turn(list(COUNTS), ROUNDS):
        found[count].append(load(ours, 5_000, 3_000, one_a_session=False, sessions=count).cpu_us)
    costs = {count: statistics.median(costs) for count, costs in found.items()}
    least = min(costs.values())
    rows = [(count, f"{cost:.0f}", f"{cost / least:.2f}") for count, cost in costs.items()]
    table(
        "relay without scanning, 5 KB persistent",
        ("sessions", "CPU µs a mail", "to the least"),
        rows,
    )


def _print(title: str, found: dict[str, list[Round]]) -> None:
    ours = statistics.median(round_.cpu_us for round_ in found["spamd"])
    rows = []
    for name, rounds in found.items():
        ratios = [
            one.rate / direct.rate for one, direct in zip(rounds, found["direct"], strict=True)
        ]
        cpu = statistics.median(round_.cpu_us for round_ in rounds)
        rows.append(
            (
                name,
                f"{statistics.median(round_.rate for round_ in rounds):.0f}",
                f"{statistics.median(ratios):.2f}",
                f"{cpu:.0f}",
                f"{ours / cpu:.2f}" if cpu else "",
            )
        )
    head = ("candidate", "mails/s", "rate to direct", "CPU µs a mail", "ours to this")
    table(f"relay without scanning, {title}", head, rows)
