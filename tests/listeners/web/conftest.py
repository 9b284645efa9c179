"""Tests of connections run on both event loops: the daemon has uvloop where it is installed."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

CLOSED_IN_MANY_WAYS = ("test_body", "test_hostile", "test_protocol")


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run tests of connections on both event loops."""
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    if item.path.stem in CLOSED_IN_MANY_WAYS:
        loops["uvloop"] = uvloop.new_event_loop
    return loops
