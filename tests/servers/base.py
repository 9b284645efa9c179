"""Real servers for tests: what each of them needs to be started, watched and removed.

A `Server` lives in a short-named folder of its own (0755: servers that drop their user must enter
it; a UNIX socket path may have 107 bytes), on free ports of the loopback interface, in a process
group of its own. `start` returns once the server answers, or raises `ServerError` with the end of
its log. `close` stops it by its own process id, then ends what is left of its group, then removes
the folder.

A subclass says what to write (`configure`), what to run (`command`) and when it answers
(`is_ready`).

`require(name)` is for tests that can't run without a thing: they are skipped with the reason where
it is missing, and fail where the environment variable TEST_REQUIRE names it (comma-separated).
"""

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar, Self

import pytest

from tests.waiting import wait_until

CORPORA = Path(__file__).resolve().parents[3] / "shared" / "corpora"
"""Archives of public mail, beside the checkout; too large and not ours to be part of it."""

SPAMC_CLIENTS = Path("/usr/local/lib/spamc-clients-for-tests")
"""The folder that `.ci/install-packages` puts aiospamc and isbg into, with what they need."""

HARAKA_ROOT = Path("/usr/local/lib/haraka-for-tests")
"""The folder that `.ci/install-packages` has npm put Haraka into, where there is an npm."""

CYRUS_ROOT = Path("/usr/local/lib/cyrus-for-tests")
"""The folder below which `.ci/install-packages` unpacks Cyrus."""

PGBOUNCER_ROOT = Path("/usr/local/lib/pgbouncer-for-tests")
"""The folder below which `.ci/install-packages` unpacks PgBouncer."""

REQUIREMENT_NEEDS = "needs "
"""How the reason of such a skip begins; the closing summary of a run looks for it."""

SENDMAIL_ROOT = Path("/usr/local/lib/sendmail-for-tests")
"""The folder below which `.ci/install-packages` unpacks Sendmail."""

SENDMAIL = SENDMAIL_ROOT / "usr/libexec/sendmail/sendmail"

LOG_TAIL_LINES = 40


class ServerError(Exception):
    """A server did not start, did not answer or did not stop; the text holds the end of its log."""


_TYPELIB = "girepository-1.0/GMime-3.0.typelib"
_FILES = {
    "procmail": [Path("/usr/bin/procmail")],
    "maildrop": [Path("/usr/bin/maildrop")],
    "fdm": [Path("/usr/bin/fdm")],
    "getmail": [Path("/usr/bin/getmail")],
    "sieve": [Path("/usr/lib/dovecot/modules/lib90_sieve_plugin.so")],
    "miltertest": [Path("/usr/bin/miltertest")],
    "dovecot": [Path("/usr/sbin/dovecot"), Path("/usr/lib/dovecot/lmtp")],
    "promtool": [Path("/usr/bin/promtool")],
    "groff": [Path("/usr/bin/groff")],
    "chromium": [Path("/usr/bin/chromium")],
    "spamc-clients": [SPAMC_CLIENTS / "aiospamc", SPAMC_CLIENTS / "isbg"],
    "spamassassin": [Path("/usr/sbin/spamd"), Path("/usr/bin/spamc")],
    "haraka": [HARAKA_ROOT / f"node_modules/{name}" for name in ("Haraka", "haraka-plugin-rspamd")],
    "rspamc": [Path("/usr/bin/rspamc")],
    "cyrus": [CYRUS_ROOT / "usr/sbin/cyrmaster"],
    "pgbouncer": [PGBOUNCER_ROOT / "usr/sbin/pgbouncer"],
    "gmime": [  # read by Debian's Python, in a process of its own
        next(Path("/usr/lib").glob(f"*/{_TYPELIB}"), Path("/usr/lib") / _TYPELIB),
        Path("/usr/lib/python3/dist-packages/gi"),
        Path("/usr/bin/python3"),
    ],
}


