"""LMTP over UNIX sockets, in and out."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from spamd.errors import ConfigError
from spamd.network.addresses import parse_listener
from spamd.network.sockets import open_sockets
from spamd.relay.urls import parse_next_hop
from tests.relay.peers import MESSAGE, QUEUED, WAIT_S, ScriptedNextHop, Talk, relay


class UnixNextHop(ScriptedNextHop):
    """An LMTP server on a UNIX socket."""

    path = ""

    async def __aenter__(self) -> "UnixNextHop":
        self._server = await asyncio.start_unix_server(self._serve, self.path)
        return self

    @property
    def url(self) -> str:
        return f"lmtp+unix://{self.path}"


async def test_mail_comes_and_goes_over_unix_sockets() -> None:
    with TemporaryDirectory(prefix="spamd-") as folder:
        hop = UnixNextHop(lmtp=True)
        hop.path = f"{folder}/hop"
        ours = f"{folder}/ours"
        async with hop, relay(hop.url, listen_lmtp=(f"unix:{ours}",)) as running:
            talk = Talk(*await asyncio.open_unix_connection(ours))
            running.talks.append(talk)
            assert await talk.reply() == b"220 mx.test LMTP\r\n"
            await talk.begin(hello=b"LHLO c.test", recipients=(b"<b@y.test>", b"<c@y.test>"))
            await talk.send(MESSAGE + b".\r\n")
            assert [await talk.reply() for _ in range(2)] == [QUEUED] * 2
            assert hop.commands[0] == b"LHLO c.test"
            await running.relay.stop(WAIT_S)


def test_a_socket_left_behind_is_replaced_and_one_that_has_a_listener_is_not() -> None:
    with TemporaryDirectory(prefix="spamd-") as folder:
        ours = [parse_listener(f"unix:{folder}/ours", key="k", lmtp=True)]
        ((first,),) = open_sockets(ours, 1)
        with (
            first,
            pytest.raises(ConfigError, match="ours: Address already in use"),
        ):
            open_sockets(ours, 1)
        assert Path(f"{folder}/ours").is_socket()
        ((second,),) = open_sockets(ours, 1)
        second.close()


async def test_a_unix_socket_that_is_not_there_is_421() -> None:
    async with relay("lmtp+unix:///no/such/socket") as running:
        talk = await running.talk()
        assert (await talk.say(b"EHLO c.test")).startswith(b"421 4.4.1 ")


def test_paths_are_read_from_urls_and_listeners() -> None:
    assert parse_next_hop("lmtp+unix:///run/lmtp", key="k").path == "/run/lmtp"
    assert str(parse_next_hop("lmtp+unix:///run/lmtp", key="k")) == "lmtp+unix:///run/lmtp"
    assert parse_listener("unix:/run/ours", key="k", lmtp=True).path == "/run/ours"
