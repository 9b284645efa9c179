r"""One connection to an IMAP server, blocking: used in a thread of its own by `imap.ImapMailbox`.

Commands sent: CAPABILITY, STARTTLS, LOGIN or AUTHENTICATE, LIST, STATUS, EXAMINE, UID SEARCH,
UID FETCH with BODY.PEEK, IDLE, DONE, LOGOUT. None of them changes anything on the server: no flag
is set, \Seen least of all, nothing is written, moved or expunged.

Sources: RFC 3501, 2177 (IDLE), 7162 (CONDSTORE), 8514 (SAVEDATE), 6154 (SPECIAL-USE).
"""

import contextlib
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from imapclient import IMAPClient
from imapclient.datetime_util import parse_to_datetime
from imapclient.exceptions import CapabilityError, IMAPClientError, LoginError

from spamd.feedback.folders import Listed
from spamd.feedback.mailbox import AccessError, FolderError, MailboxError, decoded
from spamd.feedback.options import LOOPBACK, AccountOptions, Tls

SEARCH_WINDOW = 50_000
"""UIDs asked for in one SEARCH: a UID has up to 10 digits, and imaplib refuses a response line
above 1,000,000 bytes (cpython `imaplib._MAXLINE`)."""

PATIENCE = 5
"""A command on a folder may take this many times `feedback.timeout_s`: servers index a large folder
when it is opened for the first time, without a word."""

IDLE_SLICE_S = 1.0
"""How long one poll of an idle connection lasts; a stop waits no longer than this."""

TOKEN_COMMAND_S = 30
"""How long the program that prints an access token may take."""

HEADER = "BODY.PEEK[HEADER.FIELDS (MESSAGE-ID DATE FROM TO CC SUBJECT X-SPAM-ID)]"

