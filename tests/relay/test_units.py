"""Small parts of the relay, each by itself."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spamd.errors import SpoolFull
from spamd.message.envelope import Client
from spamd.network.connection_limiter import ConnectionLimiter
from spamd.network.spool import Budget, SpooledMessage
from spamd.relay.content.received_field import date
from spamd.relay.options import RelayOptions
from spamd.relay.smtp.client_identity import (
    from_xtext,
    identity_commands,
    named_client,
    parse_attributes,
    proxy_header,
    xtext,
)
from spamd.relay.smtp.commands import parse_path, without_unsupported
from tests.relay.peers import ScriptedNextHop, relay

CLIENT = Client(
    address="192.0.2.9", port=4711, helo="c.test", name="", tls=False, login=None, protocol="ESMTP"
)


@given(value=st.binary(max_size=50))
def test_xtext_is_read_as_it_was_written(value: bytes) -> None:
    written = xtext(value)
    assert from_xtext(written) == value
    assert not set(written) & set(b" =\r\n\x00")


WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=300)


@given(helo=WORDS, address=st.sampled_from(["192.0.2.9", "2001:db8::9", ""]))
def test_identity_commands_are_short_and_say_who_it_is(helo: str, address: str) -> None:
    client = replace(CLIENT, helo=helo, address=address)
    offered = [b"NAME", b"ADDR", b"PORT", b"HELO", b"PROTO", b"LOGIN", b"UNHEARD"]
    found: dict[bytes, bytes] = {}
    for line in identity_commands(b"XCLIENT", client, offered):
        assert len(line) <= 512
        assert line.endswith(b"\r\n")
        found.update(parse_attributes(line[8:-2]) or {})
    told = named_client(replace(CLIENT, address="", helo="", port=0), found)
    assert told is not None
    assert (told.address, told.port) == (address, 4711)
    assert helo.encode("utf-8", "surrogateescape").startswith(
        told.helo.encode("utf-8", "surrogateescape")
    )


@pytest.mark.parametrize(
    ("client", "server", "family", "size"),
    [
        ("192.0.2.9", "127.0.0.1", 0x11, 12),
        ("2001:db8::9", "::1", 0x21, 36),
        ("192.0.2.9", "::1", 0x21, 36),
        ("2001:db8::9", "127.0.0.1", 0x21, 36),
    ],
)
def test_a_proxy_header_has_one_family(client: str, server: str, family: int, size: int) -> None:
    header = proxy_header(replace(CLIENT, address=client), (server, 25))
    assert header[12:16] == bytes([0x21, family, 0, size])
    assert len(header) == 16 + size


def test_a_client_without_an_address_is_local_to_the_proxy_header() -> None:
    assert proxy_header(replace(CLIENT, address=""), ("127.0.0.1", 25))[12:] == b"\x20\x00\x00\x00"


@given(moment=st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_our_dates_are_those_of_the_library(moment: datetime) -> None:
    assert date(moment) == format_datetime(moment)


@given(argument=st.binary(max_size=60))
def test_any_argument_can_be_read(argument: bytes) -> None:
    parse_path(argument)
    assert without_unsupported(argument, None) == argument
    without_unsupported(argument, {b"DSN"})


def test_blanks_before_a_parameter_are_passed_over_once() -> None:
    argument = (
        b"FROM:<a@x.test>" + b" " * 1_000_000
    )  # from each of them to the end would take hours
    assert without_unsupported(argument + b"=x", ()) == argument + b"=x"
    assert without_unsupported(argument + b"SIZE=9", ()) == b"FROM:<a@x.test>"


def test_a_site_of_ipv6_is_one_client() -> None:
    limiter = ConnectionLimiter(RelayOptions(max_connections_per_client=1))
    slot = limiter.acquire("2001:db8::1")
    assert slot == "2001:db8::/64"
    assert limiter.acquire("2001:db8::2") is None
    assert limiter.acquire("2001:db8:0:1::1") is not None
    limiter.release(slot)
    assert limiter.acquire("2001:db8::2") == slot


def test_a_trusted_client_is_not_counted_for_itself() -> None:
    limiter = ConnectionLimiter(
        RelayOptions(max_connections_per_client=1, trusted_networks=("192.0.2.0/24",))
    )
    assert [limiter.acquire("192.0.2.1") for _ in range(3)] == ["", "", ""]


async def test_a_folder_that_takes_no_files_is_a_full_spool() -> None:
    budget = Budget(memory_bytes=10, spool_bytes=100, spool_above_bytes=10, directory="/no/such")
    message = SpooledMessage(budget.share(""))
    message.append(b"x" * 20)
    with pytest.raises(SpoolFull):
        await message.settled()
    with pytest.raises(SpoolFull):
        message.append(b"x")
    message.close()
    budget.close()
    assert (budget.memory_bytes, budget.spool_bytes) == (10, 100)


async def test_a_disk_that_is_full_is_a_full_spool() -> None:
    budget = Budget(memory_bytes=10, spool_bytes=100, spool_above_bytes=10)
    message = SpooledMessage(budget.share(""))
    message.append(b"x" * 20)
    await message.settled()
    assert message._file is not None
    read_only = os.open("/dev/full", os.O_WRONLY)
    os.dup2(read_only, message._file.fileno())
    os.close(read_only)
    message.append(b"y" * 20)
    with pytest.raises(SpoolFull):
        await message.settled()
    message.close()
    budget.close()
    assert (budget.memory_bytes, budget.spool_bytes) == (10, 100)


async def test_all_sessions_of_a_transaction_are_reset_kept_awake_and_closed() -> None:
    async with ScriptedNextHop() as default, ScriptedNextHop() as other:
        options = {"routes": {"other.test": other.url}, "keepalive_s": 0.05}
        async with relay(default.url, next_hop=options) as running:
            talk = await running.talk()
            await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>", b"RCPT TO:<b@other.test>")
            assert await talk.say(b"RSET") == b"250 2.0.0 OK\r\n"
            assert (default.verbs[-1], other.verbs[-1]) == ("RSET", "RSET")
            await talk.begin(hello=b"", recipients=(b"<b@other.test>",))
            await other.until(lambda: "NOOP" in other.verbs)
            await default.until(lambda: "NOOP" in default.verbs)
            await talk.send(b".\r\n")
            assert (await talk.reply()).startswith(b"250 ")
            await talk.say(b"EHLO again.test")
            assert default.commands[-1] == b"EHLO again.test"
            await other.until(lambda: other.open == 0)
            await talk.say(b"QUIT")
            await default.until(lambda: default.open == 0)


async def test_a_route_that_refuses_its_greeting_refuses_the_recipient() -> None:
    other = ScriptedNextHop(answers={"EHLO": b"550 5.7.1 not you\r\n"})
    async with ScriptedNextHop() as default, other:
        options = {"routes": {"other.test": other.url}}
        async with relay(default.url, next_hop=options) as running:
            talk = await running.talk()
            await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>")
            assert await talk.say(b"RCPT TO:<b@other.test>") == b"550 5.7.1 not you\r\n"
            assert (await talk.say(b"RCPT TO:<b@y.test>")).startswith(b"250 ")


async def test_normalizing_a_letter_that_no_longer_fits_is_452() -> None:
    async with (
        ScriptedNextHop() as hop,
        relay(
            hop.url,
            memory_bytes=100,
            spool_above_bytes=100,
            spool_bytes=3000,
            max_message_bytes=3000,
        ) as running,
    ):
        talk = await running.talk()
        assert (await talk.deliver(b"\n" * 2000 + b"\r\n")).startswith(b"452 4.3.1 ")
        assert running.relay.context.shared.budget.spool_bytes == 3000
