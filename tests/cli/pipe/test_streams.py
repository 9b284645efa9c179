"""Signals, full disks, no memory, closed streams: the mail comes out, or the exit code says no."""

import fcntl
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.pipe.agent import (
    FIELDS,
    LARGE,
    MAIL,
    answers,
    as_arguments,
    command,
    daemon,
    environment,
    limited,
    marks,
    reply,
    request,
    spamd_filter,
    with_fields,
)
from tests.waiting import wait_until

STOPPED_BY = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGALRM, signal.SIGUSR1]


@pytest.mark.parametrize("number", STOPPED_BY)
def test_a_signal_while_the_mail_is_judged_lets_it_out_as_it_came_in(
    tmp_path: Path, number: signal.Signals
) -> None:
    with ExitStack() as stack:
        reading, asked = os.pipe()
        stack.callback(os.close, reading)
        stopped = threading.Event()

        def waits(connection: socket.socket) -> None:
            request(connection)
            connection.settimeout(60)
            os.write(asked, b"!")
            connection.sendall(b"SPAMD/1.1 ")
            stopped.wait(60)

        address = stack.enter_context(daemon(tmp_path, waits))
        process = subprocess.Popen(
            command(*as_arguments(address), "--exit-code"), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, cwd=tmp_path, env=environment(tmp_path),
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(MAIL)
        process.stdin.close()
        os.read(reading, 1)
        process.send_signal(number)
        assert process.stdout is not None
        out = process.stdout.read()
        code = process.wait(60)
        stopped.set()
        process.stdout.close()
        os.close(asked)

    assert (code, out) == (3, MAIL)


def test_a_signal_while_the_mail_still_comes_loses_none_of_it(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command("--exit-code"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path,
        env=environment(tmp_path),
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(MAIL)
    process.stdin.flush()
    wait_until(lambda: caught(process.pid, signal.SIGTERM), what="a handler of the signal")
    process.send_signal(signal.SIGTERM)
    wait_until(lambda: not pending(process.pid, signal.SIGTERM), what="the signal is taken")
    out, _ = process.communicate(LARGE, timeout=60)

    assert (process.returncode, out) == (3, MAIL + LARGE)


def status(process: int, name: str) -> int:
    text = Path(f"/proc/{process}/status").read_text()
    return int(text.partition(f"{name}:")[2].split()[0], 16)


def caught(process: int, number: signal.Signals) -> bool:
    return bool(status(process, "SigCgt") >> (number - 1) & 1)


def pending(process: int, number: signal.Signals) -> bool:
    return bool(status(process, "ShdPnd") >> (number - 1) & 1)


def test_a_full_disk_under_the_output_is_told_by_the_exit_code(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out, daemon(tmp_path, marks) as address:
        done = subprocess.run(
            command(*as_arguments(address)), input=LARGE, stdout=out, stderr=subprocess.PIPE,
            check=False, timeout=120, cwd=tmp_path, env=environment(tmp_path),
            preexec_fn=limited(resource.RLIMIT_FSIZE, 100_000),
        )  # fmt: skip

    assert (done.returncode, done.stderr) == (75, b"")


def test_an_output_that_nobody_reads_is_told_by_the_exit_code(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with daemon(tmp_path, marks) as address:
        done = subprocess.run(
            command(*as_arguments(address)), input=MAIL, stdout=writing, stderr=subprocess.PIPE,
            check=False, timeout=120, cwd=tmp_path, env=environment(tmp_path),
        )  # fmt: skip
    os.close(writing)

    assert (done.returncode, done.stderr) == (75, b"")


@pytest.mark.parametrize("stream", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_is_told_by_the_exit_code(tmp_path: Path, stream: str) -> None:
    with daemon(tmp_path, marks) as address:
        line = " ".join([*command(*as_arguments(address)), stream])
        done = subprocess.run(
            ["/bin/sh", "-c", line], input=MAIL, capture_output=True, check=False, timeout=120,
            cwd=tmp_path, env=environment(tmp_path),
        )  # fmt: skip

    assert done.returncode == (0 if stream == "2>&-" else 75)
    assert done.stdout == (with_fields(MAIL) if stream == "2>&-" else b"")


@pytest.mark.parametrize(
    "limit",
    [
        None,
        limited(resource.RLIMIT_FSIZE, 100_000),
        limited(resource.RLIMIT_FSIZE, 0),
    ],
)
def test_a_full_disk_under_the_temporary_file_costs_memory_and_no_mail(
    tmp_path: Path, limit: Callable[[], None] | None
) -> None:
    environ = {} if limit else {"TMPDIR": str(tmp_path / "missing")}
    with daemon(tmp_path, marks) as address:
        done = spamd_filter(
            LARGE, *as_arguments(address), folder=tmp_path, environ=environ, before=limit
        )

    assert (done.code, done.out) == (0, with_fields(LARGE))


@pytest.mark.parametrize("megabytes", [60, 100, 150, 200])
def test_without_memory_to_judge_the_mail_comes_out_as_it_came_in(
    taught: Path, megabytes: int
) -> None:
    limit = limited(resource.RLIMIT_AS, megabytes * 2**20)

    done = spamd_filter(LARGE, folder=taught, before=limit)

    assert done.out.endswith(LARGE)
    assert (done.code, done.err) == (0, b"")


def test_without_memory_for_the_mail_it_goes_through_as_it_comes(tmp_path: Path) -> None:
    limit = limited(resource.RLIMIT_AS, 60 * 2**20)
    huge = MAIL + bytes(100 * 2**20)

    done = spamd_filter(
        huge, folder=tmp_path, environ={"TMPDIR": str(tmp_path / "missing")}, before=limit
    )

    assert (done.code, done.out == huge, done.err) == (0, True, b"")


def test_a_large_mail_is_not_kept_in_memory(tmp_path: Path) -> None:
    huge = MAIL + b"0123456789abcde\n" * (4 * 2**20)
    (tmp_path / "mail").write_bytes(huge)
    with (
        (tmp_path / "mail").open("rb") as mail,
        (tmp_path / "out").open("wb") as out,
        daemon(tmp_path, answers(reply(FIELDS))) as address,
    ):
        # What a process took before it became another program counts as its own: so by a small one.
        measured = (
            "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]);"
            "used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss;"
            "print(code, used, file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-S", "-c", measured, *command(*as_arguments(address))],
            stdin=mail, stdout=out, stderr=subprocess.PIPE, check=True, timeout=120, cwd=tmp_path,
            env=environment(tmp_path),
        )  # fmt: skip
    code, used_kb = map(int, done.stderr.split())

    assert used_kb < 40 * 1024
    assert (code, (tmp_path / "out").read_bytes() == with_fields(huge)) == (0, True)


@pytest.fixture
def unblocking() -> Iterator[tuple[int, int, int, int]]:
    """Give two pipes whose ends on the agent's side block, and on ours do not."""
    (stdin, feed), (result, stdout) = os.pipe(), os.pipe()
    for descriptor in (stdin, stdout):
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    yield stdin, feed, result, stdout
    os.close(result)


def test_streams_that_do_not_block_lose_nothing(
    tmp_path: Path, unblocking: tuple[int, int, int, int]
) -> None:
    stdin, feed, result, stdout = unblocking
    with daemon(tmp_path, marks) as address:
        process = subprocess.Popen(
            command(*as_arguments(address)), stdin=stdin, stdout=stdout, cwd=tmp_path,
            env=environment(tmp_path),
        )  # fmt: skip
        os.close(stdin)
        os.close(stdout)
        wait_until(lambda: caught(process.pid, signal.SIGTERM), what="it reads")
        with os.fdopen(feed, "wb") as writing:
            writing.write(LARGE)
        pieces = []
        while piece := os.read(result, 65536):
            pieces.append(piece)
        code = process.wait(60)

    assert (code, b"".join(pieces)) == (0, with_fields(LARGE))
