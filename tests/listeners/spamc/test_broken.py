"""Broken requests and crowds of slow clients: a part of `make listeners WAY=spamc`."""

from tests.listeners.spamc.broken import crowd, fuzz


async def test_no_broken_request_is_a_fault_and_any_cut_of_it_has_the_same_reply() -> None:
    outcome = await fuzz(250, seed=1)
    assert not outcome.faults
    assert len(outcome.replies) > 8


async def test_a_crowd_of_slow_clients_is_bounded_and_others_are_served() -> None:
    found = await crowd(120, 20)
    assert not found.faults
    assert found.grown_bytes < 80 * 2**20
