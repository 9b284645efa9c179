"""A simulated year: what is to be flat is flat."""

from pathlib import Path

import pytest

from tests.storage.year import FLAT, lived


async def test_i4_tables_files_and_memory_are_flat_from_the_second_quarter_on(
    tmp_path: Path,
) -> None:
    quarters = await lived(tmp_path, 1 / 1000, step=5)
    second, fourth = quarters[1], quarters[3]
    for name in FLAT:
        assert fourth.rows[name] <= second.rows[name] * 1.2 + 12, name
    assert fourth.rows["lesson"] == pytest.approx(second.rows["lesson"] * 2, rel=0.3)
    assert fourth.files <= second.files
    assert fourth.memory_bytes <= second.memory_bytes + 16 * 2**20
