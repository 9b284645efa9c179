"""Which kept mail is taught: by the balance of lessons over all accounts, and by habits."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from spamd.bayes.decision import Verdict
from spamd.bayes.selection import Standing
from spamd.feedback.kept_choice import EVERY, KeptChoice
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.ports import KeptMessage, KeptScan, KeptState
from spamd.message.features import Features, extract
from tests.fakes import FakeClock
from tests.feedback.fakes import FakeJournal, FakeMailboxes

OPTIONS = FeedbackOptions()


@dataclass
class Known(FakeMailboxes):
    """Kept mail of some accounts; `moved` is how surely each person moved unsure mail to Junk."""

    lessons: Standing = field(default_factory=lambda: Standing(spam=100))
    moved: dict[str, list[float]] = field(default_factory=dict)
    asked: int = 0

    async def teachable(self, most: int) -> Sequence[tuple[str, KeptMessage]]:
        self.asked += 1
        return [(name, row) for (name, _, _), row in self.kept.items()][:most]

    async def standing(self, since: datetime, today: datetime) -> Standing:
        return self.lessons

    async def unsure(
        self, account: str, actor: str, since: datetime
    ) -> tuple[Sequence[float], Sequence[float]]:
        return self.moved.get(actor, []), []


@dataclass
class Desk:
    """A choice and all it knows."""

    known: Known = field(default_factory=Known)
    clock: FakeClock = field(default_factory=FakeClock)
    probabilities: dict[bytes, float] = field(default_factory=dict)
    options: FeedbackOptions = OPTIONS

    def __post_init__(self) -> None:
        self.journal = FakeJournal(self.clock)
        self.choice = KeptChoice(self.known, self.journal, self._judge, self.clock, self.options)

    def _judge(self, features: Features) -> float | None:
        return self.probabilities.get(features.digest)

    def keep(
        self,
        account: str,
        key: str,
        probability: float,
        *,
        now: float | None = None,
        sender: str = "",
    ) -> None:
        content = f"X-Spam-Id: {account}{key}\r\nSubject: {account} {key}\r\n\r\nText\r\n".encode()
        features = self.journal.scanned(content, f"{account}{key}", Verdict.UNSURE)
        assert features.digest == extract(content).digest
        if now is not None:
            self.probabilities[features.digest] = now
        scan = KeptScan(
            digest=features.digest,
            verdict=Verdict.UNSURE,
            probability=probability,
            sender=sender or f"{key}.example",
        )
        self.known.kept[account, "INBOX", key] = KeptMessage(
            folder="INBOX",
            key=key,
            mail=b"",
            state=KeptState.KEPT,
            came=self.clock.now(),
            since=self.clock.now(),
            scan=scan,
        )

    async def chosen(self, *accounts: str) -> list[str]:
        found = []
        for _ in range(2):  # all are known from the first round
            for account in accounts:
                found += [
                    f"{account}{row.key}" for row in await self.choice.chosen(account, account)
                ]
            self.clock.seconds += EVERY.total_seconds()
        return found


async def test_the_least_sure_of_all_accounts_is_chosen_first_while_there_is_room() -> None:
    desk = Desk(known=Known(lessons=Standing(spam=0, ham=9)))  # room for one
    desk.keep("ann", "1", 0.05)
    desk.keep("bob", "2", 0.1)
    assert set(await desk.chosen("ann", "bob")) >= {"bob2"}
    assert "ann1" not in (await desk.chosen("ann", "bob"))


async def test_without_room_nothing_is_asked() -> None:
    desk = Desk(known=Known(lessons=Standing(spam=0, ham=500)))
    desk.keep("ann", "1", 0.1)
    assert await desk.chosen("ann") == []
    assert desk.known.asked == 0


async def test_what_the_model_is_sure_of_by_now_is_not_chosen() -> None:
    desk = Desk()
    desk.keep("ann", "1", 0.1, now=0.001)
    desk.keep("ann", "2", 0.001, now=0.1)
    assert "ann1" not in (found := await desk.chosen("ann"))
    assert "ann2" in found


async def test_unsure_mail_is_believed_of_a_person_who_moves_spam() -> None:
    desk = Desk(known=Known(moved={"ann": [0.5] * 40}))
    desk.keep("ann", "1", 0.3)
    desk.keep("bob", "2", 0.3)
    found = await desk.chosen("ann", "bob")
    assert "bob2" not in found


async def test_a_choice_is_made_once_a_minute_and_each_mail_is_given_once() -> None:
    desk = Desk()
    desk.keep("ann", "1", 0.1)
    assert [row.key for row in await desk.choice.chosen("ann", "ann")] == ["1"]
    assert await desk.choice.chosen("ann", "ann") == []
    assert desk.known.asked == 1
    desk.clock.seconds += 61
    assert [row.key for row in await desk.choice.chosen("ann", "ann")] == ["1"]


async def test_mail_of_accounts_that_nobody_polls_here_is_left_to_others() -> None:
    desk = Desk()
    desk.keep("eve", "1", 0.1)
    assert await desk.chosen("ann") == []


@pytest.mark.parametrize("key", ["kept_sure", "kept_doubt"])
def test_settings_of_the_choice_are_checked(key: str) -> None:
    with pytest.raises(ValueError, match=key):
        FeedbackOptions(**{key: 1.5})  # type: ignore[arg-type] # one of two numbers


def test_the_choice_of_the_settings_is_that_of_the_evaluation() -> None:
    assert OPTIONS.kept == type(OPTIONS.kept)()
    assert replace(OPTIONS, kept_a_day=3).kept.kept_a_day == 3
    assert OPTIONS.kept_window_days * timedelta(days=1) > timedelta(days=OPTIONS.kept_days)
