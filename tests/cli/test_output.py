"""Progress bars on a terminal and none in a pipe; tables and numbers as people read them."""

import io

import pytest
from rich.table import Table

from spamd.cli.output import ENCODING_FAULTS, progress, show, stages
from spamd.wording import counted


class Screen(io.StringIO):
    """Standard error of somebody who watches."""

    def isatty(self) -> bool:
        return True


def test_long_work_shows_its_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")

    with progress("learning", 100) as advance:
        advance(50)
    with stages() as told:
        told("reading", 1, 2)
        told("reading", 2, 2)

    assert "learning" in screen.getvalue()
    assert "reading" in screen.getvalue()


def test_in_a_pipe_there_is_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stderr", pipe)

    with progress("learning", 100) as advance:
        advance(50)
    with stages() as told:
        told("reading", 1, 2)

    assert pipe.getvalue() == ""


def test_work_of_no_size_needs_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)

    with progress("learning", 0) as advance:
        advance(0)

    assert screen.getvalue() == ""


def lessons() -> Table:
    table = Table()
    table.add_column("id")
    table.add_column("said", overflow="fold")
    table.add_column("bar")
    table.add_row("0d2ec8a27b3bcb375def5904488a8302", "a clause of several words", "█" * 12)
    return table


@pytest.mark.parametrize("columns", [20, 60, 200])
def test_no_terminal_is_too_narrow_for_what_is_to_be_copied(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("COLUMNS", str(columns))

    show(lessons())

    assert "0d2ec8a27b3bcb375def5904488a8302" in screen.getvalue()
    assert "█" * 12 in screen.getvalue()
    assert all(word in screen.getvalue() for word in ["a", "clause", "of", "several", "words"])
    assert "…" not in screen.getvalue()


@pytest.mark.parametrize(("columns", "bar"), [(60, False), (100, True)])
def test_a_bar_that_has_no_room_is_left_out(
    monkeypatch: pytest.MonkeyPatch, columns: int, *, bar: bool
) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("COLUMNS", str(columns))

    show(lessons(), spare=True)

    assert ("█" in screen.getvalue()) is bar


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("ascii", b"> # ## - ~ \\xe9"),
        ("latin-1", b"> # ## - ~ \xe9"),
        ("cp1252", b"> # ## \x97 \x85 \xe9"),
    ],
)
def test_signs_that_an_encoding_lacks_get_plain_ones_of_the_same_width(
    encoding: str, shown: bytes
) -> None:
    raw = io.BytesIO()
    screen = io.TextIOWrapper(raw, encoding, errors=ENCODING_FAULTS)

    screen.write("→ █ ██ — … é")
    screen.flush()

    assert raw.getvalue() == shown


TEXTS = [(0, "0 messages"), (1, "1 message"), (1234, "1,234 messages")]


@pytest.mark.parametrize(("number", "text"), TEXTS)
def test_numbers_read_well(number: int, text: str) -> None:
    assert counted(number, "message") == text
