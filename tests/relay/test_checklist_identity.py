"""Rows T of the checklist: who the client is, by PROXY, XCLIENT and XFORWARD."""

import asyncio
import ssl
import struct
from pathlib import Path
from typing import Any

import pytest

from spamd.relay.options import TlsOptions
from tests.relay.peers import FULL, QUEUED, ScriptedNextHop, relay, start_tls

# PROXY

TRUSTED: dict[str, Any] = {"trusted_networks": ("127.0.0.0/8",), "proxy_protocol": True}
V2 = b"\r\n\r\n\x00\r\nQUIT\n"
V2_TCP4 = (
    V2 + b"\x21\x11\x00\x0c" + bytes([192, 0, 2, 9, 127, 0, 0, 1]) + struct.pack("!HH", 4711, 25)
)
V2_TLV = (
    V2 + b"\x21\x11\x00\x11" + bytes([192, 0, 2, 9, 127, 0, 0, 1]) + struct.pack("!HH", 4711, 25)
    + b"\x04\x00\x02ab"
)  # fmt: skip

HEADERS = [
    (b"PROXY TCP4 192.0.2.9 127.0.0.1 4711 25\r\n", "192.0.2.9", 4711),
    (b"PROXY TCP6 2001:db8::9 ::1 4711 25\r\n", "2001:db8::9", 4711),
    (b"PROXY TCP6 ::ffff:192.0.2.9 ::ffff:192.0.2.1 4711 25\r\n", "192.0.2.9", 4711),
    (b"PROXY UNKNOWN\r\n", "127.0.0.1", 0),
    (V2_TCP4, "192.0.2.9", 4711),
    (V2_TLV, "192.0.2.9", 4711),
    (V2 + b"\x20\x00\x00\x00", "127.0.0.1", 0),
]


@pytest.mark.parametrize(("header", "address", "port"), HEADERS)
async def test_smtp_t09_and_c12_the_proxy_header_names_the_client(
    header: bytes, address: str, port: int
) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, **TRUSTED) as running:
        talk = await running.talk(greeting=False)
        await talk.send(header)
        assert (await talk.reply()).startswith(b"220 ")
        assert await talk.deliver() == QUEUED
        ((_, envelope),) = running.inspector.seen
        assert envelope.client.address == address
        assert port in {0, envelope.client.port}


async def test_smtp_t09_and_c11_the_client_is_known_after_starttls(
    tls: TlsOptions, trust: ssl.SSLContext
) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, tls=tls, **TRUSTED) as running:
        talk = await running.talk(greeting=False)
        await talk.send(HEADERS[0][0])
        await talk.reply()
        await talk.say(b"STARTTLS")
        await start_tls(talk, trust)
        assert await talk.deliver() == QUEUED
        assert running.inspector.seen[0][1].client.address == "192.0.2.9"


async def test_smtp_t09_the_header_comes_before_tls_from_the_start(
    tls: TlsOptions, trust: ssl.SSLContext
) -> None:
    listen: dict[str, Any] = {"listen": (), "listen_tls": ("127.0.0.1:0",), **TRUSTED}
    async with ScriptedNextHop() as hop, relay(hop.url, tls=tls, **listen) as running:
        talk = await running.talk(greeting=False)
        await talk.send(HEADERS[0][0])
        await start_tls(talk, trust)
        assert (await talk.reply()).startswith(b"220 ")
        assert await talk.deliver() == QUEUED
        assert running.inspector.seen[0][1].client.address == "192.0.2.9"


@pytest.mark.parametrize(
    "header",
    [
        b"EHLO c.test\r\n",
        b"PROXY TCP4 nonsense\r\n",
        b"PROXY TCP4 192.0.2.9 127.0.0.1 4711 25\n",
        b"PROXY " + b"x" * 200 + b"\r\n",
        V2 + b"\x31\x11\x00\x00",
        V2 + b"\x21\x11\x00\x01x",
    ],
)
async def test_smtp_t10_without_a_good_header_there_is_no_greeting(header: bytes) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, **TRUSTED) as running:
        talk = await running.talk(greeting=False)
        await talk.send(header)
        assert await talk.rest() == b""
        assert hop.connections == 0


async def test_smtp_t10_a_header_that_comes_too_late() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, proxy_header_s=0.2, **TRUSTED) as running:
        talk = await running.talk(greeting=False)
        assert b"220" not in await talk.rest()


# XCLIENT and XFORWARD

TRUST: dict[str, Any] = {"trusted_networks": ("127.0.0.0/8",)}


async def test_smtp_t11_xclient_starts_the_session_anew_for_another_client() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, **TRUST) as running:
        talk = await running.talk()
        assert b"XCLIENT NAME ADDR" in await talk.say(b"EHLO c.test")
        line = b"XCLIENT NAME=real.test ADDR=IPV6:2001:db8::9 PORT=4711 LOGIN=+4Aoe"
        assert (await talk.say(line)).startswith(b"220 mx.test ")
        assert (await talk.say(b"MAIL FROM:<a@x.test>")).startswith(b"503 5.5.1 ")
        assert await talk.deliver(hello=b"EHLO real.test") == QUEUED
        ((_, envelope),) = running.inspector.seen
        client = envelope.client
        assert (client.address, client.port, client.name) == ("2001:db8::9", 4711, "real.test")
        assert (client.helo, client.login) == ("real.test", "Joe")
        assert b"from real.test (real.test [IPv6:2001:db8::9])" in hop.messages[0]


