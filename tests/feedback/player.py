"""Plays a history on the model of a server, with the real watcher looking, and keeps the score.

Every lesson must have been given by a person before; every lesson that a person gave must be
learned, or there is a reason, known from what happened, for which the rule loses it on purpose.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from spamd.errors import TemporaryError
from spamd.feedback.account_states import AccountStates
from spamd.feedback.mailboxes.imap import ImapMailbox
from spamd.feedback.mailboxes.mailbox import MailboxError
from spamd.feedback.options import AccountOptions, Tls
from spamd.feedback.teacher import Teacher
from spamd.feedback.watching.context import WatcherContext
from spamd.feedback.watching.watcher import Watcher
from spamd.message.features import extract
from spamd.training.ports import KEPT
from tests.fakes import FakeObserver
from tests.feedback.fakes import EveryKept, FakeAccounts, FakeHeld
from tests.feedback.histories import Plan, Result, Step
from tests.feedback.model import ModelMailbox
from tests.feedback.people import OPTIONS, QUICK_S
from tests.feedback.readers import KEPT_S, Readers
from tests.feedback.wire import Spoil, spoken

ACCOUNT = AccountOptions(host="model.test", user="ann", password="x", tls=Tls.AUTO)


def play(history: Plan) -> Result:
    """Return what came of a history."""
    return asyncio.run(Player(history).run())


def play_on_the_wire(history: Plan) -> Result:
    """Return what came of a history when all answers go over a socket."""
    player = Player(history)
    with spoken(player.server, forgetful(history.forgets)) as scripted:
        account = replace(ACCOUNT, host="127.0.0.1", port=scripted.port, tls=Tls.NONE)
        player.account = account
        player.begin()
        return asyncio.run(player.run())


def forgetful(every: int) -> Spoil:
    """Leave every so many rows out of the answers to FETCH, as the model does."""
    count = 0

    def spoil(command: str, lines: list[str]) -> list[str]:
        nonlocal count
        if not every or not command.startswith("UID FETCH") or "HEADER" not in command:
            return lines
        kept = []
        for line in lines:
            count += 1
            if count % every:
                kept.append(line)
        return kept

    return spoil


class Player(Readers):
    """One account, its people and its watcher."""

    def __init__(self, history: Plan) -> None:
        super().__init__(history)
        self.account = ACCOUNT
        self.observer = FakeObserver()
        self._counted = 0
        self.begin()

    async def run(self) -> Result:
        await self.mailbox.open()
        for step in self._history.steps:
            await self._do(step)
        for number in range(12):
            self.clock.seconds += KEPT_S if number == 6 else 0
            await self._poll(Step("poll"))
        await self.mailbox.close()
        for act in self._pending:
            self.result.unexplained.append(f"{act.label} of {act.mail} was never decided")
        return self.result

    # ── the watcher ─────────────────────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """Start a watcher that remembers what an earlier one wrote down."""
        kind = ModelMailbox if self.account is ACCOUNT else ImapMailbox
        self.mailbox = kind(self.account, OPTIONS, self.clock, login=self.account.user, actor="ann")
        if isinstance(self.mailbox, ModelMailbox):
            self.mailbox.server = self.server
        self.account_key = self.mailbox.key
        context = WatcherContext(
            mailboxes=self.mailboxes,
            kept=self.mailboxes,
            choice=EveryKept(self.mailboxes),
            history=self.journal,
            teacher=Teacher(self.journal, FakeHeld(), self.clock, OPTIONS, FakeObserver()),
            extract=extract,
            clock=self.clock,
            observer=self.observer,
        )
        states = AccountStates(FakeAccounts(), self.clock, FakeObserver())
        self.watcher = Watcher(self.mailbox, context, OPTIONS, source="imap", states=states)

    def seen_restless(self) -> set[str]:
        return self.mailbox._restless

    async def _do(self, step: Step) -> None:
        if step.act == "poll":
            await self._poll(step)
        elif step.act == "settle":
            self.clock.seconds += QUICK_S + 1
            await self._poll(Step("poll"))
        elif step.act == "restart":
            await self.mailbox.close()
            self.begin()
            await self.mailbox.open()
        elif step.act == "wait":
            self.clock.seconds += step.n
        else:
            self._happen(step)

    async def _poll(self, step: Step) -> None:
        base = self.server.calls
        lay = self.places()
        upset = set(self._upset)
        for noted in (self._gone, self._foreign, self._upset):
            noted.fresh = set()
        touched = {inner.mail for _, inner in step.inside}
        for call, inner in step.inside:
            self.server.inside[base + call] = self._later(inner)
        self.server.ends_at = base + step.n if step.n else None
        self._looking = True
        try:
            await self.watcher.poll()
            whole = self.watcher.reader.whole
        except (MailboxError, TemporaryError):
            await self.mailbox.close()
            await self.mailbox.open()
            whole = False
        self._looking = False
        later = list(self.server.inside.values())
        self.server.inside.clear()
        self.server.ends_at = None
        self.result.polls += 1
        self.clock.seconds += 1
        self._settle_kept(lay)
        self.bulk = [] if whole else self.bulk
        self._settle(touched, {str(one) for one in upset | self._upset}, whole=whole)
        if whole and not self._looked:
            self._looked = True
            self.note_old()
        if whole:
            self._inside = touched
            before = {number: self._lay.get(number, set()) for number in touched}
            self._lay = self._lying()
            for number in before.keys() & self._lay.keys():
                self._lay[number] |= before[number]  # it may have been seen before or after that
            for noted in (self._gone, self._foreign, self._upset):
                noted.intersection_update(noted.fresh)
        for happens in later:
            happens()

    def _later(self, step: Step) -> Callable[[], None]:
        return lambda: self._happen(step)

    # ── the score ───────────────────────────────────────────────────────────────────────────────

    def _settle_kept(self, lay: dict[int, set[str]]) -> None:
        """Hold the lessons of kept mail of a poll against who has read it."""
        for place in range(self._counted, len(self.journal.history)):
            if self.journal.sources[place] == KEPT:
                number = self.numbers.get(self.journal.history[place][0], -1)
                if why := self.why_not_kept(number, lay, self.places()):
                    self.result.wrong.append(f"kept {number}: {why}")
                self.result.kept += 1

    def _settle(self, touched: set[int], upset: set[str], *, whole: bool) -> None:
        """Hold the lessons of a poll against what people meant."""
        new = zip(
            self.journal.history[self._counted :],
            self.journal.sources[self._counted :],
            strict=True,
        )
        for (digest, label), source in new:
            number = self.numbers.get(digest, -1)
            if source == KEPT:
                continue
            meant = [one for one in self._acts if (one.mail, one.label) == (number, label)]
            if not meant:
                self.result.wrong.append(f"{label} of {number}")
                continue
            self._acts = [one for one in self._acts if one not in meant]
            self.result.given += sum(one in meant for one in self._pending)
            self._pending = [one for one in self._pending if one not in meant]
        self._counted = len(self.journal.history)
        if not whole:
            return
        for act in list(self._pending):
            act.polls += 1
            act.doubts |= upset
            if act.mail in touched:
                act.doubts.add("while we polled")
            if self._places(act.mail) > 1:
                act.doubts.add("at two places at once")
            if "while we polled" in act.doubts and act.polls < 2:
                continue
            self._pending = [one for one in self._pending if one is not act]
            if act.doubts:
                self.result.lost[min(act.doubts)] += 1
            else:
                self.result.unexplained.append(f"{act.label} of {act.mail}")
