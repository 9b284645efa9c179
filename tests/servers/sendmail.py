"""Sendmail 8.17 as a mail server that hands all mail on to a next hop: `sendmail`.

Nothing of /etc/mail is read. `.ci/install-packages` unpacks Debian's packages beside Postfix; the
configuration is made with m4 from Sendmail's own macros, as an admin makes it.
"""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.servers.base import SENDMAIL, SENDMAIL_ROOT, Server, free_port, greeting, require

CF = SENDMAIL_ROOT / "usr/share/sendmail/cf"

CONFIGURATION = """\
OSTYPE(`linux')dnl
define(`confDOMAIN_NAME', `mx.test')dnl
define(`QUEUE_DIR', `{directory}/queue')dnl
define(`STATUS_FILE', `{directory}/statistics')dnl
define(`confPID_FILE', `{directory}/sendmail.pid')dnl
define(`HELP_FILE', `')dnl
undefine(`ALIAS_FILE')dnl
define(`confSERVICE_SWITCH_FILE', `{directory}/service.switch')dnl
define(`confTO_IDENT', `0')dnl
define(`confCONNECTION_RATE_THROTTLE', `0')dnl
define(`confMIN_QUEUE_AGE', `0')dnl
define(`confQUEUE_LA', `1000')dnl
define(`confREFUSE_LA', `1000')dnl
define(`confDELAY_LA', `1000')dnl
define(`confMAX_HEADERS_LENGTH', `8388608')dnl
define(`SMART_HOST', `relay:[127.0.0.1]')dnl
define(`RELAY_MAILER_ARGS', `TCP $h {next_hop}')dnl
FEATURE(`promiscuous_relay')dnl
FEATURE(`accept_unresolvable_domains')dnl
FEATURE(`accept_unqualified_senders')dnl
FEATURE(`nocanonify')dnl
FEATURE(`no_default_msa')dnl
DAEMON_OPTIONS(`Port={port}, Addr=127.0.0.1, Name=MTA')dnl
{lines}
MAILER(`smtp')dnl
"""


class Sendmail(Server):
    """One Sendmail: `port` takes mail for anybody, and hands it on to `next_hop_port`.

    lines   further lines of the configuration (m4)
    """

    name = "sendmail"

    def __init__(self, next_hop_port: int, lines: str = "") -> None:
        super().__init__()
        self._next_hop_port = next_hop_port
        self._lines = lines

    def choose_ports(self) -> None:
        self.port = free_port()

    def configure(self) -> None:
        (self.directory / "queue").mkdir(mode=0o700, exist_ok=True)
        (self.directory / "service.switch").write_text("hosts files\naliases files\npasswd files\n")
        source = CONFIGURATION.format(
            directory=self.directory,
            port=self.port,
            next_hop=self._next_hop_port,
            lines=self._lines,
        )
        made = subprocess.run(
            ["m4", f"-D_CF_DIR_={CF}/", str(CF / "m4" / "cf.m4"), "-"],
            input=source, capture_output=True, text=True, check=True, timeout=20,
        )  # fmt: skip
        (self.directory / "sendmail.cf").write_text(made.stdout)

    def command(self) -> list[str]:
        configuration = str(self.directory / "sendmail.cf")
        log = f"-X{self.directory}/traffic.log"
        # Without a dot in the name of its host it waits a minute before it reads anything.
        own_name = ["unshare", "--uts", "sh", "-c", 'hostname mx.test && exec "$@"', "sendmail"]
        return [*own_name, str(SENDMAIL), "-C", configuration, log, "-bD", "-q1s"]

    def is_ready(self) -> bool:
        return greeting(self.port).startswith(b"220 ")

    def queued(self) -> list[Path]:
        """Return the envelopes that wait in the queue; those in quarantine begin with hf."""
        return sorted((self.directory / "queue").glob("[qh]f*"))


SendmailFactory = Callable[..., Sendmail]


@pytest.fixture
def sendmail() -> Iterator[SendmailFactory]:
    """Start a Sendmail: `sendmail(sink.port, "INPUT_MAIL_FILTER(…)")`."""
    require("sendmail")
    with ExitStack() as servers:
        yield lambda port, lines="": servers.enter_context(Sendmail(port, lines))