def require(name: str) -> None:
    """Skip the calling test when `name` is missing here, or fail it when TEST_REQUIRE names it."""
    reason = missing(name)
    if reason is None:
        return
    if name in os.environ.get("TEST_REQUIRE", "").split(","):
        pytest.fail(f"{REQUIREMENT_NEEDS}{name}: {reason} (TEST_REQUIRE names it)", pytrace=False)
    pytest.skip(f"{REQUIREMENT_NEEDS}{name}: {reason}")


def missing(name: str) -> str | None:  # noqa: C901, PLR0911 - one for each name
    """Return why `name` can't be used here, or None when it can."""
    match name:
        case "postfix":
            master = Path("/usr/lib/postfix/sbin/master")
            return "Postfix's master runs as root only" if os.geteuid() else _absent([master])
        case "smtp-sink":  # comes with Postfix and runs as anybody
            return _absent([Path("/usr/sbin/smtp-sink"), Path("/usr/sbin/smtp-source")])
        case "exim" | "sendmail":
            program = exim_program() if name == "exim" else SENDMAIL
            return f"{name} is started as root only" if os.geteuid() else _absent([program])
        case "netns":
            return _no_namespaces()
        case "systemd":
            return _no_namespaces() or _absent([Path("/lib/systemd/systemd")])
        case "python3-venv":
            return _no_python()
        case _ if name in _FILES:
            return _absent(_FILES[name])
        case "postgresql":
            if postgresql_programs() is None:
                return "no /usr/lib/postgresql/*/bin/postgres here"
            return None
        case "corpora":
            names = ("spamassassin", "modern", "hostile")
            return _absent([CORPORA / f"{corpus}.tar.xz" for corpus in names])
        case _:
            raise ValueError(f"no requirement has the name {name!r}")


def _no_namespaces() -> str | None:
    """Return why no network namespace can be made here."""
    ip = shutil.which("ip")
    if os.geteuid() or ip is None:
        return "root makes network namespaces, with ip of iproute2"
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False)
    return "no network namespaces allowed here" if tried.returncode else None


def _no_python() -> str | None:
    """Return why Debian's Python can't make an environment that uses our packages."""
    asks = "import ensurepip, sys; print(*sys.version_info[:2])"
    tried = subprocess.run(
        ["/usr/bin/python3", "-c", asks], capture_output=True, text=True, check=False
    )
    ours = f"{sys.version_info.major} {sys.version_info.minor}\n"
    return None if tried.stdout == ours else "Debian's python3 is another, or has no venv"


def exim_program() -> Path:
    """Return where Exim is, installed or as `.ci/install-packages` unpacks it beside Postfix."""
    installed = Path("/usr/sbin/exim4")
    unpacked = Path("/usr/local/lib/exim4-heavy-for-tests/usr/sbin/exim4")
    return installed if installed.exists() else unpacked


def postgresql_programs() -> Path | None:
    """Return the folder of PostgreSQL's newest programs; Debian keeps them out of PATH."""
    versions = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    newest = max(versions, key=lambda path: int(path.parts[-3]), default=None)
    return None if newest is None else newest.parent


def _absent(paths: Iterable[Path]) -> str | None:
    absent = [str(path) for path in paths if not path.exists()]
    return f"no {', '.join(absent)} here" if absent else None


FIRST_PORT, PORTS_OF_A_WORKER, WORKERS = 10_000, 2_000, 11
"""Below 32768, where the kernel takes the ports of connections from, and apart for each worker of
pytest: a port that is free stays free until its server listens."""


def _ports() -> Iterator[int]:
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS
    own = range(PORTS_OF_A_WORKER)
    for place in itertools.cycle((*own[os.getpid() % len(own) :], *own[: os.getpid() % len(own)])):
        yield FIRST_PORT + worker * PORTS_OF_A_WORKER + place


_PORTS = _ports()


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that nobody listens on."""
    for port in itertools.islice(_PORTS, PORTS_OF_A_WORKER):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise ServerError("no port is free")


def greeting(port: int, *, timeout_s: float = 1) -> bytes:
    """Return the first bytes a server says to a new connection, empty when there is nobody."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
            return connection.recv(512)
    except OSError:
        return b""


