"""Judging a mail without the daemon: as `spamd scan` does, in a process of its own.

What goes wrong there (a bug, no memory, a broken library, a wrong setting, no database, too much
time) ends that process and no other: the one that holds the mail passes it on as it came.
"""

import os
import select
import signal
import time

from spamd.cli.pipe.descriptors import BLOCK_BYTES, write_all
from spamd.cli.pipe.faults import UnjudgedError, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from spamd.cli.pipe.spool import Spool
    from spamd.report import ScanReport

DONE, FAILED = b"+", b"-"
"""The first octet of what the process says; then the fields, or what went wrong."""


def judged(mail: "Spool", config: "str | None", given: "Sequence[str]", limit_s: float) -> bytes:
    """Return our fields as header lines.

    Raises:
        UnjudgedError: there is no verdict.
    """
    said = _of_child(lambda: _fields(mail, config, given), limit_s)
    if not said.startswith(DONE):
        raise UnjudgedError(said[1:].decode("utf-8", "replace") or "the process that judges died")
    return said[1:]


def _of_child(work: "Callable[[], bytes]", limit_s: float) -> bytes:
    """Return what a process said that does this work."""
    reading, writing = os.pipe()
    # Until the child has begun its work a signal must not make it go on as if it were us.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    child = -1
    try:
        child = os.fork()
        if not child:
            _work(work, writing, before)
        os.close(writing)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return _heard(reading, limit_s)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(reading)
        if child > 0:
            _end(child)


def _heard(reading: int, limit_s: float) -> bytes:
    """Return what comes through a pipe as far as its end."""
    deadline = time.monotonic() + limit_s
    said: list[bytes] = []
    while select.select([reading], [], [], max(deadline - time.monotonic(), 0))[0]:
        block = os.read(reading, BLOCK_BYTES)
        if not block:
            return b"".join(said)
        said.append(block)
    raise UnjudgedError("there was no verdict in time")


def _end(child: int) -> None:
    """End a process, whatever it does, and see that it is gone."""
    try:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    except (ProcessLookupError, ChildProcessError):  # whoever started us takes its status
        pass


def _work(work: "Callable[[], bytes]", writing: int, mask: "set[int]") -> "NoReturn":
    """Do the work, say what it came to, and end this process; nothing is said in between."""
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        try:
            said = DONE + work()
        except BaseException as error:  # noqa: BLE001 - the border of this process
            said = FAILED + reason(error).encode("utf-8", "replace")
        write_all(writing, said)
    finally:
        os._exit(0)


def _fields(mail: "Spool", config: "str | None", given: "Sequence[str]") -> bytes:
    from spamd.loading import loading

    with loading():
        from spamd.message.spam_fields import render

    return render(report(mail, config, given).fields(), b"\n")


def report(mail: "Spool", config: "str | None", given: "Sequence[str]") -> "ScanReport":
    """Return the report on a mail, by the settings' database.

    Raises:
        ConfigError: a setting is wrong.
        TemporaryError: the database does not answer.
    """
    from dataclasses import replace
    from pathlib import Path

    from spamd import resources
    from spamd.bayes.counts import distinct
    from spamd.cli.lookup import looked_up
    from spamd.clock import WallClock
    from spamd.message.features import extract
    from spamd.message.identity import CUT, rest_of, with_rest
    from spamd.settings import load

    settings = load(None if config is None else Path(config), given).settings
    started = WallClock().monotonic()
    # Line ends count as one octet: so the start is surely as long as what is looked at.
    start = mail.first(2 * settings.tokenizer.limits.read_bytes + 1)
    features = extract(start, settings.reading, arriving=True)
    if CUT in features.defects:
        rest = rest_of(mail.blocks())
        features = replace(features, digest=with_rest(features.digest, rest))
    with looked_up(settings) as words:
        model = words.load_model(distinct([features.sample.ids]))
        senders = words.senders(settings.auth, settings.known)
        scanner = resources.scanner(settings, lambda: model, words.secret(), lambda: senders)
        return scanner.judge(replace(features, size_bytes=mail.size_bytes), started)
