r"""Learning from mail that people have sorted already: the first lessons of a new installation.

    spam   what lies in Junk, unless a filter put it there
    ham    what lies in an archive; and of all other mail what was answered: it is marked \Answered,
           a mail in Sent refers to it, or it refers to a mail in Sent

What a stranger can write proves nothing. Anybody may send in the name of a correspondent, so From
says nothing. Anybody may write X-Spam-Flag, upon which a rule files a mail in Junk; where the flag
is ours, our verdict put the mail there, and a verdict teaches nothing either. A mail that we called
spam, as the log of scans has it by its id, teaches nothing in Junk for the same reason. What
another filter marked is taken where the admin says that its marks can't be forged (`filtered`).

Nothing is learned from the inbox as such: it holds spam that nobody has moved yet. Mail marked
\Deleted, and mail whose keyword says the opposite of its folder, is left out. Both labels are
learned in like numbers, the newest mail first: a filter taught 5,000 ham and 50 spam is worse than
one taught 50 of each.

Two steps: `plan` reads message summaries only and says what would be learned; `learn` does it. A
mail that was taught before, by whomever, keeps its lesson. A run that was stopped can be run again.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, field
from math import isfinite

from spamd.bayes.decision import Verdict
from spamd.feedback.mailboxes.mailbox import (
    Folder,
    FolderError,
    Mailbox,
    MailboxError,
    MessageSummary,
    Role,
)
from spamd.feedback.ports import History
from spamd.feedback.run_summary import RunSummary
from spamd.feedback.teacher import Extract
from spamd.feedback.watching.poll_state import mark
from spamd.message.features import Features
from spamd.sample import Label
from spamd.training.trainer import Trainer

SOURCE = "bootstrap"

CHUNK = 500
"""Summaries asked for at once."""

BATCH = 100
"""Mails fetched, then learned in one transaction: about a second of work."""

MESSAGE_IDS = 200_000
"""Message-IDs remembered of Sent at most: 20 MB, and what a person writes in decades."""

REFERENCES = 50
"""Message-IDs taken from one field; a thread names some ten."""

_MESSAGE_ID = re.compile(r"<[^<>\s]{1,250}>")


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapOptions:
    """What a run takes.

    limit   mails of each label at most; more teach little that is new
    ratio   how many times the smaller label the larger may be; infinite: any
    filtered  mail in Junk counts also where another filter marked it
    """

    limit: int = 2000
    ratio: float = 1.0
    filtered: bool = False

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.limit < 1:
            raise ValueError("the limit must be at least 1")
        if self.ratio < 1:
            raise ValueError("the ratio must be at least 1")


@dataclass(slots=True, kw_only=True)
class Source:
    """Mail of one folder that is to be learned.

    found   how many mails of the folder qualify
    keys    those that were chosen, the newest first
    """

    mailbox: Mailbox
    folder: Folder
    role: Role
    label: Label
    found: int
    keys: list[str]


@dataclass(slots=True, kw_only=True)
class Plan:
    """What would be learned; `faults` names what could not be read.

    sent      mails in Sent, which tell what was answered
    filtered  mails in Junk that are left out because a filter put them there
    """

    sources: list[Source] = field(default_factory=list)
    sent: int = 0
    filtered: int = 0
    faults: list[str] = field(default_factory=list)

    def chosen(self, label: Label) -> int:
        """Return how many mails of a label were chosen."""
        return sum(len(source.keys) for source in self.sources if source.label is label)


Advance = Callable[[int], None]


class Bootstrap:
    """Learns from old mail in several mailboxes."""

    def __init__(
        self,
        mailboxes: Sequence[Mailbox],
        history: History,
        trainer: Trainer,
        extract: Extract,
        options: BootstrapOptions,
    ) -> None:
        self._mailboxes = mailboxes
        self._history = history
        self._trainer = trainer
        self._extract = extract
        self._options = options

    async def plan(self, advance: Advance) -> Plan:
        """Read message summaries and choose; tell `advance` of each mail looked at."""
        plan = Plan()
        for mailbox in self._mailboxes:
            try:
                await mailbox.open()
                await self._plan_mailbox(mailbox, plan, advance)
            except MailboxError as error:
                plan.faults.append(str(error))
            finally:
                await mailbox.close()
        self._balance(plan)
        return plan

    async def learn(self, plan: Plan, advance: Advance) -> RunSummary:
        """Learn what was chosen; tell `advance` of each mail dealt with.

        Raises:
            TemporaryError: the database went away; what was learned before stays.
        """
        summary = RunSummary()
        for mailbox in self._mailboxes:
            sources = [source for source in plan.sources if source.mailbox is mailbox]
            if not any(source.keys for source in sources):
                continue
            try:
                await mailbox.open()
                for source in sources:
                    await self._learn_source(source, summary, advance)
            except MailboxError as error:
                summary.faults.append(str(error))
            finally:
                await mailbox.close()
        await self._trainer.rehearse()  # folders came one after the other
        return summary

    async def _plan_mailbox(self, mailbox: Mailbox, plan: Plan, advance: Advance) -> None:
        folders = await mailbox.bootstrap_folders()
        sent = _Sent()
        for folder, role in folders:
            if role is Role.SENT:
                async for messages in self._summaries(mailbox, folder, plan):
                    advance(len(messages))
                    plan.sent += len(messages)
                    sent.add(messages)
        for folder, role in folders:
            if role is not Role.SENT:
                source = await self._source(mailbox, folder, role, sent, plan, advance)
                if source.found:
                    plan.sources.append(source)

    async def _source(
        self,
        mailbox: Mailbox,
        folder: Folder,
        role: Role,
        sent: "_Sent",
        plan: Plan,
        advance: Advance,
    ) -> Source:
        label = Label.SPAM if role is Role.JUNK else Label.HAM
        chosen: list[str] = []
        found = 0
        async for messages in self._summaries(mailbox, folder, plan):
            advance(len(messages))
            fit = [message for message in messages if _fits(message, role, label, sent)]
            if role is Role.JUNK:
                filed = await self._filed(fit)
                plan.filtered += len(filed)
                fit = [message for message in fit if message.key not in filed]
            found += len(fit)
            chosen = (chosen + [message.key for message in fit])[-self._options.limit :]
        return Source(
            mailbox=mailbox, folder=folder, role=role, label=label, found=found, keys=chosen[::-1]
        )

    async def _filed(self, messages: Sequence[MessageSummary]) -> Collection[str]:
        """Return which mails in Junk a filter put there: ours, or whoever wrote the flag."""
        ids = {message.key: message.id for message in messages if message.id}
        known = await self._history.by_id(list(ids.values())) if ids else {}
        ours = {
            key for key, one in ids.items() if one in known and known[one].verdict is Verdict.SPAM
        }
        if self._options.filtered:
            return ours
        return ours | {message.key for message in messages if _is_flagged(message)}

    async def _summaries(
        self, mailbox: Mailbox, folder: Folder, plan: Plan
    ) -> AsyncIterator[Sequence[MessageSummary]]:
        """Yield the summaries of all mails of a folder in batches, oldest first."""
        try:
            changes = await mailbox.changes(folder, None, baseline=True)
            if changes is None:
                return
            for start in range(0, len(changes.keys), CHUNK):
                keys = changes.keys[start : start + CHUNK]
                yield await mailbox.summaries(folder, keys, changes.start)
        except FolderError as error:
            plan.faults.append(str(error))

    def _balance(self, plan: Plan) -> None:
        """Cut both labels to the limit, and the larger to `ratio` times the smaller."""
        most: float = self._options.limit
        if isfinite(self._options.ratio):
            smaller = min(plan.chosen(label) for label in Label)
            most = min(most, smaller * self._options.ratio)
        for label in Label:
            _cut([source for source in plan.sources if source.label is label], int(most))

    async def _learn_source(self, source: Source, summary: RunSummary, advance: Advance) -> None:
        for start in range(0, len(source.keys), BATCH):
            keys = source.keys[start : start + BATCH]
            batch = [
                features for key in keys if (features := await self._read(source, key, summary))
            ]
            known = await self._history.by_digest([features.digest for features in batch])
            new = [one for one in batch if one.digest not in known or not known[one.digest].label]
            summary.already += len(batch) - len(new)
            outcomes = await self._trainer.train(
                new, source.label, source=SOURCE, actor=source.mailbox.actor
            )
            summary.count(outcomes, source.label)
            advance(len(keys))

    async def _read(self, source: Source, key: str, summary: RunSummary) -> Features | None:
        """Return the features of a mail, None when there is nothing to learn from."""
        summary.examined += 1
        try:
            content = await source.mailbox.content(source.folder, key)
        except FolderError as error:
            summary.skipped["unreadable"] += 1
            summary.faults.append(str(error))
            return None
        if content is None:
            summary.skipped["vanished"] += 1
            return None
        if not content.strip():
            summary.skipped["empty"] += 1
            return None
        return await asyncio.to_thread(self._extract, content)


class _Sent:
    """What a person's own mail tells: which mails it is, and which it answers."""

    def __init__(self) -> None:
        self._written: set[str] = set()
        self._answered: set[str] = set()

    def add(self, messages: Sequence[MessageSummary]) -> None:
        """Take note of mails in Sent."""
        for message in messages:
            if len(self._written) < MESSAGE_IDS:
                self._written.update(_ids(message, "message-id"))
            if len(self._answered) < MESSAGE_IDS:
                self._answered.update(_ids(message, "in-reply-to", "references"))

    def concerns(self, message: MessageSummary) -> bool:
        """Return whether a mail was answered, or answers what the person wrote."""
        refers = _ids(message, "in-reply-to", "references")
        own = _ids(message, "message-id")
        return any(one in self._written for one in refers) or any(
            one in self._answered for one in own
        )


