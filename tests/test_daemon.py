"""Processes, signals, start and stop."""

import asyncio
import os
import resource
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pytest

from spamd.daemon import _once, raise_file_limit
from spamd.errors import ConfigError
from spamd.network.addresses import Listener
from spamd.network.sockets import open_sockets
from spamd.supervisor import EXIT_CONFIG, Supervisor, notify
from tests.fakes import FakeObserver
from tests.relay.peers import MESSAGE, WAIT_S, ScriptedNextHop, Talk
from tests.waiting import until


def test_systemd_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(path)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        notify("READY=1")
        assert listening.recv(100) == b"READY=1"
        monkeypatch.setenv("NOTIFY_SOCKET", path + "-gone")
        notify("READY=1")


def test_a_port_that_is_taken_names_key_and_address() -> None:
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"relay\.listen: 127\.0\.0\.1:{port}: .*in use"):
            open_sockets([Listener(key="relay.listen", host="127.0.0.1", port=port)], 2)


def test_both_families_listen_on_one_port() -> None:
    with socket.create_server(("0.0.0.0", 0)) as other:
        port = other.getsockname()[1]
    listeners = [
        Listener(key="k", host="0.0.0.0", port=port),
        Listener(key="k", host="::", port=port),
    ]
    for sock in chain(*open_sockets(listeners, 2)):
        sock.close()


def test_an_address_that_is_not_ours_names_key_and_address() -> None:
    with pytest.raises(ConfigError, match=r"relay\.listen_tls: 192\.0\.2\.1:25: "):
        open_sockets([Listener(key="relay.listen_tls", host="192.0.2.1", port=25, tls=True)], 1)


@dataclass
class Running:
    supervisor: Supervisor
    port: int
    observer: FakeObserver
    task: "asyncio.Task[int]"


@asynccontextmanager
async def supervised(url: str, *arguments: str, workers: int = 2) -> AsyncIterator[Running]:
    columns = open_sockets([Listener(key="k", host="127.0.0.1")], workers)
    observer = FakeObserver()
    command = [sys.executable, "-m", "tests.worker", url, *arguments]
    supervisor = Supervisor(command, columns, observer)
    task = asyncio.get_running_loop().create_task(supervisor.run())
    running = Running(supervisor, columns[0][0].getsockname()[1], observer, task)
    try:
        await until(lambda: task.done() or supervisor.ready)
        yield running
    finally:
        supervisor.stop()
        await task
        for column in columns:
            for sock in column:
                sock.close()


async def test_all_workers_take_mail_on_one_port_and_stop_on_sigterm() -> None:
    async with ScriptedNextHop() as hop, supervised(hop.url) as running:
        assert len(running.supervisor.processes) == 2
        for _ in range(6):
            talk = await Talk.to(running.port)
            assert (await talk.deliver()).startswith(b"250 ")
            await talk.close()
        assert len(hop.messages) == 6
        os.kill(os.getpid(), signal.SIGTERM)
        assert await running.task == 0
        assert running.supervisor.processes == []


async def test_a_killed_worker_is_replaced_and_nobody_is_turned_away() -> None:
    async with ScriptedNextHop() as hop, supervised(hop.url) as running:
        first, second = running.supervisor.processes
        os.kill(first, signal.SIGKILL)
        # Connections that the kernel put into the dead worker's queue wait for its successor.
        for _ in range(12):
            talk = await Talk.to(running.port)
            assert (await talk.deliver()).startswith(b"250 ")
            await talk.close()
        await until(lambda: len(running.supervisor.processes) == 2)
        assert second in running.supervisor.processes
        assert first not in running.supervisor.processes
        assert [name for name, _ in running.observer.events] == ["worker.lost"]