async def test_smtp_t11_xforward_counts_for_one_message() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, **TRUST) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        assert (
            await talk.say(b"XFORWARD ADDR=IPV6:::ffff:192.0.2.9 NAME=[UNAVAILABLE]")
        ).startswith(b"250 ")
        assert (await talk.say(b"XFORWARD HELO=real.test")).startswith(b"250 ")
        assert await talk.deliver(hello=b"") == QUEUED
        assert await talk.deliver(hello=b"") == QUEUED
        first, second = (envelope.client for _, envelope in running.inspector.seen)
        assert (first.address, first.helo) == ("192.0.2.9", "real.test")
        assert (second.address, second.helo) == ("127.0.0.1", "c.test")


async def test_smtp_t11_xclient_counts_from_the_next_message_on() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, **TRUST) as running:
        talk = await running.talk()
        assert await talk.deliver() == QUEUED
        await talk.say(b"XCLIENT LOGIN=joe")
        assert await talk.deliver() == QUEUED
        await talk.say(b"XCLIENT LOGIN=[UNAVAILABLE]")
        assert await talk.deliver() == QUEUED
        logins = [envelope.client.login for _, envelope in running.inspector.seen]
        assert logins == [None, "joe", None]


@pytest.mark.parametrize("port", [b"65536", b"9" * 5000, b"smtp"])
async def test_smtp_t11_a_port_that_is_none_is_unknown(port: bytes) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, **TRUST) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        assert await talk.say(b"XFORWARD PORT=" + port) == b"250 2.0.0 OK\r\n"
        assert await talk.deliver(hello=b"") == QUEUED
        assert running.inspector.seen[0][1].client.port == 0


async def test_smtp_t11_a_line_break_in_an_attribute_is_none() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, **TRUST) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"XFORWARD PROTO=SMTP+0D+0AX-Evil:+20yes NAME=a+0Ab")
        assert await talk.deliver(hello=b"") == QUEUED
        assert b"from c.test (a?b [127.0.0.1])\r\n" in hop.messages[0]
        assert b" with SMTP??X-Evil: yes;\r\n" in hop.messages[0]


@pytest.mark.parametrize("verb", [b"XCLIENT", b"XFORWARD"])
async def test_smtp_t11_inside_a_transaction_or_malformed(verb: bytes) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, **TRUST) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        for argument in (b"", b" ADDR", b" ADDR=nonsense", b" ADDR=1.2.3"):
            assert (await talk.say(verb + argument)).startswith(b"501 5.5.4 ")
        await talk.say(b"MAIL FROM:<a@x.test>")
        assert (await talk.say(verb + b" ADDR=192.0.2.9")).startswith(b"503 5.5.1 ")


XFORWARDING = [*FULL, b"XFORWARD NAME ADDR PORT PROTO HELO SOURCE"]


async def test_smtp_t12_xforward_is_said_before_each_message() -> None:
    async with (
        ScriptedNextHop(extensions=XFORWARDING) as hop,
        relay(hop.url, **TRUST) as running,
    ):
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"XCLIENT ADDR=IPV6:2001:db8::9 PORT=4711")
        assert await talk.deliver(hello=b"EHLO we=ird+[name]") == QUEUED
        assert await talk.deliver(hello=b"") == QUEUED
        said = [line for line in hop.commands if line.startswith(b"XFORWARD")]
        expected = (
            b"XFORWARD NAME=[UNAVAILABLE] ADDR=IPV6:2001:db8::9 PORT=4711 PROTO=ESMTP"
            b" HELO=we+3Dird+2B[name] SOURCE=REMOTE"
        )
        assert said == [expected] * 2
        verbs = [verb for verb in hop.verbs if verb in {"XFORWARD", "MAIL"}]
        assert verbs == ["XFORWARD", "MAIL"] * 2


async def test_smtp_t12_what_xforward_said_of_a_message_is_passed_on_with_it() -> None:
    async with (
        ScriptedNextHop(extensions=[*FULL, b"XFORWARD ADDR HELO"]) as hop,
        relay(hop.url, **TRUST) as running,
    ):
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"XFORWARD ADDR=192.0.2.9 HELO=real.test")
        assert await talk.deliver(hello=b"") == QUEUED
        assert await talk.deliver(hello=b"") == QUEUED
        said = [line for line in hop.commands if line.startswith(b"XFORWARD")]
        assert said == [
            b"XFORWARD ADDR=192.0.2.9 HELO=real.test",
            b"XFORWARD ADDR=127.0.0.1 HELO=c.test",
        ]


