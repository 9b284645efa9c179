"""Finds out which folders of an account changed, and which were renamed.

The first look at an account finds old mail. So does one at a folder that is new, when another
vanished or got new keys: it may be that one under a new name. A Junk that is new when we start may
have been there, for a setting has changed. All else that a new folder holds has come into it since
the last poll. What lies in a folder that could not be read is never new.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spamd.feedback.mailboxes.folders import MOST_LISTED
from spamd.feedback.mailboxes.mailbox import Folder, FolderChanges, FolderError, Mailbox, Place
from spamd.feedback.ports import Cursor
from spamd.feedback.run_summary import RunSummary
from spamd.feedback.watching.context import WatcherContext
from spamd.feedback.watching.poll_state import PollState

NEVER = 2**62
"""As `Cursor.baseline`: all that lies in the folder may have lain there before."""

ORDER = (Place.INBOX, Place.OTHER, Place.JUNK)
"""In this order folders are read: a mail that Junk does not hold yet when it was seen elsewhere was
not put into both at once."""

UNREAD = -1
"""As `Cursor.validity`: the folder could not be read."""


class ChangedFolders:
    """Looks at the folders of one account, at so many of them at most."""

    def __init__(self, mailbox: Mailbox, context: WatcherContext, most: int) -> None:
        self._mailbox = mailbox
        self._most = most
        self._left_out = False
        self._mailboxes = context.mailboxes
        self._clock = context.clock
        self._observer = context.observer
        self._told: dict[str, str] = {}
        self.polled = False

    def first(self, folders: Sequence[Folder]) -> Sequence[Folder]:
        """Return as many folders as may be watched, Junk last; those left out are told once."""
        most = self._most
        folders = sorted(folders, key=lambda one: ORDER.index(one.place))
        if len(folders) > most and not self._left_out:
            number = f"{len(folders):,}" + " or more" * (len(folders) >= MOST_LISTED)
            error = FolderError(
                f"{number} folders, of which {most:,} are watched; name those that matter in"
                " folders of the account, or raise feedback.max_folders"
            )
            self._observer.failed("folders.left", error, account=self._mailbox.key)
        self._left_out = len(folders) > most
        if not self._left_out:
            return folders
        first = [folder for folder in folders if folder.place is not Place.OTHER]
        others = [folder for folder in folders if folder.place is Place.OTHER]
        kept = {folder.raw for folder in [*first, *others][:most]}
        return [folder for folder in folders if folder.raw in kept]

    async def find(self, state: PollState, summary: RunSummary) -> None:
        """Find out what is new in which folder; cursors of old mail are written at once."""
        cursors = state.cursors
        inbox = next((one.name for one in state.folders.values() if one.place is Place.INBOX), "")
        for folder in state.folders.values():
            unknown_junk = folder.place is Place.JUNK and not self.polled
            baseline = inbox not in cursors or unknown_junk
            try:
                changes = await self._mailbox.changes(
                    folder, cursors.get(folder.name), baseline=baseline
                )
            except FolderError as error:
                summary.faults.append(str(error))
                await self._blind(folder, error, state)
                continue
            self._warn(folder.name, changes.warning if changes else "")
            if changes:
                state.changes[folder.name] = changes
        await self._renames(state)
        old = [
            changes.start
            for name, changes in state.changes.items()
            if _is_old(changes, name, cursors)
        ]
        await self._mailboxes.save(self._mailbox.key, old)

    async def raised_baselines(
        self, state: PollState, ends: Mapping[str, Cursor]
    ) -> dict[str, Cursor]:
        """Return cursors for the folders that Junk's new mail may have come to as well meanwhile.

        Junk is read last: what a rule has put there and into another folder at once may be seen in
        Junk first, and must not look like a move out of Junk later.
        """
        raised = {}
        for name, folder in state.folders.items():
            cursor = ends.get(name) or state.cursors.get(name)
            if folder.place is Place.JUNK or cursor is None:
                continue
            try:
                after = await self._mailbox.raised_baseline(folder, cursor)
            except FolderError:
                after = replace(cursor, validity=UNREAD, baseline=NEVER)
            if after != cursor:
                raised[name] = after
        return raised

    async def _blind(self, folder: Folder, error: FolderError, state: PollState) -> None:
        self._warn(folder.name, str(error))
        state.unread.add(folder.name)
        if folder.name not in state.cursors:
            unread = Cursor(
                account=self._mailbox.key,
                folder=folder.name,
                validity=UNREAD,
                next_uid=1,
                modseq=0,
                messages=0,
                baseline=NEVER,
                marked="",
                time=self._clock.now(),
            )
            await self._mailboxes.save(self._mailbox.key, [unread])

    def _warn(self, folder: str, text: str) -> None:
        """Say once what is wrong with a folder, not at each poll."""
        if text and self._told.get(folder) != text:
            error = FolderError(text)
            self._observer.failed("folder.failed", error, account=self._mailbox.key)
            self._told[folder] = text

    async def _renames(self, state: PollState) -> None:
        """Go on with renamed folders where they were left under their old names."""
        cursors, account = state.cursors, self._mailbox.key
        gone = [cursor for name, cursor in cursors.items() if name not in state.folders]
        anew = [
            cursors[name] for name, changes in state.changes.items() if _is_new(changes, cursors)
        ]
        lost = [*gone, *(one for one in anew if one.validity > 0)]
        new = [changes for name, changes in state.changes.items() if name not in cursors and lost]
        for changes in new:
            name, found = changes.folder.name, changes
            if old := _renamed(changes, lost):
                lost.remove(old)
                await self._mailboxes.rename(account, old.folder, name)
                moved = replace(old, folder=name)
                followed = await self._mailbox.changes(changes.folder, moved, baseline=True)
                if followed is None:
                    del state.changes[name]
                    continue
                found = followed
            start = replace(found.start, baseline=NEVER)
            state.changes[name] = replace(found, start=start)
        for old in gone:
            await self._mailboxes.forget(account, old.folder)


def _is_new(changes: FolderChanges, cursors: Mapping[str, Cursor]) -> bool:
    """Return whether a folder got new keys since it was read."""
    before = cursors.get(changes.folder.name)
    return before is not None and before.validity != changes.start.validity


def _is_old(changes: FolderChanges, name: str, cursors: Mapping[str, Cursor]) -> bool:
    """Return whether a folder holds old mail only, to be written down batch by batch."""
    return (
        changes.numbered
        and not changes.again
        and name not in cursors
        and changes.start.baseline > 1
    )


def _renamed(changes: FolderChanges, lost: Sequence[Cursor]) -> Cursor | None:
    """Return the cursor that a new folder had under another name, None when it is really new.

    A renamed folder keeps its UIDVALIDITY, and its UIDs never go back.
    """
    for old in lost:
        same = old.validity > 0 and old.validity == changes.start.validity
        if same and changes.end.next_uid >= old.next_uid:
            return old
    return None
