"""Commands and samples that the documents print, run and compared as they stand."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

from spamd.bayes.decision import Action, Verdict
from spamd.bayes.model import CLASSIFIERS
from spamd.observe.log import LogObserver
from spamd.observe.metrics import Metrics
from spamd.observe.options import LogOptions
from spamd.report import ScanReport
from spamd.settings import load
from tests.cli.conftest import made_up
from tests.docs.blocks import ROOT, block, documents
from tests.docs.generated import COMMANDS
from tests.fakes import FakeClock

TRAIN = block("docs/training.md", "spamd train --spam ~/Maildir")
MOVING_IN = block("docs/training.md", "bogoutil -d")
ACCOUNTS = block("docs/training.md", "[[feedback.accounts]]")
REPORTS = block("docs/training.md", "[feedback]\nspam_addresses")
STATUS = block("docs/training.md", "$ spamd status")
MEASURED = block("docs/experiments.md", "spamd evaluate SA --seed index")
LOGGED = block("docs/operations.md", '{"time":')

BOGOFILTER = ".MSG_COUNT 12 12 20260101\nlottery 12 0 20260101\nminutes 0 12 20260101\n"
SPAMBAYES = "12,12\nlottery,0,12\nminutes,12,0\n"
EXPORTERS = {
    "bogoutil": f'test "$1" = -d && test -f "$2" && cat <<END\n{BOGOFILTER}END\n',
    "sb_dbexpimp": f'test "$1$2$4" = -e-d-f && test -f "$3" && cat >$5 <<END\n{SPAMBAYES}END\n',
}
"""What stands in for the two exporters: bogofilter's is large, SpamBayes' needs Python 2."""

Typed = Callable[[str], str]


@pytest.fixture
def typed(tmp_path: Path) -> Typed:
    """Type a script in a home of its own and return what it printed."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "spamd").symlink_to(Path(sys.executable).with_name("spamd"))
    for name, script in {**EXPORTERS, "python": f'exec {sys.executable} "$@"\n'}.items():
        (programs / name).write_text(f"#!/bin/sh\nset -eu\n{script}")
        (programs / name).chmod(0o755)
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        "SPAMD_DATABASE__URL": f"sqlite:///{tmp_path}/spamd.db",
    }

    def call(script: str) -> str:
        done = subprocess.run(
            ["/bin/bash", "-euc", script], cwd=tmp_path, env=environment, check=False,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return call


def maildir(path: Path, label: str) -> None:
    """Make a Maildir with twelve mails."""
    for folder in ("cur", "new", "tmp"):
        (path / folder).mkdir(parents=True)
    for number in range(12):
        (path / "cur" / f"{number}:2,S").write_bytes(made_up(label, number))


def shape(text: str) -> list[str]:
    """Return the words with which the lines of a status begin, tables as one."""
    heads = [line.split("  ")[0].strip() for line in text.splitlines()]
    return [head for head in heads if head and not re.match(r"[\d─]", head)]


def test_j12_teaching_old_folders_as_printed(typed: Typed, tmp_path: Path) -> None:
    maildir(tmp_path / "Maildir/.Junk", "spam")
    maildir(tmp_path / "Maildir/.Archive", "ham")
    maildir(tmp_path / "Maildir/.Projects", "ham")
    assert "12 spam and 12 ham" in typed(TRAIN)
    said = typed("spamd status")
    sample = STATUS.partition("\n")[2]
    assert shape(sample) == [line for line in shape(said) if line in shape(sample)]
    assert {"settings", "database", "corpus", "verdicts", "lessons"} <= set(shape(sample))
    columns = next(line for line in sample.splitlines() if line.startswith("time "))
    assert columns.split() in [line.split() for line in said.splitlines()]


def test_j12_moving_in_from_another_filter_as_printed(typed: Typed, tmp_path: Path) -> None:
    (tmp_path / ".bogofilter").mkdir()
    (tmp_path / ".bogofilter/wordlist.db").touch()
    (tmp_path / ".hammie.db").touch()
    typed(MOVING_IN)
    assert json.loads(typed("spamd status --json"))["corpus"]["spam"] == 24


@pytest.mark.parametrize("line", MEASURED.splitlines())
def test_j12_measuring_as_printed(typed: Typed, tmp_path: Path, line: str) -> None:
    if line.startswith("python "):  # it needs bogofilter: the options are looked at
        help_page = typed(f"{' '.join(line.split()[:3])} --help")
        assert all(option in help_page for option in re.findall(r"--[a-z]+", line))
        return
    for name in ("SA", "MODERN"):
        lines = []
        for number in range(12):
            for label in ("spam", "ham"):
                file = tmp_path / f"{name}-{label}-{number}.eml"
                file.write_bytes(made_up(label, number + 20 * (name == "SA")))
                lines.append(f"{label} {file.name}\n")
        (tmp_path / name).write_text("".join(lines))
    assert ("attack" if "--attack" in line else "1-ROCA") in typed(line)


@pytest.mark.parametrize("toml", [ACCOUNTS, REPORTS])
def test_j12_settings_as_printed_load(toml: str, tmp_path: Path) -> None:
    file = tmp_path / "spamd.toml"
    file.write_text(toml)
    feedback = load(file, environ={}).settings.feedback
    assert feedback.accounts or feedback.spam_addresses


def test_j12_a_line_of_the_log_is_as_printed() -> None:
    stream = StringIO()
    observer = LogObserver(LogOptions(format="json"), Metrics(), FakeClock(), stream, {"worker": 0})
    sample = json.loads(LOGGED)
    report = ScanReport(
        id=sample["id"], verdict=Verdict.SPAM, action=Action.TAG, reason=sample["reason"],
        probability=sample["probability"], required=0.9, scores={}, size_bytes=1, tokens=1,
        known=1, duration_s=0.1, features=None,
    )  # fmt: skip
    observer.scanned(
        report, listener="smtp", reply=b"250 2.0.0 Ok: queued as 4XYZ\r\n", recipients=1
    )
    real = json.loads(stream.getvalue())
    assert [name for name in sample if name != "defects"] == list(real)  # there: of features
    assert sample["queue_id"] == real["queue_id"]
    assert set(sample["scores"]) <= set(CLASSIFIERS)


INLINE = sorted(
    {
        (document, command)
        for document in documents()
        for command in re.findall(r"`(spamd [^`\n]+)`", (ROOT / document).read_text("utf-8"))
    }
)


@pytest.mark.parametrize(("document", "command"), INLINE)
def test_j12_a_command_named_in_the_text_exists_with_its_options(
    document: str, command: str
) -> None:
    words = command.replace("\\|", " | ").split()[1:]
    if words[0].startswith("-") or words[0].isupper():
        return  # `spamd --help`, `spamd COMMAND --help`
    names = [name for name in (" ".join(words[:2]), words[0]) if name in COMMANDS]
    groups = {name.split(" ")[0] for name in COMMANDS if " " in name}
    assert names or words[0] in groups, command
    if names:
        known = {option for param in COMMANDS[names[0]].params for option in param.opts}
        known |= {"--config", "--set", "--help"}
        assert {word.split("=")[0] for word in words if word.startswith("--")} <= known
