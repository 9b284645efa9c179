"""What a process works with, built from its settings: the daemon and the commands build it here.

    async with open_store(settings) as store:
        await trainer(store, settings).forget(digests)

Each function loads the modules it needs when it is called, so that a command loads no more than it
uses. How the daemon puts these together: `app.py`.
"""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from secrets import token_hex
from typing import TYPE_CHECKING, Protocol

from spamd.clock import WallClock

if TYPE_CHECKING:
    from spamd.bayes.model import Model
    from spamd.feedback.durable_teacher import DurableTeacher
    from spamd.feedback.kept_choice import Choice
    from spamd.feedback.ports import FeedbackObserver
    from spamd.feedback.service import Feedback
    from spamd.feedback.teacher import Extract, Teacher
    from spamd.feedback.watching.context import WatcherContext
    from spamd.lists.book import ListBook
    from spamd.lists.ports import UserOf
    from spamd.lists.senders import Senders
    from spamd.message.features import Features
    from spamd.observe.log import LogObserver
    from spamd.observe.metrics import Metrics
    from spamd.person import Person
    from spamd.ports import Observer, People
    from spamd.scanning import Scanner
    from spamd.settings import Settings
    from spamd.storage.senders.outgoing import OutgoingMail
    from spamd.storage.store import Store
    from spamd.training.ports import TrainingObserver
    from spamd.training.trainer import Trainer
    from spamd.training.user_trainer import UserTrainer
    from spamd.users.directory import Directory
    from spamd.users.ports import Lookup, Names

    class LessonObserver(FeedbackObserver, TrainingObserver, Protocol):
        """Whom feedback tells of accounts, and training of lessons."""


async def new_store(settings: "Settings", *, shared: bool = False) -> "Store":
    """Return the store that the settings name, opened; whoever asks closes it.

    `shared`: the token table is shared with other daemons of this machine.

    Raises:
        ConfigError: the setting can't be right.
        StorageUnavailable: the database does not answer.
    """
    from spamd.message.facts import SCHEMA
    from spamd.storage.store import Store

    return await Store.open(
        settings.database,
        schema=SCHEMA,
        bayes=settings.bayes,
        clock=WallClock(),
        auth=settings.auth,
        known=settings.known,
        shared=shared,
    )


@asynccontextmanager
async def open_store(settings: "Settings") -> "AsyncIterator[Store]":
    """Open the store that the settings name; close it at the end.

    Raises:
        ConfigError: the setting can't be right.
        StorageUnavailable: the database does not answer.
    """
    store = await new_store(settings)
    try:
        yield store
    finally:
        await store.close()


def scanner(
    settings: "Settings",
    model: "Callable[[], Model]",
    key: bytes,
    senders: "Callable[[], Senders] | None" = None,
) -> "Scanner":
    """Return what judges messages by a model; `key` is the installation's secret."""
    from spamd.lists.senders import NOBODY
    from spamd.scanning import Scanner

    return Scanner(
        model=model,
        decision=settings.decision,
        tokenizer=settings.reading,
        clock=WallClock(),
        key=key,
        random=os.urandom,
        senders=senders or (lambda: NOBODY),
    )


def list_book(settings: "Settings", store: "Store") -> "ListBook":
    """Return the lists as people keep them."""
    from spamd.lists.book import ListBook

    return ListBook(store.entries, settings.auth, WallClock().now)


def directory(settings: "Settings", observer: "Observer") -> "Directory":
    """Return who knows which user is behind an address or a login name; whoever asks closes it.

    Raises:
        ConfigError: a file of the users can't be used.
    """
    from spamd.users.command import CommandLookup
    from spamd.users.directory import Directory
    from spamd.users.lookup import CachedLookup

    options = settings.users
    lookup: Lookup | None = CommandLookup(options.command) if options.command else None
    if options.query:
        from spamd.storage.people.directory import SqlLookup

        lookup = SqlLookup(options.query, options.query_url, options.timeout_s)
    if lookup is None:
        return Directory(options)
    return Directory(options, CachedLookup(lookup, observer, keep_s=options.cache_s))


@asynccontextmanager
async def names(settings: "Settings", observer: "Observer") -> "AsyncIterator[Directory]":
    """Know which user is behind an address or a login name, as `directory`; leave it at the end.

    Raises:
        ConfigError: a file of the users can't be used.
    """
    found = directory(settings, observer)
    try:
        yield found
    finally:
        await found.close()


def people(
    settings: "Settings",
    store: "Store",
    observer: "Observer",
    names: "Directory",
) -> "People | None":
    """Return who knows for whom a mail is; None where all mail is judged as the site."""
    if not settings.users.enabled:
        return None
    from spamd.users.people import KnownPeople

    return KnownPeople(
        settings.users,
        observer,
        names=names,
        wishes=store.wishes_in_memory,
        layers=store.layers,
    )


def user_of(names: "Callable[[], Names]") -> "UserOf":
    """Return how the name of a login, or of an account, becomes the name of a user."""

    async def user(name: str) -> str | None:
        address = name.encode("utf-8", "surrogateescape")
        named = (await names().of([address]))[address]
        if named.missing:
            return None
        return "" if named.user.startswith("@") else named.user  # one there, who is no user

    return user


def outgoing(
    settings: "Settings", store: "Store", names: "Callable[[], Names]"
) -> "OutgoingMail | None":
    """Return what remembers to whom our own users write; None where nobody is to."""
    if not settings.remembers_addresses:
        return None
    from spamd.storage.senders.outgoing import OutgoingMail

    return OutgoingMail(store.known_addresses, user_of(names), WallClock())


