"""One Dovecot for many feedback tests: each takes an account that nobody used before."""

from collections.abc import Iterator
from itertools import count

import pytest

from tests.servers.base import require
from tests.servers.dovecot import Dovecot

Account = tuple[Dovecot, str]
"""A running server and the name of a user who has no mail yet."""

USERS = 300
"""More than there are tests in one process."""

_numbers = count()


@pytest.fixture(scope="session")
def post_office() -> Iterator[Dovecot]:
    """A server that no test stops or breaks."""
    require("dovecot")
    with Dovecot(*(f"user{number}" for number in range(USERS))) as server:
        yield server


@pytest.fixture
def account(post_office: Dovecot) -> Account:
    """A fresh account on the shared server."""
    return post_office, f"user{next(_numbers)}"


@pytest.fixture
def other_account(post_office: Dovecot) -> Account:
    """A second account on the shared server."""
    return post_office, f"user{next(_numbers)}"
