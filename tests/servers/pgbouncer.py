"""PgBouncer in transaction mode before a PostgreSQL, from Debian's package.

The package needs others that would start servers: `.ci/install-packages` unpacks it.
"""

import os
import signal

from tests.docs.blocks import block
from tests.servers.base import PGBOUNCER_ROOT, Server
from tests.servers.postgresql import Postgresql

PROGRAM = PGBOUNCER_ROOT / "usr/sbin/pgbouncer"

PRINTED = block("docs/scale.md", "[databases]")
"""What an admin sets; besides we set another folder, and who may log in."""


class Pgbouncer(Server):
    """One PgBouncer; `pool` connections to the server, `more` of its settings."""

    name = "pgbouncer"
    account = "postgres"

    def __init__(self, server: Postgresql, *, pool: int = 3, more: str = "") -> None:
        self.server = server
        self._pool = pool
        self._more = more
        super().__init__()

    def configure(self) -> None:
        text = PRINTED
        for printed, ours in (
            ("spamd = host=db1.example port=5432", f"* = host=127.0.0.1 port={self.server.port}"),
            ("6432", str(self.port)),
            ("scram-sha-256", "trust"),
            ("/etc/pgbouncer", str(self.directory)),
        ):
            assert printed in text
            text = text.replace(printed, ours)
        ours = f"unix_socket_dir =\ndefault_pool_size = {self._pool}\nserver_login_retry = 1\n"
        (self.directory / "pgbouncer.ini").write_text(f"{text}{ours}{self._more}\n")
        (self.directory / "userlist.txt").write_text('"postgres" ""\n')

    def command(self) -> list[str]:
        return [str(PROGRAM), str(self.directory / "pgbouncer.ini")]

    def environment(self) -> dict[str, str]:
        """Let it find the library that is unpacked beside it."""
        libraries = PGBOUNCER_ROOT / "usr/lib/x86_64-linux-gnu"
        return {**super().environment(), "LD_LIBRARY_PATH": str(libraries)}

    def lead_to(self, server: Postgresql) -> None:
        """Use another server from now on, as who manages a failover does."""
        self.server = server
        self.configure()
        os.kill(self.pid, signal.SIGHUP)

    def is_ready(self) -> bool:
        return "process up" in self.log_text()

    def url(self, database: str) -> str:
        """Return the URL of a database as `database.url` names it."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"
