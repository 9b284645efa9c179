"""Next hops that are our own doors."""

import socket
from pathlib import Path
from typing import Any

import pytest

from spamd.errors import ConfigError
from spamd.network.shared import Shared
from spamd.relay.listener import Relay
from spamd.relay.options import NextHopOptions, RelayOptions, TlsOptions
from spamd.relay.urls import parse_next_hop
from tests.fakes import FakeClock, FakeInspector, FakeObserver, NoTeacher
from tests.relay.peers import not_open, relay


def built(next_hop: dict[str, Any], **options: Any) -> Relay:
    values = RelayOptions(**{"listen": (), **options})
    return Relay(
        options=values,
        next_hop=NextHopOptions(**next_hop),
        tls=TlsOptions(),
        shared=Shared.of(values, FakeInspector(), NoTeacher(), FakeObserver(), FakeClock()),
        sockets=not_open(values.listeners),
    )


OURS = [
    ("0.0.0.0:2525", "127.0.0.1"),
    ("0.0.0.0:2525", "127.9.9.9"),
    ("0.0.0.0:2525", "localhost"),
    ("0.0.0.0:2525", "LOCALHOST"),
    ("0.0.0.0:2525", "0.0.0.0"),
    ("0.0.0.0:2525", "127.1"),
    ("0.0.0.0:2525", "[::ffff:127.0.0.1]"),
    ("127.0.0.1:2525", "127.0.0.1"),
    ("127.0.0.1:2525", "localhost"),
    ("127.0.0.1:2525", "0.0.0.0"),
    ("localhost:2525", "127.0.0.1"),
    ("[::]:2525", "[::1]"),
    ("[::]:2525", "[0:0:0:0:0:0:0:1]"),
    ("[::1]:2525", "[::1]"),
    ("[::1]:2525", "[::]"),
]
OTHERS = [
    ("127.0.0.1:2525", "127.0.0.2"),
    ("[::1]:2525", "127.0.0.1"),
    ("0.0.0.0:2525", "192.0.2.1"),
    ("0.0.0.0:2525", "[2001:db8::1]"),
    ("0.0.0.0:2525", "nowhere.invalid"),
]


@pytest.mark.parametrize("listener", ["listen", "listen_lmtp"])
@pytest.mark.parametrize("key", ["url", "fallback", "routes"])
@pytest.mark.parametrize(("listening", "host"), OURS)
async def test_i8_a_next_hop_that_is_our_own_listener_is_refused(
    listening: str, host: str, key: str, listener: str
) -> None:
    if "::" in listening and not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    url = f"smtp://{host}:2525"
    other = {"url": "smtp://192.0.2.1:25"}
    settings: dict[str, dict[str, Any]] = {
        "url": {"url": url},
        "fallback": {**other, "fallback": ("smtp://192.0.2.2:25", url)},
        "routes": {**other, "routes": {"y.test": url}},
    }
    with pytest.raises(ConfigError, match=rf"next_hop\.{key}.* is an address of relay\.listen"):
        built(settings[key], **{listener: (listening,)})


@pytest.mark.parametrize(("listening", "host"), OTHERS)
async def test_i8_other_machines_and_listeners_are_no_loop(listening: str, host: str) -> None:
    built({"url": f"smtp://{host}:2525"}, listen=(listening,))
    built({"url": "smtp://127.0.0.1:2526"}, listen=(listening,))


async def test_i8_our_own_name_behind_all_addresses_is_our_listener() -> None:
    try:
        socket.getaddrinfo(socket.gethostname(), 2525)
    except OSError:
        pytest.skip("this machine's name has no address")
    with pytest.raises(ConfigError, match=r"is an address of relay\.listen"):
        built({"url": f"smtp://{socket.gethostname()}:2525"}, listen=("0.0.0.0:2525", "[::]:2525"))


def test_i8_a_link_to_our_socket_is_our_listener(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "other").symlink_to(tmp_path / "real" / "lmtp")
    for path in ("real/lmtp", "link/lmtp", "other", "real/../real/lmtp", "real//lmtp"):
        with pytest.raises(ConfigError, match=r"is an address of relay\.listen"):
            built(
                {"url": f"lmtp+unix://{tmp_path}/{path}"},
                listen_lmtp=(f"unix:{tmp_path}/real/lmtp",),
            )
    built({"url": f"lmtp+unix://{tmp_path}/third"}, listen_lmtp=(f"unix:{tmp_path}/real/lmtp",))


async def test_i8_what_only_shows_at_run_time_is_seen_when_we_greet_ourselves() -> None:
    async with relay("smtp://192.0.2.1") as running:
        next_hops = running.relay.context.next_hops
        # As if the packet filter sent what is for 192.0.2.1 back to us.
        next_hops._default = (parse_next_hop(f"smtp://127.0.0.1:{running.port}", key="url"),)
        talk = await running.talk()
        answer = await talk.say(b"EHLO c.test")
        assert answer == b"421 4.4.6 Mail loops back to this server\r\n"
        await running.empty()
        assert len(next_hops.outgoing) == 0
        assert "leads back" in str(running.observer.faults[0][1])
