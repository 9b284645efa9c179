"""Programs that pipe mail through `spamd filter`, each set up as docs/listeners.md prints it."""

import os
import re
import shutil
import stat
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

from spamd.message.spam_fields import strip_and_prepend
from tests.docs.blocks import ROOT, block
from tests.e2e.test_printed import in_place
from tests.rights import NOBODY
from tests.servers.dovecot import PASSWORD, Dovecot

SOCKET = "unix:/run/spamd/spamc"
PROGRAM = "/usr/local/bin/spamd"
PIPE = block("docs/listeners.md", '[spamc]\nlisten = ["unix:/run/spamd/spamc"]\nsocket_mode')
PROCMAIL = block("docs/listeners.md", "MAILDIR=$HOME/Maildir")
MAILDROP = block("docs/listeners.md", 'xfilter "')
FDM = block("docs/listeners.md", 'account "mail" imaps')
FDM_ACCOUNT = 'imaps server "imap.example.org" user "ann" pass "secret"'
GETMAIL = block("docs/listeners.md", "[filter-spamd]")

OF_FDM = re.compile(rb"^Received: by \S+ \(fdm [^\n]*\n(?:[ \t][^\n]*\n)*", re.MULTILINE)
"""What fdm puts into each mail that it fetches, before it is filtered."""

OF_GETMAIL = re.compile(
    rb"\AReturn-Path:[^\n]*\n(?:[ \t][^\n]*\n)*|^X-getmail-retrieved-from-mailbox: INBOX\n",
    re.MULTILINE,
)
OURS = re.compile(rb"\A(?:X-Spam-(?:Status|Flag|Probability|Id): [^\n]*\n(?:[ \t][^\n]*\n)*)+")


def without_forged(mail: bytes) -> bytes:
    """Return a mail as it must be below our fields."""
    head, blank, body = mail.partition(b"\n\n")
    return strip_and_prepend(head + blank, b"") + body


def is_unaltered(delivered: bytes, mail: bytes) -> bool:
    """Tell whether a delivered mail is the one that came: as it is, or below our fields."""
    if OURS.match(delivered) is None or OURS.match(mail):
        return OF_FDM.sub(b"", delivered, count=1) == mail
    return OF_FDM.sub(b"", OURS.sub(b"", delivered), count=1) == without_forged(mail)


def installed(folder: Path, python: str = sys.executable) -> Path:
    """Return a program `spamd` that runs this checkout."""
    program = folder / "spamd"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {python} -m spamd "$@"\n')
    program.chmod(0o755)
    return program


class Agent(ABC):
    """One program in a home of its own.

    address   where the daemon listens
    before    run in each child before the agent starts
    """

    name: str

    def __init__(
        self, folder: Path, address: str, before: Callable[[], None] | None = None
    ) -> None:
        self.folder = folder
        self.before = before
        self.places = [(SOCKET, address), (PROGRAM, str(installed(folder)))]
        for path in (folder / "Maildir", folder / "Maildir/.Junk"):
            for inside in ("cur", "new", "tmp"):
                (path / inside).mkdir(parents=True)
        self.set_up()

    @abstractmethod
    def set_up(self) -> None:
        """Write the printed configuration."""

    @abstractmethod
    def command(self) -> list[str]:
        """Return how a mail server calls it with a mail on standard input."""

    def start(self, mail: bytes) -> "subprocess.Popen[bytes]":
        """Begin to deliver a mail."""
        with (self.folder / "mail").open("wb") as file:
            file.write(mail)
        with (self.folder / "mail").open("rb") as file:
            return subprocess.Popen(
                self.command(), stdin=file, cwd=self.folder, preexec_fn=self.before,  # noqa: PLW1509 - it sets a limit, no more

                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
            )  # fmt: skip

    def deliver(self, mail: bytes) -> int:
        """Deliver a mail and return the exit code."""
        return self.start(mail).wait(120)

    def keeps(self, code: int) -> bool:
        """Tell whether the mail is still where it came from, after the agent exited so."""
        return code != 0

    def inbox(self) -> list[bytes]:
        return self._of(self.folder / "Maildir")

    def junk(self) -> list[bytes]:
        return self._of(self.folder / "Maildir/.Junk")

    def _of(self, path: Path) -> list[bytes]:
        return [file.read_bytes() for file in sorted((path / "new").iterdir())]

    def empty(self) -> None:
        """Take the delivered mail away."""
        for path in (self.folder / "Maildir/new", self.folder / "Maildir/.Junk/new"):
            shutil.rmtree(path)
            path.mkdir()


