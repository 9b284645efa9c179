"""Bodies: packed, too large, too slow, broken."""

import gzip
import zlib
from collections.abc import Callable

import pytest
from backports import zstd

from tests.listeners.web.clients import MAIL, Running, chunked, request, running
from tests.waiting import until

MIB = 2**20


def bare_deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-15)
    return engine.compress(data) + engine.flush()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "Content-Encoding: gzip": gzip.compress,
    "Content-Encoding: x-gzip": gzip.compress,
    "Content-Encoding: deflate": zlib.compress,
    "content-encoding: Deflate": bare_deflate,
    "Content-Encoding: zstd": zstd.compress,
    "Compression: zstd": zstd.compress,
    "Content-Encoding: identity": bytes,
}


def free(here: Running) -> bool:
    """Tell whether no octet is held for a message any more."""
    budget, options = here.shared.budget, here.shared.options
    now = budget.memory_bytes, budget.spool_bytes
    return now == (options.memory_bytes, options.spool_bytes)


@pytest.mark.parametrize("field", PACKED)
@pytest.mark.parametrize("size", [0, 200_000])
async def test_a_packed_mail_is_judged_as_it_is_meant(field: str, size: int) -> None:
    mail = MAIL + b"line of text\r\n" * (size // 14)
    async with running() as here:
        answer = await here.post("/checkv2", PACKED[field](mail), [field])
        assert answer.status == 200
        await until(lambda: free(here))
    assert here.inspector.seen[0][0] == mail


@pytest.mark.parametrize("field", ["Content-Encoding: gzip", "Compression: zstd"])
async def test_members_of_a_packed_mail_follow_each_other(field: str) -> None:
    pack = PACKED[field]
    async with running() as here:
        await here.post("/checkv2", pack(MAIL) + pack(b"more\r\n"), [field])
    assert here.inspector.seen[0][0] == MAIL + b"more\r\n"


@pytest.mark.parametrize("field", [name for name in PACKED if "identity" not in name])
async def test_what_is_packed_tight_is_unpacked_no_further_than_a_mail_may_be_large(
    field: str,
) -> None:
    bomb = PACKED[field](bytes(20 * MIB))
    async with running(max_message_bytes=2 * MIB) as here:
        answer = await here.post("/checkv2", bomb, [field])
        assert answer.status == 413
        await until(lambda: free(here))
    assert not here.inspector.seen


@pytest.mark.parametrize("field", [name for name in PACKED if "identity" not in name])
@pytest.mark.parametrize("fault", ["cut", "garbage", "empty"])
async def test_what_is_not_packed_as_it_says_is_the_clients_fault(field: str, fault: str) -> None:
    packed = PACKED[field](MAIL * 50)
    body = {"cut": packed[:-9], "garbage": b"\xff" * 99, "empty": b""}[fault]
    async with running() as here:
        answer = await here.post("/checkv2", body, [field])
        await until(lambda: free(here))
    assert answer.status == (200 if fault == "empty" else 400)  # nothing, packed by nothing


async def test_a_window_that_no_decoder_must_have_is_refused() -> None:
    engine = zstd.ZstdCompressor(options={int(zstd.CompressionParameter.window_log): 27})
    large = engine.compress(MAIL) + engine.flush()
    async with running() as here:
        answer = await here.post("/checkv2", large, ["Compression: zstd"])
    assert answer.status == 400


@pytest.mark.parametrize("fields", [["Content-Encoding: br"], ["Content-Encoding: gzip, zstd"]])
async def test_other_ways_to_pack_are_named_as_such(fields: list[str]) -> None:
    async with running() as here:
        answer = await here.post("/checkv2", MAIL, fields)
    assert answer.status == 415


async def test_a_mail_too_large_is_refused_by_its_length_and_by_what_comes() -> None:
    mail = bytes(3 * MIB)
    async with running(max_message_bytes=MIB, spool_above_bytes=1000) as here:
        by_length = await here.ask(request("/checkv2", mail))
        by_bytes = await here.ask(chunked("/checkv2", [mail]))
        await until(lambda: free(here))
    assert by_length.startswith(b"HTTP/1.1 413 ")
    assert by_bytes.startswith(b"HTTP/1.1 413 ")


async def test_without_room_a_mail_shall_come_again() -> None:
    async with running() as here:
        here.shared.budget.memory_bytes = here.shared.budget.spool_bytes = 10
        answer = await here.post("/checkv2")
    assert answer.json["action"] == "soft reject"


async def test_a_client_may_wait_until_it_is_told_to_go_on() -> None:
    async with running() as here:
        reader, writer = await here.connect()
        whole = request("/checkv2", MAIL, ["Expect: 100-continue"])
        writer.write(whole.removesuffix(MAIL))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(MAIL)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        writer.close()


async def test_a_client_that_goes_in_the_middle_of_a_mail_gets_no_verdict() -> None:
    async with running() as here:
        reader, writer = await here.connect()
        writer.write(request("/checkv2", MAIL)[:-3])
        await writer.drain()
        await until(lambda: here.listener.connections.tasks)
        writer.close()
        await until(lambda: not here.listener.connections.tasks)
        await until(lambda: free(here))
        assert await reader.read() == b""
    assert not here.inspector.seen
    assert not here.observer.faults
