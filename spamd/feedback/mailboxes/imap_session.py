r"""One connection to an IMAP server, blocking: used in a thread of its own by `imap.ImapMailbox`.

Commands sent: CAPABILITY, STARTTLS, LOGIN or AUTHENTICATE, LIST, STATUS, EXAMINE, UID SEARCH,
UID FETCH with BODY.PEEK, IDLE, DONE, LOGOUT. None of them changes anything on the server: no flag
is set, \Seen least of all, nothing is written, moved or expunged.

A server is as untrusted as mail. `imap_wire` bounds what it sends; here numbers are taken only in
the range that the protocol gives them, rows only of mails that were asked for, and whatever else an
answer may hold becomes a `FolderError` or, where it concerns the whole account, a `MailboxError`.

Sources: RFC 3501, 2177 (IDLE), 7162 (CONDSTORE), 6154 (SPECIAL-USE).
"""

import contextlib
import imaplib
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from typing import Any

from imapclient.exceptions import CapabilityError, IMAPClientError, LoginError

from spamd.feedback.mailboxes.folders import Listed
from spamd.feedback.mailboxes.imap_login import Client, TlsContexts, connect, log_in
from spamd.feedback.mailboxes.imap_rows import (
    UID_MOST,
    Row,
    Status,
    digits,
    folders,
    header_of,
    modseq_of,
    row_of,
    rows,
    status_of,
    unreadable_row,
)
from spamd.feedback.mailboxes.imap_wire import ANSWER_BYTES, TEXT_BYTES, Allowance
from spamd.feedback.mailboxes.mailbox import (
    SUMMARY_FIELDS,
    AccessError,
    FolderError,
    MailboxError,
    decoded,
    words,
)
from spamd.feedback.mailboxes.uidset import pack
from spamd.feedback.options import AccountOptions

SEARCH_WINDOW = 50_000
"""Mails looked through by one SEARCH: a UID has up to 10 digits, and a line ends at 1,000,000 bytes
(`imap_wire.LINE_BYTES`)."""

MOST_MAILS = 5_000_000
"""A folder that says it holds more is not read: that would be 100 commands, and 500 MB of UIDs."""

PATIENCE = 5
"""A command on a folder may take this many times `feedback.timeout_s`: servers index a large folder
when it is opened for the first time, without a word."""

GOODBYE_S = 2.0
"""How long a server may take to answer LOGOUT: nobody waits for a reply to that."""

LIST_BYTES = 32 * 1024 * 1024
"""What the answer to LIST may take in memory: 150,000 folders."""

MOST_UNREADABLE = 20
"""Mails of one FETCH that can't be read: with more it isn't the mails, and nothing is parked."""

GARBLED = (
    IMAPClientError, CapabilityError, ValueError, LookupError, TypeError, AttributeError,
    AssertionError, RecursionError, OverflowError,
)  # fmt: skip
"""What `imaplib` and `imapclient` raise on answers that are none."""

IDLE_SLICE_S = 1.0
"""How long one poll of an idle connection lasts; a stop waits no longer than this."""

HEADER = f"BODY.PEEK[HEADER.FIELDS ({' '.join(SUMMARY_FIELDS).upper()})]"

JUNK_KEYWORDS = ("$Junk", "$NotJunk")
"""IANA's registered keywords; clients set Junk and NonJunk by filters of their own."""