class Procmail(Agent):
    name = "procmail"

    def set_up(self) -> None:
        text = in_place(PROCMAIL, [*self.places, ("$HOME/", f"{self.folder}/")])
        (self.folder / "procmailrc").write_text(text)

    def command(self) -> list[str]:
        # Else what finds no room goes into the mailbox of the system.
        return ["procmail", f"ORGMAIL={self.folder}/Maildir/", str(self.folder / "procmailrc")]


class Maildrop(Agent):
    name = "maildrop"

    def set_up(self) -> None:
        text = in_place(MAILDROP, [*self.places, ("$HOME/", f"{self.folder}/")])
        file = self.folder / "mailfilter"
        file.write_text(text)
        file.chmod(stat.S_IRUSR | stat.S_IWUSR)

    def command(self) -> list[str]:
        return ["maildrop", str(self.folder / "mailfilter")]


class Fdm(Agent):
    """Its account is a Maildir here; from a server it takes mail in the same way."""

    name = "fdm"

    def set_up(self) -> None:
        incoming = self.folder / "Incoming"
        for inside in ("cur", "new", "tmp"):
            (incoming / inside).mkdir(parents=True)
            if os.geteuid() == 0:  # then it fetches as this user
                shutil.chown(incoming / inside, "debianfdm")
        account = f'maildir "{self.folder}/Incoming"'
        places = [*self.places, (FDM_ACCOUNT, account), ("%h/", f"{self.folder}/")]
        (self.folder / "fdm.conf").write_text(in_place(FDM, places))

    def command(self) -> list[str]:
        return ["fdm", "-h", "-m", "-f", str(self.folder / "fdm.conf"), "fetch"]

    def start(self, mail: bytes) -> "subprocess.Popen[bytes]":
        file = self.folder / "Incoming/new/1.mail"
        file.write_bytes(mail)
        file.chmod(0o644)
        return super().start(b"")

    def keeps(self, code: int) -> bool:
        return any((self.folder / "Incoming/new").iterdir())


def python_of_all() -> str:
    """Return a Python that every account may run; the tests' may lie in root's home."""
    return sys.executable if os.geteuid() else "/usr/bin/python3"


class Getmail:
    """getmail as an account that is not root, and the mailbox that it fetches from."""

    name = "getmail"

    def __init__(self, folder: Path, store: Dovecot, address: str | None) -> None:
        """Set it up; without an address `cat` is the filter."""
        self.folder = folder
        self._store = store
        program = installed(folder, python_of_all())
        for inside in ("cur", "new", "tmp"):
            (folder / "Maildir" / inside).mkdir(parents=True)
        text = in_place(GETMAIL, [(PROGRAM, str(program)), (SOCKET, address or "")])
        if address is None:
            text = text.replace(str(program), "/bin/cat").partition("arguments")[0]
        (folder / "getmailrc").write_text(
            "[retriever]\ntype = SimpleIMAPRetriever\nserver = 127.0.0.1\n"
            f"port = {store.port}\nusername = alice\npassword = {PASSWORD}\n\n{text}\n"
            f"[destination]\ntype = Maildir\npath = {folder}/Maildir/\n\n"
            "[options]\ndelete = true\ndelivered_to = false\nreceived = false\nverbose = 0\n"
        )
        if not os.geteuid():
            for path in (folder, *folder.rglob("*")):
                shutil.chown(path, NOBODY, NOBODY)

    def offer(self, mails: Sequence[bytes]) -> None:
        """Put mails into the mailbox on the server."""
        with self._store.login() as session:
            for mail in mails:
                session.append("INBOX", None, None, mail)

    def offered(self) -> int:
        """Return how many mails are on the server."""
        with self._store.login() as session:
            _, (number,) = session.select("INBOX", readonly=True)
            return int(number or b"0")

    def start(self) -> "subprocess.Popen[bytes]":
        """Begin to fetch."""
        nobody = None if os.geteuid() else NOBODY  # it refuses root
        return subprocess.Popen(
            ["getmail", "--getmaildir", str(self.folder), "--rcfile", "getmailrc"],
            cwd=self.folder, start_new_session=True,
            user=nobody, group=nobody, extra_groups=None if nobody is None else [],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
        )  # fmt: skip

    def fetch(self) -> int:
        """Fetch and return the exit code."""
        return self.start().wait(300)

    def inbox(self) -> list[bytes]:
        """Return the delivered mails without what getmail itself adds."""
        files = sorted((self.folder / "Maildir/new").iterdir())
        return [OF_GETMAIL.sub(b"", file.read_bytes(), count=2) for file in files]

    def empty(self) -> None:
        """Take the delivered mail away."""
        for file in (self.folder / "Maildir/new").iterdir():
            file.unlink()


AGENTS: list[type[Agent]] = [Procmail, Maildrop, Fdm]
