"""Progress bars on a terminal and none in a pipe; numbers as people read them."""

import io

import pytest

from spamd.cli.output import counted, progress, stages


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


@pytest.mark.parametrize(("number", "text"), [(0, "0 mails"), (1, "1 mail"), (1234, "1,234 mails")])
def test_numbers_read_well(number: int, text: str) -> None:
    assert counted(number, "mail") == text
