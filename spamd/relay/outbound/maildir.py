"""The embedded next hop: mail goes into a Maildir, and the client's 250 means it is on the disk.

Delivery follows D. J. Bernstein's Maildir: write to tmp/, fsync, rename to new/, fsync the folder.
Lines end in LF there. With several Maildirs all files are written before the first is renamed, so
over SMTP either all recipients have the message or none. Mail judged spam goes to the Maildir++
folder `.Junk`.

A path may hold {address}, {local} or {domain}: each recipient then has a Maildir of its own. Names
from the envelope are lower-cased and may hold letters, digits and "._+=-@" only, so that no address
leads out of the root; others are unknown recipients. A Maildir belongs to its user: nothing is
written or removed through symbolic links in it.
"""

import asyncio
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path as FilePath

from spamd.errors import NextHopUnavailable, SpoolFull
from spamd.message.envelope import Client
from spamd.relay.content.outgoing import Outgoing
from spamd.relay.options import NextHopOptions
from spamd.relay.smtp.capabilities import Capabilities
from spamd.relay.smtp.commands import Path, parse_path
from spamd.relay.smtp.replies import Reply, reply
from spamd.relay.urls import NextHopUrl

CAPABILITIES: Capabilities = {b"8BITMIME": b"", b"SMTPUTF8": b"", b"ENHANCEDSTATUSCODES": b""}

STALE_S = 36 * 3600
"""Age at which a file in tmp/ belongs to no delivery any more (Maildir specification)."""

_OK = reply(250, "2.1.5 OK")
_UNKNOWN = reply(550, "5.1.1 No such mailbox here")
_SYNTAX = reply(501, "5.5.4 Address expected")
_NO_UTF8 = reply(553, "5.6.7 Address needs SMTPUTF8")
_NAME = re.compile(r"(?!\.)[a-z0-9._+=@-]{1,200}")
_MARK = os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_numbers = count()


