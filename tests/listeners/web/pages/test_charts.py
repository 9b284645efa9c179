"""Where the shapes of charts stand."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spamd.listeners.web.pages import charts
from spamd.listeners.web.pages.charts import HEIGHT, WIDTH, Slot

START = datetime(2026, 11, 28, tzinfo=UTC)
COUNTS = st.integers(0, 10**7)


@given(st.lists(st.tuples(COUNTS, COUNTS, COUNTS), min_size=1, max_size=40))
def test_bars_stay_within_their_chart_and_are_as_high_as_they_count(
    counts: list[tuple[int, int, int]],
) -> None:
    hour = timedelta(hours=1)
    slots = [
        Slot(begins=START + n * hour, ends=START + (n + 1) * hour, ham=h, unsure=u, spam=s)
        for n, (h, u, s) in enumerate(counts)
    ]
    found = charts.columns(slots)
    assert found.total == sum(map(sum, counts))
    top = found.lines[-1].value
    for bar in found.bars:
        assert bar.x >= 0
        assert bar.x + bar.width <= WIDTH + 0.01
        height = sum(piece.height for piece in bar.pieces)
        assert height <= HEIGHT + 3
        assert height == pytest.approx(HEIGHT * bar.slot.mails / top, abs=3.1)


def test_no_mail_is_no_bar_and_has_no_peak() -> None:
    found = charts.columns([Slot(begins=START, ends=START, ham=0, unsure=0, spam=0)])
    assert (found.peak, found.total, found.bars[0].pieces) == (None, 0, ())
    assert charts.columns([]).bars == ()


@given(st.integers(0, 10**12))
def test_the_top_of_a_chart_is_round_and_near(value: int) -> None:
    top = charts.round_up(value)
    assert top >= value
    assert top <= max(1, 2.5 * value)


@given(st.floats(-50, 50), st.floats(0, 50))
def test_a_clue_points_to_its_side_and_never_out_of_its_box(value: float, largest: float) -> None:
    bar = charts.around_zero(value, largest)
    assert bar.kind == ("spam" if value >= 0 else "ham")
    assert bar.x >= 0
    assert bar.x + bar.length <= bar.width


def test_a_share_on_an_axis_of_powers_of_ten() -> None:
    assert [charts.tens(share) for share in (1, 0.01, 1e-4, 0)] == [1, 0.5, 0, 0]


def test_a_curve_begins_at_its_first_point() -> None:
    found = charts.curve([(0, 0), (0.5, 1)], width=100, height=10)
    assert (found.path, found.points) == ("M0 10 L50 0", ((0, 10), (50, 0)))


@given(st.integers(0, 200), st.integers(1, 9))
def test_a_time_is_named_below_its_own_bar_and_has_room(count: int, names: int) -> None:
    slots = [Slot(begins=START, ends=START, ham=n, unsure=0, spam=0) for n in range(count)]
    found = charts.named(slots, names)
    places = [place for place, slot in enumerate(found) if slot is not None]
    assert len(found) == count
    assert len(places) <= names
    assert all(found[place] is slots[place] for place in places)
    gaps = {after - before for before, after in zip(places, [*places[1:], count], strict=False)}
    assert not gaps or min(gaps) >= count / names
