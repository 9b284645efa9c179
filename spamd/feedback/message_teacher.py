"""One message that somebody says is spam or ham: as it was scanned, or as it is.

It is found by our id, else by its identity; what is then learned is what was scored. A message that
nobody scanned here is learned as it comes.
"""

import asyncio

from spamd.feedback.durable_teacher import DurableTeacher
from spamd.feedback.teacher import Extract
from spamd.ports import Taught
from spamd.sample import Label


class MessageTeacher:
    """Learns and forgets single messages (`ports.MessageTeacher`)."""

    def __init__(self, teacher: DurableTeacher, extract: Extract) -> None:
        self._teacher = teacher
        self._extract = extract

    @property
    def personal(self) -> bool:
        """Whether people have filters of their own."""
        return self._teacher.personal

    async def knows(self, name: str) -> bool:
        """Tell whether somebody of that name has a filter of their own.

        Raises:
            TemporaryError: that can't be asked now.
        """
        return bool(await self._teacher.user(name))

    async def learn(
        self, content: bytes, label: Label, *, source: str, actor: str, user: str = ""
    ) -> Taught:
        """Learn a message, for the user of a name or the site.

        Raises:
            TemporaryError: nothing was learned; the client may come again.
        """
        features = await asyncio.to_thread(self._extract, content)
        summary = await self._teacher.teach([features], label, source, actor, user)
        if summary.waiting:
            return Taught.WAITING
        if summary.held:
            return Taught.HELD
        return Taught.KNOWN if summary.already else Taught.LEARNED

    async def forget(self, content: bytes, *, user: str = "") -> Taught:
        """Take back what a message taught, for all or only by the user of a name.

        Raises:
            TemporaryError: nothing has changed; the client may come again.
        """
        return await self._teacher.forget(await asyncio.to_thread(self._extract, content), user)
