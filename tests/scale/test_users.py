"""Layers of many keep to their memory, and mail flows without them; times by `make scale`."""

from tests.scale.users import crowd, while_away
from tests.servers.postgresql import Postgresql

USERS = 60
CACHE_BYTES = 1_700_000
"""Room for some thirty of them."""


async def test_layers_of_many_keep_to_their_memory_and_mail_flows_without_the_database() -> None:
    with Postgresql() as server:
        async with crowd(server, "crowd", USERS, CACHE_BYTES) as there:
            found = await there.measured(20)
            assert 0 < found.cache_bytes <= CACHE_BYTES
            mails, _ = await while_away(there, server, 0)
            assert mails == 20
