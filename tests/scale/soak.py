"""A soak: mail at a steady rate, lessons, reloads and a worker killed a minute, for a long time.

What must come out: memory and descriptors of the workers stay flat, every mail that was answered
with 250 lies in the Maildir once, and every lesson that was answered counts once. A client whose
connection is cut by the kill of a worker comes again, as mail servers do: mail may then lie there
twice, which the sender's Message-ID tells.
"""

import itertools
import json
import os
import signal
import smtplib
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from email.parser import BytesHeaderParser
from http.client import HTTPException
from pathlib import Path

import numpy as np

from tests.scale.memory import pss
from tests.scale.site import Client, Member, lesson

WORKERS = 2
SENDERS = 4
LESSON_S = 2.0
MINUTE_S = 60.0
LOOK_S = 5.0
RETRY_S = 0.2
FIRST_LESSON = 10_000_000
"""Lessons are other mails than those that are sent."""

HALF = 0.5


@dataclass(slots=True)
class Look:
    """What the workers held at one time: seconds since the begin, bytes and descriptors of each."""

    time_s: float
    bytes_each: float
    files_each: float


@dataclass
class Soak:
    """One soak; `run` plays it.

    sent      mails that were answered with 250
    learned   lessons that were answered
    again     mails and lessons that were sent again
    """

    member: Member
    rate: float
    seconds: float
    minute_s: float = MINUTE_S
    sent: set[int] = field(default_factory=set)
    learned: set[int] = field(default_factory=set)
    delays: list[float] = field(default_factory=list)
    again: Counter[str] = field(default_factory=Counter)
    killed: int = 0
    looks: list[Look] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Send, teach, reload, kill and look until the time is over."""
        self._began, self._over = time.monotonic(), threading.Event()
        self._numbers = itertools.count()
        jobs: list[Callable[[], None]] = [self._teach, self._disturb, self._look]
        jobs += [self._send] * SENDERS
        threads = [threading.Thread(target=self._guarded, args=(each,)) for each in jobs]
        for each in threads:
            each.start()
        self._over.wait(self.seconds)
        self._over.set()
        for each in threads:
            each.join()

    def _guarded(self, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as error:  # noqa: BLE001 - told by who runs the soak
            self.faults.append(repr(error))
            self._over.set()

    def _send(self) -> None:
        """Send mails, each at its time; one that failed is sent again until it is taken."""
        for number in self._numbers:
            wait_s = number / self.rate - (time.monotonic() - self._began)
            if self._over.wait(max(0.0, wait_s)):
                return
            _, content = lesson(number)
            began = time.monotonic()
            while not self._sent(content):
                self.again["mail"] += 1
                time.sleep(RETRY_S)
            self.delays.append(time.monotonic() - began)
            self.sent.add(number)

    def _sent(self, content: bytes) -> bool:
        try:
            with smtplib.SMTP("127.0.0.1", self.member.port, timeout=60) as client:
                client.sendmail("a@example.org", ["you@example.org"], content)
        except (smtplib.SMTPException, OSError):
            return False
        return True

    def _teach(self) -> None:
        for number in itertools.count(FIRST_LESSON):
            if self._over.wait(LESSON_S):
                return
            label, content = lesson(number)
            while not self._taught(label, content):
                self.again["lesson"] += 1
                time.sleep(RETRY_S)
            self.learned.add(number)

    def _taught(self, label: str, content: bytes) -> bool:
        client = Client(self.member)
        try:
            return client.post(f"/learn{label}", content)["status"] in (200, 208)
        except (HTTPException, OSError, ValueError):
            return False
        finally:
            client.close()

    def _disturb(self) -> None:
        """Kill a worker each minute, and have the settings read again half a minute later."""
        while not self._over.wait(self.minute_s / 2):
            with suppress(IndexError, ProcessLookupError):
                os.kill(self.member.workers()[0], signal.SIGKILL)
                self.killed += 1
            if self._over.wait(self.minute_s / 2):
                return
            os.kill(self.member.pid, signal.SIGHUP)

    def _look(self) -> None:
        while not self._over.wait(LOOK_S):
            with suppress(OSError, IndexError):  # one was killed just now
                pids = self.member.workers()
                files = [len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids]
                held = [pss(pid) for pid in pids]
                now = time.monotonic() - self._began
                if len(pids) == WORKERS:
                    self.looks.append(Look(now, sum(held) / WORKERS, sum(files) / WORKERS))

    def slopes(self) -> tuple[float, float]:
        """Return the growth in the second half, an hour and a worker: MiB and descriptors."""
        late = [each for each in self.looks if each.time_s > self.seconds * HALF]
        if len(late) < 2:
            return 0.0, 0.0
        hours = np.array([each.time_s / 3600 for each in late])
        mib = np.array([each.bytes_each / 1024 / 1024 for each in late])
        files = np.array([each.files_each for each in late])
        return float(np.polyfit(hours, mib, 1)[0]), float(np.polyfit(hours, files, 1)[0])

    def ledger(self) -> dict[str, object]:
        """Return what is there beside what was answered; the daemon has stopped."""
        folder = self.member.directory / "mail"
        found: Counter[str] = Counter()
        for file in folder.rglob("*"):
            if file.is_file() and file.parent.name in {"new", "cur"}:
                found[str(BytesHeaderParser().parsebytes(file.read_bytes())["Message-ID"])] += 1
        wanted = {identity(lesson(number)[1]) for number in self.sent}
        status = json.loads(self.member.run("status", "--json"))
        findings = json.loads(self.member.run("database", "verify", "--json"))
        return {
            "mails lost": len(wanted - found.keys()),
            "mails that nobody sent": len(found.keys() - wanted),
            "mails twice": sum(number - 1 for number in found.values()),
            "lessons answered": len(self.learned),
            "lessons there": status["lessons"]["total"],
            "faults by replay": findings["faults"],
        }


def identity(content: bytes) -> str:
    """Return the Message-ID of a mail."""
    return str(BytesHeaderParser().parsebytes(content)["Message-ID"])


def soak(member: Member, *, rate: float, seconds: float, minute_s: float = MINUTE_S) -> Soak:
    """Start a daemon of several workers, play a soak, and stop it."""
    member.with_workers(WORKERS)
    member.start()
    done = Soak(member, rate, seconds, minute_s)
    done.run()
    member.stop()
    return done
