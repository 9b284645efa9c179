"""One process of the daemon: what it starts, in which order, and how it ends."""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from spamd.app import Application
from spamd.backoff import Backoff
from spamd.errors import ConfigError
from spamd.jobs import running
from spamd.listeners.web.access.passwords import PasswordHash
from spamd.network.sockets import open_sockets
from spamd.observe.metrics import Metrics
from spamd.resources import open_store
from spamd.settings import Settings, load
from tests.cli.conftest import made_up
from tests.fakes import FakeObserver
from tests.relay.peers import Talk

PATIENCE_S = 60.0


@dataclass
class NotedJob:
    """A job that writes down when it begins and ends; the first runs fail."""

    failures: int = 0
    notes: list[str] = field(default_factory=list)
    name: str = "noted"
    steady: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        self.notes.append("begin")
        if self.failures:
            self.failures -= 1
            raise ZeroDivisionError
        self.steady.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.notes.append("end")


async def test_a_job_runs_while_the_context_lasts() -> None:
    job = NotedJob()
    async with running([job], FakeObserver()):
        await job.steady.wait()
        assert job.notes == ["begin"]
    assert job.notes == ["begin", "end"]


async def test_what_fails_beside_a_job_ends_the_job_and_comes_out_as_it_is() -> None:
    job = NotedJob()

    async def failing() -> None:
        async with running([job], FakeObserver()):
            await job.steady.wait()
            raise ConfigError("relay.listen: taken")

    with pytest.raises(ConfigError, match="taken"):
        await failing()
    assert job.notes == ["begin", "end"]


async def test_a_job_that_fails_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spamd.backoff.PAUSES_S", (0.0, 0.01))
    job, observer = NotedJob(failures=3), FakeObserver()
    async with running([job], observer), asyncio.timeout(PATIENCE_S):
        await job.steady.wait()
    assert job.notes == ["begin"] * 4 + ["end"]
    assert [name for name, _ in observer.faults] == ["job.failed"] * 3


async def test_pauses_grow_and_begin_anew_after_a_steady_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backoff = Backoff()
    assert [backoff.next() for _ in range(4)] == [0.0, 0.5, 1.0, 2.0]
    monkeypatch.setattr("spamd.backoff.STEADY_S", -100.0)
    assert backoff.next() == 0.0


def settings_in(folder: Path, *more: str) -> Settings:
    chosen = [
        "relay.listen=127.0.0.1:0",
        f"database.url=sqlite:///{folder}/spamd.db",
        f"next_hop.url=maildir://{folder}/mail",
        *more,
    ]
    return load(None, chosen, environ={"SPAMD_CONFIG": "/dev/null"}).settings


@asynccontextmanager
async def served(
    settings: Settings, sockets: Sequence[socket.socket]
) -> AsyncIterator[Application]:
    application = Application(settings, sockets, 0, Metrics(), None, lambda: settings)
    async with application.running():
        yield application


async def test_mail_is_judged_as_soon_as_it_is_taken_and_its_scan_written_at_the_end(
    tmp_path: Path,
) -> None:
    settings = settings_in(tmp_path)
    (sockets,) = open_sockets(settings.listeners, 1)
    async with served(settings, sockets):
        talk = await Talk.to(sockets[0].getsockname()[1])
        assert (await talk.deliver()).startswith(b"250 ")
        await talk.close()
    (delivered,) = (tmp_path / "mail/new").iterdir()
    fields = dict(
        line.split(": ", 1) for line in delivered.read_text().splitlines() if ": " in line
    )
    async with open_store(settings) as store:
        assert fields["X-Spam-Id"] in await store.scans.by_id([fields["X-Spam-Id"]])


async def test_a_listener_that_does_not_open_ends_what_was_started(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "web.listen=127.0.0.1:0")
    (sockets,) = open_sockets(settings.listeners, 1)
    sockets[-1].close()
    before = asyncio.all_tasks()
    with pytest.raises(OSError, match="Bad file descriptor"):
        async with served(settings, sockets):
            pytest.fail("it has begun")
    assert asyncio.all_tasks() == before
    assert not (tmp_path / "spamd.db-wal").exists()  # the store is closed


async def test_a_mail_by_http_is_judged_and_a_lesson_changes_the_next_verdict(
    tmp_path: Path,
) -> None:
    settings = settings_in(
        tmp_path,
        f"web.listen=unix:{tmp_path}/web",
        "decision.minimum_ham=1",
        "decision.minimum_spam=1",
    )
    (sockets,) = open_sockets(settings.listeners, 1)
    async with served(settings, sockets):

        async def post(path: str, mail: bytes) -> dict[str, object]:
            reader, writer = await asyncio.open_unix_connection(f"{tmp_path}/web")
            head = f"POST {path} HTTP/1.0\r\nContent-Length: {len(mail)}\r\n\r\n"
            writer.write(head.encode() + mail)
            raw = await reader.read()
            writer.close()
            answer: dict[str, object] = json.loads(raw.partition(b"\r\n\r\n")[2])
            return answer

        for number in range(10):
            assert await post("/learnham", made_up("ham", number)) == {"success": True}
        before = await post("/checkv2", made_up("spam", 11))
        for number in range(10):
            assert await post("/learnspam", made_up("spam", number)) == {"success": True}
        after = await post("/checkv2", made_up("spam", 11))
    assert (before["action"], after["action"]) == ("no action", "add header")


async def test_a_reload_reads_the_password_again_and_a_broken_file_keeps_the_old(
    tmp_path: Path,
) -> None:
    file = tmp_path / "password"

    def keep(line: object) -> None:
        file.write_text(f"{line}\n")

    keep(PasswordHash.of(b"first password", b"0123456789abcdef", log_n=10, p=1))
    settings = settings_in(tmp_path, "web.listen=127.0.0.1:0", f"web.password_file={file}")
    (sockets,) = open_sockets(settings.listeners, 1)
    port = sockets[1].getsockname()[1]

    async def status(password: str) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /auth HTTP/1.0\r\nPassword: {password}\r\n\r\n".encode())
        raw = await reader.read()
        writer.close()
        return raw.split(b" ")[1]

    async with served(settings, sockets) as application:
        assert await status("first password") == b"200"
        keep("no such line")
        with pytest.raises(ConfigError, match=r"web\.password_file"):
            application.reload()
        assert await status("first password") == b"200"
        keep(PasswordHash.of(b"second password", b"0123456789abcdef", log_n=10, p=1))
        application.reload()
        assert [await status(word) for word in ("first password", "second password")] == [
            b"401",
            b"200",
        ]


def test_a_start_without_the_http_listener_does_not_load_its_server() -> None:
    code = "import sys, spamd.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "spamd.app" in loaded
    assert not loaded & {"starlette", "uvicorn", "httptools"}
