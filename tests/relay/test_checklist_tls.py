"""Rows T of the checklist: TLS and AUTH."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from spamd.errors import ConfigError
from spamd.relay.options import NextHopTls, TlsOptions
from tests.relay.peers import FULL, QUEUED, Answer, ScriptedNextHop, Talk, relay, start_tls


async def test_smtp_t01_after_starttls_everything_begins_anew(
    tls: TlsOptions, trust: ssl.SSLContext
) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, tls=tls) as running:
        talk = await running.talk()
        assert b"STARTTLS" in await talk.say(b"EHLO c.test")
        assert (await talk.say(b"STARTTLS")).startswith(b"220 2.0.0 ")
        await start_tls(talk, trust)
        assert (await talk.say(b"MAIL FROM:<a@x.test>")).startswith(b"503 5.5.1 ")
        assert b"STARTTLS" not in await talk.say(b"EHLO c.test")
        assert await talk.deliver(hello=b"") == QUEUED
        assert b" with ESMTPS;" in hop.messages[0]
        ((_, envelope),) = running.inspector.seen
        assert envelope.client.tls


async def test_smtp_t02_what_is_sent_in_clear_behind_starttls_is_forgotten(
    tls: TlsOptions, trust: ssl.SSLContext
) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, tls=tls) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        await talk.send(b"STARTTLS\r\nEHLO evil.test\r\nMAIL FROM:<evil@x.test>\r\n")
        assert (await talk.reply()).startswith(b"220 2.0.0 ")
        await start_tls(talk, trust)
        assert (await talk.say(b"NOOP")) == b"250 2.0.0 OK\r\n"
        assert hop.verbs.count("MAIL") == 0
        assert b"EHLO evil.test" not in hop.commands


async def test_smtp_t03_starttls_out_of_place(tls: TlsOptions, trust: ssl.SSLContext) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, tls=tls) as running:
        talk = await running.talk()
        assert (await talk.say(b"STARTTLS now")).startswith(b"501 5.5.4 ")
        await talk.say(b"STARTTLS")
        await start_tls(talk, trust)
        assert (await talk.say(b"STARTTLS")).startswith(b"503 5.5.1 ")


async def test_smtp_t03_starttls_without_a_certificate() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        assert b"STARTTLS" not in await talk.say(b"EHLO c.test")
        assert (await talk.say(b"STARTTLS")).startswith(b"454 4.7.0 ")


async def test_smtp_t04_garbage_instead_of_a_handshake(tls: TlsOptions) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, tls=tls) as running:
        talk = await running.talk()
        await talk.say(b"STARTTLS")
        await talk.send(b"GET / HTTP/1.0\r\n\r\n")
        await talk.rest()
        assert running.observer.faults == []
        await running.empty()


async def test_smtp_t04_a_silent_handshake_ends(tls: TlsOptions) -> None:
    async with ScriptedNextHop() as hop, relay(hop.url, tls=tls, tls_handshake_s=0.2) as running:
        talk = await running.talk()
        await talk.say(b"STARTTLS")
        assert await talk.rest() == b""
        await running.empty()


async def test_smtp_t05_mail_in_clear_is_refused_when_tls_is_required(
    tls: TlsOptions, trust: ssl.SSLContext
) -> None:
    required = TlsOptions(certificate=tls.certificate, required=True)
    async with ScriptedNextHop() as hop, relay(hop.url, tls=required) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        answer = await talk.say(b"MAIL FROM:<a@x.test>")
        assert answer == b"530 5.7.0 Must issue a STARTTLS command first\r\n"
        assert hop.verbs == ["EHLO"]
        await talk.say(b"STARTTLS")
        await start_tls(talk, trust)
        assert await talk.deliver() == QUEUED


async def test_smtp_t06_tls_from_the_start(tls: TlsOptions, trust: ssl.SSLContext) -> None:
    listen: dict[str, Any] = {"listen": (), "listen_tls": ("127.0.0.1:0",)}
    async with ScriptedNextHop() as hop, relay(hop.url, tls=tls, **listen) as running:
        talk = Talk(
            *await asyncio.open_connection(
                "127.0.0.1", running.port, ssl=trust, server_hostname="localhost"
            )
        )
        running.talks.append(talk)
        assert await talk.reply() == b"220 mx.test ESMTP\r\n"
        assert b"STARTTLS" not in await talk.say(b"EHLO c.test")
        assert await talk.deliver(hello=b"") == QUEUED


async def test_our_certificate_is_read_again(
    tls: TlsOptions, trust: ssl.SSLContext, authority: trustme.CA
) -> None:
    async def serial(port: int) -> object:
        talk = await Talk.to(port)
        await talk.say(b"STARTTLS")
        await start_tls(talk, trust)
        found = talk.writer.get_extra_info("peercert")["serialNumber"]
        await talk.close()
        return found

    async with ScriptedNextHop() as hop, relay(hop.url, tls=tls) as running:
        before = await serial(running.port)
        fresh = authority.issue_cert("localhost")
        fresh.private_key_and_cert_chain_pem.write_to_path(tls.certificate)
        running.relay.reload_tls()
        assert await serial(running.port) != before
        Path(tls.certificate).write_text("nonsense")  # noqa: ASYNC240 - a test's file
        with pytest.raises(ConfigError, match=r"tls\.certificate"):
            running.relay.reload_tls()
        await serial(running.port)


# Towards the next hop


class TlsNextHop(ScriptedNextHop):
    """A next hop that can do STARTTLS."""

    context: ssl.SSLContext

    async def _say(self, writer: asyncio.StreamWriter, verb: str, usual: bytes) -> bytes:
        answer = await super()._say(writer, verb, usual)
        if verb == "STARTTLS" and answer.startswith(b"220"):
            await writer.start_tls(self.context)
        return answer


@asynccontextmanager
async def secure_hop(authority: trustme.CA, name: str = "127.0.0.1") -> AsyncIterator[TlsNextHop]:
    hop = TlsNextHop(extensions=[*FULL, b"STARTTLS"], answers={"STARTTLS": b"220 2.0.0 go\r\n"})
    hop.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(hop.context)
    async with hop:
        yield hop


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return str(path)


async def test_smtp_t07_required_tls_with_a_good_certificate(
    authority: trustme.CA, ca_file: str
) -> None:
    options = {"tls": NextHopTls.REQUIRED, "tls_ca_file": ca_file}
    async with secure_hop(authority) as hop, relay(hop.url, next_hop=options) as running:
        assert await (await running.talk()).deliver() == QUEUED
        assert hop.verbs == ["EHLO", "STARTTLS", "EHLO", "MAIL", "RCPT", "DATA"]


async def test_smtp_t07_required_tls_with_the_wrong_name(
    authority: trustme.CA, ca_file: str
) -> None:
    options = {"tls": NextHopTls.REQUIRED, "tls_ca_file": ca_file}
    async with (
        secure_hop(authority, "other.test") as hop,
        relay(hop.url, next_hop=options) as running,
    ):
        talk = await running.talk()
        assert (await talk.say(b"EHLO c.test")).startswith(b"421 4.7.5 ")
        assert "MAIL" not in hop.verbs


@pytest.mark.parametrize("offer", ["nothing", "refusal"])
async def test_smtp_t07_required_tls_that_is_not_to_be_had(offer: str) -> None:
    extensions = FULL if offer == "nothing" else [*FULL, b"STARTTLS"]
    hop = ScriptedNextHop(extensions=extensions, answers={"STARTTLS": b"454 4.7.0 no\r\n"})
    async with hop, relay(hop.url, next_hop={"tls": NextHopTls.REQUIRED}) as running:
        talk = await running.talk()
        assert (await talk.say(b"EHLO c.test")).startswith(b"421 4.7.5 ")
        assert "MAIL" not in hop.verbs


async def test_smtp_t07_required_tls_is_had_for_a_client_that_says_helo(
    authority: trustme.CA, ca_file: str
) -> None:
    options = {"tls": NextHopTls.REQUIRED, "tls_ca_file": ca_file}
    async with secure_hop(authority) as hop, relay(hop.url, next_hop=options) as running:
        assert await (await running.talk()).deliver(hello=b"HELO c.test") == QUEUED
        assert hop.verbs[:5] == ["EHLO", "STARTTLS", "EHLO", "HELO", "MAIL"]


@pytest.mark.parametrize("hellos", [[b"HELO c.test"], [b"EHLO c.test", b"HELO c.test"]])
async def test_smtp_t07_required_tls_is_not_got_round_by_a_refused_ehlo(
    hellos: list[bytes],
) -> None:
    hop = ScriptedNextHop(answers={"EHLO": b"502 5.5.1 what?\r\n"})
    async with hop, relay(hop.url, next_hop={"tls": NextHopTls.REQUIRED}) as running:
        talk = await running.talk()
        assert (await talk.say(*hellos)).startswith(b"421 4.7.5 ")
        assert "MAIL" not in hop.verbs


async def test_smtp_t07_opportunistic_tls_takes_any_certificate(authority: trustme.CA) -> None:
    async with secure_hop(authority, "other.test") as hop, relay(hop.url) as running:
        assert await (await running.talk()).deliver() == QUEUED
        assert hop.verbs[:3] == ["EHLO", "STARTTLS", "EHLO"]


@pytest.mark.parametrize("answer", [b"454 4.7.0 no\r\n", b"220 but no handshake follows\r\n"])
async def test_smtp_t07_opportunistic_tls_goes_on_in_clear(answer: bytes) -> None:
    answers: list[Answer] = [answer]
    hop = ScriptedNextHop(extensions=[*FULL, b"STARTTLS"], answers={"STARTTLS": list(answers)})
    options = {"greeting_timeout_s": 0.5}
    async with hop, relay(hop.url, next_hop=options) as running:
        talk = await running.talk()
        assert await talk.deliver() == QUEUED


async def test_smtp_t07_text_behind_the_reply_to_starttls_is_no_reply() -> None:
    answer = b"220 go\r\n250-next.test\r\n250 AUTH PLAIN\r\n"
    hop = ScriptedNextHop(extensions=[*FULL, b"STARTTLS"], answers={"STARTTLS": answer})
    async with hop, relay(hop.url) as running:
        assert (await (await running.talk()).say(b"EHLO c.test")).startswith(b"421 4.3.0 ")


# AUTH


async def test_smtp_t08_auth_is_off_by_default() -> None:
    hop = ScriptedNextHop(extensions=[*FULL, b"AUTH PLAIN LOGIN"])
    async with hop, relay(hop.url) as running:
        talk = await running.talk()
        assert b"AUTH" not in await talk.say(b"EHLO c.test")
        assert (await talk.say(b"AUTH PLAIN AGEAYg==")).startswith(b"502 5.5.1 ")
        assert hop.verbs == ["EHLO"]


async def test_smtp_t08_auth_is_passed_through_under_tls_only(
    tls: TlsOptions, trust: ssl.SSLContext, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    hop = ScriptedNextHop(
        extensions=[*FULL, b"AUTH PLAIN LOGIN"],
        answers={"AUTH": b"334 VXNlcm5hbWU6\r\n", "c2VjcmV0": b"235 2.7.0 welcome\r\n",
                 "dXNlcg==": b"334 UGFzc3dvcmQ6\r\n"},
    )  # fmt: skip
    hop.answers["C2VJCMV0"] = hop.answers["c2VjcmV0"]
    hop.answers["DXNLCG=="] = hop.answers["dXNlcg=="]
    async with hop, relay(hop.url, tls=tls, next_hop={"auth": True}) as running:
        talk = await running.talk()
        assert b"AUTH" not in await talk.say(b"EHLO c.test")
        assert (await talk.say(b"AUTH LOGIN")).startswith(b"502 5.5.1 ")
        await talk.say(b"STARTTLS")
        await start_tls(talk, trust)
        assert b"AUTH PLAIN LOGIN" in await talk.say(b"EHLO c.test")
        assert await talk.say(b"AUTH LOGIN") == b"334 VXNlcm5hbWU6\r\n"
        assert await talk.say(b"dXNlcg==") == b"334 UGFzc3dvcmQ6\r\n"
        assert await talk.say(b"c2VjcmV0") == b"235 2.7.0 welcome\r\n"
        assert hop.commands[-3:] == [b"AUTH LOGIN", b"dXNlcg==", b"c2VjcmV0"]
        assert await talk.deliver(hello=b"") == QUEUED
        assert b" with ESMTPSA;" in hop.messages[0]
        assert "c2VjcmV0" not in caplog.text  # F13


async def test_smtp_t08_an_empty_answer_to_a_challenge_goes_on_too(
    tls: TlsOptions, trust: ssl.SSLContext
) -> None:
    hop = ScriptedNextHop(extensions=[*FULL, b"AUTH CRAM-MD5"], answers={"AUTH": b"334 \r\n"})
    async with hop, relay(hop.url, tls=tls, next_hop={"auth": True}) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        await talk.say(b"STARTTLS")
        await start_tls(talk, trust)
        assert b"AUTH" in await talk.say(b"EHLO c.test")
        assert await talk.say(b"AUTH CRAM-MD5") == b"334 \r\n"
        assert await talk.say(b"") == b"250 2.0.0 ok\r\n"
        assert hop.commands[-1] == b""


async def logged_in(talk: Talk, trust: ssl.SSLContext) -> None:
    await talk.say(b"EHLO c.test", b"STARTTLS")
    await start_tls(talk, trust)
    await talk.say(b"EHLO c.test")
    assert await talk.say(b"AUTH PLAIN AGEAYg==") == b"235 2.7.0 welcome\r\n"


@pytest.mark.parametrize("line", [b"MAIL FROM:<a@x.test>", b"EHLO c.test"])
async def test_smtp_t08_a_login_is_lost_with_the_next_hop_it_was_made_at(
    tls: TlsOptions, trust: ssl.SSLContext, line: bytes
) -> None:
    hop = ScriptedNextHop(
        extensions=[*FULL, b"AUTH PLAIN"], answers={"AUTH": b"235 2.7.0 welcome\r\n"}
    )
    async with hop, relay(hop.url, tls=tls, next_hop={"auth": True}) as running:
        talk = await running.talk()
        await logged_in(talk, trust)
        for writer in hop.writers:
            writer.close()
        await hop.until(lambda: hop.open == 0)
        assert (await talk.say(line)).startswith(b"421 4.4.2 ")
        assert hop.verbs[-1] == "AUTH"


async def test_smtp_t08_a_login_does_not_go_on_to_the_client_of_xclient(
    tls: TlsOptions, trust: ssl.SSLContext
) -> None:
    hop = ScriptedNextHop(
        extensions=[*FULL, b"AUTH PLAIN"], answers={"AUTH": b"235 2.7.0 welcome\r\n"}
    )
    async with (
        hop,
        relay(
            hop.url, tls=tls, next_hop={"auth": True}, trusted_networks=("127.0.0.0/8",)
        ) as running,
    ):
        talk = await running.talk()
        await logged_in(talk, trust)
        await talk.say(b"XCLIENT ADDR=192.0.2.9")
        assert await talk.deliver() == QUEUED
        assert running.inspector.seen[0][1].client.login is None


async def test_smtp_t08_a_line_that_is_no_answer_to_a_challenge_cancels_the_login(
    tls: TlsOptions, trust: ssl.SSLContext
) -> None:
    hop = ScriptedNextHop(extensions=[*FULL, b"AUTH LOGIN"], answers={"AUTH": b"334 \r\n"})
    async with hop, relay(hop.url, tls=tls, next_hop={"auth": True}) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"STARTTLS")
        await start_tls(talk, trust)
        await talk.say(b"EHLO c.test", b"AUTH LOGIN")
        assert (await talk.say(b"a\0b")).startswith(b"500 5.5.2 ")
        assert hop.commands[-1] == b"*"
