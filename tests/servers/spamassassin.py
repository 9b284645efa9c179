"""SpamAssassin's own spamd, without network: what our SPAMC listener is compared with.

It learns on `TELL`, is asked over TCP and a UNIX socket, and uses the rules of Debian's package.
"""

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from spamd.sample import Label
from tests.servers.base import Server, require

PROGRAM = Path("/usr/sbin/spamd")
SPAMC = Path("/usr/bin/spamc")
SITE = Path("/etc/spamassassin")
ACCOUNT = "nobody"


REPORTER = """\
package Reporter;
use Mail::SpamAssassin::Plugin;
our @ISA = qw(Mail::SpamAssassin::Plugin);
sub new { my ($class, $main) = @_; return bless $class->SUPER::new($main), $class; }
sub plugin_report {
  my ($self, $options) = @_;
  $options->{report}->{report_available} = 1;
  $options->{report}->{report_return} = 1;
}
sub plugin_revoke {
  my ($self, $options) = @_;
  $options->{revoke}->{revoke_available} = 1;
  $options->{revoke}->{revoke_return} = 1;
}
1;
"""
"""A database elsewhere to which mail is reported, as Razor is one: it takes everything."""


class SpamAssassin(Server):
    """One spamd of SpamAssassin."""

    name = "spamassassin"
    start_s = 60

    @property
    def socket(self) -> Path:
        return self.directory / "socket"

    def configure(self) -> None:
        account = pwd.getpwnam(ACCOUNT)
        home, site = self.directory / "home", self.directory / "site"
        for folder in (home, site):
            folder.mkdir(exist_ok=True)
        for path in (home, *home.iterdir()):
            os.chown(path, account.pw_uid, account.pw_gid)
        for path in SITE.glob("*.pre"):
            shutil.copy(path, site)
        (site / "local.cf").write_text(
            f"bayes_path {home}/bayes\ndns_available no\nskip_rbl_checks 1\n"
            f"loadplugin Reporter {site}/reporter.pm\n"
            "report_safe 0\nuse_razor2 0\nuse_pyzor 0\nbayes_min_spam_num 5\nbayes_min_ham_num 5\n"
        )

        (site / "reporter.pm").write_text(REPORTER)

    def learn(self, paths: Sequence[str], label: Label) -> None:
        """Teach it mails by its own tool, before it starts."""
        self.configure()
        names = self.directory / "names"
        names.write_text("\n".join(paths))
        subprocess.run(
            ["sa-learn", f"--{label}", f"--siteconfigpath={self.directory}/site", "-f", str(names)],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=900,
            env=self.environment(),
        )  # fmt: skip

    def command(self) -> list[str]:
        return [
            str(PROGRAM), "-u", ACCOUNT, "-H", str(self.directory / "home"), "-L", "-x",
            f"--siteconfigpath={self.directory}/site", "-s", "stderr", "--allow-tell",
            "--min-children=1", "--max-children=2", "-r", str(self.directory / "pid"),
            "--listen", f"127.0.0.1:{self.port}", "--listen", str(self.socket),
            "--socketmode=0666",
        ]  # fmt: skip

    def is_ready(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
                connection.sendall(b"PING SPAMC/1.2\r\n")
                return b"PONG" in connection.recv(100)
        except OSError:
            return False


@pytest.fixture(scope="module")
def spamassassin() -> Iterator[SpamAssassin]:
    """Return a running spamd of SpamAssassin."""
    require("spamassassin")
    with SpamAssassin() as server:
        yield server


def spamc(
    *options: str, mail: bytes = b"", timeout_s: float = 60
) -> subprocess.CompletedProcess[bytes]:
    """Run spamc on a mail."""
    return subprocess.run(
        [SPAMC, "--connect-retries=1", *options],
        input=mail, capture_output=True, check=False, timeout=timeout_s, cwd="/tmp",
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C"},
    )  # fmt: skip
