"""Postfix 3.7 and its test programs: `postfix`, `smtp_sink`, `smtp_source`.

One `Postfix` is one instance with its own configuration and queue; nothing of /etc/postfix is read.
How mail goes through it is said by `PostfixOptions`; the usual ways have a function each:

    before_queue   client → Postfix → filter → the same Postfix (`reentry_port`) → next hop
    after_queue    client → Postfix, queued → filter → the same Postfix (`reentry_port`) → next hop
    delivering     client → Postfix, queued → LMTP server

The filter's port and Postfix's `reentry_port` depend on each other: take `free_port()` for the
filter, start Postfix with it, then start the filter with `reentry_port` as its next hop.
"""

import contextlib
import grp
import json
import os
import pwd
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self

import pytest

from tests.servers.base import Server, ServerError, free_port, greeting, require
from tests.waiting import wait_until

MAIN_CF = """\
compatibility_level = 3.6
queue_directory = {directory}/queue
data_directory = {directory}/data
maillog_file = {directory}/mail.log
maillog_file_prefixes = {directory}
myhostname = mx.test
mydestination =
mynetworks = 127.0.0.0/8
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
alias_maps =
alias_database =
local_recipient_maps =
smtpd_relay_restrictions = permit_mynetworks, reject
smtpd_peername_lookup = no
smtp_dns_support_level = disabled
smtp_host_lookup = native
minimal_backoff_time = 1s
maximal_backoff_time = 2s
queue_run_delay = 1s
"""
"""The last three make a deferred mail try again after a second instead of five minutes."""

MASTER_CF = """\
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
showq unix n - n - - showq
pickup unix n - n 60 1 pickup
flush unix n - n 1000? 0 flush
verify unix - - n - 1 verify
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
lmtp unix - - n - - lmtp
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
tlsmgr unix - - n 1000? 1 tlsmgr
postlog unix-dgram n - n - 1 postlogd
"""
"""Column 5 is always n: no chroot, so there are no files to copy into the queue's folder."""

REENTRY = (
    "smtpd_proxy_filter=",
    "content_filter=",
    "receive_override_options=no_unknown_recipient_checks,no_header_body_checks,no_milters",
    "smtpd_authorized_xforward_hosts=127.0.0.0/8",
    "smtpd_authorized_xclient_hosts=127.0.0.0/8",
)
"""Options of the listener that takes filtered mail back."""

SCAN = " -o smtp_send_xforward_command=yes -o disable_mime_output_conversion=yes"
"""How queued mail goes to a filter: with its client's identity, and as it is."""

