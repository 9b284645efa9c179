"""Settings of the relay: what can't work is refused with a sentence that names the key."""

import sys
from typing import Any

import pytest

from spamd.errors import ConfigError
from spamd.network.addresses import Listener
from spamd.network.judge import OnFault
from spamd.network.shared import Shared
from spamd.relay.listener import Relay
from spamd.relay.options import NextHopOptions, RelayOptions, TlsOptions
from spamd.relay.urls import parse_next_hop
from tests.fakes import FakeClock, FakeInspector, FakeObserver, NoTeacher
from tests.relay.peers import not_open

BAD: list[tuple[type, dict[str, Any], str]] = [
    (RelayOptions, {"listen": ("nonsense",)}, "relay.listen"),
    (RelayOptions, {"listen": ("127.0.0.1:99999",)}, "relay.listen"),
    (RelayOptions, {"listen": ("unix:/run/smtp",)}, "relay.listen"),
    (RelayOptions, {"listen_tls": ("unix:/run/smtp",)}, "relay.listen_tls"),
    (RelayOptions, {"listen_lmtp": ("unix:relative",)}, "relay.listen_lmtp"),
    (RelayOptions, {"workers": -1}, "relay.workers"),
    (RelayOptions, {"command_timeout_s": 0.0}, "relay.command_timeout_s"),
    (RelayOptions, {"spool_bytes": 1000}, "relay.spool_bytes"),
    (RelayOptions, {"memory_bytes": 1000}, "relay.memory_bytes"),
    (RelayOptions, {"proxy_protocol": True}, "relay.proxy_protocol"),
    (RelayOptions, {"trusted_networks": ("10.0.0.1/8",)}, "relay.trusted_networks"),
    (RelayOptions, {"bare_newline": "maybe"}, "maybe"),
    (NextHopOptions, {"url": "http://x.test"}, "next_hop.url"),
    (NextHopOptions, {"url": "smtp://"}, "next_hop.url"),
    (NextHopOptions, {"url": "smtp://x.test:port"}, "next_hop.url"),
    (NextHopOptions, {"url": "maildir://"}, "next_hop.url"),
    (NextHopOptions, {"url": "maildir:///"}, "next_hop.url"),
    (NextHopOptions, {"fallback": ("x",)}, "next_hop.fallback"),
    (NextHopOptions, {"routes": {"y.test": "x"}}, "next_hop.routes.y.test"),
    (NextHopOptions, {"keepalive_s": 0.0}, "next_hop.keepalive_s"),
    (NextHopOptions, {"xclient": True, "proxy_protocol": True}, "next_hop.xclient"),
    (NextHopOptions, {"maildir_junk": "../out"}, "next_hop.maildir_junk"),
    (TlsOptions, {"minimum_version": "1.1"}, "tls.minimum_version"),
    (TlsOptions, {"required": True}, "tls.required"),
]


@pytest.mark.parametrize(("kind", "values", "key"), BAD)
def test_what_can_not_work_is_refused(kind: type, values: dict[str, Any], key: str) -> None:
    with pytest.raises(ValueError, match=key.replace(".", r"\.")):
        kind(**values)


@pytest.mark.parametrize(
    ("relay", "next_hop", "tls", "key"),
    [
        ({"listen_tls": ("127.0.0.1:0",)}, {}, {}, "relay.listen_tls"),
        ({"spool_directory": "/no/such/folder"}, {}, {}, "relay.spool_directory"),
        ({"spool_directory": sys.executable}, {}, {}, "relay.spool_directory"),
        ({}, {"url": "smtp://127.0.0.1:8025"}, {}, "next_hop.url"),
        ({}, {"tls": "required", "tls_ca_file": "/no/such/file"}, {}, "next_hop.tls_ca_file"),
        ({}, {}, {"certificate": "/no/such/file"}, "tls.certificate"),
    ],
)
def test_what_does_not_exist_stops_the_start(
    relay: dict[str, Any], next_hop: dict[str, Any], tls: dict[str, Any], key: str
) -> None:
    options = RelayOptions(**relay)
    with pytest.raises(ConfigError, match=rf"^{key}"):
        Relay(
            options=options,
            next_hop=NextHopOptions(**{"url": "maildir:///tmp/never-used", **next_hop}),
            tls=TlsOptions(**tls),
            shared=Shared.of(options, FakeInspector(), NoTeacher(), FakeObserver(), FakeClock()),
            sockets=not_open(options.listeners),
        )


def test_names_of_choices_may_be_text() -> None:
    assert RelayOptions(on_fault="defer").on_fault is OnFault.DEFER  # type: ignore[arg-type]


def test_every_listener_knows_what_it_speaks() -> None:
    options = RelayOptions(
        listen=("[::1]:25",), listen_tls=("h:465",), listen_lmtp=("127.0.0.1:24", "unix:/s")
    )
    assert options.listeners == (
        Listener(key="relay.listen", host="::1", port=25),
        Listener(key="relay.listen_tls", host="h", port=465, tls=True),
        Listener(key="relay.listen_lmtp", host="127.0.0.1", port=24, lmtp=True),
        Listener(key="relay.listen_lmtp", path="/s", lmtp=True),
    )


@pytest.mark.parametrize("url", ["smtp://[::1]:25", "smtp://x.test:2525", "lmtp://h:24"])
def test_a_next_hop_prints_as_its_url(url: str) -> None:
    assert str(parse_next_hop(url, key="k")) == url


def test_ports_have_defaults() -> None:
    assert parse_next_hop("smtp://h", key="k").port == 25
    assert parse_next_hop("lmtp://h", key="k").port == 24
