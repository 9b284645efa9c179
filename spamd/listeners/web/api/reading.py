"""What the API shows: figures, lists, single mails, words, accounts, settings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from spamd.admin.accounts import AccountNow, AccountsNow
from spamd.admin.evaluation import Evaluated
from spamd.admin.history import MOST_ROWS, ROWS, ScanPart, history, place_of
from spamd.admin.lessons import HeldRow, LessonPart, Preview
from spamd.admin.mail import Basis, Mail
from spamd.admin.overview import Overview
from spamd.admin.ports import Place, ScanFilter, SettingRow
from spamd.admin.roles import Role
from spamd.admin.words import LONGEST, WordFound
from spamd.bayes.decision import Action, Verdict
from spamd.listeners.web.answers import Refusal
from spamd.listeners.web.api.operation import (
    Asked,
    Cursor,
    Name,
    Operation,
    Operations,
    Text,
    Time,
    Visit,
)
from spamd.sample import Label
from spamd.training.ports import Selection

MOST_HOURS = 24 * 31

Limit = Annotated[int, Field(ge=1, le=MOST_ROWS)]


class Nothing(Asked):
    """Nothing more."""


class Hours(Asked):
    """Of how many hours the mail is counted."""

    hours: Annotated[int, Field(ge=1, le=MOST_HOURS)] = 24


class Scans(Asked):
    """Which scans are meant."""

    verdict: Verdict | None = None
    action: Action | None = None
    listener: Text | None = None
    since: Time | None = None
    until: Time | None = None
    id: Annotated[Text | None, Field(description="our id of a mail, or its beginning")] = None
    queue_id: Text | None = None
    at: Cursor | None = None
    limit: Limit = ROWS


class OneMail(Asked):
    """A mail by our id, or by its identity in hex."""

    mail: Name


class Chosen(Asked):
    """Which lessons are meant."""

    label: Label | None = None
    source: Text | None = None
    actor: Text | None = None
    sender_domain: Text | None = None
    since: Time | None = None
    until: Time | None = None


class Journal(Chosen):
    """Which lessons are meant, and which part of their list."""

    at: Cursor | None = None
    limit: Limit = ROWS


class Word(Asked):
    """A word or a pair of words, and from which lesson on those that taught it are looked for."""

    word: Annotated[str, Field(min_length=1, max_length=LONGEST, pattern=r"^[^\x00]+$")]
    behind: Annotated[int | None, Field(ge=0, le=2**63 - 1)] = None


class OneAccount(Asked):
    """An account by its name: "user@host:port" or "maildir:/path"."""

    name: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class BasisFound:
    """The lessons on which the strongest words of a mail rest, as far as was looked."""

    words: tuple[Basis, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldNow:
    """The lessons that wait for a review, oldest first."""

    held: tuple[HeldRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsNow:
    """The settings in force, and the probability from which each choice is taken."""

    settings: tuple[SettingRow, ...]
    thresholds: Mapping[str, float]


async def status(visit: Visit, asked: Hours) -> Overview:
    """Return how all is."""
    site = visit.office.site
    guarded = any(row.value != '""' for row in site.settings() if row.key in GUARDS)
    return await visit.office.overview.show(asked.hours, guarded=guarded)


GUARDS = ("web.password_file", "web.user_header")


async def mails(visit: Visit, asked: Scans) -> ScanPart:
    """Return a part of the history."""
    chosen = ScanFilter(
        verdict=asked.verdict,
        action=asked.action,
        listener=asked.listener,
        since=asked.since,
        until=asked.until,
        id=asked.id,
        queue_id=asked.queue_id,
    )
    return await history(visit.office.records, chosen, place(asked.at), asked.limit)


async def mail(visit: Visit, asked: OneMail) -> Mail | None:
    """Return a mail."""
    return await visit.office.mails.show(asked.mail, words=visit.words, people=visit.people)


async def basis(visit: Visit, asked: OneMail) -> BasisFound | None:
    """Return the lessons behind a mail."""
    if await visit.office.mails.features(asked.mail) is None:
        return None
    found = await visit.office.mails.basis(asked.mail, people=visit.people)
    return BasisFound(words=tuple(found))


async def lessons(visit: Visit, asked: Journal) -> LessonPart:
    """Return a part of the journal."""
    chosen = selection(visit, asked)
    return await visit.office.lessons.journal(
        chosen, place(asked.at), asked.limit, people=visit.people
    )


async def held(visit: Visit, _: Nothing) -> HeldNow:
    """Return what waits for a review."""
    found = await visit.office.lessons.held(words=visit.words, people=visit.people)
    return HeldNow(held=tuple(found))


async def preview(visit: Visit, asked: Chosen) -> Preview:
    """Return what a rollback would take back."""
    return await visit.office.lessons.preview(selection(visit, asked), people=visit.people)


async def word(visit: Visit, asked: Word) -> WordFound:
    """Return what is known of a word."""
    return await visit.office.words.find(asked.word, asked.behind, people=visit.people)


async def accounts(visit: Visit, _: Nothing) -> AccountsNow:
    """Return all accounts."""
    return await visit.office.accounts.all()


async def account(visit: Visit, asked: OneAccount) -> AccountNow | None:
    """Return an account."""
    return await visit.office.accounts.one(asked.name)


async def evaluation(visit: Visit, _: Nothing) -> Evaluated:
    """Return what came of the last evaluation."""
    return await visit.office.evaluation.found()


def settings(bounds: Mapping[str, float]) -> Callable[[Visit, Nothing], Any]:
    """Return what returns the settings."""

    async def settings(visit: Visit, _: Nothing) -> SettingsNow:
        rows: Sequence[SettingRow] = visit.office.site.settings()
        return SettingsNow(settings=tuple(rows), thresholds=bounds)

    return settings


def place(cursor: str | None) -> Place | None:
    """Return where a part of a list begins."""
    return None if cursor is None else place_of(cursor)


def selection(visit: Visit, asked: Chosen) -> Selection:
    """Return which lessons are meant.

    Raises:
        Refusal: who asks would learn who somebody is.
    """
    if not visit.people and (asked.actor is not None or asked.sender_domain is not None):
        raise Refusal(403, 'actor and sender_domain need log.privacy = "full"')
    return Selection(
        label=asked.label,
        source=asked.source,
        actor=asked.actor,
        sender_domain=asked.sender_domain,
        since=asked.since,
        until=asked.until,
    )


def operations(bounds: Mapping[str, float]) -> Operations:
    """Return what can be read."""
    reader, teacher = Role.READER, Role.TEACHER
    return (
        Operation(
            method="GET", path="/api/status", role=reader, asks=Hours, gives=Overview, do=status,
            summary="Does mail flow, is it learning, what is wrong, what is next",
        ),
        Operation(
            method="GET", path="/api/mails", role=reader, asks=Scans, gives=ScanPart, do=mails,
            summary="What was scanned, newest first",
        ),
        Operation(
            method="GET", path="/api/mails/{mail}", role=reader, asks=OneMail, gives=Mail, do=mail,
            summary="One mail: what was said of it, what is said now, and why; words for teachers",
        ),
        Operation(
            method="GET", path="/api/mails/{mail}/basis", role=teacher, asks=OneMail,
            gives=BasisFound, do=basis, summary="The lessons behind the strongest words of a mail",
        ),
        Operation(
            method="GET", path="/api/lessons", role=reader, asks=Journal, gives=LessonPart,
            do=lessons, summary="The journal of lessons, newest first",
        ),
        Operation(
            method="GET", path="/api/lessons/held", role=reader, asks=Nothing, gives=HeldNow,
            do=held, summary="Lessons that wait for a review",
        ),
        Operation(
            method="GET", path="/api/lessons/rollback", role=reader, asks=Chosen, gives=Preview,
            do=preview, summary="What a rollback would take back, and what would be left",
        ),
        Operation(
            method="GET", path="/api/words", role=teacher, asks=Word, gives=WordFound, do=word,
            summary="A word or a pair: counts, probability by each classifier, lessons",
        ),
        Operation(
            method="GET", path="/api/accounts", role=reader, asks=Nothing, gives=AccountsNow,
            do=accounts, summary="Watched accounts and how they fare",
        ),
        Operation(
            method="GET", path="/api/account", role=reader, asks=OneAccount,
            gives=AccountNow, do=account, summary="One account: its folders, its parked mail",
        ),
        Operation(
            method="GET", path="/api/evaluation", role=reader, asks=Nothing, gives=Evaluated,
            do=evaluation, summary="What came of the last evaluation of what was taught",
        ),
        Operation(
            method="GET", path="/api/settings", role=reader, asks=Nothing, gives=SettingsNow,
            do=settings(bounds), summary="The settings in force, each with where it comes from",
        ),
    )  # fmt: skip