QUEUES = (
    "active", "bounce", "corrupt", "defer", "deferred", "flush", "hold", "incoming", "private",
    "saved", "trace",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PostfixOptions:
    """How mail goes through one Postfix.

    smtpd     `-o` options of the front listener
    main      further lines of main.cf
    services  further lines of master.cf
    """

    smtpd: tuple[str, ...] = ()
    main: Mapping[str, str] = field(default_factory=dict)
    services: tuple[str, ...] = ()


def before_queue(filter_port: int, next_hop_port: int) -> PostfixOptions:
    """Mail is filtered while the client waits; filtered mail goes on to `next_hop_port`."""
    return PostfixOptions(
        smtpd=(
            f"smtpd_proxy_filter=127.0.0.1:{filter_port}",
            "smtpd_proxy_options=speed_adjust",
            "smtpd_proxy_timeout=30s",
        ),
        main={"relayhost": f"[127.0.0.1]:{next_hop_port}"},
    )


def after_queue(filter_port: int, next_hop_port: int) -> PostfixOptions:
    """Mail is queued, then filtered; filtered mail goes on to `next_hop_port`."""
    return PostfixOptions(
        smtpd=(f"content_filter=scan:[127.0.0.1]:{filter_port}",),
        main={"relayhost": f"[127.0.0.1]:{next_hop_port}"},
        services=(f"scan unix - - n - 10 smtp{SCAN}",),
    )


def relaying(next_hop_port: int) -> PostfixOptions:
    """Mail is queued and goes on by SMTP to `next_hop_port`."""
    return PostfixOptions(main={"relayhost": f"[127.0.0.1]:{next_hop_port}"})


def delivering(lmtp_port: int, domain: str) -> PostfixOptions:
    """Mail for `domain` is queued and goes on by LMTP to `lmtp_port`, whoever the recipient is."""
    return PostfixOptions(
        main={
            "virtual_mailbox_domains": domain,
            "virtual_mailbox_maps": "",
            "virtual_transport": f"lmtp:inet:127.0.0.1:{lmtp_port}",
        }
    )


class Postfix(Server):
    """One Postfix instance: `port` takes mail, `reentry_port` takes it back from a filter."""

    name = "postfix"

    def __init__(self, options: PostfixOptions) -> None:
        super().__init__()
        self._options = options
        self._etc = self.directory / "etc"

    def choose_ports(self) -> None:
        self.port = free_port()
        self.reentry_port = free_port()

    def configure(self) -> None:
        self._make_folders()
        main = MAIN_CF.format(directory=self.directory)
        main += "".join(f"{key} = {value}\n" for key, value in self._options.main.items())
        front = "".join(f" -o {option}" for option in self._options.smtpd)
        back = "".join(f" -o {option}" for option in REENTRY)
        services = "".join(f"{line}\n" for line in self._options.services)
        master = (
            f"127.0.0.1:{self.port} inet n - n - - smtpd{front}\n"
            f"127.0.0.1:{self.reentry_port} inet n - n - - smtpd{back}\n"
            f"{MASTER_CF}{services}"
        )
        minute_ago = time.time() - 60
        for file, text in (("main.cf", main), ("master.cf", master)):
            path = self._etc / file
            path.write_text(text)
            # Each Postfix program waits until its configuration is about 2 s old.
            os.utime(path, (minute_ago, minute_ago))

    def _make_folders(self) -> None:
        """Make what `postfix check` would make, in a thousandth of its time."""
        postfix = pwd.getpwnam("postfix").pw_uid
        drop = grp.getgrnam("postdrop").gr_gid
        queue = self.directory / "queue"
        folders = [
            (self._etc, 0o755, 0, 0),
            (queue, 0o755, 0, 0),
            (self.directory / "data", 0o700, postfix, 0),
            *((queue / name, 0o700, postfix, 0) for name in QUEUES),
            (queue / "pid", 0o755, 0, 0),
            (queue / "maildrop", 0o730, postfix, drop),
            (queue / "public", 0o710, postfix, drop),
        ]
        for path, mode, owner, group in folders:
            path.mkdir(exist_ok=True)
            path.chmod(mode)
            os.chown(path, owner, group)

    def command(self) -> list[str]:
        return ["/usr/lib/postfix/sbin/master", "-c", str(self._etc), "-d"]

    def is_ready(self) -> bool:
        return all(greeting(port).startswith(b"220 ") for port in (self.port, self.reentry_port))

    def logs(self) -> list[Path]:
        return [self.log, self.directory / "mail.log"]

    def log_tail(self) -> str:
        tail = super().log_tail()
        if self.running:
            return tail
        # A bad master.cf ends the master without a word anywhere; postconf names the error.
        return tail + "".join(f"\npostconf {flag}: {self._postconf(flag)}" for flag in ("-M", "-n"))

    def _postconf(self, flag: str) -> str:
        done = subprocess.run(
            ["/usr/sbin/postconf", "-c", str(self._etc), flag],
            capture_output=True, text=True, check=False, timeout=10,
        )  # fmt: skip
        return done.stderr.strip() or "no error"

    def queue(self) -> list[dict[str, object]]:
        """Return the queued mails as `postqueue -j` prints them."""
        done = self._postqueue("-j")
        return [json.loads(line) for line in done.splitlines()]

    def flush(self) -> None:
        """Try every deferred mail now."""
        self._postqueue("-f")

    def _postqueue(self, flag: str) -> str:
        done = subprocess.run(
            ["/usr/sbin/postqueue", "-c", str(self._etc), flag],
            capture_output=True, text=True, check=False, timeout=10,
        )  # fmt: skip
        if done.returncode != 0:
            raise ServerError(f"postqueue {flag}: {done.stderr.strip()}{self.log_tail()}")
        return done.stdout


@dataclass(frozen=True, slots=True, kw_only=True)
class SunkMail:
    """One mail as smtp-sink got it.

    sender      argument of MAIL, verbatim, parameters included
    recipients  arguments of RCPT, likewise
    helo        argument of HELO, EHLO or LHLO
    content     the message with LF line ends; smtp-sink drops every CR
    """

    sender: str
    recipients: tuple[str, ...]
    helo: str
    content: bytes

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file that smtp-sink wrote.

        It holds X- lines about the envelope, a Received field of three lines, the message (CR left
        out everywhere, dots unstuffed) and one empty line.
        """
        head, _, rest = path.read_bytes().partition(b"Received: ")
        arguments = [line.partition(": ") for line in head.decode("utf-8", "replace").splitlines()]
        return cls(
            sender=next(value for key, _, value in arguments if key == "X-Mail-Args"),
            recipients=tuple(value for key, _, value in arguments if key == "X-Rcpt-Args"),
            helo=next((value for key, _, value in arguments if key == "X-Helo-Args"), ""),
            content=rest.split(b"\n", 3)[3].removesuffix(b"\n"),
        )


class SmtpSink(Server):
    """Postfix's smtp-sink: takes every mail and keeps it as a file, or refuses as told.

    options   further arguments, such as "-f", "RCPT" (refuse with 5xx), "-r", "." (refuse with
              4xx), "-q", "DATA" (hang up), "-L" (LMTP), "-w", "1" (wait before the last reply)
    """

    name = "sink"

    def __init__(self, *options: str) -> None:
        super().__init__()
        self._options = options
        self._folder = self.directory / "sink"

    def configure(self) -> None:
        self._folder.mkdir(exist_ok=True)
        if os.geteuid() == 0:
            os.chown(self._folder, pwd.getpwnam("postfix").pw_uid, 0)

    def command(self) -> list[str]:
        account = ["-u", "postfix"] if os.geteuid() == 0 else []  # root must name one
        keep = ["-d", f"{self._folder}/%M."]
        here = f"127.0.0.1:{self.port}"
        return ["/usr/sbin/smtp-sink", *account, *keep, *self._options, here, "200"]

    def is_ready(self) -> bool:
        return greeting(self.port) != b""

    def mails(self, *, at_least: int = 0, deadline_s: float = 30) -> list[SunkMail]:
        """Return the mails received, oldest first, once there are `at_least` so many."""
        wait_until(
            lambda: len(self._finished()) >= at_least,
            what=f"{at_least} mails at the next hop",
            deadline_s=deadline_s,
        )
        return [SunkMail.read(path) for path in self._finished()]

    def _finished(self) -> list[Path]:
        """Return the files of whole mails: the ones that smtp-sink does not hold open any more."""
        files = sorted(self._folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        if not self.running:
            return files
        held = set()
        for descriptor in Path(f"/proc/{self.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                held.add(descriptor.readlink())
        return [path for path in files if path not in held]


def send_many(
    port: int, *options: str, messages: int = 50, sessions: int = 5, length: int = 5000
) -> None:
    """Send equal mails by Postfix's smtp-source; raise ServerError when one is not accepted."""
    done = subprocess.run(
        [
            "/usr/sbin/smtp-source", "-m", str(messages), "-s", str(sessions), "-l", str(length),
            "-f", "a@x.test", "-t", "b@y.test", *options, f"127.0.0.1:{port}",
        ],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    if done.returncode != 0:
        raise ServerError(f"smtp-source: {done.stderr.strip()}")


PostfixFactory = Callable[[PostfixOptions], Postfix]


class SmtpSinkFactory(Protocol):
    """Starts a smtp-sink with these arguments."""

    def __call__(self, *options: str) -> SmtpSink: ...


class SmtpSource(Protocol):
    """`send_many`, for tests that skip without Postfix."""

    def __call__(
        self, port: int, *options: str, messages: int = 50, sessions: int = 5, length: int = 5000
    ) -> None: ...


@pytest.fixture
def postfix() -> Iterator[PostfixFactory]:
    """Start a Postfix: `postfix(before_queue(filter_port, sink.port))`."""
    require("postfix")
    with ExitStack() as servers:
        yield lambda options: servers.enter_context(Postfix(options))


@pytest.fixture
def smtp_sink() -> Iterator[SmtpSinkFactory]:
    """Start a server that takes mail and keeps it: `smtp_sink()`, `smtp_sink("-f", "RCPT")`."""
    require("smtp-sink")
    with ExitStack() as servers:
        yield lambda *options: servers.enter_context(SmtpSink(*options))


@pytest.fixture
def smtp_source() -> SmtpSource:
    """Send a load of equal mails: `smtp_source(port, messages=50, sessions=5, length=5000)`."""
    require("smtp-sink")
    return send_many
