"""Into an IMAP account: connect, secure the connection, log in.

Credentials are read anew at each login, so a password may be changed while we run. A certificate is
always checked; a password never goes over a line without the TLS that was asked for.
"""

import ssl
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from imapclient import IMAPClient

from spamd.feedback.mailboxes.imap_wire import Allowance, Wire
from spamd.feedback.mailboxes.mailbox import AccessError, MailboxError
from spamd.feedback.options import LOOPBACK, AccountOptions, Tls
from spamd.files import first_line
from spamd.wording import reason

TOKEN_COMMAND_S = 30
"""How long the program that prints an access token may take."""

CONTEXT_S = 3600.0
"""After this time the certificates to trust are read again; a file of our own at once when it
changed."""


@dataclass(slots=True)
class TlsContexts:
    """What TLS needs, made once for all accounts.

    Reading the system's certificates takes 55 ms in which nothing else of the process runs: made
    at each connection, 400 accounts would hold up mail for 20 s.
    """

    _made: dict[tuple[Path | None, int], tuple[float, ssl.SSLContext]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def trusting(self, ca_file: Path | None) -> ssl.SSLContext:
        """Return a context that trusts this file's certificates, without one the system's.

        Raises:
            OSError: the file can't be read.
        """
        key = (ca_file, 0 if ca_file is None else ca_file.stat().st_mtime_ns)
        now = time.monotonic()
        with self._lock:
            made, context = self._made.get(key, (0.0, None))
            if context is None or now - made > CONTEXT_S:
                context = ssl.create_default_context(cafile=ca_file)
                self._made = {old: one for old, one in self._made.items() if old[0] != ca_file}
                self._made[key] = now, context
            return context


class Client(IMAPClient):  # type: ignore[misc]  # imapclient has no types
    """An `IMAPClient` on a wire of ours."""

    def __init__(
        self, account: AccountOptions, context: ssl.SSLContext | None, greeting: Allowance
    ) -> None:
        self._greeting = greeting
        super().__init__(
            account.host, account.effective_port, ssl=context is not None, ssl_context=context
        )
        self.wire.debug = 0  # else each line is written out for a log that nobody reads
        self.folder_encode = False  # commands take names exactly as LIST gave them
        self.normalise_times = False

    @property
    def wire(self) -> Wire:
        """The connection itself."""
        wire: Wire = self._imap
        return wire

    def _create_IMAP4(self) -> Wire:  # noqa: N802 - as IMAPClient calls it
        return Wire(self.host, self.port, self.ssl_context, self._greeting)

    def _set_read_timeout(self) -> None:
        """Leave the socket alone: the wire keeps the time."""


def connect(
    account: AccountOptions, place: str, contexts: TlsContexts, greeting: Allowance
) -> Client:
    """Return a connection, secured as the account wants it.

    Raises:
        MailboxError: the server offers no TLS.
    """
    clear = account.tls is Tls.NONE
    context = None if clear else contexts.trusting(account.ca_file)
    client = Client(account, context if account.implicit_tls else None, greeting)
    if account.implicit_tls or clear:
        return client
    try:
        offered = client.has_capability("STARTTLS")
        if offered:
            client.starttls(context)
    except BaseException:
        client.wire.shutdown()
        raise
    if not offered and (account.tls is Tls.STARTTLS or account.host not in LOOPBACK):
        client.wire.shutdown()
        raise MailboxError(f"{place} offers no STARTTLS; the password is not sent in the clear")
    return client


def log_in(client: Any, account: AccountOptions, login: str) -> None:
    """Log in with what the account has.

    Raises:
        AccessError: password or token can't be read.
    """
    if account.token_file or account.token_command:
        client.oauth2_login(login, _token(account))
    else:
        client.login(login, _password(account))


def _password(account: AccountOptions) -> str:
    if account.password_file:
        return _first_line(account.password_file)
    return account.password


def _token(account: AccountOptions) -> str:
    if account.token_file:
        return _first_line(account.token_file)
    try:
        done = subprocess.run(  # noqa: S603 - the admin wrote this command into the settings
            account.token_command,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=TOKEN_COMMAND_S, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise AccessError(f"the token command of {account.user} failed: {_ended(error)}") from error
    return "".join(done.stdout.decode("ascii", "replace").split())


def _ended(error: OSError | subprocess.SubprocessError) -> str:
    """Return how a program ended, without its arguments: a secret may stand there."""
    match error:
        case subprocess.CalledProcessError():
            return f"it ended with exit code {error.returncode}"
        case subprocess.TimeoutExpired():
            return f"it did not end within {TOKEN_COMMAND_S:g} s"
        case _:
            return reason(error)


def _first_line(file: Path) -> str:
    try:
        return first_line(file)
    except (OSError, UnicodeError) as error:
        raise AccessError(f"{file} can't be read: {reason(error)}") from error
