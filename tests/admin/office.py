"""A store that has learned a little, and what stands behind the page and the API of it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from spamd import resources
from spamd.admin.administration import Administration
from spamd.message.features import Features
from spamd.ports import Check
from spamd.sample import Label
from spamd.scanning import Scanner
from spamd.settings import Settings
from spamd.site import DaemonSite, administration
from spamd.storage.options import DatabaseOptions
from spamd.storage.store import Store
from spamd.store_opening import OpenStore
from tests.fakes import FakeHealth

SPAM_WORDS = "cheap pills buy order discount casino winner"
HAM_WORDS = "meeting minutes budget review lunch agenda notes"


def mail(number: int, words: str, subject: str = "about it") -> bytes:
    """Return a mail; another number is another mail."""
    head = f"From: Anna <anna@example.org>\r\nSubject: {subject} {number}\r\nDate: now\r\n"
    return f"{head}\r\n{words} number{number}\r\n".encode()


@dataclass(kw_only=True)
class Office:
    """An open store, and what stands behind the page."""

    settings: Settings
    store: Store
    found: Administration
    scanner: Scanner

    def features(self, content: bytes) -> Features:
        return resources.extract(self.settings)(content)

    async def scanned(self, content: bytes, queue_id: str = "Q1") -> str:
        """Scan a mail as a listener does; return its id."""
        await self.store.refresh()
        report = self.scanner.judge(self.features(content), 0.0)
        self.store.scans.record(report)
        self.store.scans.answered(report, "smtp", queue_id)
        await self.store.scans.flush()
        return report.id

    async def taught(self, label: Label, contents: Sequence[bytes], actor: str = "ann") -> None:
        trainer = resources.trainer(self.store, self.settings)
        mails = [self.features(content) for content in contents]
        await trainer.train(mails, label, source="imap", actor=actor)


@asynccontextmanager
async def office(folder: Path, *, full: bool = False, learned: int = 12) -> AsyncIterator[Office]:
    """Give a store with so many lessons of each label."""
    settings = Settings(database=DatabaseOptions(url=f"sqlite:///{folder}/spamd.db"))
    if full:
        log = type(settings.log)(privacy="full")
        settings = settings.model_copy(update={"log": log})
    store = await resources.new_store(settings)
    try:
        secret = await store.secret()
        observer = resources.log_observer(settings)
        site = DaemonSite(lambda: settings, FakeHealth(Check(name="model", ok=True, text="there")))
        teacher = resources.durable_teacher(store, settings, observer)
        names = resources.directory(settings, observer)
        opened = OpenStore(store=store, secret=secret)
        here = Office(
            settings=settings,
            store=store,
            found=administration(opened, settings, site, teacher, observer, lambda: names),
            scanner=resources.scanner(settings, lambda: store.snapshot.model, secret),
        )
        for start in range(0, learned, 4):
            span = range(start, min(start + 4, learned))
            await here.taught(Label.SPAM, [mail(n, SPAM_WORDS) for n in span])
            await here.taught(Label.HAM, [mail(100 + n, HAM_WORDS) for n in span], "bob")
        yield here
    finally:
        await store.close()
