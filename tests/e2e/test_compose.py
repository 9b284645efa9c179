"""docker-compose.yml without an engine: each service's own command, files, names and ports.

All runs in namespaces of its own (see `test_install.room`), where `mailbox` and `database` are this
machine and every port is free: so the files are used as they stand. PostgreSQL and Dovecot are
Debian's; `docker compose` is what the steps below do in its place.
"""

import json
import re
import shlex
import sysconfig
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.cli.conftest import made_up
from tests.docs.blocks import ROOT, block
from tests.e2e.test_install import room, typed, written
from tests.servers.base import postgresql_programs, require

COMPOSE: dict[str, Any] = YAML(typ="safe").load(ROOT / "docker-compose.yml")
SERVICES: dict[str, Any] = COMPOSE["services"]
HEADER = re.findall(r"^#   (.+)$", (ROOT / "docker-compose.yml").read_text(), re.MULTILINE)
RESTORE = block("docs/operations.md", "docker compose stop spamd")

SPAMD = """#!/bin/sh
# The entry point of the image, as its user, with its folder.
cd /var/lib/spamd
exec setpriv --reuid=8025 --regid=8025 --clear-groups --no-new-privs env -i PATH=/usr/bin:/bin \\
  LC_ALL=C.UTF-8 PYTHONPATH=/usr/local/lib/checkout:/usr/local/lib/lent {environment} \\
  /usr/bin/python3 -P -m spamd "$@"
"""

PLAY = r"""
import imaplib, pathlib, re, smtplib, time

def until(what, look):
    deadline = time.monotonic() + 120
    while not (found := look()):
        if time.monotonic() > deadline:
            raise SystemExit(f"{what}: not within 120 s\n{log()[-3000:]}")
        time.sleep(0.1)
    return found

def log():
    return pathlib.Path("/tmp/spamd.log").read_text()

def mails(folder):
    alice.select(folder)
    return alice.search(None, "ALL")[1][0].split()

for name in ("alice", "bob"):
    until(f"{name} is watched", lambda: log().count('"account.examined"') >= 2 or
          log().count('"account.opened"') >= 2)
alice = imaplib.IMAP4("127.0.0.1", 143)
alice.login("alice", "spamd")
with smtplib.SMTP("127.0.0.1", 8025) as client:
    client.sendmail("you@example.org", ["alice@example.org"], open("/tmp/spam-0").read())
until("the mail is in the inbox", lambda: len(mails("INBOX")) == 2)  # swaks sent the first
time.sleep(2)  # an owner looks at a mail before moving it
assert alice.uid("MOVE", "2", "Junk")[0] == "OK"
until("the move is a lesson", lambda: '"lesson.learned"' in log())
print("LESSON", re.findall(r'"label": "(\w+)", "source": "(\w+)"', log()))
"""

JUDGED = r"""
import smtplib
exec(open("/tmp/play.py").read().split("for name in")[0])
alice = imaplib.IMAP4("127.0.0.1", 143)
alice.login("alice", "spamd")
before = len(mails("Junk"))
with smtplib.SMTP("127.0.0.1", 8025) as client:
    client.ehlo()
    client.mail("stranger@example.net")
    print("STRANGER", client.rcpt("victim@elsewhere.example"))

def filed():
    # The daemon has the lessons in memory a moment later.
    with smtplib.SMTP("127.0.0.1", 8025) as client:
        client.sendmail("you@example.org", ["alice@example.org"], open("/tmp/spam-99").read())
    time.sleep(2)
    return len(mails("Junk")) > before

until("Sieve files spam in Junk", filed)
"""


def files(service: str) -> list[str]:
    """Return scripts that write the configuration files of a service."""
    return [
        f"mkdir -p {Path(each['target']).parent}\n"
        + written(each["target"], COMPOSE["configs"][each["source"]]["content"])
        for each in SERVICES[service]["configs"]
    ]


def environment(service: str) -> str:
    """Return the variables of a service as a shell wants them."""
    plain = {
        name: re.sub(r"\$\{\w+:-(\w+)\}", r"\1", value)
        for name, value in SERVICES[service]["environment"].items()
    }
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in plain.items())


def command(service: str, what: str = "") -> str:
    """Return the command of a service, or another one in its place."""
    words = shlex.split(what) if what else SERVICES[service]["command"]
    # A folder in the root folder would be made on this machine.
    return f"env {environment(service)} {shlex.join(words)}".replace("/backups", "/var/backups")


def database() -> list[str]:
    """Return scripts that do what the image of PostgreSQL does at its first start."""
    programs = postgresql_programs()
    user = "setpriv --reuid=postgres --regid=postgres --clear-groups"
    check = shlex.join(SERVICES["database"]["healthcheck"]["test"][1:])
    return [
        f"export PATH={programs}:$PATH",
        "install -d -o postgres /tmp/pg",
        f"(cd /tmp/pg && {user} initdb -D data -U spamd -A trust --no-sync >/tmp/pg.log)",
        f"(cd /tmp/pg && {user} postgres -D data -k /tmp/pg >>/tmp/pg.log 2>&1 &)",
        "until pg_isready -q -h 127.0.0.1; do sleep 0.1; done",
        "createdb -h 127.0.0.1 -U spamd spamd",
        check,
    ]


