"""Cyrus IMAP 3.6 as IMAP and LMTP server with Sieve: `cyrus`.

Nothing of /etc is read. Mailboxes come into being with the first login; any password is right. One
Sieve script for everybody is put in place by ManageSieve, as a person's program does it. Debian's
package can't be installed beside Dovecot's: `.ci/install-packages` unpacks it.
"""

import base64
import imaplib
import os
import pwd
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.servers.base import CYRUS_ROOT, Server, free_port, greeting, require
from tests.waiting import wait_until

CONFIGURATION = """\
configdirectory: {directory}/conf
partition-default: {directory}/spool
sievedir: {directory}/sieve
cyrus_user: {account}
cyrus_group: {group}
autocreate_quota: 0
autocreate_inbox_folders: Junk
altnamespace: yes
unixhierarchysep: yes
virtdomains: off
sasl_pwcheck_method: alwaystrue
sasl_mech_list: PLAIN
allowplaintext: yes
duplicatesuppression: no
sieve_extensions: fileinto
"""
SERVICES = """\
START {{
  recover cmd="{programs}/ctl_cyrusdb -C {directory}/imapd.conf -r"
}}
SERVICES {{
  imap cmd="{programs}/imapd -C {directory}/imapd.conf" listen="127.0.0.1:{port}" prefork=1
  lmtp cmd="{programs}/lmtpd -C {directory}/imapd.conf -a" listen="127.0.0.1:{lmtp_port}" prefork=1
  sieve cmd="{programs}/timsieved -C {directory}/imapd.conf" listen="127.0.0.1:{sieve_port}"
}}
EVENTS {{
}}
"""


class Cyrus(Server):
    """One Cyrus: IMAP on `port`, LMTP on `lmtp_port`, ManageSieve on `sieve_port`."""

    name = "cyrus"
    account = "nobody"

    def choose_ports(self) -> None:
        self.port = free_port()
        self.lmtp_port = free_port()
        self.sieve_port = free_port()

    def configure(self) -> None:
        root = os.geteuid() == 0
        owner = pwd.getpwnam("nobody") if root else pwd.getpwuid(os.geteuid())
        for folder in ("conf", "spool", "sieve"):
            (self.directory / folder).mkdir(exist_ok=True)
        for path in (self.directory, *self.directory.iterdir()):
            os.chown(path, owner.pw_uid, owner.pw_gid)
        settings = CONFIGURATION.format(
            directory=self.directory, account=owner.pw_name, group="nogroup" if root else ""
        )
        (self.directory / "imapd.conf").write_text(settings)
        services = SERVICES.format(
            directory=self.directory,
            programs=CYRUS_ROOT / "usr/lib/cyrus/bin",
            port=self.port,
            lmtp_port=self.lmtp_port,
            sieve_port=self.sieve_port,
        )
        (self.directory / "cyrus.conf").write_text(services)

    def command(self) -> list[str]:
        files = [f"{self.directory}/{name}" for name in ("imapd.conf", "cyrus.conf", "pid")]
        master = str(CYRUS_ROOT / "usr/sbin/cyrmaster")
        return [master, "-D", "-C", files[0], "-M", files[1], "-p", files[2]]

    def environment(self) -> dict[str, str]:
        libraries = CYRUS_ROOT / "usr/lib/x86_64-linux-gnu"
        return super().environment() | {"LD_LIBRARY_PATH": str(libraries)}

    def is_ready(self) -> bool:
        ready = greeting(self.port).startswith(b"* OK") and greeting(self.lmtp_port)[:4] == b"220 "
        return ready and greeting(self.sieve_port).startswith(b'"IMPLEMENTATION"')

    def login(self, user: str = "alice") -> imaplib.IMAP4:
        """Return an IMAP session of `user`, whose mailboxes are there from now on."""
        session = imaplib.IMAP4("127.0.0.1", self.port, timeout=10)
        session.login(user, "any")
        return session

    def filter_by(self, script: str, user: str = "alice") -> None:
        """Put a Sieve script in place for `user` (RFC 5804)."""
        who = base64.b64encode(f"\0{user}\0any".encode()).decode()
        content = script.encode()
        put = b'PUTSCRIPT "filter" {%d+}\r\n%s\r\n' % (len(content), content)
        with socket.create_connection(("127.0.0.1", self.sieve_port), timeout=10) as connection:
            answers = connection.makefile("rb")

            def agrees(command: bytes) -> bool:
                connection.sendall(command)
                return next(line for line in answers if line[:2] in (b"OK", b"NO"))[:2] == b"OK"

            assert agrees(b"")  # the greeting
            assert agrees(f'AUTHENTICATE "PLAIN" "{who}"\r\n'.encode())
            # A script stored in the first second of a mailbox is sometimes not found again.
            wait_until(
                lambda: agrees(put) and agrees(b'SETACTIVE "filter"\r\n'), what="a script in place"
            )


CyrusFactory = Callable[[], Cyrus]


@pytest.fixture
def cyrus() -> Iterator[CyrusFactory]:
    """Start a Cyrus: `cyrus()`."""
    require("cyrus")
    with ExitStack() as servers:
        yield lambda: servers.enter_context(Cyrus())