def group_members(group: int) -> list[int]:
    """Return the live processes of a process group; a zombie that nobody reaps is not alive."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # proc(5): pid (name) state parent group …; the name may hold blanks and brackets.
            state, _, pgrp = stat.read_text().rpartition(") ")[2].split()[:3]
        except OSError:
            continue  # ended while we looked
        if int(pgrp) == group and state not in "ZX":
            members.append(int(stat.parent.name))
    return members


class Server(ABC):
    """One server process with its folder, ports and log; `with` starts and closes it."""

    name: ClassVar[str]
    account: ClassVar[str | None] = None  # whom to run as when we are root; None: as ourselves
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    start_s: ClassVar[float] = 30
    stop_s: ClassVar[float] = 15

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix=f"{self.name[:4]}-", dir="/tmp"))
        self.directory.chmod(0o755)
        self.log = self.directory / "output.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.choose_ports()

    def choose_ports(self) -> None:
        """Take free ports; called again when the first start fails, in case somebody took one."""
        self.port = free_port()

    @abstractmethod
    def configure(self) -> None:
        """Write the files the server reads; called before every start."""

    @abstractmethod
    def command(self) -> list[str]:
        """Return the program and its arguments; it must stay in the foreground."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Return whether the server answers sensibly on all its ports."""

    def environment(self) -> dict[str, str]:
        """Return the environment of the process: small, so that no setting of ours leaks in."""
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return {"PATH": path, "LC_ALL": "C.UTF-8", "HOME": str(self.directory)}

    def logs(self) -> list[Path]:
        """Return every file that may say what went wrong."""
        return [self.log]

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        if self._process is None:
            raise ServerError(f"{self.name} was not started")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the server's own process is alive."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start the server and wait until it answers.

        A first start that fails is tried once more with other ports; later ones keep theirs, since
        clients know them.
        """
        first = not self.log.exists()
        try:
            self._start()
        except ServerError:
            if not first:
                raise
            self.kill()
            self.choose_ports()
            self._start()
        return self

    def _start(self) -> None:
        if self.running:
            raise ServerError(f"{self.name} is running already")
        self.configure()
        root = os.geteuid() == 0
        account = pwd.getpwnam(self.account) if self.account and root else None
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env=self.environment(),
                start_new_session=True,
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=[] if account else None,
            )

        def answers() -> bool:
            if not self.running:
                raise ServerError(f"{self.name} ended at its start")
            return self.is_ready()

        try:
            wait_until(answers, what=f"{self.name} answers", deadline_s=self.start_s)
        except (ServerError, TimeoutError) as error:
            self.kill()
            raise ServerError(f"{error}{self.log_tail()}") from error

    def stop(self) -> None:
        """Stop the server the way its manual says; end whatever is left of it after that."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(self.stop_signal)
            try:
                process.wait(self.stop_s)
            except subprocess.TimeoutExpired:
                self.kill()
                raise ServerError(
                    f"{self.name} did not stop within {self.stop_s:g} s{self.log_tail()}"
                ) from None
        self.kill()

    def kill(self) -> None:
        """End the whole process group at once, as a power cut would."""
        process = self._process
        if process is None:
            return
        self._process = None
        group = process.pid  # start_new_session made it the leader of a group of its own
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        process.wait(self.stop_s)
        wait_until(lambda: not group_members(group), what=f"the processes of {self.name} end")

    def close(self) -> None:
        """Stop the server and remove its folder."""
        try:
            self.stop()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def log_text(self) -> str:
        """Return all the server has written to its logs so far."""
        return "".join(path.read_text(errors="replace") for path in self.logs() if path.exists())

    def log_tail(self) -> str:
        """Return the end of the log, ready to be put behind an error's sentence."""
        lines = self.log_text().splitlines()[-LOG_TAIL_LINES:]
        return "\n" + "\n".join(lines) if lines else "; its log is empty"

    def wait_for_log(self, text: str, *, deadline_s: float = 30) -> None:
        """Wait until the log holds `text`."""
        try:
            wait_until(
                lambda: text in self.log_text(), what=f"{text!r} in the log", deadline_s=deadline_s
            )
        except TimeoutError as error:
            raise ServerError(f"{error}{self.log_tail()}") from None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()
