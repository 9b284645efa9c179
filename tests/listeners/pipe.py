"""`make listeners WAY=pipe`: real agents pipe mail, as it should be and as it should not.

    python -m tests.listeners.pipe [mails [agent]]

procmail, maildrop, fdm and getmail, set up as docs/listeners.md prints them, deliver mails of the
SpamAssassin corpus: with the daemon; killed at random moments; without daemon and database; onto a
disk that is full. A mail that an agent gives back is offered again, as a mail server does. Counted
is what was delivered, given back, delivered twice, lost or altered; of the last two any ends it
with 1.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from spamd.evaluation.index import read_index
from tests.benchmarks.measure import corpora
from tests.listeners.agents import AGENTS, Agent, Getmail, is_unaltered, without_forged
from tests.listeners.pipe_daemon import PipeDaemon, daemon_that_learned
from tests.servers.dovecot import Dovecot

NOWHERE = "unix:/nowhere/spamc"
SMALL_DISK = "400k"
SMALL_MAIL = 100_000
TRIES = 12

Disturb = Callable[["subprocess.Popen[bytes]"], None]


@dataclass(slots=True)
class Count:
    """What became of some mails."""

    mails: int = 0
    marked: int = 0
    given_back: int = 0
    twice: int = 0
    lost: int = 0
    altered: int = 0
    first: list[tuple[bytes, bytes]] = field(default_factory=list)

    def delivered(self, mail: bytes, copies: Sequence[bytes]) -> None:
        """Count what was delivered of a mail."""
        self.mails += 1
        self.lost += not copies
        self.twice += max(len(copies) - 1, 0)
        for copy in copies:
            self.marked += b"X-Spam-Id: " in copy and b"verdict=" in copy
            if not is_unaltered(copy, mail):
                self.altered += 1
                self.first.append((mail, copy))

    def __str__(self) -> str:
        return (
            f"{self.mails:5} mails {self.marked:5} marked {self.given_back:5} given back"
            f" {self.twice:3} twice {self.lost:3} lost {self.altered:3} altered"
        )


@contextmanager
def home(disk: str = "") -> Iterator[Path]:
    """Give a folder that every account may walk to; mail is kept on a small disk on request."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        maildir = f"{name}/Maildir"
        if disk:
            Path(maildir).mkdir()
            made = ["mount", "-t", "tmpfs", "-o", f"size={disk},mode=755", "tmpfs", maildir]
            subprocess.run(made, check=True, timeout=60)
        try:
            yield Path(name)
        finally:
            if disk:
                subprocess.run(["umount", maildir], check=True, timeout=60)


def tried(agent: Agent, mails: Sequence[bytes], disturb: Disturb | None = None) -> Count:
    """Deliver mails one by one; what is given back is offered again, the last time undisturbed."""
    count = Count()
    for mail in mails:
        copies: list[bytes] = []
        for attempt in range(TRIES):
            process = agent.start(mail)
            if disturb is not None and attempt < TRIES - 1:
                disturb(process)
            code = process.wait(300)
            _end_group(process.pid)
            copies += agent.inbox() + agent.junk()
            agent.empty()
            if not agent.keeps(code):
                break
            count.given_back += 1
        count.delivered(mail, copies)
    return count


def filled(agent: Agent, mails: Sequence[bytes]) -> Count:
    """Deliver mails onto a disk that becomes full; what is given back has not been lost."""
    count = Count()
    for mail in mails:
        before = len(agent.inbox() + agent.junk())
        code = agent.deliver(mail)
        copies = agent.inbox() + agent.junk()
        if agent.keeps(code):
            count.given_back += 1
            count.mails += 1
            new = copies[before:] if len(copies) > before else []
            count.altered += sum(not is_unaltered(copy, mail) for copy in new)
        else:
            count.delivered(mail, [copy for copy in copies if is_unaltered(copy, mail)][:1])
        if count.given_back % 5 == 4:
            agent.empty()
    return count


def killer(chance: random.Random, most_s: float) -> Disturb:
    """Return what kills at a random moment: the agent with all it started, or what it started."""

    def disturb(process: "subprocess.Popen[bytes]") -> None:
        time.sleep(chance.uniform(0, most_s))
        number = chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            if chance.random() < 0.5:
                os.killpg(process.pid, number)
            else:
                for child in _started_by(process.pid):
                    os.kill(child, number)

    return disturb


def _started_by(process: int) -> list[int]:
    """Return the other processes of its group, without copies of it that run nothing else yet.

    A copy of getmail that is told to end before it runs the filter ends well, with an empty mail:
    no filter can be blamed for that.
    """
    found: list[int] = []
    itself = Path(f"/proc/{process}/cmdline").read_bytes()
    for path in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            stat = (path / "stat").read_text().rpartition(")")[2].split()
            other = (path / "cmdline").read_bytes() != itself
            if int(stat[2]) == process and other:
                found.append(int(path.name))
    return found


def _end_group(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)