class MaildirSession:
    """One session at a Maildir: nothing to connect to, all answers are ours."""

    lmtp = True
    usable = True
    knows_client = False

    def __init__(self, url: NextHopUrl, options: NextHopOptions, hostname: str) -> None:
        self.url = url
        self.capabilities: Capabilities | None = CAPABILITIES
        self._options = options
        self._hostname = hostname
        self._utf8 = False
        self._sender = b""

    @property
    def one_mailbox(self) -> bool:
        """Tell whether all recipients share one Maildir."""
        return not self.several

    @property
    def several(self) -> bool:
        """Tell whether each recipient has a Maildir of its own."""
        return "{" in self.url.path

    async def open(self, client: Client) -> None:  # noqa: ARG002 - no one to introduce
        """Look whether the Maildir is there, or make it."""
        if self.several:
            return
        try:
            await asyncio.to_thread(self._prepare, FilePath(self.url.path))
        except OSError as error:
            raise NextHopUnavailable(f"no Maildir at {self.url.path}") from error

    async def greet(self, client: Client, *, extended: bool) -> Reply:  # noqa: ARG002 - no one to greet
        """Answer for the Maildir."""
        return reply(250, self._hostname)

    async def mail(self, argument: bytes, client: Client) -> Reply:  # noqa: ARG002 - no one to tell
        """Take a sender."""
        path = parse_path(argument)
        if path is None:
            return _SYNTAX
        self._utf8 = b"SMTPUTF8" in path.parameters
        if not self._utf8 and not path.address.isascii():
            return _NO_UTF8
        self._sender = path.address
        return reply(250, "2.1.0 OK")

    async def rcpt(self, argument: bytes, path: Path | None) -> Reply:  # noqa: ARG002 - routes need it
        """Take a recipient who has, or may get, a Maildir."""
        if path is None or not path.address:
            return _SYNTAX
        if not self._utf8 and not path.address.isascii():
            return _NO_UTF8
        if not self.several:
            return _OK
        folder = self._folder(path.address)
        if folder is None:
            return _UNKNOWN
        return _OK if await asyncio.to_thread(self._owner(folder).is_dir) else _UNKNOWN

    async def reset(self) -> Reply:
        """End the transaction."""
        return reply(250, "2.0.0 OK")

    async def command(self, line: bytes) -> Reply:  # noqa: ARG002 - nothing else is offered
        """Refuse anything else."""
        return reply(502, "5.5.1 Command not implemented")

    def keep_alive(self) -> None:
        """Do nothing: nobody waits."""

    async def deliver(
        self,
        outgoing: Outgoing,
        recipients: Sequence[bytes],
        timeout_s: float,  # noqa: ARG002 - a disk has no time-out
    ) -> list[Reply]:
        """Write the message, once for each Maildir; return one reply per recipient.

        Raises:
            SpoolFull: the disk is full or refuses; nothing was kept.
        """
        folders = {self._folder(address) for address in recipients}
        try:
            goals = sorted(folder for folder in folders if folder)
            name = await outgoing.message.by_thread(lambda: self._write(outgoing, goals))
        except OSError as error:
            raise SpoolFull("Maildir can't be written") from error
        return [reply(250, f"2.0.0 {name}")] * len(recipients)

    def close(self) -> None:
        """Nothing to end."""

    def abort(self) -> None:
        """Nothing to cut."""

    def _folder(self, address: bytes) -> FilePath | None:
        """Return the Maildir of a recipient; None when the address can't name one."""
        if not self.several:
            return FilePath(self.url.path)
        try:
            name = address.decode("ascii").lower()
        except UnicodeDecodeError:
            return None
        local, _, domain = name.rpartition("@")
        parts = {"{address}": name, "{local}": local, "{domain}": domain}
        path = self.url.path
        for mark, value in parts.items():
            if mark in path:
                if not _NAME.fullmatch(value) or ".." in value:
                    return None
                path = path.replace(mark, value)
        return FilePath(path)

    def _owner(self, folder: FilePath) -> FilePath:
        """Return the folder that a recipient must have: the last that is named after them."""
        if not self._options.maildir_create:
            return folder
        names = FilePath(self.url.path).parts
        last = max(index for index, name in enumerate(names) if "{" in name)
        return FilePath(*folder.parts[: last + 1])

    def _prepare(self, folder: FilePath) -> None:
        """Make a Maildir where it is missing and may be made; remove what crashes left in tmp/."""
        parts = [folder / name for name in ("tmp", "new", "cur")]
        if any(part.is_symlink() for part in parts):
            raise NotADirectoryError(f"{folder} holds symbolic links")
        if not all(part.is_dir() for part in parts):
            if not self._options.maildir_create:
                raise FileNotFoundError(folder)
            for part in parts:
                part.mkdir(mode=0o700, parents=True, exist_ok=True)
        oldest = time.time() - STALE_S
        for stale in (folder / "tmp").iterdir():
            with suppress(OSError):
                if stale.lstat().st_mtime < oldest:
                    stale.unlink()

    def _write(self, outgoing: Outgoing, folders: Sequence[FilePath]) -> str:
        seconds, nanoseconds = divmod(time.time_ns(), 10**9)
        unique = f"M{nanoseconds // 1000}P{os.getpid()}Q{next(_numbers)}"
        name = f"{seconds}.{unique}.{self._host_part}"
        written: list[tuple[FilePath, FilePath]] = []
        try:
            for recipient_folder in folders:
                self._prepare(recipient_folder)
                folder = self._junk(recipient_folder) if outgoing.junk else recipient_folder
                source, target = folder / "tmp" / name, folder / "new" / name
                written.append((source, target))
                with source.open("xb") as file:
                    file.writelines(outgoing.plain_blocks())
                    file.flush()
                    os.fsync(file.fileno())
            for source, target in written:
                source.rename(target)
            for _, target in written:
                _sync_folder(target.parent)
        except OSError:
            for files in written:
                for path in files:
                    with suppress(OSError):
                        path.unlink()
            raise
        return name

    def _junk(self, folder: FilePath) -> FilePath:
        junk = folder / f".{self._options.maildir_junk}"
        if junk.is_symlink():
            raise NotADirectoryError(f"{junk} is a symbolic link")
        for part in ("tmp", "new", "cur"):
            (junk / part).mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(OSError):  # Maildir++: marks a folder as one
            os.close(os.open(junk / "maildirfolder", _MARK, 0o600))
        self._prepare(junk)
        return junk

    @property
    def _host_part(self) -> str:
        return self._hostname.replace("/", r"\057").replace(":", r"\072")


def _sync_folder(folder: FilePath) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