async def test_smtp_t12_a_session_opened_anew_is_not_that_of_one_message() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, **TRUST) as running:
        talk = await running.talk()
        assert await talk.deliver(hello=b"EHLO c.test") == QUEUED
        for writer in hop.writers:
            writer.close()
        await hop.until(lambda: hop.open == 0)
        await talk.say(b"XFORWARD HELO=real.test")
        assert await talk.deliver(hello=b"") == QUEUED
        assert hop.commands[-4] == b"EHLO c.test"


async def test_smtp_t12_long_values_are_cut_and_commands_split() -> None:
    async with ScriptedNextHop(extensions=XFORWARDING) as hop, relay(hop.url) as running:
        talk = await running.talk()
        await talk.deliver(hello=b"EHLO " + b"=" * 250)
        said = [line for line in hop.commands if line.startswith(b"XFORWARD")]
        assert all(len(line) + 2 <= 512 for line in said)
        assert said[1] == b"XFORWARD HELO=" + b"+3D" * 160 + b" SOURCE=REMOTE"


@pytest.mark.parametrize("pipelining", [[b"PIPELINING"], []])
async def test_smtp_t12_a_refused_xforward_is_ignored(pipelining: list[bytes]) -> None:
    extensions = [*pipelining, b"XFORWARD NAME ADDR"]
    async with (
        ScriptedNextHop(extensions=extensions, answers={"XFORWARD": b"550 5.7.0 no\r\n"}) as hop,
        relay(hop.url) as running,
    ):
        assert await (await running.talk()).deliver() == QUEUED


async def test_smtp_t12_xforward_is_not_said_when_it_is_off() -> None:
    async with (
        ScriptedNextHop(extensions=XFORWARDING) as hop,
        relay(hop.url, next_hop={"xforward": False}) as running,
    ):
        assert await (await running.talk()).deliver() == QUEUED
        assert "XFORWARD" not in hop.verbs


XCLIENTING = [*FULL, b"XCLIENT NAME ADDR PORT PROTO HELO LOGIN"]


async def test_smtp_t13_and_d22_xclient_towards_the_next_hop() -> None:
    hop = ScriptedNextHop(extensions=XCLIENTING, answers={"XCLIENT": b"220 next.test ESMTP\r\n"})
    async with hop, relay(hop.url, next_hop={"xclient": True}) as running:
        talk = await running.talk()
        assert await talk.deliver() == QUEUED
        assert hop.verbs == ["EHLO", "XCLIENT", "EHLO", "MAIL", "RCPT", "DATA"]
        assert b"ADDR=127.0.0.1 " in hop.commands[1]
        assert b"Received:" not in hop.messages[0]


async def test_smtp_t13_a_client_that_says_helo_is_named_too() -> None:
    hop = ScriptedNextHop(extensions=XCLIENTING, answers={"XCLIENT": b"220 next.test ESMTP\r\n"})
    async with hop, relay(hop.url, next_hop={"xclient": True}) as running:
        assert await (await running.talk()).deliver(hello=b"HELO c.test") == QUEUED
        assert hop.verbs == ["EHLO", "XCLIENT", "HELO", "MAIL", "RCPT", "DATA"]


async def test_smtp_t13_and_d22_a_next_hop_that_is_not_told_the_client_reads_our_received(
    tmp_path: Path,
) -> None:
    async with relay(f"maildir://{tmp_path}", next_hop={"proxy_protocol": True}) as running:
        assert (await (await running.talk()).deliver()).startswith(b"250 ")
    (mail,) = tmp_path.glob("new/*")  # noqa: ASYNC240 - a test's file
    assert b"\nReceived: " in mail.read_bytes()


async def test_smtp_t13_and_c05_a_banner_before_xclient_does_not_refuse_the_client() -> None:
    hop = ScriptedNextHop(answers={"": b"554 5.7.1 your address is listed\r\n"})
    async with hop, relay(hop.url, next_hop={"xclient": True}) as running:
        assert (await (await running.talk()).say(b"EHLO c.test")).startswith(b"421 4.3.2 ")


async def test_smtp_t13_a_temporary_refusal_of_xclient_ends_the_session_in_its_own_words() -> None:
    answer = "450-4.7.0 später\r\n450 4.7.0 vielleicht\r\n".encode()
    hop = ScriptedNextHop(extensions=XCLIENTING, answers={"XCLIENT": answer})
    async with hop, relay(hop.url, next_hop={"xclient": True}) as running:
        talk = await running.talk()
        assert await talk.say(b"EHLO c.test") == answer.replace(b"450", b"421")
        assert await talk.rest() == b""


async def test_smtp_t14_the_proxy_header_is_the_first_thing_the_next_hop_reads() -> None:
    first: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first.set_result(await reader.readexactly(28))
        writer.write(b"220 next.test\r\n")
        await reader.read()
        writer.close()

    async with await asyncio.start_server(read, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        options = {"proxy_protocol": True, "greeting_timeout_s": 0.2}
        async with relay(f"smtp://127.0.0.1:{port}", next_hop=options, **TRUST) as running:
            talk = await running.talk()
            await talk.say(b"EHLO c.test", b"XCLIENT ADDR=192.0.2.9 PORT=4711")
            header = await first
        assert header[:16] == V2 + b"\x21\x11\x00\x0c"
        assert header[16:20] == bytes([127, 0, 0, 1])