def mailbox() -> list[str]:
    """Return scripts that build and start the mailbox server."""
    service = SERVICES["mailbox"]
    health = shlex.join(service["healthcheck"]["test"][1:])
    recipe = service["build"]["dockerfile_inline"]
    (run,) = re.findall(r"^RUN (.*?)\n(?=\w)", recipe, re.MULTILINE | re.DOTALL)
    return [
        written("/usr/local/sbin/apt-get", "#!/bin/sh\nexit 0\n"),  # Debian's are here already
        "chmod 755 /usr/local/sbin/apt-get",
        "rm -rf /etc/dovecot && mkdir -p /etc/dovecot/tls /etc/spamd/mailbox",
        "mount --bind /etc/dovecot/tls /etc/spamd/mailbox",  # the volume
        run,
        *files("mailbox"),
        f"{shlex.join(service['command'])} >/tmp/mailbox.log 2>&1 &",
        f"until {health} >/dev/null 2>&1; do sleep 0.1; done",
    ]


def spamd() -> list[str]:
    """Return scripts that put the image's program in place."""
    return [
        "mkdir -p /usr/local/lib/checkout /usr/local/lib/lent",
        f"cp -r {ROOT}/spamd {ROOT}/config /usr/local/lib/checkout",
        f"cp -r {ROOT}/migrations /usr/local/lib/checkout/spamd/migrations",  # as the wheel has it
        f"mount --bind {sysconfig.get_path('purelib')} /usr/local/lib/lent",
        "install -d -o 8025 -g 8025 /var/lib/spamd",
        *files("spamd"),
        written("/usr/local/bin/spamd", SPAMD.format(environment=environment("spamd"))),
        "chmod 755 /usr/local/bin/spamd",
    ]


def mbox(label: str) -> str:
    mails = (made_up(label, number).decode().replace("\r\n", "\n") for number in range(1, 12))
    return "".join(f"From a@x.test Mon Jan  1 00:00:00 2024\n{mail}\n" for mail in mails)


def test_j13_the_demo_shows_the_whole_loop(tmp_path: Path) -> None:
    for name in ("netns", "python3-venv", "dovecot", "sieve", "postgresql"):
        require(name)
    up, swaks, teach = HEADER
    assert (up, teach.split(" < ")[0]) == (
        "docker compose up --build --detach",
        "docker compose exec -T spamd spamd train spam -",
    )
    teach = teach.removeprefix("docker compose exec -T spamd ") + " >/dev/null"
    stop, restore, again = RESTORE.splitlines()
    assert (stop, again) == ("docker compose stop spamd", "docker compose up --detach")
    restore = restore.removeprefix("docker compose run --rm --no-deps database-backup ")
    backup = command("database-backup")
    lent = "PYTHONPATH=/usr/local/lib/checkout:/usr/local/lib/lent"
    health = f"{lent} /usr/bin/python3 /usr/local/lib/checkout/config/image-health.py"
    serve = "spamd serve >/tmp/spamd.log 2>&1 & echo $! >/tmp/pid"
    ready = "until grep -qs worker.started /tmp/spamd.log; do sleep 0.1; done"
    said = typed(
        "\n".join(
            [
                room(tmp_path, "srv"),
                written("/etc/hosts", "127.0.0.1 localhost mailbox database\n"),
                *database(), *mailbox(), *spamd(),
                backup, "spamd database upgrade",
                serve, ready,
                written("/tmp/spam-0", made_up("spam", 0).decode()),
                written("/tmp/spam-99", made_up("spam", 99).decode()),
                f"{swaks} || {{ cat /tmp/mailbox.log /tmp/spamd.log; exit 1; }}",
                written("/tmp/play.py", PLAY), "/usr/bin/python3 /tmp/play.py",
                "cd /tmp",
                written("mail.mbox", mbox("spam")), teach,
                written("mail.mbox", mbox("ham")), teach.replace("train spam", "train ham"),
                "spamd status",
                written("/tmp/judged.py", JUDGED), "/usr/bin/python3 /tmp/judged.py",
                "! grep -i 'error\\|failed' /tmp/mailbox.log",
                "cd /; echo HEALTH", health, "echo fine",
                "sleep 1.1", backup, "kill $(cat /tmp/pid)",
                "tail --pid=$(cat /tmp/pid) --follow /dev/null",
                "file=$(ls /var/backups/spamd-*.dump | tail -1)",
                f"{command('database-backup', restore)}".replace("/var/backups/FILE", '"$file"'),
                "echo STATUS; spamd status --json",
            ]
        )
    )  # fmt: skip
    assert "LESSON [('spam', 'imap')]" in said
    assert "STRANGER (550" in said
    assert "HEALTH\nfine\n" in said
    status = json.loads(said.partition("STATUS\n")[2])
    assert (status["corpus"]["spam"], status["corpus"]["ham"]) == (12, 11)


def test_j13_the_demo_uses_the_names_of_the_documents() -> None:
    operations = (ROOT / "docs/operations.md").read_text("utf-8")
    sieve = block("docs/operations.md", 'require ["fileinto"')
    assert COMPOSE["configs"]["sieve"]["content"] == sieve
    image = (ROOT / "config/image.toml").read_text("utf-8")
    for name in ("/var/lib/spamd/spamd.db", "/etc/spamd/spamd.toml"):
        assert name in operations
    assert "sqlite:////var/lib/spamd/spamd.db" in image
    assert "spamd:/var/lib/spamd" in SERVICES["spamd"]["volumes"]
    assert "'.[uvloop]'" in (ROOT / "Dockerfile").read_text("utf-8")
