"""What workers count together: nothing that was counted is lost, whoever dies, whenever."""

import math
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from spamd.bayes.decision import Verdict
from spamd.feedback.ports import AccountState
from spamd.observe.cells import REGION_BYTES, Board
from spamd.observe.families import Counter, Gauge, Histogram, Labelled
from spamd.observe.metrics import Metrics
from tests.docs.blocks import ROOT
from tests.docs.generated import metrics_of

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(text: str) -> tuple[Samples, Samples]:
    """Return what only rises, and what is true of a moment."""
    rising: Samples = {}
    moment: Samples = {}
    for family in text_string_to_metric_families(text):
        into = moment if family.type == "gauge" else rising
        for sample in family.samples:
            into[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
    return rising, moment


WORKERS = st.integers(0, 3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("count"), WORKERS, st.sampled_from(["log.lost", "message.failed"])),
        st.tuples(st.just("late"), WORKERS, st.sampled_from([0.0, 0.003, 0.05, 7.0])),
        st.tuples(st.just("watch"), WORKERS, st.integers(0, 5)),
        st.tuples(st.just("dies"), WORKERS, st.none()),
        st.tuples(st.just("replaced while it finishes"), WORKERS, st.none()),
    ),
    max_size=60,
)


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_counters_are_sums_of_all_that_ever_counted_and_gauges_of_those_that_live(
    steps: list[tuple[str, int, str | float | None]],
) -> None:
    board = Board.shared()
    supervisor = Metrics(board, board.take())
    regions = [board.take() for _ in range(4)]
    workers = [Metrics(board, region) for region in regions]
    lost: dict[int, int] = dict.fromkeys(range(4), 0)
    faults: dict[str, int] = {}
    lateness = 0.0
    seen: Samples = {}
    for what, number, value in steps:
        match what, value:
            case "count", str():
                workers[number].failed(value)
                faults[value] = faults.get(value, 0) + 1
            case "late", float():
                workers[number].late(value)
                lateness += value
            case "watch", int():
                workers[number].watched({AccountState.LOST: value})
                lost[number] = value
            case "dies", _:
                board.release(regions[number])
                regions[number] = board.take()
                workers[number], lost[number] = Metrics(board, regions[number]), 0
            case _:
                old = regions[number]
                regions[number] = board.take()
                workers[number], lost[number] = Metrics(board, regions[number]), 0
                board.release(old)
        rising, _ = samples(supervisor.text().decode())
        assert all(rising[key] >= before for key, before in seen.items())
        seen = rising
    rising, moment = samples(supervisor.text().decode())
    told = {dict(labels)["event"]: n for (name, labels), n in rising.items() if "faults" in name}
    assert told == faults
    assert math.isclose(rising["spamd_loop_lag_seconds_sum", ()], lateness, abs_tol=1e-9)
    assert moment["spamd_accounts", (("state", "lost"),)] == sum(lost.values())
    assert moment["spamd_workers", ()] == 4
    os.close(board.fd)


COUNTING = """\
import sys
from spamd.observe.cells import Board
cells = Board(int(sys.argv[1])).cells(int(sys.argv[2]))
index = cells.cell(("messages", sys.argv[3]))
cells.begin()
while True:
    cells.add(index, 1.0)
    sys.stdout.write("x")
    sys.stdout.flush()
"""
"""A process that counts, and then says that it has."""


def test_a_process_that_is_killed_at_any_moment_loses_nothing_that_it_had_counted() -> None:
    board, chance = Board.shared(), random.Random(18)
    said, seen = 0, 0.0
    for round_ in range(12):
        region = board.take()
        command = [sys.executable, "-c", COUNTING, str(board.fd), str(region), f"kind {round_ % 3}"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, pass_fds=[board.fd], cwd=ROOT
        ) as process:
            assert process.stdout is not None
            said += len(process.stdout.read(1))  # it has begun
            for _ in range(chance.randrange(200)):
                total = counted(board)
                assert total >= seen
                seen = total
            process.send_signal(signal.SIGKILL)
            said += len(process.stdout.read())
        board.release(region)
        assert said <= counted(board) <= said + round_ + 1  # the one that it could not say
    assert len(board) == 1  # each went on in what the one before it left
    os.close(board.fd)


def counted(board: Board) -> float:
    return sum(value for region in board.regions() for _, value in region.values())


def test_the_memory_holds_every_number_that_there_can_be_many_times_over() -> None:
    metrics = Metrics(board := Board())
    for number in range(3000):
        metrics.failed(f"event.of_a_long_name_{number}")
    used = board.regions()[0]._whole[0] * 8
    assert used < REGION_BYTES / 4


def test_nothing_of_the_shared_memory_is_left_in_the_file_system() -> None:
    board = Board.shared()
    target = Path(f"/proc/self/fd/{board.fd}").readlink()
    assert str(target).endswith("(deleted)")
    os.close(board.fd)


def test_what_was_never_counted_is_shown_as_0() -> None:
    rising, _ = samples(Metrics().text().decode())
    shown = {dict(labels)["verdict"] for name, labels in rising if name == "spamd_messages_total"}
    assert shown == set(Verdict)


def test_every_family_that_is_defined_is_shown() -> None:
    shown = {each.name + "_total" * (each.type == "counter") for each in Metrics().collect()}
    assert shown == {name for name, _, _ in metrics_of()}


def test_whatever_is_counted_is_shown_under_its_labels() -> None:
    metrics = Metrics()
    defined = {name.removesuffix("_total"): labels for name, labels, _ in metrics_of()}
    families = [each for each in vars(metrics).values() if isinstance(each, Labelled)]
    assert len(families) > 8
    for each in families:
        labels = dict.fromkeys(defined[each.name], "made up")
        match each:
            case Counter():
                name = f"{each.name}_total"
                before = metrics.registry.get_sample_value(name, labels) or 0.0
                each.inc(*labels.values())
            case Gauge():
                name, before = each.name, 0.0
                each.set(*labels.values(), value=1.0)
            case Histogram():
                name, before = f"{each.name}_count", 0.0
                each.observe(1.0)
            case _:
                raise AssertionError(each)
        assert metrics.registry.get_sample_value(name, labels) == before + 1.0
