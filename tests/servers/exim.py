"""Exim 4.96 (exim4-daemon-heavy) as the mail server of a small site: `exim`.

Nothing of /etc/exim4 is read. What an admin adds for spamd (a line of the main section, a router, a
transport) is put where it belongs in a configuration that takes mail for y.test and delivers it
into one Maildir.
"""

import os
import pwd
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers.base import Server, exim_program, free_port, greeting, require

ACCOUNT = "Debian-exim"
"""Debian's Exim has this name compiled in."""

CONFIGURATION = """\
primary_hostname = mx.test
exim_path = {program}
spool_directory = {directory}/spool
log_file_path = {directory}/log/%slog
pid_file_path = {directory}/spool/exim.pid
deliver_drop_privilege = true
tls_advertise_hosts =
domainlist local_domains = y.test
acl_smtp_rcpt = take
acl_smtp_data = acl_check_data
{main}
begin acl
take:
  deny local_parts = ^.*[@%!/|]
  accept hosts = 127.0.0.1
  accept domains = +local_domains
acl_check_data:
{acl}
begin routers
{router}
people:
  driver = accept
  transport = maildir
begin transports
{transport}
maildir:
  driver = appendfile
  directory = {directory}/mail
  maildir_format
begin retry
* * F,1h,1s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EximAdditions:
    """What an admin adds, by the places where it belongs."""

    main: str
    router: str = ""
    transport: str = ""
    acl: str = "accept"  # what is asked when the mail is there


class Exim(Server):
    """One Exim: `port` takes mail, `reentry_port` takes it back from a filter."""

    name = "exim"

    def __init__(self, additions: Callable[[int, int], EximAdditions]) -> None:
        super().__init__()
        self._additions = additions

    def choose_ports(self) -> None:
        self.port = free_port()
        self.reentry_port = free_port()

    def configure(self) -> None:
        account = pwd.getpwnam(ACCOUNT)
        for name in ("spool", "log", "mail"):
            folder = self.directory / name
            folder.mkdir(exist_ok=True)
            os.chown(folder, account.pw_uid, account.pw_gid)
        added = self._additions(self.port, self.reentry_port)
        text = CONFIGURATION.format(
            directory=self.directory,
            program=exim_program(),
            main=added.main,
            acl=added.acl,
            router=added.router,
            transport=added.transport,
        )
        (self.directory / "exim.conf").write_text(text)

    def command(self) -> list[str]:
        return [str(exim_program()), "-C", str(self.directory / "exim.conf"), "-bdf", "-q1s"]

    def is_ready(self) -> bool:
        return all(greeting(port).startswith(b"220 ") for port in (self.port, self.reentry_port))

    def logs(self) -> list[Path]:
        return [self.log, *(self.directory / "log").glob("*log")]

    def mails(self) -> list[bytes]:
        """Return the mails delivered, oldest first."""
        files = (self.directory / "mail" / "new").glob("*")
        return [path.read_bytes() for path in sorted(files, key=lambda path: path.stat().st_mtime)]


EximFactory = Callable[[Callable[[int, int], EximAdditions]], Exim]


@pytest.fixture
def exim() -> Iterator[EximFactory]:
    """Start an Exim: `exim(lambda port, reentry_port: EximAdditions(…))`."""
    require("exim")
    with ExitStack() as servers:
        yield lambda additions: servers.enter_context(Exim(additions))
