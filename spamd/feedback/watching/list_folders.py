"""Folders that are lists: a mail that a person moves there names its sender.

    moved into "Allow"         an entry for the user of the account lets in the address of From
    moved into "Deny"          one keeps it out
    moved out, to a folder     the entry is taken back, if a folder has made it
    removed, or to the Trash   it stays: the folder can be cleaned up

Only what a person moves counts (`lesson_rule.is_moved`): not what a rule files at delivery, what
lies at two places, or what was there at the first look. A mail without exactly one sender names
nobody. An entry that lets in counts with proof only, as all do.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from spamd.errors import StorageUnavailable
from spamd.feedback.mailboxes.mailbox import FolderError, Mailbox
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.ports import Known, Sighting
from spamd.feedback.watching.context import WatcherContext
from spamd.feedback.watching.lesson_rule import Event
from spamd.feedback.watching.move_verifier import MoveVerifier
from spamd.feedback.watching.poll_state import PollState, PossibleLesson
from spamd.lists.entry import Effect, EntryError
from spamd.lists.ports import SenderLists
from spamd.message.authentication.sender import Sender

MOST = 100
"""Mails of one poll that change a list: who moves more tidies up, and means no senders."""


class ListFolders:
    """The folders of one account that are lists of its user.

    Args:
        mailbox: the account.
        context: the lists, and who is told.
        options: how long an entry stays.
        verifier: tells what a person has moved.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        context: WatcherContext,
        options: FeedbackOptions,
        verifier: MoveVerifier,
    ) -> None:
        self._mailbox = mailbox
        self._lists: SenderLists | None = context.lists
        self._user_of = context.user_of
        self._extract = context.extract
        self._clock = context.clock
        self._observer = context.observer
        self._days = options.list_days
        self._verifier = verifier

    async def poll(
        self, state: PollState, views: Mapping[str, int], known: Mapping[str, Known]
    ) -> None:
        """Add and take back entries by what was moved in this poll.

        Raises:
            MailboxError: the account went out of reach.
            TemporaryError: the database did.
        """
        possible = list(_listing(state))
        if self._lists is None or not possible:
            return
        if len(possible) > MOST:
            error = FolderError(f"{len(possible):,} messages moved at once: no list was changed")
            self._observer.failed("entries.left", error, account=self._mailbox.key)
            return
        user = await self._user_of(self._mailbox.actor)
        if user is None:
            raise StorageUnavailable("whose account this is could not be asked")
        for one in possible if user else ():
            about = known.get(one.changed.message.id or "")
            if await self._verifier.is_moved(one, state, views, about):
                await self._follow(one, state, self._lists, user)

    async def _follow(
        self, one: PossibleLesson, state: PollState, lists: SenderLists, user: str
    ) -> None:
        """Do as one mail says that was moved."""
        folder = one.changed.folder
        try:
            content = await self._mailbox.content(folder, one.changed.message.key)
            if content is None:
                return
            sender = (await asyncio.to_thread(self._extract, content)).proof.sender
            for effect in _left(one.rows, state):
                if effect is not folder.list:
                    await self._take_back(effect, sender, lists, user)
            if folder.list is not None:
                await self._add(folder.list, sender, lists, user)
        except (FolderError, EntryError) as error:
            self._observer.failed("entry.failed", error, account=self._mailbox.key)

    async def _add(self, effect: Effect, sender: Sender, lists: SenderLists, user: str) -> None:
        expires = self._expires()
        entry = await lists.add_sender(effect, sender, owner=user, expires=expires)
        if entry is None:
            error = EntryError(f"a message to {effect} has no sender: {sender.trouble}")
            self._observer.failed("entry.failed", error, account=self._mailbox.key)
            return
        self._observer.happened(
            "entry.added", account=self._mailbox.key, effect=str(effect), entry=entry.number
        )

    async def _take_back(
        self, effect: Effect, sender: Sender, lists: SenderLists, user: str
    ) -> None:
        if await lists.take_back(effect, sender, owner=user):
            self._observer.happened("entry.removed", account=self._mailbox.key, effect=str(effect))

    def _expires(self) -> datetime | None:
        return self._clock.now() + timedelta(days=self._days) if self._days else None


def _listing(state: PollState) -> Iterator[PossibleLesson]:
    """Yield what came to a folder that is a list, or from one."""
    for one in state.possible:
        here = one.changed.folder.list
        if one.changed.event is Event.ARRIVED and (here or any(_left(one.rows, state))):
            yield one


def _left(rows: Sequence[Sighting], state: PollState) -> Iterator[Effect]:
    """Yield what those folders say of senders in which a mail lay."""
    for row in rows:
        folder = state.folders.get(row.folder)
        if folder is not None and folder.list is not None:
            yield folder.list
