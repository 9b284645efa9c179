"""What a stranger types, in the order of reading, and what has to come of it.

Every command is printed in a document and typed as it stands there; a line here that is not printed
waits for what a person would wait for, or stands for a terminal that is left open.
"""

import re
import shlex
from collections.abc import Callable
from typing import NamedTuple

from tests.docs.blocks import block

RELEASES = {"bookworm": "mail_location", "trixie": "mail_driver"}
"""Debian's releases, each with how its settings for Dovecot begin."""

DOVECOT = {
    "mail_location": block(
        "docs/mail-server.md", "cat > /etc/dovecot/conf.d/19-spamd.conf <<'END'\nmail_location"
    ),
    "mail_driver": block(
        "docs/mail-server.md", "cat > /etc/dovecot/conf.d/19-spamd.conf <<'END'\nmail_driver"
    ),
}

FIELDS = block("docs/mail-server.md", "X-Spam-Status:")

BEFORE = (
    ("install spamd", block("docs/operations.md", "apt-get install")),
    ("install the servers", block("docs/mail-server.md", "apt-get update")),
    ("install make, and a shell", "apt-get install --yes make fish bash-completion"),
    ("the first half of make run: the environment", "make .venv/run.stamp"),
)
"""What needs packages from elsewhere: typed before the system is started."""


class Step(NamedTuple):
    """What is typed, and what must be found in what it prints."""

    name: str
    typed: str
    printed: str = ""


def awaited(condition: str) -> str:
    """Return a line that waits as a person does, a minute at most."""
    return f"for n in $(seq 600); do {condition} && break; sleep 0.1; done"


def waits(condition: str, typed: str) -> str:
    return f"{awaited(condition)}\n{typed}"


CURL = "curl --silent --show-error"
ANSWERS = f"{CURL} --output /dev/null http://127.0.0.1:11333/healthz 2>/dev/null"

TUTORIAL = (
    Step("make run", waits(ANSWERS, "cat /tmp/run.log"), r"http://127\.0\.0\.1:11333/"),
    Step("README: first mail", block("README.md", "export PATH="), "verdict=unsure"),
    Step("README: teach", block("README.md", "for n in"), "30"),
    Step("README: spam", block("README.md", "sleep 3"), "X-Spam-Status: Yes"),
    Step("README: explain", block("README.md", "spamd explain"), "prize"),
    Step("README: disagree", block("README.md", "spamd retrain"), "1 lesson taken back"),
)

SCANNED = "journalctl --unit=spamd-relay | grep -q message.scanned.*unsure"
LEARNED = "[ $(journalctl --unit=spamd-relay | grep -c lesson.learned) = 2 ]"
"""The other one was the doctor's, and was taken back."""

MANUAL = block("docs/operations.md", "install -d /usr/local/share/man/man1")
BASH = block("docs/operations.md", "install -d /usr/local/share/bash-completion")

SHELLS = (
    Step("manual pages", f"{MANUAL}\nls /usr/local/share/man/man1", r"spamd-train\.1"),
    Step(
        "completion: bash",
        f"""{BASH}
bash --norc -ic '. /usr/share/bash-completion/bash_completion; _completion_loader spamd
COMP_WORDS=(spamd tr) COMP_CWORD=1; _spamd_completion spamd tr spamd; echo "${{COMPREPLY[@]}}"'""",
        "train",
    ),
    Step(
        "completion: fish",
        """install -d ~/.config/fish/completions
_SPAMD_COMPLETE=source_fish spamd > ~/.config/fish/completions/spamd.fish
TERM=dumb timeout 60 fish -c 'complete -C "spamd tr"'""",
        r"^train\b",
    ),
)
"""For fish the document names the file and no commands; zsh is not tried."""


READS = "sleep 3"
"""A person reads first: what is moved within a second of its delivery, a rule may have moved."""

READ = block("docs/mail-server.md", "curl --silent --show-error --user ann:PASSWORD 'imap:")
MOVE = block("docs/mail-server.md", "curl --silent --show-error --user ann:PASSWORD --request")


def server(release: str) -> tuple[Step, ...]:
    """Return the steps of docs/mail-server.md."""
    return (
        Step("people", block("docs/mail-server.md", "useradd")),
        Step("Postfix", block("docs/mail-server.md", "postconf -e")),
        Step("Dovecot", DOVECOT[RELEASES[release]]),
        Step("Sieve", block("docs/mail-server.md", "cat > /etc/dovecot/spamd.sieve")),
        Step("the master user", block("docs/mail-server.md", "install -m 0640 -g spamd")),
        Step("settings", block("docs/mail-server.md", "cat > /etc/spamd/spamd.toml"), "no fault"),
        Step(
            "start, doctor",
            block("docs/mail-server.md", "systemctl restart"),
            "all steps passed: what users do with their mail is learned",
        ),
        Step("as the daemon's user", block("docs/operations.md", "install -m 0644 config/systemd")),
        Step("a mail by SMTP", block("docs/mail-server.md", "printf 'From: win@prizes")),
        Step(
            "first verdict",
            waits(
                f"{SCANNED} && doveadm search -u ann mailbox INBOX all | grep -q .",
                READ,
            ),
            re.escape(FIELDS.splitlines()[0]),
        ),
        Step("a move by IMAP", f"{READS}\n{MOVE}"),
        Step(
            "first lesson, first metric",
            waits(LEARNED, block("docs/mail-server.md", "spamd status")),
            r"(?s)corpus +1 spam and 0 ham.*\n\S+ \S+ +spam .* imap +ann .*"
            r'spamd_lessons_total{label="spam",outcome="learned",source="imap"} 2\.0',
        ),
        Step("faults in the log", "journalctl -p warning --identifier=spamd --output=cat"),
    )


def script(steps: tuple[Step, ...], mark: Callable[[str], str]) -> str:
    """Return steps as one script that prints a mark before each."""
    return "\n".join(f"echo {shlex.quote(mark(step.name))}\n{step.typed}" for step in steps)
