"""Dovecot 2.3 as IMAP and LMTP server over Maildir: `dovecot`.

Nothing of /etc/dovecot is read. Users are alice and bob (more on request) with the password
`PASSWORD`; the master user `MASTER` logs in as "alice*filter" with `MASTER_PASSWORD`. Mail for
alice@any.domain goes to alice. Junk and Trash exist from the start with their special uses.

Three habits of Dovecot that tests must know: IDLE tells news after a fixed half second; UIDVALIDITY
values are seconds of the clock; only `kill` (the whole group) cuts a client's connection.
"""

import grp
import imaplib
import os
import pwd
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trustme

from tests.servers.base import Server, free_port, greeting, require

PASSWORD = "open sesame"
MASTER = "filter"
MASTER_PASSWORD = "behind the curtain"

CONFIGURATION = """\
base_dir = {directory}/run
state_dir = {directory}/state
instance_name = t{port}
log_path = {directory}/dovecot.log
mail_temp_dir = {directory}/mailtmp
protocols = imap lmtp
listen = 127.0.0.1
ssl = yes
ssl_cert = <{directory}/certificate.pem
ssl_key = <{directory}/key.pem
disable_plaintext_auth = no
auth_mechanisms = plain login
auth_username_format = %Ln
auth_failure_delay = 0
auth_master_user_separator = *
mail_location = maildir:~/Maildir
mail_fsync = never
first_valid_uid = 1
first_valid_gid = 1
mail_max_userip_connections = 50
shutdown_clients = yes
service anvil {{
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
{unprivileged}}}
passdb {{
  driver = passwd-file
  master = yes
  args = {directory}/masters
  result_success = continue
}}
passdb {{
  driver = passwd-file
  args = {directory}/users
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={directory}/home/%n
}}
namespace inbox {{
  inbox = yes
  separator = /
  mailbox Junk {{
    special_use = \\Junk
    auto = subscribe
  }}
  mailbox Trash {{
    special_use = \\Trash
    auto = subscribe
  }}
}}
service imap-login {{
  inet_listener imap {{
    address = 127.0.0.1
    port = {port}
  }}
  inet_listener imaps {{
    address = 127.0.0.1
    port = {imaps_port}
    ssl = yes
  }}
{unprivileged}}}
service stats {{
{unprivileged}}}
service lmtp {{
  inet_listener lmtp {{
    address = 127.0.0.1
    port = {lmtp_port}
  }}
{lmtp_user}}}
{own_user}"""
"""The listener without access is anvil's penalty: else a failed login slows the next good one."""


class Dovecot(Server):
    """One Dovecot: IMAP on `port` (STARTTLS too), IMAPS on `imaps_port`, LMTP on `lmtp_port`.

    `authority` is a file with the certificate of the authority that clients have to trust;
    `settings`, set before the start, ends the configuration.
    """

    name = "dovecot"

    def __init__(self, *users: str) -> None:
        super().__init__()
        self._users = users or ("alice", "bob")
        self.settings = ""
        self.authority = self.directory / "authority.pem"
        self._make_certificate()

    def _make_certificate(self) -> None:
        authority = trustme.CA()
        certificate = authority.issue_cert("localhost", "127.0.0.1")
        authority.cert_pem.write_to_path(self.authority)
        certificate.private_key_pem.write_to_path(self.directory / "key.pem")
        for number, blob in enumerate(certificate.cert_chain_pems):
            blob.write_to_path(self.directory / "certificate.pem", append=number > 0)

    def choose_ports(self) -> None:
        self.port = free_port()
        self.imaps_port = free_port()
        self.lmtp_port = free_port()

    def configure(self) -> None:
        root = os.geteuid() == 0
        owner = pwd.getpwnam("nobody") if root else pwd.getpwuid(os.geteuid())
        for folder in ("run", "state", "mailtmp", "home"):
            (self.directory / folder).mkdir(exist_ok=True)
        os.chown(self.directory / "home", owner.pw_uid, owner.pw_gid)
        self._write_passwords("users", dict.fromkeys(self._users, PASSWORD))
        self._write_passwords("masters", {MASTER: MASTER_PASSWORD})
        own_user = (
            f"default_internal_user = {owner.pw_name}\n"
            f"default_login_user = {owner.pw_name}\n"
            f"default_internal_group = {grp.getgrgid(owner.pw_gid).gr_name}\n"
        )
        text = CONFIGURATION.format(
            directory=self.directory,
            port=self.port,
            imaps_port=self.imaps_port,
            lmtp_port=self.lmtp_port,
            uid=owner.pw_uid,
            gid=owner.pw_gid,
            unprivileged="" if root else "  chroot =\n",
            lmtp_user="" if root else f"  user = {owner.pw_name}\n",
            own_user="" if root else own_user,
        )
        (self.directory / "dovecot.conf").write_text(text + self.settings)

    def _write_passwords(self, file: str, passwords: dict[str, str]) -> None:
        lines = [f"{user}:{{PLAIN}}{password}\n" for user, password in passwords.items()]
        (self.directory / file).write_text("".join(lines))

    def command(self) -> list[str]:
        return ["/usr/sbin/dovecot", "-F", "-c", str(self.directory / "dovecot.conf")]

    def is_ready(self) -> bool:
        return greeting(self.port).startswith(b"* OK") and greeting(self.lmtp_port)[:4] == b"220 "

    def logs(self) -> list[Path]:
        return [self.log, self.directory / "dovecot.log"]

    def maildir(self, user: str) -> Path:
        """Return where the mail of `user` lies (made by Dovecot at the first login or delivery)."""
        return self.directory / "home" / user / "Maildir"

    def login(self, user: str = "alice") -> imaplib.IMAP4:
        """Return an IMAP session of `user`; the caller logs out (`with`)."""
        session = imaplib.IMAP4("127.0.0.1", self.port, timeout=10)
        session.login(user, PASSWORD)
        return session


DovecotFactory = Callable[..., Dovecot]


@pytest.fixture
def dovecot() -> Iterator[DovecotFactory]:
    """Start a Dovecot: `dovecot()` with alice and bob, or `dovecot("carol", …)`."""
    require("dovecot")
    with ExitStack() as servers:
        yield lambda *users: servers.enter_context(Dovecot(*users))
