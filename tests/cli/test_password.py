"""`spamd password`: from a password to the line that keeps it."""

import os
import pty
import subprocess
import sys

import pytest

from spamd.admin.roles import Role
from spamd.listeners.web.access.passwords import PasswordHash
from spamd.listeners.web.access.tokens import Token

COMMAND = [sys.executable, "-m", "spamd", "password"]


def test_the_first_line_of_the_input_becomes_the_line_that_keeps_it() -> None:
    done = subprocess.run(
        COMMAND, input=b"pa sswo\xc3\xb6rd\r\nmore\n", capture_output=True, check=True
    )
    kept = PasswordHash.read(done.stdout.decode())
    assert kept.matches(b"pa sswo\xc3\xb6rd")


def test_a_token_is_shown_once_and_its_line_says_what_it_may() -> None:
    done = subprocess.run(
        [*COMMAND, "--token", "graphs", "--role", "teacher"], capture_output=True, check=True
    )
    secret = done.stderr.decode().split()[-1]
    assert Token.read(done.stdout.decode()) == Token.of(secret, "graphs", Role.TEACHER)
    assert secret not in done.stdout.decode()
    assert len(secret) == 43


def test_a_token_has_a_name_of_one_word() -> None:
    done = subprocess.run([*COMMAND, "--token", "a b"], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (64, b"")


def test_a_short_password_is_refused() -> None:
    done = subprocess.run(COMMAND, input=b"short\n", capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (3, b"")
    assert b"at least 8" in done.stderr


@pytest.mark.parametrize(("second", "code"), [(b"correct horse", 0), (b"correct house", 3)])
def test_on_a_terminal_it_is_asked_for_twice_and_not_shown(second: bytes, code: int) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        COMMAND, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:  # fmt: skip
        os.close(theirs)
        assert process.stderr is not None
        for typed in (b"correct horse", second):
            asked = b""
            while not asked.endswith(b": "):
                asked += process.stderr.read(1)
            os.write(ours, typed + b"\n")
        out, _ = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == code
    assert bool(out) == (code == 0)
    assert b"horse" not in out
