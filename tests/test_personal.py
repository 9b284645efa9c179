"""Lessons of users come to the site by votes: the newsletter, and the wave of spam."""

from pathlib import Path

import pytest

from spamd.bayes.classifiers.logistic import sigmoid
from spamd.bayes.model import BayesOptions
from spamd.errors import StorageUnavailable
from spamd.message.facts import SCHEMA
from spamd.message.features import Features
from spamd.person import Person, own_word
from spamd.sample import Label
from spamd.storage.options import DatabaseOptions
from spamd.storage.store import Store
from spamd.training import TrainingOptions
from spamd.training.personal import PersonalTrainer
from spamd.training.ports import KEPT
from tests.storage.mails import FixedClock, mail

HAM, SPAM = Label.HAM, Label.SPAM
WORDS = "shoes offer price week new colours order today list subscribe read more"


def news(number: int) -> Features:
    return mail(f"news {number}", f"{WORDS} {number}", "news@shop.example")


class Site:
    """A site whose users teach by the names that they log in with."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.trainer = PersonalTrainer(
            unit_of_work=store.user_unit_of_work,
            clock=FixedClock(),
            options=TrainingOptions(pause_s=0, attempts=1),
            observer=None,
            user_of=self.user_of,
        )

    async def user_of(self, name: str) -> str | None:
        return {"away": None, "reports": ""}.get(name, f"{name}@example.org")

    async def begin(self, users: int) -> list[str]:
        for number in range(15):
            texts = (f"meeting notes agenda {number}", f"casino pills winner {number}")
            for text, label in zip(texts, Label, strict=True):
                other = mail(f"{text} {label}", text, f"{label}{number}@else.example")
                await self.trainer.train([other], label, source="cli", actor="reports")
        return [f"user{number}" for number in range(users)]

    async def probability(self, mail: Features, user: str = "") -> float:
        await self.store.refresh()
        site = self.store.snapshot.model.weigh(mail.sample).probability
        name = f"{user}@example.org"
        layers = await self.store.layers.read([name]) if user else {}
        word = own_word(Person(user=name, layer=layers.get(name)), mail)
        return site if word is None else sigmoid(word.log_odds)


@pytest.fixture
async def site(tmp_path: Path) -> Site:
    options = DatabaseOptions(url=f"sqlite:///{tmp_path}/spamd.db")
    store = await Store.open(options, schema=SCHEMA, bayes=BayesOptions(), clock=FixedClock())
    return Site(store)


@pytest.mark.parametrize("number", [1, 50])
async def test_who_moves_a_newsletter_twice_is_rid_of_it_and_the_others_keep_it(
    site: Site, number: int
) -> None:
    first, *others = await site.begin(number)
    letters = [news(issue) for issue in range(20)]
    for user in (first, *others):
        await site.trainer.train(letters, HAM, source=KEPT, actor=user)
    before = await site.probability(news(99))
    for issue in letters[:2]:
        await site.trainer.train([issue], SPAM, source="imap", actor=first)
    assert await site.probability(news(99), first) > 0.9
    if others:
        assert abs(await site.probability(news(99)) - before) < 0.05
        assert await site.probability(news(99), others[0]) < 0.05
    await site.store.close()


@pytest.mark.parametrize("number", [1, 50])
async def test_a_wave_that_three_report_is_spam_for_all(site: Site, number: int) -> None:
    users = await site.begin(number)
    for place, user in enumerate(users[:3]):
        await site.trainer.train([news(place)], SPAM, source="imap", actor=user)
    assert await site.probability(news(99)) > 0.9
    await site.store.close()


async def test_who_can_not_be_asked_about_teaches_nothing(site: Site) -> None:
    with pytest.raises(StorageUnavailable, match="could not be asked"):
        await site.trainer.train([news(1)], SPAM, source="imap", actor="away")
    assert (await site.store.totals()).messages == 0
    await site.store.close()
