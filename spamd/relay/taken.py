"""Who has a message already that others of its recipients could not get: the memory for retries.

Over SMTP one reply stands for all recipients. When the next hop takes a message for some and not
for others, 250 would lose it for these and 550 would be untrue for those, so the client reads 451
and comes again with all of them. Then, for six days:

    who took it             reads 250 and gets no second copy
    who was put off         is asked again
    who was refused         must come in a transaction without those who took it (452 4.5.3 to
                            RCPT), so that there is one reply that is true for everybody in it

A message is known by a hash of its sender and its bytes without Received fields, which change when
a relay in front of us passes it on anew at each try; recipients by a hash keyed with that, which
says nothing to who does not have the message. A retry may come to another worker or machine: what
one remembers the others read from the database. Without it each worker knows its own, and a
message whose retry comes to another one may come twice: a repeat is possible, a loss is not.
"""

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spamd.errors import TemporaryError
from spamd.network.spool import SpooledMessage
from spamd.ports import Clock, Observer, Outcome, TakenStore

KEEP_S = 6 * 86_400.0
"""Mail servers try for four or five days (RFC 5321 §4.5.4.1)."""

MOST = 20_000
"""Messages remembered in memory, some 10 MB; the oldest are forgotten first."""

STORE_S = 2.0
"""Wait for the database; mail waits for it only when recipients were answered differently."""

HEAD_BYTES = 256 * 1024
"""Received fields are looked for so far."""

_RECEIVED = re.compile(
    rb"^received[ \t]*:[^\n]*\n(?>(?:[ \t][^\n]*\n)*)", re.IGNORECASE | re.MULTILINE
)


@dataclass(slots=True, kw_only=True)
class _Remembered:
    """What is known of one message; `named` are its sender and recipients, if they came to us."""

    since: float
    outcomes: dict[bytes, Outcome] = field(default_factory=dict)
    named: set[tuple[bytes, bytes]] = field(default_factory=set)


class Taken:
    """The memory of one worker.

    Attributes:
        store: what all workers remember; None while there is no database.
    """

    def __init__(self, clock: Clock, observer: Observer) -> None:
        self.store: TakenStore | None = None
        self._clock = clock
        self._observer = observer
        self._messages: OrderedDict[bytes, _Remembered] = OrderedDict()
        self._named: dict[tuple[bytes, bytes], set[bytes]] = {}
        self._read_until = 0

    def __bool__(self) -> bool:
        """Tell whether anything is remembered."""
        return bool(self._messages)

    def apart(self, sender: bytes, others: Sequence[bytes], recipient: bytes) -> bool:
        """Tell whether one reply can't be true for a recipient and for the others."""
        for message in self._named.get((sender, recipient), ()):
            outcomes = self._messages[message].outcomes
            mine = outcomes.get(_hash(message, recipient))
            theirs = {outcomes.get(_hash(message, other)) for other in others}
            if mine and {mine, *theirs} >= {Outcome.TAKEN, Outcome.REFUSED}:
                return True
        return False

    async def of(
        self, message: bytes, recipients: Sequence[bytes], *, asked: bool
    ) -> Mapping[bytes, Outcome]:
        """Return what became of recipients of a message before.

        asked  the database is asked too, for a try that came to somebody else a moment ago
        """
        if asked and self.store is not None:
            try:
                async with asyncio.timeout(STORE_S):
                    self._remember(message, await self.store.of(message))
            except (TimeoutError, TemporaryError) as error:
                self._observer.failed("taken.unread", error)
        known = self._messages.get(message)
        if known is None:
            return {}
        found = {each: known.outcomes.get(_hash(message, each)) for each in recipients}
        return {recipient: outcome for recipient, outcome in found.items() if outcome}

    async def keep(
        self, message: bytes, sender: bytes, outcomes: Mapping[bytes, Outcome | None]
    ) -> None:
        """Remember what became of recipients of a message: None is asked again next time."""
        hashed = {_hash(message, name): outcome for name, outcome in outcomes.items() if outcome}
        self._remember(message, hashed)
        known = self._messages.get(message)
        if known is not None:
            for recipient in outcomes:
                known.named.add((sender, recipient))
                self._named.setdefault((sender, recipient), set()).add(message)
        if self.store is not None and hashed:
            try:
                async with asyncio.timeout(STORE_S):
                    await self.store.add(message, hashed)
            except (TimeoutError, TemporaryError) as error:
                self._observer.failed("taken.unsaved", error)

    async def follow(self) -> None:
        """Read what other workers remember.

        Raises:
            StorageUnavailable: the database does not answer.
        """
        if self.store is not None:
            rows, self._read_until = await self.store.since(self._read_until)
            for message, outcomes in rows.items():
                self._remember(message, outcomes)
        oldest = self._clock.monotonic() - KEEP_S
        while self._messages and next(iter(self._messages.values())).since < oldest:
            self._forget()

    def _remember(self, message: bytes, outcomes: Mapping[bytes, Outcome]) -> None:
        if not outcomes:
            return
        known = self._messages.get(message)
        if known is None:
            known = self._messages[message] = _Remembered(since=self._clock.monotonic())
            if len(self._messages) > MOST:
                self._forget()
        for recipient, outcome in outcomes.items():
            if known.outcomes.get(recipient) is not Outcome.TAKEN:  # that can't be undone
                known.outcomes[recipient] = outcome

    def _forget(self) -> None:
        message, known = self._messages.popitem(last=False)
        for name in known.named:
            self._named[name].discard(message)
            if not self._named[name]:
                del self._named[name]


async def message_key(message: SpooledMessage, sender: bytes) -> bytes:
    """Return what a message is known by; one on disk is read by a thread."""
    if message.spooled:
        return await asyncio.to_thread(_key, message, sender)
    return _key(message, sender)


def _key(message: SpooledMessage, sender: bytes) -> bytes:
    found = hashlib.sha256(b"%d:%b" % (len(sender), sender))
    head = message.first(HEAD_BYTES)
    end = head.find(b"\r\n\r\n") + 2
    if end >= 2:
        found.update(_RECEIVED.sub(b"", head[:end]))
    for block in message.blocks(max(end, 0) if end >= 2 else 0):
        found.update(block)
    return found.digest()


def _hash(message: bytes, recipient: bytes) -> bytes:
    return hashlib.blake2b(recipient, key=message, digest_size=16).digest()