def extract(settings: "Settings") -> "Extract":
    """Return how the bytes of a mail become features."""
    from spamd.message.features import extract as features_of

    return lambda content: features_of(content, settings.reading)


def trainer(
    store: "Store",
    settings: "Settings",
    observer: "TrainingObserver | None" = None,
    users: "UserOf | None" = None,
) -> "Trainer":
    """Return what teaches and forgets for all; an observer is told of each lesson.

    It teaches for the users behind the actors of lessons, where `users` tells who they are; else
    for the site.
    """
    from spamd.training.personal import PersonalTrainer

    return PersonalTrainer(
        unit_of_work=store.unit_of_work,
        clock=WallClock(),
        options=settings.training,
        observer=observer,
        user_of=users,
    )


def user_trainer(store: "Store", settings: "Settings") -> "UserTrainer":
    """Return what teaches and takes back for one user."""
    from spamd.training.user_trainer import UserTrainer

    return UserTrainer(
        unit_of_work=store.unit_of_work, clock=WallClock(), options=settings.training
    )


async def person(store: "Store", user: str) -> "Person":
    """Return a person with what the database holds of them now."""
    from spamd.person import Person

    await store.wishes_in_memory.refresh(store.database)
    layers = await store.layers.read([user])
    return Person(user=user, wishes=store.wishes_in_memory.of(user), layer=layers.get(user))


def teacher(
    store: "Store",
    settings: "Settings",
    observer: "LessonObserver",
    users: "UserOf | None" = None,
) -> "Teacher":
    """Return what teaches what people say, and holds bursts back for a review.

    Where `users` tells who they are, it is taught for them.
    """
    from spamd.feedback.teacher import Teacher

    trains = trainer(store, settings, observer, users)
    return Teacher(trains, store.held, WallClock(), settings.feedback, observer)


def durable_teacher(
    store: "Store | None",
    settings: "Settings",
    observer: "LessonObserver",
    names: "Callable[[], Names] | None" = None,
) -> "DurableTeacher":
    """Return what teaches, or keeps lessons on this machine while there is no database.

    Where `names` tells who users are and they have filters of their own, for them too.
    """
    from spamd.feedback.durable_teacher import DurableTeacher, Knowledge
    from spamd.storage.local.waiting_lessons import JournalOnDisk

    knowledge = None
    if store is not None:
        knowledge = Knowledge(
            history=store.scans,
            teacher=teacher(store, settings, observer),
            trainer=trainer(store, settings, observer),
            own=teacher(store, settings, observer, _itself),
            users=user_trainer(store, settings),
        )
    return DurableTeacher(
        knowledge,
        JournalOnDisk.of(settings.database),
        WallClock(),
        user_of(names) if settings.users.enabled and names else None,
    )


async def _itself(user: str) -> str:
    """Return the user whose name is a user's already."""
    return user


def kept_choice(store: "Store", settings: "Settings") -> "Choice":
    """Return what says which mail that people have kept is taught."""
    from spamd.bayes.decision import decide
    from spamd.feedback.kept_choice import KeptChoice

    def judge(features: "Features") -> float | None:
        if store.snapshot.version is None:
            return None
        model = store.snapshot.model
        evidence = model.weigh(features.sample)
        return decide(evidence.probability, model.totals, settings.decision).probability

    return KeptChoice(store.kept, store.scans, judge, WallClock(), settings.feedback)


def watcher_context(
    store: "Store",
    settings: "Settings",
    observer: "LessonObserver",
    names: "Callable[[], Names] | None" = None,
) -> "WatcherContext":
    """Return what all watchers of mailboxes share; without `names` the rules tell who is whose."""
    from spamd.feedback.watching.context import WatcherContext
    from spamd.users.names import canonical

    users = settings.users

    async def by_rules(name: str) -> str | None:
        return canonical(name, separators=users.separators, domain=users.domain)

    return WatcherContext(
        mailboxes=store.mailboxes,
        kept=store.kept,
        choice=kept_choice(store, settings),
        history=store.scans,
        teacher=teacher(
            store, settings, observer, user_of(names) if users.enabled and names else None
        ),
        extract=extract(settings),
        clock=WallClock(),
        observer=observer,
        lists=list_book(settings, store),
        correspondents=store.known_addresses if settings.remembers_addresses else None,
        user_of=user_of(names) if names else by_rules,
    )


def feedback(
    store: "Store",
    settings: "Settings",
    observer: "LessonObserver",
    names: "Callable[[], Names] | None" = None,
) -> "Feedback":
    """Return the watchers of all accounts."""
    from socket import gethostname

    from spamd.feedback.service import Feedback

    return Feedback(
        settings.feedback,
        watcher_context(store, settings, observer, names),
        store.leases,
        f"{gethostname()}:{os.getpid()}:{token_hex(2)}",  # containers share names and numbers
        store.accounts,
    )


def log_observer(
    settings: "Settings", metrics: "Metrics | None" = None, **fields: str | int
) -> "LogObserver":
    """Return what writes the log and counts; every line carries the fields."""
    from spamd.observe.log import LogObserver
    from spamd.observe.metrics import Metrics

    counts = metrics or Metrics()
    return LogObserver(settings.log, counts, WallClock(), fields=fields)