JUNK_KEYWORDS = ("$Junk", "$NotJunk")
"""IANA's registered keywords; clients set Junk and NonJunk by filters of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A folder's state: `validity` and `modseq` are 0 where the server has none."""

    validity: int
    next_uid: int
    modseq: int
    messages: int

    def differs(self, other: "Status") -> bool:
        """Return whether the folder changed; what one of the two answers left out doesn't count."""
        pairs = [
            (self.validity, other.validity),
            (self.next_uid, other.next_uid),
            (self.modseq, other.modseq),
        ]
        changed = any(mine and theirs and mine != theirs for mine, theirs in pairs)
        return changed or self.messages != other.messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One mail as FETCH tells it: `saved` is when it came to this folder, at the latest (SAVEDATE).

    fault   why it can't be read; empty when it can
    """

    uid: int
    flags: frozenset[str]
    delivered: datetime | None
    saved: datetime | None
    header: bytes
    fault: str = ""


class ImapSession:
    """A logged-in connection. Only `abort` may be called from another thread."""

    def __init__(self, account: AccountOptions, login: str, timeout_s: float) -> None:
        self._account = account
        self._login = login
        self._timeout_s = timeout_s
        self._client: Any = None
        self._selected = ""
        self._broken = False

    def open(self) -> None:
        """Connect, secure the connection and log in."""
        with self._errors("can't be reached"):
            self._connect()
            self._client.folder_encode = False  # commands take names exactly as LIST gave them
            self._client.normalise_times = False
        self._log_in()

    def close(self) -> None:
        """Log out; never fails, and waits for no server that fell silent."""
        if self._client is not None:
            if not self._broken:
                with contextlib.suppress(Exception):
                    self._client.logout()
            with contextlib.suppress(Exception):
                self._client.shutdown()
            self._client = None

    def abort(self) -> None:
        """End a call that blocks in another thread by closing the connection under it."""
        self._broken = True
        client = self._client
        if client is not None:
            with contextlib.suppress(OSError):
                client.socket().shutdown(socket.SHUT_RDWR)

    def has(self, capability: str) -> bool:
        """Return whether the server announces a capability."""
        return bool(self._client.has_capability(capability))

    def listed(self) -> list[Listed]:
        """Return all folders of the account."""
        with self._errors("does not list its folders"):
            rows = self._client.list_folders()
        return [_listed(attributes, delimiter, raw) for attributes, delimiter, raw in rows]

    def status(self, raw: str) -> Status:
        """Return a folder's state; without selecting it where that is possible."""
        if raw == self._selected:
            return self.examine(raw)  # RFC 3501 §6.3.10: STATUS is not for the selected folder
        wanted = ["MESSAGES", "UIDNEXT", "UIDVALIDITY"]
        if self.has("CONDSTORE"):
            wanted.append("HIGHESTMODSEQ")
        with self._folder_errors(raw):
            found = self._client.folder_status(raw, wanted)
        return Status(
            validity=int(found.get(b"UIDVALIDITY", 0)),
            next_uid=int(found.get(b"UIDNEXT", 0)),
            modseq=int(found.get(b"HIGHESTMODSEQ", 0)),
            messages=int(found.get(b"MESSAGES", 0)),
        )

    def examine(self, raw: str) -> Status:
        """Select a folder for reading only, and return its state."""
        self._selected = ""
        with self._folder_errors(raw):
            found = self._client.select_folder(raw, readonly=True)
        self._selected = raw
        return Status(
            validity=int(found.get(b"UIDVALIDITY", 0)),
            next_uid=int(found.get(b"UIDNEXT", 0)),
            modseq=int(found.get(b"HIGHESTMODSEQ", 0)),
            messages=int(found[b"EXISTS"]),
        )

    def uids(self, raw: str, low: int, status: Status, keyword: str = "") -> list[int]:
        """Return the UIDs from `low` on, ascending, with `keyword` if one is given."""
        self._select(raw)
        if status.messages == 0:
            return []
        top = status.next_uid - 1
        windows = [(low, 0)]
        if status.messages > SEARCH_WINDOW and top:
            starts = range(low, top + 1, SEARCH_WINDOW)
            windows = [(start, min(start + SEARCH_WINDOW - 1, top)) for start in starts]
        found: set[int] = set()
        with self._folder_errors(raw):
            for first, last in windows:
                criteria = ["UID", f"{first}:{last or '*'}"]
                if keyword:
                    criteria += ["KEYWORD", keyword]
                # RFC 3501 §6.4.8: "n:*" always holds the last message, even below n.
                found.update(uid for uid in self._client.search(criteria) if uid >= low)
        return sorted(found)

    def rows(self, raw: str, uids: Sequence[int]) -> list[Row]:
        """Return what is known of mails; those that vanished are left out."""
        self._select(raw)
        items = ["FLAGS", "INTERNALDATE", HEADER]
        if self.has("SAVEDATE"):
            items.append("SAVEDATE")
        return self._rows(raw, list(uids), items)

    def _rows(self, raw: str, uids: list[int], items: list[str]) -> list[Row]:
        try:
            with self._folder_errors(raw):
                found = self._client.fetch(uids, items)
        except FolderError as error:
            # One answer that can't be read (a date of the year 0) must not hide its neighbours.
            if len(uids) == 1:
                return [_unreadable(uids[0], str(error))]
            middle = len(uids) // 2
            return self._rows(raw, uids[:middle], items) + self._rows(raw, uids[middle:], items)
        rows = [_row(uid, data) for uid, data in found.items() if _header_of(data) is not None]
        return sorted(rows, key=lambda row: row.uid)

    def content(self, raw: str, uid: int, limit: int) -> bytes | None:
        """Return a mail's first `limit` bytes, None when it vanished."""
        self._select(raw)
        with self._folder_errors(raw):
            found = self._client.fetch([uid], [f"BODY.PEEK[]<0.{limit}>"])
        for name, value in found.get(uid, {}).items():
            if name.startswith(b"BODY[]") and isinstance(value, bytes):
                return value
        return None

    def idle(self, raw: str, seconds: float, known: Status | None) -> None:
        """Return when the folder changed since `known`, or after `seconds`."""
        if known is not None and self.examine(raw).differs(known):
            return
        self._select(raw)
        until = time.monotonic() + seconds
        with self._errors("ended the connection"):
            self._client.idle()
            told = self._has_unread()
            while not told and not self._broken and (left := until - time.monotonic()) > 0:
                started = time.monotonic()
                news = self._client.idle_check(timeout=min(left, IDLE_SLICE_S))
                if any(answer[0] == b"BYE" for answer in news):
                    raise MailboxError(f"{self._place} said goodbye")
                early = time.monotonic() - started < min(left, IDLE_SLICE_S) / 2
                # Early without news: the connection ended, which DONE will show.
                told = early or any(_tells(answer) for answer in news)
            self._client.idle_done()

    def _has_unread(self) -> bool:
        """Return whether the server said more in one breath with its answer to IDLE.

        IMAPClient polls the socket and so misses what imaplib has buffered already.
        """
        imap = self._client._imap  # noqa: SLF001 - IMAPClient offers no way to ask
        buffered = getattr(imap, "_file", None) or imap.file
        connection = self._client.socket()
        connection.settimeout(0)  # not blocking
        try:
            return bool(buffered.peek(1))
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        finally:
            connection.settimeout(self._timeout_s)

    def _select(self, raw: str) -> None:
        if self._selected != raw:
            self.examine(raw)

    @property
    def _place(self) -> str:
        return f"the IMAP server {self._account.host}:{self._account.effective_port}"

    def _connect(self) -> None:
        account = self._account
        context = ssl.create_default_context(cafile=account.ca_file)
        self._client = client = IMAPClient(
            account.host,
            port=account.effective_port,
            ssl=account.implicit_tls,
            ssl_context=context if account.implicit_tls else None,
            timeout=self._timeout_s,
        )
        if account.implicit_tls or account.tls is Tls.NONE:
            return
        if client.has_capability("STARTTLS"):
            client.starttls(context)
        elif account.tls is Tls.STARTTLS or account.host not in LOOPBACK:
            raise MailboxError(
                f"{self._place} offers no STARTTLS; the password is not sent in the clear"
            )

    def _log_in(self) -> None:
        account = self._account
        with self._errors("ended the connection at the login"):
            if account.token_file or account.token_command:
                self._client.oauth2_login(self._login, _token(account))
            else:
                self._client.login(self._login, _password(account))

    @contextlib.contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except LoginError as error:
            raise AccessError(
                f"{self._place} refuses the login of {self._login}: {error}; check user and"
                " password of the account"
            ) from error
        except ssl.SSLError as error:
            self._broken = True
            raise MailboxError(
                f"{self._place} {what}: {error}; check tls, port and ca_file of the account"
            ) from error
        except (IMAPClientError, CapabilityError, OSError, EOFError, ValueError) as error:
            self._broken = True
            raise MailboxError(f"{self._place} {what}: {error}") from error

    @contextlib.contextmanager
    def _folder_errors(self, raw: str) -> Iterator[None]:
        self._wait_up_to(self._timeout_s * PATIENCE)
        try:
            yield
        except (IMAPClient.AbortError, OSError, EOFError) as error:
            self._broken = True
            raise MailboxError(f"{self._place} ended the connection: {error}") from error
        except (IMAPClientError, ValueError) as error:
            self._selected = ""
            raise FolderError(f"folder {decoded(raw)} can't be read: {error}") from error
        finally:
            self._wait_up_to(self._timeout_s)

    def _wait_up_to(self, seconds: float) -> None:
        with contextlib.suppress(OSError):
            self._client.socket().settimeout(seconds)


