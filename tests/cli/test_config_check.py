"""`spamd config check` says all that is wrong at once: keys of every kind, and files."""

from pathlib import Path

import pytest
import trustme

from tests.cli.conftest import Spamd

WRONG = """\
relay.workers = "two"
relay.spool_directory = "FOLDER/nowhere"
decision.reject = "no"
tls.certificate = "FOLDER/mx.pem"
next_hop.url = "maildir://FOLDER/mail/{address}"
next_hop.maildir_create = false
next_hop.tls = "required"
next_hop.tls_ca_file = "FOLDER/empty"
database.url = "sqlite:///FOLDER/nowhere/spamd.db"
web.password_file = "FOLDER/empty"
log.levle = "info"
graham.words = 0
users.aliases_file = "FOLDER/virtual"
users.users_file = "FOLDER/empty"
users.command = ["FOLDER/no-such-program"]

[[feedback.accounts]]
host = "imap.test"
user = "filter"
password_file = "FOLDER/no.password"
users_file = "FOLDER/empty"
ca_file = "FOLDER/empty"

[[feedback.accounts]]
host = "imap.test"
user = "other"
token_command = ["FOLDER/no-such-program"]

[[feedback.accounts]]
maildir = "FOLDER/mail"
"""

SAID = """\
spamd: FILE: relay.workers must be a whole number, not "two"
spamd: FILE: decision.reject must be true or false, not "no"
spamd: FILE: graham.words must be at least 1
spamd: FILE: log.levle is not a setting; did you mean log.level?
spamd: FILE: relay.spool_directory: there is no folder FOLDER/nowhere; create it
spamd: FILE: tls.certificate: FOLDER/mx.pem: No such file or directory
spamd: FILE: next_hop.tls_ca_file: FOLDER/empty: the file holds no certificate
spamd: FILE: next_hop.url: there is no folder FOLDER/mail; create it
spamd: FILE: database.url: FOLDER/nowhere/spamd.db: there is no folder FOLDER/nowhere; create it
spamd: FILE: web.password_file: FOLDER/empty: holds no line that "spamd password" wrote
spamd: FILE: users.aliases_file: FOLDER/virtual: line 2: info@y.test leads to no address
spamd: FILE: users.users_file: FOLDER/empty holds no user
spamd: FILE: users.command: there is no such program, or it may not be run
spamd: FILE: feedback.accounts.0.password_file: FOLDER/no.password: No such file or directory
spamd: FILE: feedback.accounts.0.users_file: FOLDER/empty holds no user
spamd: FILE: feedback.accounts.0.ca_file: FOLDER/empty: the file holds no certificate
spamd: FILE: feedback.accounts.1.token_command: there is no such program, or it may not be run
spamd: FILE: feedback.accounts.2.maildir: FOLDER/mail is no Maildir: it has no folder cur
"""


@pytest.fixture
def file(home: Path) -> Path:
    """Return a settings file with a fault of each kind."""
    (home / "empty").touch()
    (home / "virtual").write_text("a@y.test b@y.test\ninfo@y.test\n")
    file = home / "wrong.toml"
    file.write_text(WRONG.replace("FOLDER", str(home)))
    return file


def test_j5_every_fault_is_named_at_once_also_those_of_files(
    spamd: Spamd, file: Path, home: Path
) -> None:
    ran = spamd("config", "check", file)

    wanted = SAID.replace("FILE", str(file)).replace("FOLDER", str(home)).splitlines()
    assert ran.code == 78
    assert sorted(ran.err.splitlines()) == sorted(wanted)
    assert not (home / "nowhere").exists()


def test_j5_a_fault_of_each_source_is_named(
    spamd: Spamd, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPAMD_RELAY__LISTN", "x")

    ran = spamd("--set", "graham.wrds=3", "config", "check", file, "--json")

    assert ran.code == 78
    said = "\n".join(ran.json["faults"])
    assert "SPAMD_RELAY__LISTN: relay.listn is not a setting" in said
    assert "--set: graham.wrds is not a setting" in said
    assert "relay.workers must be a whole number" in said


def test_j5_files_that_are_right_are_no_fault(spamd: Spamd, home: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path("ca.pem")
    authority.issue_cert("mx.test").private_key_and_cert_chain_pem.write_to_path("mx.pem")
    for name in ("password", "users"):
        (home / name).write_text("anna\n")
    (home / "right.toml").write_text(
        'tls.certificate = "mx.pem"\nnext_hop.tls = "required"\nnext_hop.tls_ca_file = "ca.pem"\n'
        'next_hop.url = "maildir://./var/mail/{domain}/{local}"\n'
        '[[feedback.accounts]]\nhost = "imap.test"\nuser = "filter"\n'
        'password_file = "password"\nusers_file = "users"\nca_file = "ca.pem"\n'
    )

    ran = spamd("config", "check", "right.toml")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("right.toml: ")


def test_j16_a_key_that_is_not_the_certificates_is_said_in_words(spamd: Spamd) -> None:
    for name in ("one", "other"):
        pair = trustme.CA().issue_cert(f"{name}.test")
        pair.cert_chain_pems[0].write_to_path(f"{name}.pem")
        pair.private_key_pem.write_to_path(f"{name}.key")

    ran = spamd("--set", "tls.certificate=one.pem", "--set", "tls.key=other.key", "config", "check")

    assert ran.err == (
        "spamd: --set: tls.certificate: one.pem: the key does not belong to the certificate\n"
    )
