"""Memory is measured from the moment somebody asks, whatever was held before."""

import sys
from pathlib import Path

from tests.memory import peak_bytes, run_measured, settled_bytes

MIB = 2**20


def hold_and_let_go(size_bytes: int) -> None:
    held = bytearray(b"x") * size_bytes
    del held


def test_a_peak_of_before_is_forgotten_and_one_of_since_is_seen() -> None:
    hold_and_let_go(200 * MIB)
    rest = settled_bytes()  # of what is free already a peak could not be seen
    assert peak_bytes() - rest < 20 * MIB
    hold_and_let_go(100 * MIB)
    assert 95 * MIB < peak_bytes() - rest < 120 * MIB


def test_a_child_is_not_charged_with_what_its_parent_holds(tmp_path: Path) -> None:
    held = bytearray(b"x") * (300 * MIB)
    code, peak = run_measured(
        [
            sys.executable,
            "-c",
            f"bytearray(b'x') * {100 * MIB}; print('done'); raise SystemExit(3)",
        ],
        cwd=tmp_path,
        output=tmp_path / "output",
        note=tmp_path / "note",
    )
    assert len(held) == 300 * MIB
    assert (code, (tmp_path / "output").read_text()) == (3, "done\n")
    assert 100 * MIB < peak < 200 * MIB
