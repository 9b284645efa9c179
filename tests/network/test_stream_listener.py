"""Connections that are read as streams: limits, the end of the daemon, faults."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from spamd.network.addresses import parse_listeners
from spamd.network.shared import Shared
from spamd.network.sockets import open_sockets
from spamd.network.stream_listener import Connection, StreamListener
from spamd.relay.options import RelayOptions
from tests.fakes import FakeClock, FakeInspector, FakeObserver, NoTeacher
from tests.waiting import until

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def listening(
    serve: Callable[[Connection], Awaitable[None]], address: str = "127.0.0.1:0", **options: Any
) -> AsyncIterator[tuple[StreamListener, Callable[[], Awaitable[Streams]], FakeObserver]]:
    """Run a listener; yields it, how to connect, and whom it tells."""
    observer = FakeObserver()
    shared = Shared.of(RelayOptions(**options), FakeInspector(), NoTeacher(), observer, FakeClock())
    addresses = parse_listeners((address,), key="milter.listen")
    ((sock,),) = open_sockets(addresses, 1)

    opened: list[Streams] = []

    async def connect() -> Streams:
        if addresses[0].path:
            opened.append(await asyncio.open_unix_connection(addresses[0].path))
        else:
            opened.append(await asyncio.open_connection(*sock.getsockname()))
        return opened[-1]

    listener = StreamListener("test", shared, serve, addresses, [sock], refusal=b"full\r\n")
    await listener.start()
    try:
        yield listener, connect, observer
    finally:
        for _, writer in opened:
            writer.close()
        await listener.stop(1.0)
        shared.close()


async def echo(connection: Connection) -> None:
    while line := await connection.reader.readline():
        connection.writer.write(line)


@pytest.mark.parametrize("address", ["127.0.0.1:0", "unix:{}/socket"])
async def test_each_client_is_served_until_it_goes(address: str, tmp_path: Path) -> None:
    async with listening(echo, address.format(tmp_path)) as (listener, connect, observer):
        reader, writer = await connect()
        writer.write(b"hello\n")
        assert await reader.readline() == b"hello\n"
        writer.close()
        await until(lambda: not listener.connections)
    assert not observer.faults


async def test_more_clients_than_the_limit_read_why_and_are_closed() -> None:
    async with listening(echo, max_connections=1) as (_, connect, _):
        await connect()
        reader, _ = await connect()
        assert await reader.read() == b"full\r\n"


async def test_a_server_on_this_machine_has_as_many_connections_as_it_needs() -> None:
    async with listening(echo, max_connections_per_client=1) as (listener, connect, _):
        for count in (1, 2, 3):
            await connect()
            await until(lambda count=count: len(listener.connections) == count)  # type: ignore[misc]  # bound now


async def test_the_end_closes_who_waits_and_lets_who_is_busy_finish() -> None:
    finish = asyncio.Event()

    async def serve(connection: Connection) -> None:
        connection.busy = await connection.reader.readline() == b"work\n"
        if connection.busy:
            await finish.wait()
            connection.writer.write(b"done\n")
        await connection.reader.readline()

    async with listening(serve) as (listener, connect, _):
        idle, _ = await connect()
        busy, writer = await connect()
        writer.write(b"work\n")
        await until(lambda: any(each.busy for each in listener.connections.values()))
        stopping = asyncio.ensure_future(listener.stop(5.0))
        assert await idle.read() == b""
        finish.set()
        assert await busy.readline() == b"done\n"
        writer.close()
        await stopping


async def test_who_came_a_moment_before_the_end_is_served() -> None:
    async def serve(connection: Connection) -> None:
        line = await connection.reader.readline()
        connection.busy = True
        connection.writer.write(line)
        await connection.reader.readline()

    async with listening(serve) as (listener, connect, _):
        reader, writer = await connect()
        await until(lambda: bool(listener.connections))
        stopping = asyncio.ensure_future(listener.stop(60.0))
        await until(lambda: listener.draining)
        writer.write(b"hello\n")
        assert await reader.readline() == b"hello\n"
        writer.close()
        await stopping


async def test_a_fault_ends_its_connection_only_and_is_told() -> None:
    async def serve(connection: Connection) -> None:
        if await connection.reader.readline() == b"bad\n":
            raise ZeroDivisionError
        await echo(connection)

    async with listening(serve) as (_, connect, observer):
        reader, writer = await connect()
        other, good = await connect()
        good.write(b"first\nhello\n")
        writer.write(b"bad\n")
        assert await reader.read() == b""
        assert await other.readline() == b"hello\n"
    assert [name for name, _ in observer.faults] == ["session.failed"]


async def test_a_client_that_reads_nothing_is_cut_off_in_the_end() -> None:
    async def serve(connection: Connection) -> None:
        connection.writer.write(b"x" * 10_000_000)

    async with listening(serve, data_timeout_s=0.2) as (listener, connect, observer):
        await connect()
        await until(lambda: not listener.connections)
        assert not observer.faults


async def test_the_end_does_not_wait_for_a_client_that_reads_nothing() -> None:
    async def serve(connection: Connection) -> None:
        connection.busy = True
        connection.writer.write(b"x" * 10_000_000)

    async with listening(serve, data_timeout_s=1000) as (listener, connect, _):
        await connect()
        await until(lambda: bool(listener.connections))
        async with asyncio.timeout(30):
            await listener.stop(0.1)
