"""A newsletter that everybody keeps but one, and a wave of spam that some report.

A site's users teach by the names that they log in with, as the watchers of their mailboxes do.
"""

import asyncio
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from spamd.bayes.classifiers.logistic import sigmoid
from spamd.bayes.model import BayesOptions
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
            unit_of_work=store.unit_of_work,
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

    async def close(self) -> None:
        await self.store.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Probabilities of the next issue after one user has moved two.

    before, after   for the site       own   for who moved them       other   for somebody else
    """

    before: float
    after: float
    own: float
    other: float


async def newsletter(site: Site, users: int, letters: int) -> Moved:
    """Have all keep a newsletter, and one move two issues."""
    first, *others = await site.begin(users)
    issues = [news(number) for number in range(letters)]
    for user in (first, *others):
        await site.trainer.train(issues, HAM, source=KEPT, actor=user)
    before = await site.probability(news(99))
    for issue in issues[:2]:
        await site.trainer.train([issue], SPAM, source="imap", actor=first)
    return Moved(
        before=before,
        after=await site.probability(news(99)),
        own=await site.probability(news(99), first),
        other=await site.probability(news(99), others[0]) if others else 0.0,
    )


async def wave(site: Site, users: int) -> float:
    """Have three of all report a wave, each another mail of it; return what it is for the site."""
    for place, user in enumerate((await site.begin(users))[:3]):
        await site.trainer.train([news(place)], SPAM, source="imap", actor=user)
    return await site.probability(news(99))


async def opened(folder: Path) -> Site:
    """Return a site with a database of its own."""
    options = DatabaseOptions(url=f"sqlite:///{folder}/spamd.db")
    store = await Store.open(options, schema=SCHEMA, bayes=BayesOptions(), clock=FixedClock())
    return Site(store)


async def _both(users: int, folder: Path) -> None:
    began = time.monotonic()
    site = await opened(folder / "newsletter")
    found = await newsletter(site, users, 3)
    await site.close()
    print(f"{users:,} users, {time.monotonic() - began:.0f} s: {found}", flush=True)
    assert found.own > 0.9
    assert abs(found.after - found.before) < 0.05
    assert found.other < 0.05
    site = await opened(folder / "wave")
    spam = await wave(site, users)
    await site.close()
    print(f"a wave that three report: {spam:.4f} for all")
    assert spam > 0.9


def at_size(users: int = 5_000) -> None:
    """Do both with many users."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("newsletter", "wave"):
            Path(folder, name).mkdir()
        asyncio.run(_both(users, Path(folder)))