def _fits(message: MessageSummary, role: Role, label: Label, sent: _Sent) -> bool:
    """Return whether a mail teaches what its folder says."""
    if message.fault or "\\Deleted" in message.flags or mark(message) not in {None, label}:
        return False
    return (
        role in {Role.JUNK, Role.ARCHIVE} or "\\Answered" in message.flags or sent.concerns(message)
    )


def _is_flagged(message: MessageSummary) -> bool:
    return message.fields.get("x-spam-flag", "").lower().startswith("y")


def _ids(message: MessageSummary, *names: str) -> list[str]:
    """Return the Message-IDs in some fields of a mail."""
    return [
        one
        for name in names
        for one in _MESSAGE_ID.findall(message.fields.get(name, ""))[:REFERENCES]
    ]


def _cut(sources: Sequence[Source], most: int) -> None:
    """Keep `most` mails in all, taking from each folder in turn, the newest first."""
    kept: list[list[str]] = [[] for _ in sources]
    depth = 0
    while most and any(depth < len(source.keys) for source in sources):
        for source, keys in zip(sources, kept, strict=True):
            if most and depth < len(source.keys):
                keys.append(source.keys[depth])
                most -= 1
        depth += 1
    for source, keys in zip(sources, kept, strict=True):
        source.keys = keys
