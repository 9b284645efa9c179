"""One message that somebody says is spam or ham: as it was scanned, or as it is.

It is found by our id, else by its identity; what is then learned is what was scored. A message that
nobody scanned here is learned as it comes.
"""

import asyncio

from spamd.feedback.ports import History
from spamd.feedback.teacher import Candidate, Extract, Teacher
from spamd.ports import Taught
from spamd.sample import Label
from spamd.training import Result
from spamd.training.trainer import Trainer


class MessageTeacher:
    """Learns and forgets single messages (`ports.MessageTeacher`)."""

    def __init__(
        self, history: History, teacher: Teacher, trainer: Trainer, extract: Extract
    ) -> None:
        self._history = history
        self._teacher = teacher
        self._trainer = trainer
        self._extract = extract

    async def learn(self, content: bytes, label: Label, *, source: str, actor: str) -> Taught:
        """Learn a message.

        Raises:
            TemporaryError: nothing was learned; the client may come again.
        """
        candidate = await candidate_of(content, label, self._history, self._extract)
        summary = await self._teacher.teach([candidate], source, actor)
        if summary.held:
            return Taught.HELD
        return Taught.KNOWN if summary.already else Taught.LEARNED

    async def forget(self, content: bytes) -> Taught:
        """Take back what a message taught.

        Raises:
            TemporaryError: nothing has changed; the client may come again.
        """
        found = await candidate_of(content, Label.HAM, self._history, self._extract)
        (outcome,) = await self._trainer.forget([found.features.digest])
        return Taught.FORGOTTEN if outcome.result is Result.FORGOTTEN else Taught.UNKNOWN


async def candidate_of(
    content: bytes, label: Label, history: History, extract: Extract
) -> Candidate:
    """Return a message that is to be taught, with what we know of it."""
    features = await asyncio.to_thread(extract, content)
    known = None
    if features.id:
        known = (await history.by_id([features.id])).get(features.id)
    if known is None:
        known = (await history.by_digest([features.digest])).get(features.digest)
    kept = await history.kept(known.digest) if known else None
    return Candidate(features=kept or features, label=label, known=known)
