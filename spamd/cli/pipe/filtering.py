"""`spamd filter`: a mail comes in, the same mail goes out with our fields on top.

    standard input, all of it → the daemon, else a process that judges → fields → standard output

Nothing that goes wrong costs a byte: a mail that was not judged goes out as it came. Nothing is
written before it is clear what; so an agent that gives up early still has the mail, and we have
written none of it. Exit codes never mean that a mail is to be dropped (getmail: 99, 100).
"""

import os
import time

from spamd.cli.pipe import fields
from spamd.cli.pipe.descriptors import STDIN, STDOUT, close_gaps, copy, write_all
from spamd.cli.pipe.faults import UnjudgedError, reason
from spamd.cli.pipe.spool import Spool
from spamd.cli.pipe.system import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

DONE, UNJUDGED, LATER = 0, 3, 75
"""Exit codes: as `spamd scan` and sysexits.h have them."""

BY_VERDICT = {"spam": 0, "ham": 1, "unsure": 2}
"""As `spamd scan` exits."""

DAEMON_S = 30.0
"""So long the daemon may take (its own limit is `relay.inspect_timeout_s`)."""

JUDGING_S = 60.0
"""So long judging without it may take: a second is usual, half a minute on a machine that swaps."""

STOPPING = (
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1,
    signal.SIGUSR2, signal.SIGXCPU, signal.SIGVTALRM, signal.SIGPROF,
)  # fmt: skip
"""What would end us; instead the mail goes out as it came."""


class Options:
    """What `spamd filter` was asked for.

    only_fields   write our fields and nothing else
    exit_code     tell the verdict by the exit code
    defer         a mail that was not judged is to be tried again
    """

    __slots__ = ("config", "defer", "exit_code", "given", "only_fields")

    def __init__(
        self,
        *,
        config: "str | None" = None,
        given: "Sequence[str]" = (),
        only_fields: bool = False,
        exit_code: bool = False,
        defer: bool = False,
    ) -> None:
        self.config = config
        self.given = given
        self.only_fields = only_fields
        self.exit_code = exit_code
        self.defer = defer


class Stopping:
    """Turns the first signal that would end us into an `UnjudgedError`, while it is `armed`."""

    def __init__(self) -> None:
        self.armed = False
        self._stopped = False

    def install(self) -> None:
        """Take the signals that would end us; those that are ignored stay so."""
        for number in STOPPING:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._received)

    def _received(self, number: int, _frame: "FrameType | None") -> None:
        first, self._stopped = not self._stopped, True
        if first and self.armed:
            raise UnjudgedError(f"stopped by signal {number}")

    def check(self) -> None:
        """Raise `UnjudgedError` if a signal came before there was anything to break off."""
        if self._stopped:
            raise UnjudgedError("stopped by a signal")


def filtered(options: Options) -> int:
    """Filter the mail on standard input and return the exit code."""
    stopping = Stopping()
    stopping.install()
    closed = close_gaps()
    mail = Spool()
    try:
        mail.read(STDIN)
    except MemoryError:
        return _passed_on(mail, options)
    except OSError:
        _give(mail, b"", 0, options)
        return _noted("standard input can't be read", LATER)
    if closed:
        return _noted("standard input or output is closed", LATER)
    verdict, top, start, fault = _judged(mail, options, stopping)
    if not _give(mail, top, start, options):
        return LATER
    if fault:
        return _noted(fault, _unjudged(options))
    if verdict not in BY_VERDICT:
        return _noted("the daemon could not judge it", _unjudged(options))
    return BY_VERDICT[verdict] if options.exit_code else DONE


def _judged(mail: Spool, options: Options, stopping: Stopping) -> tuple[str, bytes, int, str]:
    """Return the verdict, what stands on top, where the rest of the mail begins; and the fault."""
    try:
        try:
            stopping.armed = True
            stopping.check()
            if not mail.size_bytes:
                return "", b"", 0, "standard input is empty"
            verdict, lines = _asked(mail, options)
            if verdict == "unscanned" and options.defer:
                return verdict, b"", 0, "the daemon could not judge it"
            if options.only_fields:
                return verdict, b"".join(line + b"\n" for line in lines), mail.size_bytes, ""
            return verdict, *fields.on_top(mail, lines), ""
        finally:
            stopping.armed = False
    except BaseException as error:  # noqa: BLE001 - whatever it is, the mail goes out
        return "", b"", 0, reason(error)


def _whose() -> dict[str, str]:
    """Return whose mail it is, as spamc says it: of the account that runs us."""
    import pwd

    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # an account that has no name
        return {}
    return {"User": name} if name.isascii() and name.isprintable() else {}


def _asked(mail: Spool, options: Options) -> tuple[str, list[bytes]]:
    """Return the verdict and our fields: of the daemon, else of a process of our own."""
    from spamd.cli.pipe import daemon
    from spamd.sources import value_of

    try:
        addresses = value_of("spamc.listen", (), options.config, options.given, os.environ)
        deadline = time.monotonic() + DAEMON_S
        _, header = daemon.ask(addresses, "HEADERS", _whose(), mail, deadline)
        return fields.fields_of(header)
    except (daemon.NoAnswerError, fields.NotOursError):
        from spamd.cli.pipe import judging

        header = judging.judged(mail, options.config, options.given, JUDGING_S)
        return fields.fields_of(header)


def _give(mail: Spool, top: bytes, start: int, options: Options) -> bool:
    """Write what goes out, and tell whether all of it could be written."""
    if options.only_fields:
        start = mail.size_bytes
    try:
        write_all(STDOUT, top)
        for block in mail.blocks(start):
            write_all(STDOUT, block)
    except (OSError, MemoryError):
        return False
    return True


def _passed_on(mail: Spool, options: Options) -> int:
    """Write what there was memory for, and the rest as it comes."""
    if not _give(mail, b"", 0, options):
        return LATER
    try:
        if not options.only_fields:
            copy(STDIN, STDOUT)
    except (OSError, MemoryError):
        return LATER
    return _noted("no memory", _unjudged(options))


def _unjudged(options: Options) -> int:
    if options.defer:
        return LATER
    return UNJUDGED if options.exit_code else DONE


def _noted(fault: str, code: int) -> int:
    """Say in the system's log why a mail was not judged: the agent must not read of it."""
    try:
        import syslog

        syslog.openlog("spamd-filter", syslog.LOG_PID, syslog.LOG_MAIL)
        syslog.syslog(syslog.LOG_WARNING, f"mail passed on unjudged: {fault}"[:500])
    except Exception:  # noqa: BLE001, S110 - the mail is out; there is nobody to tell
        pass
    return code


def last_resort() -> int:
    """Pass the mail on when nothing else works."""
    try:
        copy(STDIN, STDOUT)
    except (OSError, MemoryError):
        return LATER
    return LATER
