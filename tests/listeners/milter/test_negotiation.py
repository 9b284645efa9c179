"""Negotiation: nothing is asked for that was not offered, by any version."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spamd.errors import RemoteProtocolError
from spamd.listeners.milter.negotiation import SILENT, Agreement
from tests.listeners.milter.mta import POSTFIX

WORD = st.integers(0, 2**32 - 1)


def agreed(version: int, actions: int, steps: int, *, quarantine: bool = False) -> Agreement:
    return Agreement.on(struct.pack("!III", version, actions, steps), quarantine=quarantine)


@given(st.integers(2, 2**32 - 1), WORD, WORD, st.integers(0, 1))
def test_what_is_asked_for_was_offered(
    version: int, actions: int, steps: int, quarantine: int
) -> None:
    found = agreed(version, actions, steps, quarantine=bool(quarantine))
    said = struct.unpack("!III", found.answer[5:17])
    assert said == (found.version, found.actions, found.steps)
    assert found.version == min(version, 6)
    assert found.actions & ~actions == 0
    assert found.steps & ~steps == 0
    assert (len(found.answer) > 17) == bool(actions & 0x100)
    assert found.may_skip <= (b"B" not in found.silent)
    assert found.may_quarantine <= quarantine


def test_postfix_waits_for_an_answer_to_bodies_only() -> None:
    found = agreed(*POSTFIX)
    assert found.silent == SILENT.keys() - {b"B"}
    assert (found.may_skip, found.leading_space, found.may_add, found.may_change) == (True,) * 4
    assert found.steps & 0xFF == 0x80  # every step is sent


def test_where_nothing_can_be_skipped_bodies_are_not_answered_either() -> None:
    found = agreed(6, 0x1FF, 0x1FFFFF & ~0x400)
    assert b"B" in found.silent
    assert not found.may_skip


@pytest.mark.parametrize(
    ("version", "steps"), [(2, 0x7F), (3, 0x17F), (4, 0x3FF), (5, 0x3FF), (6, 0)]
)
def test_older_servers_get_an_answer_to_every_step(version: int, steps: int) -> None:
    found = agreed(version, 0x3F, steps)
    assert found.version == version
    assert found.silent <= {b"L"}  # 0x80 is set in some of these
    assert not found.leading_space
    assert len(found.answer) == 17


def test_quarantine_is_asked_for_only_if_it_is_set() -> None:
    assert not agreed(*POSTFIX).actions & 0x20
    assert agreed(*POSTFIX, quarantine=True).actions & 0x20


def test_rejected_recipients_are_not_asked_for() -> None:
    assert not agreed(*POSTFIX).steps & 0x800


@pytest.mark.parametrize("version", [0, 1])
def test_a_version_before_2_is_no_milter_protocol(version: int) -> None:
    with pytest.raises(RemoteProtocolError, match="older"):
        agreed(version, 0x1FF, 0x1FFFFF)