async def test_sighup_replaces_workers_and_their_sessions_go_on() -> None:
    async with ScriptedNextHop() as hop, supervised(hop.url) as running:
        before = set(running.supervisor.processes)
        talk = await Talk.to(running.port)
        await talk.begin()
        os.kill(os.getpid(), signal.SIGHUP)
        await until(lambda: not before & set(running.supervisor.processes))
        await talk.send(MESSAGE + b".\r\n")
        assert (await talk.reply()).startswith(b"250 ")
        await talk.close()
        talk = await Talk.to(running.port)
        assert (await talk.deliver()).startswith(b"250 ")
        await talk.close()
        assert running.observer.events == []


async def test_k11_a_worker_that_dies_is_followed_by_the_successor_that_is_getting_ready() -> None:
    async with ScriptedNextHop() as hop, supervised(hop.url, workers=1) as running:
        (old,) = running.supervisor.processes
        os.kill(os.getpid(), signal.SIGHUP)
        await until(lambda: bool(running.supervisor.leaving))
        coming = running.supervisor.leaving[-1].process.pid
        os.kill(old, signal.SIGKILL)
        await until(lambda: running.supervisor.processes == [coming])
        await until(lambda: bool(running.observer.events))
        assert [name for name, _ in running.observer.events] == ["worker.lost"]
        talk = await Talk.to(running.port)
        assert (await talk.deliver()).startswith(b"250 ")
        await talk.close()
        running.supervisor.stop()
        assert await asyncio.wait_for(asyncio.shield(running.task), WAIT_S) == 0


async def test_k11_a_worker_that_dies_is_replaced_when_its_successor_dies_too() -> None:
    async with ScriptedNextHop() as hop, supervised(hop.url, workers=1) as running:
        (old,) = running.supervisor.processes
        os.kill(os.getpid(), signal.SIGHUP)
        await until(lambda: bool(running.supervisor.leaving))
        coming = running.supervisor.leaving[-1].process.pid
        os.kill(old, signal.SIGKILL)
        os.kill(coming, signal.SIGKILL)
        await until(lambda: not {old, coming} & set(running.supervisor.processes))
        await until(lambda: len(running.supervisor.processes) == 1)
        talk = await Talk.to(running.port)
        assert (await talk.deliver()).startswith(b"250 ")
        await talk.close()
        assert sorted(name for name, _ in running.observer.events) == ["worker.kept", "worker.lost"]


async def test_k11_two_thousand_sighups_make_one_round_or_two() -> None:
    async with ScriptedNextHop() as hop, supervised(hop.url, workers=1) as running:
        seen = set(running.supervisor.processes)
        for _ in range(2_000):
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0)

        def over() -> bool:
            seen.update(running.supervisor.processes)
            return len(seen) > 1 and not running.supervisor.coming

        await until(over)
        assert len(seen) <= 3


async def test_k11_one_worker_reads_again_once_for_all_signals_that_come_together() -> None:
    loop, done = asyncio.get_running_loop(), list[int]()
    request = _once(loop, lambda: done.append(1))
    for _ in range(2_000):
        request()
    await asyncio.sleep(0)
    assert len(done) == 1
    request()
    await asyncio.sleep(0)
    assert len(done) == 2


async def test_sigterm_while_a_successor_starts_stops_it_too() -> None:
    async with ScriptedNextHop() as hop, supervised(hop.url, workers=1) as running:
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0.1)
        os.kill(os.getpid(), signal.SIGTERM)
        assert await asyncio.wait_for(asyncio.shield(running.task), WAIT_S) == 0


async def test_workers_that_find_a_mistake_in_the_settings_end_the_start() -> None:
    async with supervised("smtp://127.0.0.1:1", "--broken") as running:
        assert await running.task == EXIT_CONFIG


async def test_a_worker_stops_when_its_supervisor_dies() -> None:
    async with ScriptedNextHop() as hop, supervised(hop.url, workers=1) as running:
        child = running.supervisor.children[0]
        assert child is not None
        child.line.shutdown(socket.SHUT_RDWR)  # what the kernel does for a process that is gone
        assert await asyncio.wait_for(child.process.wait(), WAIT_S) == 0


def test_k13_the_limit_on_open_files_is_raised_as_far_as_it_may_be() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
    try:
        raise_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
