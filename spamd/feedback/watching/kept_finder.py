"""Finds out which mail of an account its owner has read and kept, from poll to poll.

In memory are the mails that wait, unread or read; the database has them too. What is kept is only
written down there: which of it is taught is decided over all accounts (`kept_teacher`).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from spamd.feedback.mailboxes.mailbox import Folder, FolderError, Mailbox, Place
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.ports import KeptMessage, KeptState
from spamd.feedback.watching.context import WatcherContext
from spamd.feedback.watching.kept_rule import (
    MARKED_AT_ONCE,
    is_part_of_run,
    is_run,
    reads_like_a_program,
)
from spamd.feedback.watching.kept_verifier import Found, KeptVerifier
from spamd.feedback.watching.move_verifier import DATE_S
from spamd.feedback.watching.poll_state import ChangedMessage, PollState

WAITING_MOST = 1_000
"""Mails of an inbox that are waited for, the newest: nobody reads a thousand mails in days."""

Waiting = dict[str, KeptMessage]
"""The mails of the inbox that are unread, or read and not kept yet, by their keys."""


class KeptFinder:
    """Follows the mail that came to one account's inbox."""

    def __init__(
        self,
        mailbox: Mailbox,
        context: WatcherContext,
        options: FeedbackOptions,
        verifier: KeptVerifier,
    ) -> None:
        self._mailbox = mailbox
        self._kept = context.kept
        self._verifier = verifier
        self._options = options
        self._clock = context.clock
        self._waiting: Waiting | None = None
        self._acted: set[str] = set()
        self._run = datetime.min.replace(tzinfo=UTC)

    async def poll(self, state: PollState, began: datetime) -> None:
        """Take note of what happened to the mail of the inbox up to this poll, which is whole."""
        inbox = next((one for one in state.folders.values() if one.place is Place.INBOX), None)
        if not self._options.kept_days or inbox is None or inbox.name in state.unread:
            return
        first = self._waiting is None
        before = await self._known(inbox)
        waiting = self._still_there(before, inbox, state)
        filed = self._filed(before, state)
        waiting, acted = await self._opened(before, waiting, inbox, state, began, first=first)
        waiting = _newest(waiting | self._delivered(inbox, state, began))
        due = {
            key: replace(one, deliberate=key in acted)
            for key, one in waiting.items()
            if one.state is KeptState.READ
            and (key in acted or one.since + timedelta(days=self._options.kept_days) <= began)
        }
        if reads_like_a_program(waiting.values(), began):
            due, filed = {}, []  # asked again at the next poll
        try:
            found = [*await self._lying(inbox, due, state), *filed]
        except FolderError:
            due, found = {}, filed
        kept = [
            replace(one.kept, state=KeptState.KEPT, since=began)
            for one in await self._verifier.verified(found, state)
        ]
        left = {key: one for key, one in waiting.items() if key not in due}
        await self._write(before, left, kept, inbox)

    async def _known(self, inbox: Folder) -> Waiting:
        if self._waiting is None:
            rows = await self._kept.waiting(self._mailbox.key)
            self._waiting = {row.key: row for row in rows if row.folder == inbox.name}
        return self._waiting

    def _still_there(self, before: Waiting, inbox: Folder, state: PollState) -> Waiting:
        """Return the mails that lie there still; when keys mean nothing any more, none."""
        changes = state.changes.get(inbox.name)
        if changes is not None and (changes.again or changes.keyless):
            return {}
        missing = state.missing(inbox.name)
        return {key: one for key, one in before.items() if key not in missing}

    async def _opened(
        self,
        before: Waiting,
        waiting: Waiting,
        inbox: Folder,
        state: PollState,
        began: datetime,
        *,
        first: bool,
    ) -> tuple[Waiting, Collection[str]]:
        """Return the mails with those that were read since, and which were answered or flagged.

        When mail left meanwhile that may have been unread, both may have been marked together.
        """
        keys: dict[KeptState, list[str]] = {KeptState.UNREAD: [], KeptState.READ: []}
        for key, one in waiting.items():
            keys[one.state].append(key)
        try:
            opened = await self._mailbox.opened(inbox, *keys.values())
        except FolderError:
            return waiting, ()  # asked again at the next poll
        if is_run(opened):
            self._run = began
        known = {key for key, one in before.items() if one.state is KeptState.READ}
        left = state.missing(inbox.name) - known
        after = {}
        for key, one in waiting.items():
            if key in opened.read:
                if not left and not self._is_hasty(one, inbox, state):
                    after[key] = replace(one, state=KeptState.READ, since=began)
            else:
                after[key] = one
        after = {
            key: one
            for key, one in after.items()
            if one.state is KeptState.UNREAD or not is_part_of_run(one.since, self._run)
        }
        acted = opened.acted - self._acted
        self._acted |= opened.acted
        return after, () if first or len(acted) > MARKED_AT_ONCE else acted

    def _is_hasty(self, one: KeptMessage, inbox: Folder, state: PollState) -> bool:
        """Return whether a mail was never seen unread once rules of programs were done."""
        window = self._options.rule_window_s
        cursor = state.cursors.get(inbox.name)
        seen = cursor.time if cursor else one.came
        return bool(window) and seen < one.came + timedelta(seconds=window + DATE_S)

    def _delivered(self, inbox: Folder, state: PollState, began: datetime) -> Waiting:
        """Return the mails that came unread, once, and not to Junk as well.

        In other folders, most of all in views, they may be too.
        """
        changes = state.changes.get(inbox.name)
        if changes is None or changes.again or changes.keyless:
            return {}
        found = {}
        for one in state.delivered:
            message = one.message
            flags = {flag.lower() for flag in message.flags}
            came = [state.place(row.folder) for row in state.came.get(message.trace, ())]
            once = came.count(Place.INBOX) == 1 and Place.JUNK not in came
            if once and not flags & {"\\seen", "\\deleted"}:
                found[message.key] = KeptMessage(
                    folder=inbox.name,
                    key=message.key,
                    mail=message.trace,
                    state=KeptState.UNREAD,
                    came=_came(one, began),
                    since=began,
                )
        return found

    def _filed(self, before: Waiting, state: PollState) -> list[Found]:
        """Return what its owner has read, and filed since: where it lies now and what it was."""
        found = []
        for possible in state.filed:
            changed = possible.changed
            for row in possible.rows:
                one = before.get(row.key) if state.place(row.folder) is Place.INBOX else None
                if one is not None and one.state is KeptState.READ:
                    kept = replace(one, deliberate=True)
                    found.append(Found(folder=changed.folder, message=changed.message, kept=kept))
        return found if len(found) <= MARKED_AT_ONCE else []

    async def _lying(self, inbox: Folder, due: Waiting, state: PollState) -> list[Found]:
        """Return the mails that are due, as they lie in the inbox now."""
        changes = state.changes.get(inbox.name)
        cursor = changes.end if changes else state.cursors[inbox.name]
        keys = [*due]
        found: list[Found] = []
        for start in range(0, len(keys), self._options.chunk):
            some = keys[start : start + self._options.chunk]
            found += [
                Found(folder=inbox, message=message, kept=due[message.key])
                for message in await self._mailbox.summaries(inbox, some, cursor)
            ]
        return found

    async def _write(
        self, before: Waiting, left: Waiting, kept: Sequence[KeptMessage], inbox: Folder
    ) -> None:
        changed = [one for key, one in left.items() if before.get(key) is not one]
        gone = [(inbox.name, key) for key in before.keys() - left.keys()]
        await self._kept.put(self._mailbox.key, [*changed, *kept], gone)
        self._waiting = left
        self._acted &= left.keys()


def _came(one: ChangedMessage, began: datetime) -> datetime:
    """Return when a mail was delivered; a server's time that lies ahead is none."""
    delivered = one.message.delivered
    return began if delivered is None else min(delivered, began)


def _newest(waiting: Mapping[str, KeptMessage]) -> Waiting:
    if len(waiting) <= WAITING_MOST:
        return dict(waiting)
    return dict(sorted(waiting.items(), key=lambda item: item[1].came)[-WAITING_MOST:])