def _listed(attributes: Sequence[bytes], delimiter: bytes | None, raw: bytes | str) -> Listed:
    text = raw if isinstance(raw, str) else raw.decode("latin-1")
    return Listed(
        name=decoded(text),
        raw=text,
        attributes=frozenset(flag.decode("latin-1").lower() for flag in attributes),
        delimiter=delimiter.decode("latin-1") if isinstance(delimiter, bytes) else "",
    )


def _header_of(data: dict[bytes, Any]) -> bytes | None:
    for name, value in data.items():
        if name.upper().startswith(b"BODY[HEADER") and isinstance(value, bytes):
            return value
    return None


def _row(uid: int, data: dict[bytes, Any]) -> Row:
    delivered = data.get(b"INTERNALDATE")
    return Row(
        uid=uid,
        flags=frozenset(flag.decode("latin-1") for flag in data.get(b"FLAGS", ())),
        delivered=delivered if isinstance(delivered, datetime) else None,
        saved=_saved(data.get(b"SAVEDATE")),
        header=_header_of(data) or b"",
    )


def _unreadable(uid: int, fault: str) -> Row:
    return Row(uid=uid, flags=frozenset(), delivered=None, saved=None, header=b"", fault=fault)


def _saved(value: bytes | None) -> datetime | None:
    if not isinstance(value, bytes):
        return None
    try:
        saved: datetime = parse_to_datetime(value, normalise=False)
    except ValueError:
        return None
    return saved


def _tells(answer: tuple[Any, ...]) -> bool:
    """Return whether an answer within IDLE means that something happened, unlike "Still here"."""
    return len(answer) > 1 and answer[1] in {b"EXISTS", b"EXPUNGE", b"FETCH", b"VANISHED"}


def _password(account: AccountOptions) -> str:
    if account.password_file:
        return _first_line(account.password_file)
    return account.password


def _token(account: AccountOptions) -> str:
    if account.token_file:
        return _first_line(account.token_file)
    try:
        done = subprocess.run(  # noqa: S603 - the admin wrote this command into the settings
            account.token_command, capture_output=True, timeout=TOKEN_COMMAND_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise AccessError(f"the token command of {account.user} failed: {error}") from error
    return re.sub(r"\s", "", done.stdout.decode("ascii", "replace"))


def _first_line(file: Path) -> str:
    try:
        with file.open(encoding="utf-8") as lines:
            return lines.readline().rstrip("\r\n")
    except (OSError, UnicodeError) as error:
        raise AccessError(f"{file} can't be read: {error}") from error
