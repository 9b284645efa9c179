"""rspamd and spampd with SpamAssassin, as Debian 12 has them, without network: to compare."""

import os
import pwd
import shutil
import subprocess
import urllib.request
from collections.abc import Sequence
from contextlib import suppress

from spamd.sample import Label
from tests.servers.base import Server, free_port, greeting

RSPAMD = """\
.include "/etc/rspamd/common.conf"
options {{ pidfile = "{folder}/rspamd.pid"; hs_cache_dir = "{folder}/db";
  dns {{ nameserver = ["127.0.0.1:9"]; timeout = 0.1s; retransmits = 1; }} }}
logging {{ type = "console"; level = "notice"; }}
worker "normal" {{ bind_socket = "127.0.0.1:{port}"; count = 2; }}
worker "controller" {{ bind_socket = "127.0.0.1:{controller}"; count = 1;
  password = "q1"; secure_ip = "127.0.0.1"; }}
worker "rspamd_proxy" {{ bind_socket = "127.0.0.1:{milter}"; milter = yes; count = 2; timeout = 60s;
  upstream "local" {{ default = yes; hosts = "127.0.0.1:{port}"; }} }}
redis {{ servers = "127.0.0.1:{redis}"; }}
"""

SPAMASSASSIN = """\
use_bayes 1
bayes_path {folder}/home/bayes
bayes_auto_learn 0
dns_available no
skip_rbl_checks 1
use_razor2 0
use_pyzor 0
"""


class Redis(Server):
    """Where rspamd keeps its words."""

    name = "redis"

    def configure(self) -> None:
        """All is said on the command line."""

    def command(self) -> list[str]:
        return [
            "redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
            "--dir", str(self.directory), "--save", "", "--appendonly", "no",
        ]  # fmt: skip

    def is_ready(self) -> bool:
        done = subprocess.run(
            ["redis-cli", "-p", str(self.port), "ping"], capture_output=True, check=False
        )
        return done.stdout.strip() == b"PONG"


class Rspamd(Server):
    """rspamd with its own Redis; `milter_port` is for Postfix."""

    name = "rspamd"
    account = "_rspamd"
    start_s = 90

    def __init__(self) -> None:
        self.redis = Redis()
        super().__init__()

    def choose_ports(self) -> None:
        self.port, self.controller_port, self.milter_port = free_port(), free_port(), free_port()

    def configure(self) -> None:
        if not self.redis.running:
            self.redis.start()
        (self.directory / "db").mkdir(exist_ok=True)
        account = pwd.getpwnam(self.account)
        for path in (self.directory, self.directory / "db"):
            os.chown(path, account.pw_uid, account.pw_gid)
        (self.directory / "rspamd.conf").write_text(
            RSPAMD.format(
                folder=self.directory,
                port=self.port,
                controller=self.controller_port,
                milter=self.milter_port,
                redis=self.redis.port,
            )
        )

    def command(self) -> list[str]:
        folder = self.directory
        return [
            "rspamd", "-f", "-c", f"{folder}/rspamd.conf",
            f"--var=DBDIR={folder}/db", f"--var=RUNDIR={folder}", f"--var=LOGDIR={folder}",
        ]  # fmt: skip

    def is_ready(self) -> bool:
        with suppress(OSError):
            url = f"http://127.0.0.1:{self.port}/ping"
            return bool(urllib.request.urlopen(url, timeout=1).read().startswith(b"pong"))
        return False

    def learn(self, paths: Sequence[str], label: Label) -> None:
        """Teach it mails by its own tool."""
        for start in range(0, len(paths), 200):
            subprocess.run(
                ["rspamc", "-h", f"127.0.0.1:{self.controller_port}", "-P", "q1",
                 f"learn_{label}", *paths[start : start + 200]],
                check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=600,
            )  # fmt: skip

    def close(self) -> None:
        super().close()
        self.redis.close()


class Spampd(Server):
    """spampd, a before-queue proxy around SpamAssassin."""

    name = "spampd"
    start_s = 60

    def __init__(self, next_port: int) -> None:
        super().__init__()
        self._next_port = next_port
        self._home = self.directory / "home"
        self._home.mkdir()
        self._rules = self.directory / "site"
        shutil.copytree("/etc/spamassassin", self._rules)
        (self._rules / "local.cf").write_text(SPAMASSASSIN.format(folder=self.directory))
        self._own()

    def _own(self) -> None:
        nobody = pwd.getpwnam("nobody").pw_uid
        for path in (self._home, *self._home.iterdir()):
            os.chown(path, nobody, 0)

    def configure(self) -> None:
        self._own()

    def command(self) -> list[str]:
        return [
            "spampd", f"--host=127.0.0.1:{self.port}", f"--relayhost=127.0.0.1:{self._next_port}",
            "--nodetach", "--user=nobody", "--group=nogroup", f"--pid={self._home}/spampd.pid",
            "--local-only", "--children=2", "--tagall", "--logsock=inet", "--maxsize=1024",
            f"--saconfig={self._rules}/local.cf",
        ]  # fmt: skip

    def is_ready(self) -> bool:
        return greeting(self.port).startswith(b"220 ")

    def learn(self, paths: Sequence[str], label: Label) -> None:
        """Teach it mails by its own tool."""
        names = self.directory / "names"
        names.write_text("\n".join(paths))
        subprocess.run(
            ["sa-learn", f"--{label}", "--no-sync", f"--siteconfigpath={self._rules}",
             f"--dbpath={self._home}/bayes", "-f", str(names)],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=900,
            env=self.environment(),
        )  # fmt: skip
        subprocess.run(
            ["sa-learn", "--sync", f"--siteconfigpath={self._rules}",
             f"--dbpath={self._home}/bayes"],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300,
            env=self.environment(),
        )  # fmt: skip
