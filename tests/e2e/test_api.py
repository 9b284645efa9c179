"""The API of a running daemon, as docs/api.md prints it; what it says of hostile mail; fuzzing."""

import json
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cli.conftest import made_up
from tests.docs.blocks import block
from tests.e2e.api_daemon import ApiDaemon
from tests.e2e.test_printed import in_place
from tests.waiting import PATIENCE_S, within_s

READING = block("docs/api.md", "api() {")
MAIL = block("docs/api.md", "mail() {")
LESSON = block("docs/api.md", "json() {")

FUZZ_S = 10


@contextmanager
def taught() -> Iterator[ApiDaemon]:
    """Run a daemon that was taught a little."""
    running = ApiDaemon()
    try:
        running.teach_a_little()
        running.start()
        yield running
    finally:
        running.close()


@pytest.fixture(scope="module")
def daemon() -> Iterator[ApiDaemon]:
    """Return a daemon that was taught a little."""
    with taught() as running:
        yield running


def printed(daemon: ApiDaemon, text: str, message: bytes = b"", more: str = "") -> list[Any]:
    """Run what is printed; return the answers in their order."""
    script = in_place(text, [("127.0.0.1:11333", f"127.0.0.1:{daemon.web_port}")])
    lines = [f"{line.partition('  #')[0]}; echo" for line in script.splitlines()[1:]]
    out = daemon.shell("\n".join([more, script.splitlines()[0], *lines]), message)
    return [json.loads(line) for line in out.splitlines()]


def test_what_is_printed_for_reading_reads(daemon: ApiDaemon) -> None:
    status, mails, lessons, held, word, accounts, settings, preview = printed(daemon, READING)
    assert min(status["learned"]["ham"], status["learned"]["spam"]) >= 10
    assert mails["rows"] == [] or mails["rows"][0]["verdict"] == "spam"
    assert len(lessons["rows"]) >= 20
    assert held == {"held": []}
    assert word["text"] == "prize"
    assert accounts["accounts"] == []
    assert any(row["origin"].endswith("spamd.toml") for row in settings["settings"])
    assert preview["ham_left"] >= 10


def test_what_is_printed_for_a_mail_judges_teaches_and_forgets(daemon: ApiDaemon) -> None:
    scanned, explained, learned, forgotten = printed(daemon, MAIL, made_up("spam", 30))
    assert scanned["verdict"] == "spam"
    assert explained["words"]
    assert (learned["outcome"], forgotten["outcome"]) == ("learned", "forgotten")
    assert forgotten["after"] == learned["before"]


def test_what_is_printed_for_a_scanned_mail_teaches_it_by_its_id(daemon: ApiDaemon) -> None:
    (scanned, *_) = printed(daemon, MAIL, made_up("ham", 31))
    name = scanned["id"]
    deadline = time.monotonic() + 30
    while "error" in daemon.curl(f"/api/mails/{name}"):
        assert time.monotonic() < deadline
    shown, learned, forgotten, rolled = printed(daemon, LESSON, more=f"ID={name}")
    assert shown["scan"]["id"] == name
    assert (learned["label"], forgotten["label"]) == ("spam", None)
    assert forgotten["after"] == learned["before"]
    assert rolled["left"] == 0


WORDS = "quarterly sauna newsletter with birch twigs and towels"


def sauna(number: int) -> bytes:
    head = f"From: s{number}@sauna.example\r\nSubject: {WORDS}\r\nMessage-ID: <{number}@s.example>"
    return f"{head}\r\n\r\n{WORDS} {number}\r\n".encode()


def verdict(daemon: ApiDaemon, message: bytes) -> tuple[str, float]:
    kind = ("-H", "Content-Type: message/rfc822", "--data-binary", "@-")
    found = daemon.curl("/api/scan", *kind, message=message)
    return found["verdict"], found["probability"]


def told(daemon: ApiDaemon, path: str, message: bytes) -> Any:
    kind = ("-H", "Content-Type: message/rfc822", "--data-binary", "@-")
    return daemon.curl(path, *kind, message=message)