def fetched(
    agent: Getmail, mails: Sequence[bytes], disturb: Disturb | None = None
) -> tuple[list[bytes], int]:
    """Have getmail fetch mails until none is left on the server; its mailbox is emptied by turns.

    Returns what was delivered, and how often it failed: then a mail stays on the server.
    """
    agent.offer(mails)
    copies, failed = list[bytes](), 0
    for attempt in range(len(mails) * 2):
        process = agent.start()
        while disturb is not None and attempt < 3 * TRIES and process.poll() is None:
            disturb(process)
        failed += process.wait(600) != 0
        _end_group(process.pid)
        copies += agent.inbox()
        agent.empty()
        if not agent.offered():
            break
    return copies, failed


def counted(agent: Getmail, mails: Sequence[bytes], disturb: Disturb | None = None) -> Count:
    """Count what became of mails that getmail fetches."""
    copies, failed = fetched(agent, mails, disturb)
    count = Count(given_back=failed)
    by_mail: dict[bytes, list[bytes]] = {}
    for copy in copies:
        by_mail.setdefault(key(copy), []).append(copy)
    for each, number in Counter(mails).items():
        copies = by_mail.pop(key(each), [])
        for _ in range(number):
            count.delivered(each, copies[:1] if number > 1 else copies)
    count.altered += sum(len(copies) for copies in by_mail.values())
    count.first += [(b"", copies[0]) for copies in by_mail.values()]
    return count


def key(mail: bytes) -> bytes:
    """Return what two copies of a mail have in common."""
    return without_forged(mail)


def of_corpus(number: int) -> list[bytes]:
    """Return mails as a mail server hands them over: no mbox line, ended by LF."""
    with corpora() as corpus:
        entries = read_index(corpus / "spamassassin" / "index")
        step = max(len(entries) // number, 1)
        mails = [entry.path.read_bytes() for entry in entries[::step][:number]]
    return [plain(mail) for mail in mails]


def plain(mail: bytes) -> bytes:
    mail = mail.replace(b"\r\n", b"\n")
    if mail.startswith(b"From "):
        mail = mail.partition(b"\n")[2]
    return mail if mail.endswith(b"\n") else mail + b"\n"


def _said(agent: str, what: str, count: Count) -> int:
    print(f"{agent:9} {what:26} {count}", flush=True)
    for mail, copy in count.first[:2]:
        print(f"   came {mail[:300]!r}\n   left {copy[:400]!r}")
    return count.lost + count.altered


def main(arguments: list[str]) -> int:
    """Try all agents, or the one named; return 1 when a mail was lost or altered."""
    number = int(arguments[0]) if arguments else 200
    wanted = arguments[1:] or [*(kind.name for kind in AGENTS), Getmail.name]
    mails = of_corpus(number)
    chance = random.Random(15)
    wrong = 0
    with daemon_that_learned() as daemon:
        for kind in (kind for kind in AGENTS if kind.name in wanted):
            with home() as folder:
                agent = kind(folder, daemon.address)
                started = time.monotonic()
                wrong += _said(kind.name, "with the daemon", tried(agent, mails))
                each_s = (time.monotonic() - started) / len(mails)
                disturb = killer(chance, each_s * 1.3)
                wrong += _said(kind.name, "killed at random moments", tried(agent, mails, disturb))
            with home() as folder:
                agent = kind(folder, NOWHERE)
                wrong += _said(kind.name, "nobody to judge", tried(agent, mails[::5]))
            with home(SMALL_DISK) as folder:
                agent = kind(folder, daemon.address)
                wrong += _said(kind.name, "a full disk", filled(agent, mails))
        if Getmail.name in wanted:
            wrong += _of_getmail(daemon, mails, chance)
    return 1 if wrong else 0


def _of_getmail(daemon: PipeDaemon, mails: Sequence[bytes], chance: random.Random) -> int:
    """Try getmail with mails that it delivers through `cat` as they are: it writes mail anew."""
    wrong = 0
    through_cat: list[list[bytes]] = [[*mails]]
    for _ in range(3):
        with Dovecot() as store, home() as folder:
            agent = Getmail(folder, store, None)
            through_cat.append(fetched(agent, through_cat[-1])[0])
    mails = [mail for mail in through_cat[-1] if mail in through_cat[-2]]
    with Dovecot() as store, home() as folder:
        agent = Getmail(folder, store, daemon.address)
        wrong += _said("getmail", "with the daemon", counted(agent, mails))
    with Dovecot() as store, home() as folder:
        agent = Getmail(folder, store, daemon.address)
        count = counted(agent, mails, killer(chance, 1.0))
        wrong += _said("getmail", "killed at random moments", count)
    with Dovecot() as store, home() as folder:
        agent = Getmail(folder, store, NOWHERE)
        wrong += _said("getmail", "nobody to judge", counted(agent, mails[::10]))
    small = [mail for mail in mails if len(mail) < SMALL_MAIL]
    with Dovecot() as store, home(SMALL_DISK) as folder:
        agent = Getmail(folder, store, daemon.address)
        wrong += _said("getmail", "a full disk", counted(agent, small))
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
