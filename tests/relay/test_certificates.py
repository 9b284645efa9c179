"""Certificates that are renewed while we run."""

import asyncio
import ssl
from pathlib import Path

import pytest
import trustme

from spamd.errors import ConfigError
from spamd.relay.options import TlsOptions
from tests.relay.peers import ScriptedNextHop, Talk, relay


async def shown(port: int, trust: ssl.SSLContext, *, implicit: bool, name: str | None) -> int:
    """Return the serial number of the certificate that a client is shown."""
    context = trust
    if implicit:
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname=name or ""
        )
        talk = None
    else:
        talk = await Talk.to(port)
        assert (await talk.say(b"EHLO c.test", b"STARTTLS")).startswith(b"220 ")
        await talk.writer.start_tls(context, server_hostname=name or "")
        writer = talk.writer
    encoded = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await asyncio.sleep(0)
    return hash(encoded)


@pytest.mark.parametrize("implicit", [True, False], ids=["from the start", "STARTTLS"])
@pytest.mark.parametrize("name", ["localhost", None])
async def test_i1_a_renewed_certificate_is_shown_to_who_comes_next(
    authority: trustme.CA,
    tmp_path: Path,
    implicit: bool,  # noqa: FBT001 - a case
    name: str | None,
) -> None:
    trust = ssl.create_default_context()
    trust.check_hostname = False
    trust.verify_mode = ssl.CERT_NONE
    pem = tmp_path / "server.pem"
    tls = TlsOptions(certificate=str(pem))
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(pem)
    listen = {"listen_tls" if implicit else "listen": ("127.0.0.1:0",)}
    options = {"listen": (), **listen}
    async with ScriptedNextHop() as hop, relay(hop.url, tls=tls, **options) as running:  # type: ignore[arg-type]  # options of the relay
        first = await shown(running.port, trust, implicit=implicit, name=name)
        assert await shown(running.port, trust, implicit=implicit, name=name) == first
        authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(pem)
        running.relay.reload_tls()
        second = await shown(running.port, trust, implicit=implicit, name=name)
        assert second != first
        pem.write_text("no certificate")
        with pytest.raises(ConfigError, match="certificate"):
            running.relay.reload_tls()
        assert await shown(running.port, trust, implicit=implicit, name=name) == second


async def test_k1_a_client_that_shakes_no_hands_leaves_room_for_others(
    tls: TlsOptions, trust: ssl.SSLContext
) -> None:
    async with (
        ScriptedNextHop() as hop,
        relay(
            hop.url,
            tls=tls,
            listen=("127.0.0.1:0",),
            listen_tls=("127.0.0.1:0",),
            tls_handshake_s=0.5,
        ) as running,
    ):
        port = running.relay.addresses[1][1]
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(6)]
        assert (await (await running.talk()).deliver()).startswith(b"250 ")
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=trust, server_hostname="localhost"
        )
        assert (await reader.readline()).startswith(b"220 ")
        for _, each in (*silent, (reader, writer)):
            each.close()