def test_teaching_changes_the_next_mail_within_two_seconds_and_forgetting_restores_exactly(
    daemon: ApiDaemon,
) -> None:
    before = verdict(daemon, sauna(9))
    lessons = [told(daemon, "/api/teach?label=spam", sauna(number)) for number in range(4)]
    since = time.monotonic()
    while verdict(daemon, sauna(9))[1] == before[1]:
        assert time.monotonic() - since < PATIENCE_S
    took_s = time.monotonic() - since
    assert took_s < within_s(2)
    assert lessons[0]["after"]["probability"] > lessons[0]["before"]["probability"]
    assert verdict(daemon, sauna(9))[0] == "spam"
    gone = [told(daemon, "/api/forget", sauna(number)) for number in range(4)]
    assert [each["outcome"] for each in gone] == ["forgotten"] * 4
    assert gone[-1]["after"]["probability"] == lessons[0]["before"]["probability"]
    since = time.monotonic()
    while verdict(daemon, sauna(9)) != before:
        assert time.monotonic() - since < PATIENCE_S


RAW = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069]"
)
"""What steers a terminal or the direction of a text."""

EVIL = "<script>alert(1)</script>\x1b[31mred\x1b]0;title\x07 \u202eevil\u2066 \x9b2J"
LONG = "x" * 10_000


def hostile() -> bytes:
    """Return a mail with what is hostile in every field, the body and the name of a file."""
    fields = ("From", "To", "Subject", "Reply-To", "Message-ID", "Date", "X-Mailer", "List-Id")
    head = "".join(f"{name}: {EVIL} <a@b.example>\r\n" for name in fields)
    return (
        f'{head}Subject: {LONG}\r\nContent-Type: multipart/mixed; boundary="b"\r\n\r\n'
        "--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
        f"<style>*{{color:red}}</style><p>{EVIL} {LONG} {WORDS}</p>\r\n"
        f'--b\r\nContent-Type: text/plain; name="{EVIL}.exe"\r\n'
        f'Content-Disposition: attachment; filename="{EVIL}{LONG}.exe"\r\n\r\nx\r\n--b--\r\n'
    ).encode()


def test_hostile_mail_is_text_in_the_api_the_log_and_on_a_terminal(daemon: ApiDaemon) -> None:
    content = hostile()
    told(daemon, "/api/teach?label=spam", content)
    found = told(daemon, "/api/explain?helo=%1B%5B31m%E2%80%AE&sender=%1B%5B31m", content)
    raw = daemon.shell(
        f"curl -s -H \"Authorization: Bearer $TOKEN\" '{daemon.url}/api/lessons'", content
    )
    assert raw.isascii()
    assert RAW.search(raw) is None
    assert json.dumps(found).isascii()
    (daemon.directory / "evil.eml").write_bytes(content)
    name = str(daemon.directory / f"evil{EVIL.replace('/', '')}.eml")
    with open(name, "wb") as file:  # noqa: PTH123 - a name that a path might normalise
        file.write(content)
    for arguments in (("explain", "--all", name), ("scan", name), ("lessons", "list")):
        shown = terminal(daemon, *arguments)
        assert re.search(r"\x1b\[31mred|\x1b\]|\x1b\[2J", shown) is None, arguments
        assert RAW.search(OWN.sub("", shown.replace("\r", ""))) is None, arguments
    assert RAW.search(daemon.log.read_text()) is None


OWN = re.compile(r"\x1b\[\??[0-9;]*[a-zA-Z]")
"""What colours, and moves a bar: ours; of the mail's, one is looked for by itself."""


def terminal(daemon: ApiDaemon, *arguments: str) -> str:
    """Return what a command shows on a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "spamd", "--config", str(daemon.config), *arguments],
        stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
        env={**daemon.environment(), "TERM": "xterm-256color", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(ours)
    process.wait(timeout=60)
    return shown.decode("utf-8", "replace")


def test_fuzzing_finds_no_fault_of_ours() -> None:
    with taught() as daemon:  # afterwards anything may have been taught, listed, wished
        for done in daemon.fuzz(FUZZ_S, "--phases", "coverage,fuzzing"):
            assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
        for event in ("session.failed", "message.failed"):
            assert daemon.events(event) == []