class ImapSession:
    """A logged-in connection. Only `abort` may be called from another thread."""

    def __init__(
        self,
        account: AccountOptions,
        login: str,
        timeout_s: float,
        contexts: TlsContexts | None = None,
    ) -> None:
        self._account = account
        self._login = login
        self._timeout_s = timeout_s
        self._contexts = contexts or TlsContexts()
        self._client: Any = None
        self._capabilities: frozenset[bytes] = frozenset()
        self._selected = ""
        self._broken = False

    def open(self) -> None:
        """Connect, secure the connection and log in."""
        with self._errors("can't be reached"):
            greeting = Allowance(seconds=self._timeout_s)
            self._client = connect(self._account, self._place, self._contexts, greeting)
        with self._errors("ended the connection at the login"):
            log_in(self._client, self._account, self._login)
            # Asked for now, not within another command; IMAPClient asks again where there are none.
            self._capabilities = frozenset(self._client.capabilities())

    def close(self) -> None:
        """Log out; never fails, and hardly waits."""
        client: Client | None = self._client
        self._client = None
        if client is None:
            return
        with contextlib.suppress(Exception):
            if not self._broken:
                client.wire.begin(Allowance(seconds=GOODBYE_S))
                client.logout()
        with contextlib.suppress(Exception):
            client.wire.shutdown()

    def abort(self) -> None:
        """End a call that blocks in another thread by closing the connection under it."""
        self._broken = True
        client = self._client
        if client is not None:
            with contextlib.suppress(OSError):
                client.socket().shutdown(socket.SHUT_RDWR)

    def has(self, capability: str) -> bool:
        """Return whether the server announces a capability."""
        return capability.encode() in self._capabilities

    def listed(self) -> list[Listed]:
        """Return all folders of the account; a line that names none is left out."""
        with self._errors("does not list its folders", LIST_BYTES):
            kind, data = self._client.wire.list('""', '"*"')
            if kind != "OK":
                raise IMAPClientError(f"LIST failed: {data[0]!r}")
        listed = list(folders(data))
        if not listed:  # RFC 3501 §5.1: there is always an INBOX
            raise MailboxError(f"{self._place} lists no folder of {self._login}")
        return listed

    def status(self, raw: str) -> Status:
        """Return a folder's state; without selecting it where that is possible."""
        if raw == self._selected:
            return self.examine(raw)  # RFC 3501 §6.3.10: STATUS is not for the selected folder
        wanted = ["MESSAGES", "UIDNEXT", "UIDVALIDITY"]
        if self.has("CONDSTORE"):
            wanted.append("HIGHESTMODSEQ")
        with self._folder_errors(raw):
            found = self._client.folder_status(raw, wanted)
        return status_of(found, b"MESSAGES")

    def examine(self, raw: str) -> Status:
        """Select a folder for reading only, and return its state."""
        self._selected = ""
        with self._folder_errors(raw):
            wire, name = self._client.wire, self._client._normalise_folder(raw)  # noqa: SLF001 - quotes
            kind, data = wire.select(name, readonly=True)
            if kind != "OK":
                raise IMAPClientError(f"EXAMINE failed: {data[0]!r}")
        self._selected = raw
        # Not by `select_folder`, which raises on a UIDVALIDITY that is no number.
        said = {name.upper().encode(): rows for name, rows in wire.untagged_responses.items()}
        return status_of({name: digits(rows[0]) for name, rows in said.items() if rows}, b"EXISTS")

    def uids(self, raw: str, low: int, status: Status, keyword: str = "") -> list[int]:
        """Return the UIDs from `low` on, ascending, with `keyword` if one is given."""
        self._select(raw)
        if status.messages == 0:
            return []
        if status.messages > MOST_MAILS:
            raise FolderError(
                f"folder {words(decoded(raw))} holds {status.messages:,} messages, as the server"
                f" says; a folder with more than {MOST_MAILS:,} is not read"
            )
        # By message numbers, whose count the server has said: UIDs may lie any distance apart.
        windows = [""]
        if status.messages > SEARCH_WINDOW:
            starts = range(1, status.messages + 1, SEARCH_WINDOW)
            windows = [f"{start}:{start + SEARCH_WINDOW - 1}" for start in starts[:-1]]
            windows.append(f"{starts[-1]}:*")
        found: set[int] = set()
        for window in windows:
            criteria = [window] if window else []
            criteria += ["UID", f"{low}:*"]
            if keyword:
                criteria += ["KEYWORD", keyword]
            with self._folder_errors(raw):
                # RFC 3501 §6.4.8: "n:*" always holds the last message, even below n.
                answer = self._client.search(criteria)
                found.update(uid for uid in answer if low <= uid <= UID_MOST)
        return sorted(found)

    def rows(self, raw: str, uids: Sequence[int]) -> list[Row]:
        """Return what is known of mails; those that vanished are left out."""
        if not uids:
            return []  # RFC 3501 §9: a set of none can't be asked for
        self._select(raw)
        return self._rows(raw, list(uids), ["FLAGS", "INTERNALDATE", HEADER])

    def _rows(self, raw: str, uids: list[int], items: list[str]) -> list[Row]:
        try:
            with self._folder_errors(raw):
                found = self._fetch(uids, items)
                rows = [row_of(uid, found[uid]) for uid in uids if header_of(found.get(uid, {}))]
        except FolderError as error:
            # One answer that can't be read (a date of the year 0) must not hide its neighbours.
            if len(uids) == 1:
                return [unreadable_row(uids[0], str(error))]
            middle = len(uids) // 2
            rows = self._rows(raw, uids[:middle], items) + self._rows(raw, uids[middle:], items)
            if sum(bool(row.fault) for row in rows) > MOST_UNREADABLE:
                raise MailboxError(
                    f"{self._place} sent an answer that can't be parsed: {error}"
                ) from error
        return sorted(rows, key=lambda row: row.uid)

    def content(self, raw: str, uid: int, limit: int) -> bytes | None:
        """Return a mail's first `limit` bytes, None when it vanished."""
        self._select(raw)
        with self._folder_errors(raw, ANSWER_BYTES + limit):
            found = self._fetch([uid], [f"BODY.PEEK[]<0.{limit}>"])
        for name, value in found.get(uid, {}).items():
            if name.startswith(b"BODY[]") and isinstance(value, bytes):
                return value[:limit]
        return None

    def _fetch(self, uids: Sequence[int], items: Sequence[str]) -> dict[int, dict[bytes, Any]]:
        kind, data = self._client.wire.uid(
            "FETCH", ",".join(map(str, uids)), f"({' '.join(items)})"
        )
        if kind != "OK":
            raise IMAPClientError(f"FETCH failed: {data[0]!r}")
        return rows(data, uids)

    def marked(self, raw: str, uids: Sequence[int], *marks: str) -> list[int]:
        """Return which of some mails have a mark, as SEARCH calls it: "DELETED", "SEEN"."""
        if not uids:
            return []
        self._select(raw)
        with self._folder_errors(raw):
            found = set(self._client.search(["UID", pack(uids), *marks]))
        return [uid for uid in uids if uid in found]

    def unread(self, raw: str, low: int) -> list[int]:
        """Return the mails from a UID on that are unread."""
        self._select(raw)
        with self._folder_errors(raw):
            return [uid for uid in self._client.search(["UID", f"{low}:*", "UNSEEN"]) if uid >= low]

    def read_since(self, raw: str, modseq: int) -> list[int]:
        """Return the mails that are read and were changed at this mod-sequence or later."""
        self._select(raw)
        with self._folder_errors(raw):  # RFC 7162 §3.1.5
            return list(self._client.search(["SEEN", "MODSEQ", str(modseq)]))

    def changes_of(self, raw: str, uids: Sequence[int]) -> dict[int, int]:
        """Return the mod-sequence of each of some mails, 0 for one that the server leaves out."""
        self._select(raw)
        with self._folder_errors(raw):
            found = self._fetch(uids, ["MODSEQ"])
        return {uid: modseq_of(found.get(uid, {})) for uid in uids}

    def holds(self, raw: str, identity: str) -> bool:
        """Return whether a folder holds a mail with this Message-ID."""
        self._select(raw)
        with self._folder_errors(raw):
            return bool(self._client.search(["HEADER", "Message-ID", identity]))

    def idle(self, raw: str, seconds: float, known: Status | None) -> bool:
        """Return when the folder changed since `known`, or after `seconds`: False for these."""
        if known is not None and self.examine(raw).differs(known):
            return True
        self._select(raw)
        until = time.monotonic() + seconds
        with self._errors("ended the connection", seconds=seconds + self._timeout_s):
            wire = self._client.wire
            told: bool
            tag, told = wire.idle_begin()
            while not told and not self._broken and (left := until - time.monotonic()) > 0:
                told = wire.idle_news(min(left, IDLE_SLICE_S))
            wire.idle_end(tag)
        return told

    def _select(self, raw: str) -> None:
        if self._selected != raw:
            self.examine(raw)

    @property
    def _place(self) -> str:
        return f"the IMAP server {self._account.host}:{self._account.effective_port}"

    @contextlib.contextmanager
    def _errors(
        self, what: str, answer_bytes: int = ANSWER_BYTES, *, seconds: float = 0.0
    ) -> Iterator[None]:
        self._begin(seconds or self._timeout_s, answer_bytes)
        try:
            yield
        except (LoginError, ssl.SSLError, *GARBLED, OSError, EOFError) as error:
            self._broken = True
            raise self._said(what, error) from error

    def _said(self, what: str, error: Exception) -> MailboxError:
        if isinstance(error, LoginError) and not isinstance(error.__context__, _ENDED):
            return AccessError(
                f"{self._place} refuses the login of {self._login}: {words(error)}; check user and"
                " password of the account"
            )
        cure = ""
        if isinstance(error, ssl.SSLError):
            cure = "; check tls, port and ca_file of the account"
        return MailboxError(f"{self._place} {what}: {words(error)}{cure}")

    @contextlib.contextmanager
    def _folder_errors(self, raw: str, answer_bytes: int = ANSWER_BYTES) -> Iterator[None]:
        self._begin(self._timeout_s * PATIENCE, answer_bytes)
        try:
            yield
        except _ENDED as error:
            self._broken = True
            raise MailboxError(f"{self._place} ended the connection: {words(error)}") from error
        except GARBLED as error:
            self._selected = ""
            raise FolderError(
                f"folder {words(decoded(raw))} can't be read: {words(error)}"
            ) from error

    def _begin(self, seconds: float, answer_bytes: int = ANSWER_BYTES) -> None:
        """Say what the next answer may take."""
        if self._client is not None:
            text_bytes = LIST_BYTES if answer_bytes == LIST_BYTES else TEXT_BYTES
            self._client.wire.begin(
                Allowance(seconds=seconds, answer_bytes=answer_bytes, text_bytes=text_bytes)
            )


_ENDED = (imaplib.IMAP4.abort, OSError, EOFError)
"""The connection is of no use any more."""
