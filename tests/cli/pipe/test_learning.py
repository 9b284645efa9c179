"""Lessons from standard input by way of the daemon, and without one."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import made_up
from tests.cli.pipe.agent import (
    MAIL,
    Behaviour,
    answers,
    as_arguments,
    daemon,
    environment,
    request,
)


def spamd(folder: Path, mail: bytes, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "spamd", *arguments], input=mail, capture_output=True, check=False,
        timeout=120, cwd=folder, env=environment(folder),
    )  # fmt: skip
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def did(what: bytes) -> bytes:
    return b"SPAMD/1.1 0 EX_OK\r\n" + what + b"\r\n\r\n"


@pytest.mark.parametrize(
    ("line", "reply", "asked", "expected"),
    [
        (
            "train spam -",
            did(b"DidSet: local\r\n"),
            b"Message-class: spam\r\nSet: local\r\n",
            (0, "learned as spam, by the daemon\n", ""),
        ),
        (
            "train ham -",
            did(b""),
            b"Message-class: ham\r\nSet: local\r\n",
            (0, "known already, by the daemon\n", ""),
        ),
        (
            "forget -",
            did(b"DidRemove: local\r\n"),
            b"Remove: local\r\n",
            (0, "1 lesson taken back, by the daemon\n", ""),
        ),
        (
            "forget -",
            did(b""),
            b"Remove: local\r\n",
            (3, "", "spamd: -: this message was never learned\n"),
        ),
        (
            "train spam -",
            b"SPAMD/1.0 75 Temporary failure\r\n",
            b"Message-class: spam\r\nSet: local\r\n",
            (75, "", "spamd: the daemon has no time now; try again later\n"),
        ),
    ],
)
def test_the_daemon_learns_what_is_piped(
    tmp_path: Path, line: str, reply: bytes, asked: bytes, expected: tuple[int, str, str]
) -> None:
    heard: list[tuple[bytes, bytes]] = []

    def behave(connection: socket.socket) -> None:
        heard.append(request(connection))
        connection.sendall(reply)

    with daemon(tmp_path, behave) as address:
        said = spamd(tmp_path, MAIL, *line.split(), "--daemon", *as_arguments(address))

    ((head, body),) = heard
    assert said == expected
    assert head.startswith(b"TELL SPAMC/1.5\r\n" + asked)
    assert body == MAIL


REFUSES: dict[str, Behaviour | None] = {
    "there is none": None,
    "it may not": answers(b"SPAMD/1.0 69 Service Unavailable: TELL commands are not enabled\r\n"),
    "it dies": answers(b""),
}


@pytest.mark.parametrize("why", REFUSES)
def test_without_the_daemon_the_command_learns_by_itself(tmp_path: Path, why: str) -> None:
    behave = REFUSES[why]
    mail = made_up("spam", 1)
    if behave is None:
        code, out, _ = spamd(tmp_path, mail, "train", "spam", "-", "--daemon")
    else:
        with daemon(tmp_path, behave) as address:
            arguments = ["train", "spam", "-", "--daemon", *as_arguments(address)]
            code, out, _ = spamd(tmp_path, mail, *arguments)

    assert (code, "learned               1  as spam" in out) == (0, True)
    _, status, _ = spamd(tmp_path, b"", "status", "--json")
    assert json.loads(status)["corpus"]["spam"] == 1


@pytest.mark.parametrize(
    "line", ["train spam x.eml --daemon", "train spam - --daemon --yes", "forget abc --daemon"]
)
def test_the_daemon_takes_one_mail_from_standard_input_only(tmp_path: Path, line: str) -> None:
    code, _, fault = spamd(tmp_path, MAIL, *line.split())

    assert (code, "--daemon takes one mail from standard input: -" in fault) == (64, True)


def test_an_empty_standard_input_teaches_nothing(tmp_path: Path) -> None:
    code, _, fault = spamd(tmp_path, b"", "train", "ham", "-", "--daemon")

    assert (code, fault) == (3, "spamd: standard input is empty\n")
