"""`spamd filter`: verdict, fields, exit codes; whatever is wrong, the mail comes out as it came."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.cli.pipe.agent import (
    CODES,
    FIELDS,
    MAIL,
    MAILS,
    answers,
    as_arguments,
    daemon,
    environment,
    marks,
    reply,
    spamd_filter,
    with_fields,
    wrong,
)
from tests.rights import NOBODY, closed, needs_root


def scanned(folder: Path, name: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "spamd", "scan", "--json", name],
        cwd=folder, env=environment(folder), check=False, capture_output=True, timeout=120,
    )  # fmt: skip
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("name", "code"), [("spam/3.eml", 0), ("ham/4.eml", 1)])
def test_without_a_daemon_the_verdict_is_that_of_spamd_scan(
    taught: Path, name: str, code: int
) -> None:
    mail = (taught / name).read_bytes()

    done = spamd_filter(mail, "--exit-code", folder=taught)

    block, _, rest = done.out.partition(b"From: ")
    probability = block.partition(b"X-Spam-Probability: ")[2].split(b"\r\n")[0]
    assert float(probability) == pytest.approx(scanned(taught, name)["probability"], abs=1e-6)
    assert (done.code, b"From: " + rest, done.err) == (code, mail, b"")
    assert block.startswith(b"X-Spam-Status: ")


@pytest.mark.parametrize("name", MAILS)
def test_the_daemons_fields_stand_on_top_and_every_other_byte_is_as_it_came(
    tmp_path: Path, name: str
) -> None:
    mail = MAILS[name]
    newline = b"\r\n" if mail.partition(b"\n")[0].endswith(b"\r") and b"\n" in mail else b"\n"
    with daemon(tmp_path, marks) as address:
        done = spamd_filter(mail, *as_arguments(address), folder=tmp_path)

    top = mail.index(b"\n") + 1 if name == "mbox line" else 0
    block = FIELDS.replace(b"\r\n", newline) + newline * (name == "no header")
    assert (done.code, done.err) == (0, b"")
    assert done.out == mail[:top] + block + mail[top:]


def test_fields_of_strangers_that_may_pass_for_ours_are_removed(tmp_path: Path) -> None:
    forged = b"X-Spam-Status: No\r\nSubject: x\r\nX-SPAM-Flag: NO\r\n folded\r\n"
    with daemon(tmp_path, answers(reply(FIELDS))) as address:
        done = spamd_filter(forged + MAIL, *as_arguments(address), folder=tmp_path)

    assert done.out == FIELDS + b"Subject: x\r\n" + MAIL


def test_only_fields_are_written_on_request(tmp_path: Path) -> None:
    with daemon(tmp_path, marks) as address:
        asked = (*as_arguments(address), "--only-fields", "--exit-code")
        done = spamd_filter(MAIL, *asked, folder=tmp_path)

    assert (done.code, done.out) == (0, FIELDS.replace(b"\r\n", b"\n"))


@pytest.mark.parametrize(("verdict", "code"), [("spam", 0), ("ham", 1), ("unsure", 2)])
def test_the_exit_code_says_the_verdict_on_request(tmp_path: Path, verdict: str, code: int) -> None:
    said = FIELDS.replace(b"verdict=spam", b"verdict=" + verdict.encode())
    with daemon(tmp_path, answers(reply(said))) as address:
        done = spamd_filter(MAIL, *as_arguments(address), "--exit-code", folder=tmp_path)
        silent = spamd_filter(MAIL, *as_arguments(address), folder=tmp_path)

    assert (done.code, silent.code) == (code, 0)


@pytest.mark.parametrize(("options", "code"), CODES)
def test_the_code_says_on_request_that_a_mail_was_not_judged(
    tmp_path: Path, options: list[str], code: int
) -> None:
    unset = wrong("a variable that is none", tmp_path)

    done = spamd_filter(MAIL, *options, folder=tmp_path, environ=unset)

    assert done == type(done)(code=code, out=MAIL, err=b"")


@pytest.mark.parametrize(
    "kind",
    [
        "no database",
        "a broken database",
        "no settings file",
        "a broken settings file",
        "an unknown setting",
        "no address",
        "a value of the wrong kind",
        "a variable that is none",
    ],
)
def test_with_anything_wrong_the_mail_comes_out_as_it_came_in(tmp_path: Path, kind: str) -> None:
    done = spamd_filter(MAIL, "--exit-code", folder=tmp_path, environ=wrong(kind, tmp_path))

    assert done == type(done)(code=3, out=MAIL, err=b"")


@pytest.mark.parametrize("name", MAILS)
def test_a_mail_that_is_not_judged_is_not_altered(tmp_path: Path, name: str) -> None:
    done = spamd_filter(MAILS[name], folder=tmp_path, environ={"SPAMD_": "x"})

    assert done == type(done)(code=0, out=MAILS[name], err=b"")


@pytest.mark.parametrize(
    "arguments", [["--nonsense"], ["mail.eml"], ["--set"], ["--exit-code=1"], ["--config"]]
)
def test_a_wrong_command_line_costs_no_mail(tmp_path: Path, arguments: list[str]) -> None:
    done = spamd_filter(MAIL, *arguments, folder=tmp_path)

    assert done.out == MAIL
    assert done.code in {0, 64}
    assert (done.code == 64) == done.err.startswith(b"spamd: ")


def test_the_help_page_is_no_filter(tmp_path: Path) -> None:
    done = spamd_filter(MAIL, "--help", folder=tmp_path)

    assert (done.code, MAIL in done.out) == (0, False)
    assert b"--only-fields" in done.out


@pytest.mark.parametrize("arguments", [["--config={}"], ["-c", "{}"]])
def test_every_spelling_of_the_options_is_understood(tmp_path: Path, arguments: list[str]) -> None:
    file = tmp_path / "my.toml"
    with daemon(tmp_path, marks) as address:
        file.write_text(f'[spamc]\nlisten = "{address}"\n')
        named = [argument.format(file) for argument in arguments]
        done = spamd_filter(MAIL, *named, folder=tmp_path)

    assert done.out == with_fields(MAIL)


@needs_root
def test_who_may_not_read_the_settings_is_told_the_address(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text("[spamc]\nlisten = 'unix:/nowhere'\n")
    (tmp_path / "my.toml").chmod(0o600)
    tmp_path.chmod(0o755)
    closed(tmp_path)  # else nobody could walk there
    environ = {"SPAMD_CONFIG": str(tmp_path / "my.toml")}
    with daemon(tmp_path, marks) as address:
        (tmp_path / "d.sock").chmod(0o666)
        as_nobody = partial(
            spamd_filter, MAIL, folder=tmp_path, environ=environ, python="/usr/bin/python3",
            before=lambda: os.setuid(NOBODY),
        )  # fmt: skip
        blind = as_nobody()
        told = as_nobody(*as_arguments(address))

    assert (blind.code, blind.out) == (0, MAIL)
    assert (told.code, told.out) == (0, with_fields(MAIL))


def test_nothing_that_takes_long_to_load_is_loaded_while_a_daemon_answers(tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv[1:1] = ['filter']; from spamd.__main__ import main; main();"
        "slow = {'re', 'typing', 'enum', 'dataclasses', 'pathlib', 'socket', 'tomllib', 'typer',"
        " 'pydantic', 'numpy', 'asyncio', 'sqlalchemy', 'tempfile', 'contextlib', 'collections'};"
        "print(sorted(slow & set(sys.modules)), file=sys.stderr)"
    )
    with daemon(tmp_path, marks) as address:
        done = subprocess.run(
            [sys.executable, "-S", "-c", code, *as_arguments(address)], input=MAIL,
            capture_output=True, check=True, timeout=60, cwd=tmp_path, env=environment(tmp_path),
        )  # fmt: skip

    assert (done.stdout, done.stderr) == (with_fields(MAIL), b"[]\n")
