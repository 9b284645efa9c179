"""Finds out which folders of an account changed, and which were renamed.

The first look at an account finds old mail. So does one at a folder that is new, when another
vanished or got new keys: it may be that one under a new name. A Junk that is new when we start may
have been there, for a setting has changed. All else that a new folder holds has come into it since
the last look. What lies in a folder that could not be read is never new.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spamd.feedback.mailboxes.mailbox import Folder, FolderError, Mailbox, News, Place
from spamd.feedback.ports import Cursor, Mailboxes
from spamd.feedback.teacher import Tally
from spamd.feedback.watching.sighting import Sights
from spamd.ports import Clock, Observer

NEVER = 2**62
"""As `Cursor.first_look`: all that lies in the folder may have lain there before."""

UNREAD = -1
"""As `Cursor.validity`: the folder could not be read."""


class Survey:
    """Looks at the folders of one account."""

    def __init__(
        self, mailbox: Mailbox, mailboxes: Mailboxes, clock: Clock, observer: Observer
    ) -> None:
        self._mailbox = mailbox
        self._mailboxes = mailboxes
        self._clock = clock
        self._observer = observer
        self._told: dict[str, str] = {}
        self.looked = False

    async def look(self, sights: Sights, tally: Tally) -> None:
        """Find out what is new in which folder; cursors of old mail are written at once."""
        cursors = sights.cursors
        inbox = next((one.name for one in sights.folders.values() if one.place is Place.INBOX), "")
        for folder in sights.folders.values():
            unknown_junk = folder.place is Place.JUNK and not self.looked
            baseline = inbox not in cursors or unknown_junk
            try:
                news = await self._mailbox.look(folder, cursors.get(folder.name), baseline=baseline)
            except FolderError as error:
                tally.faults.append(str(error))
                await self._blind(folder, error, sights)
                continue
            self._warn(folder.name, news.warning if news else "")
            if news:
                sights.news[folder.name] = news
        await self._renames(sights)
        old = [news.start for name, news in sights.news.items() if _is_old(news, name, cursors)]
        await self._mailboxes.save(self._mailbox.key, old)

    async def fences(self, sights: Sights, ends: Mapping[str, Cursor]) -> dict[str, Cursor]:
        """Return cursors for the folders that Junk's new mail may have come to as well meanwhile.

        Junk is read last: what a rule has put there and into another folder at once may be seen in
        Junk first, and must not look like a move out of Junk later.
        """
        fenced = {}
        for name, folder in sights.folders.items():
            cursor = ends.get(name) or sights.cursors.get(name)
            if folder.place is Place.JUNK or cursor is None:
                continue
            try:
                after = await self._mailbox.fenced(folder, cursor)
            except FolderError:
                after = replace(cursor, validity=UNREAD, first_look=NEVER)
            if after != cursor:
                fenced[name] = after
        return fenced

    async def _blind(self, folder: Folder, error: FolderError, sights: Sights) -> None:
        self._warn(folder.name, str(error))
        sights.unread.add(folder.name)
        if folder.name not in sights.cursors:
            unread = Cursor(
                account=self._mailbox.key,
                folder=folder.name,
                validity=UNREAD,
                next_uid=1,
                modseq=0,
                messages=0,
                first_look=NEVER,
                marked="",
                time=self._clock.now(),
            )
            await self._mailboxes.save(self._mailbox.key, [unread])

    def _warn(self, folder: str, text: str) -> None:
        """Say once what is wrong with a folder, not at each look."""
        if text and self._told.get(folder) != text:
            error = FolderError(text)
            self._observer.failed("folder.failed", error, account=self._mailbox.key)
            self._told[folder] = text

    async def _renames(self, sights: Sights) -> None:
        """Go on with renamed folders where they were left under their old names."""
        cursors, account = sights.cursors, self._mailbox.key
        gone = [cursor for name, cursor in cursors.items() if name not in sights.folders]
        anew = [cursors[name] for name, news in sights.news.items() if _is_new(news, cursors)]
        lost = [*gone, *(one for one in anew if one.validity > 0)]
        new = [news for name, news in sights.news.items() if name not in cursors and lost]
        for news in new:
            name, found = news.folder.name, news
            if old := _renamed(news, lost):
                lost.remove(old)
                await self._mailboxes.rename(account, old.folder, name)
                moved = replace(old, folder=name)
                followed = await self._mailbox.look(news.folder, moved, baseline=True)
                if followed is None:
                    del sights.news[name]
                    continue
                found = followed
            start = replace(found.start, first_look=NEVER)
            sights.news[name] = replace(found, start=start)
        for old in gone:
            await self._mailboxes.forget(account, old.folder)


def _is_new(news: News, cursors: Mapping[str, Cursor]) -> bool:
    """Return whether a folder got new keys since it was read."""
    before = cursors.get(news.folder.name)
    return before is not None and before.validity != news.start.validity


def _is_old(news: News, name: str, cursors: Mapping[str, Cursor]) -> bool:
    """Return whether a folder holds old mail only, to be written down batch by batch."""
    return news.numbered and not news.again and name not in cursors and news.start.first_look > 1


def _renamed(news: News, lost: Sequence[Cursor]) -> Cursor | None:
    """Return the cursor that a new folder had under another name, None when it is really new.

    A renamed folder keeps its UIDVALIDITY, and its UIDs never go back.
    """
    for old in lost:
        same = old.validity > 0 and old.validity == news.start.validity
        if same and news.end.next_uid >= old.next_uid:
            return old
    return None
