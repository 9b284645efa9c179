"""Teaches the kept mail of one account that was chosen among that of all accounts."""

from dataclasses import replace

from spamd.feedback.mailboxes.mailbox import FolderError, Mailbox
from spamd.feedback.ports import KeptMessage, KeptState
from spamd.feedback.run_summary import RunSummary
from spamd.feedback.watching.context import WatcherContext
from spamd.feedback.watching.kept_verifier import Found, KeptVerifier, Verified
from spamd.feedback.watching.poll_state import PollState
from spamd.training.ports import KEPT


class KeptTeacher:
    """Teaches what was chosen, if it lies there still, and in no folder like the Trash as well."""

    def __init__(self, mailbox: Mailbox, context: WatcherContext, verifier: KeptVerifier) -> None:
        self._mailbox = mailbox
        self._kept = context.kept
        self._choice = context.choice
        self._teacher = context.teacher
        self._verifier = verifier
        self._clock = context.clock

    async def poll(self, state: PollState) -> RunSummary:
        """Teach what of this account was chosen; return what came of it.

        What turns out not to be kept any more is forgotten.
        """
        summary = RunSummary()
        chosen: dict[str, list[KeptMessage]] = {}
        for one in await self._choice.chosen(self._mailbox.key, self._mailbox.actor):
            chosen.setdefault(one.folder, []).append(one)
        for name, some in chosen.items():
            if name not in state.folders or name in state.unread:
                continue
            try:
                verified = await self._verified(name, some, state)
            except FolderError:
                continue  # chosen again
            candidates = [one.candidate for one in verified]
            summary.examined += len(candidates)
            summary.add(await self._teacher.teach(candidates, KEPT, self._mailbox.actor))
            now, kept = self._clock.now(), {one.kept.key for one in verified}
            taught = [replace(one.kept, state=KeptState.TAUGHT, since=now) for one in verified]
            gone = [(name, one.key) for one in some if one.key not in kept]
            await self._kept.put(self._mailbox.key, taught, gone)
        return summary

    async def _verified(
        self, name: str, chosen: list[KeptMessage], state: PollState
    ) -> list[Verified]:
        folder, changes = state.folders[name], state.changes.get(name)
        cursor = changes.end if changes else state.cursors[name]
        by_key = {one.key: one for one in chosen}
        there = await self._mailbox.still_there(folder, sorted(by_key), cursor)
        messages = await self._mailbox.summaries(folder, sorted(there), cursor)
        found = [
            Found(folder=folder, message=message, kept=by_key[message.key]) for message in messages
        ]
        return [
            one
            for one in await self._verifier.verified(found, state)
            if one.kept.scan == by_key[one.kept.key].scan
            and not await self._mailbox.in_excluded_folder(folder, one.found.message)
        ]
