"""`spamd status`: what was learned, by whom, and what is missing."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from spamd import resources
from spamd.cli.advice import advices
from spamd.cli.arguments import JsonOption
from spamd.cli.open_relay import PROBE_TIMEOUT_S, relaying_in_words
from spamd.cli.output import json_line, line, show
from spamd.cli.session import Session, awaited, session
from spamd.errors import StorageUnavailable
from spamd.wording import counted, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spamd.bayes.counts import Totals
    from spamd.feedback.ports import Held, Parked, WatchedAccount
    from spamd.observe.error_rates import ErrorRates
    from spamd.relay.outbound.open_relay import ProbeResult
    from spamd.settings import Settings
    from spamd.storage.corpus.journal import Summary
    from spamd.storage.maintenance.size import Size
    from spamd.training.ports import LessonSummary

LOST = 20
"""Lost accounts shown: with more it is the server, not the accounts."""

LAST = 5
"""Lessons shown: enough to see whether the last ones did what they should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the database says."""

    database: str
    totals: "Totals"
    lessons: "Summary"
    last: "Sequence[LessonSummary]"
    held: "Sequence[Held]"
    parked: "Sequence[Parked]"
    accounts: "Sequence[WatchedAccount]"
    watchers: "Mapping[str, int]"
    next_hops: "Sequence[ProbeResult]"
    error_rates: "ErrorRates"
    size: "Size"


def status(
    context: typer.Context,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show what was learned and from whom, and what is wrong.

    Each lesson shows the probability of spam before and after it was learned: they show whether
    training works. A correction is a lesson on a message that the filter had judged wrong.
    """
    here = session(context)
    waiting = _waiting(here.settings)
    try:
        state = awaited(_state(here))
    except StorageUnavailable as error:
        if as_json:
            json_line({"database": None, "unavailable": str(error), "waiting": waiting})
        elif waiting:
            line(f"waiting      {_waiting_in_words(waiting)}")
        raise
    if as_json:
        file = here.configuration.file
        found = {"settings": str(file.absolute()) if file else None}
        json_line(found | _as_json(state, here.settings) | {"waiting": waiting})
    else:
        line(f"settings     {here.configuration.read_from}")
        _print(state, here.settings)
        if waiting:
            line(f"waiting      {_waiting_in_words(waiting)}")


def _waiting(settings: "Settings") -> int:
    """Return how many lessons wait on this machine for the database."""
    from spamd.storage.local.waiting_lessons import JournalOnDisk

    return JournalOnDisk.of(settings.database).count()


def _waiting_in_words(number: int) -> str:
    return f"{counted(number, 'lesson')} on this machine, to be learned once the database answers"


async def _state(here: Session) -> State:
    from spamd.clock import WallClock
    from spamd.feedback.account_states import LEASE
    from spamd.feedback.ports import AccountState
    from spamd.feedback.shares import watched_by
    from spamd.observe.error_rates import error_rates, span
    from spamd.relay.outbound.open_relay import probe_all
    from spamd.storage.maintenance.size import size

    settings = here.settings
    since, until = span(
        WallClock().now(),
        scans_days=settings.database.scans_days,
        kept_days=settings.feedback.kept_days,
    )
    asked = probe_all(settings.relay, settings.next_hop, within_s=PROBE_TIMEOUT_S)
    async with resources.open_store(here.settings) as store:
        accounts = await store.accounts.accounts()
        leases = await store.leases.held(LEASE)
        names = [one.name for one in accounts if one.state is not AccountState.LEFT]
        return State(
            database=store.database.shown,
            totals=await store.totals(),
            lessons=await store.summary(),
            last=await store.latest(LAST),
            held=await store.held.held(),
            parked=await store.mailboxes.parked(),
            accounts=accounts,
            watchers=watched_by(leases, names),
            next_hops=[seen async for seen in asked],
            error_rates=error_rates(await store.outcomes(since, until)),
            size=await size(store.database, WallClock().now(), settings.database.scans_days),
        )


def _missing(totals: "Totals", settings: "Settings") -> dict[str, int]:
    decision = settings.decision
    return {
        "spam": max(0, decision.minimum_spam - totals.spam),
        "ham": max(0, decision.minimum_ham - totals.ham),
    }


def _lesson_json(lesson: "LessonSummary") -> dict[str, object]:
    return {
        "id": lesson.digest.hex(),
        "time": lesson.time.isoformat(),
        "label": str(lesson.label),
        "source": lesson.source,
        "actor": lesson.actor,
        "before": lesson.before,
        "after": lesson.after,
    }


def _account(one: "WatchedAccount") -> dict[str, object]:
    return {
        "account": one.name,
        "state": str(one.state),
        "since": one.since.isoformat(),
        "reason": one.reason,
        "silent": one.silent,
    }


def _as_json(state: State, settings: "Settings") -> dict[str, object]:
    from spamd.bayes.decision import thresholds

    totals, lessons = state.totals, state.lessons
    return {
        "database": state.database,
        "corpus": {"spam": totals.spam, "ham": totals.ham, "tokens": totals.vocabulary},
        "size": {
            "bytes": state.size.now,
            "bytes_in_90_days": state.size.ahead,
            "lessons_a_day": state.size.lessons_a_day,
            "user_lessons_a_day": state.size.user_lessons_a_day,
            "scans_a_day": state.size.scans_a_day,
        },
        "missing": _missing(totals, settings),
        "thresholds": thresholds(settings.decision),
        "lessons": {
            "total": lessons.total,
            "sources": dict(lessons.sources),
            "corrections": lessons.corrections,
            "last": [_lesson_json(each) for each in state.last],
        },
        "error_rates": _error_rates_json(state.error_rates),
        "held": len(state.held),
        "parked": len(state.parked),
        "watched_by": max(state.watchers, key=state.watchers.__getitem__, default=None),
        "watchers": dict(sorted(state.watchers.items())),
        "accounts": [_account(one) for one in state.accounts],
        "open_relay": {seen.next_hop: str(seen.relaying) for seen in state.next_hops},
        "advice": advices(totals, settings),
    }


def _print(state: State, settings: "Settings") -> None:
    from spamd.bayes.decision import thresholds

    totals, lessons = state.totals, state.lessons
    line(f"database     {state.database}")
    line(
        f"corpus       {totals.spam:,} spam and {totals.ham:,} ham{_ratio(totals)},"
        f" {counted(totals.vocabulary, 'token')}"
    )
    line(f"size         {_size(state.size)}")
    bounds = thresholds(settings.decision)
    ready = not any(_missing(totals, settings).values())
    verdicts = ", ".join(f"{choice} from {p:.4f}" for choice, p in bounds.items())
    line(f"verdicts     {verdicts if ready else 'none yet'}")
    for advice in advices(totals, settings):
        line(f"             {advice}")
    line(f"lessons      {_sources(lessons)}")
    if lessons.total:
        share = 100 * lessons.corrections / lessons.total
        line(f"             {lessons.corrections:,} of them corrected the filter ({share:.1f} %)")
    for text in error_rate_lines(state.error_rates):
        line(text)
    if state.held:
        line(f"held         {counted(len(state.held), 'lesson')} for review: spamd lessons held")
    if state.parked:
        line(f"parked       {counted(len(state.parked), 'message')} could not be learned")
    if settings.feedback.accounts:
        _print_accounts(state)
    for seen in state.next_hops:
        said, cure = relaying_in_words(seen)
        line(f"open relay   {said}")
        if cure:
            line(f"             {cure}")
    if state.last:
        _print_last(state.last)


def _print_accounts(state: State) -> None:
    from spamd.feedback.ports import AccountState

    if not state.watchers:
        line("accounts     not watched now; start spamd serve or spamd feedback watch")
        return
    numbers = Counter(one.state for one in state.accounts)
    line(f"accounts     {', '.join(f'{n:,} {what}' for what, n in numbers.items()) or 'none yet'}")
    for holder, number in sorted(state.watchers.items()):
        line(f"             {number:,} by {printable(holder, limit=120)}")
    lost = [one for one in state.accounts if one.state is AccountState.LOST]
    for one in lost[:LOST]:
        since = f"{one.since.astimezone():%Y-%m-%d %H:%M}"
        name, why = printable(one.name, limit=120), printable(one.reason, limit=400)
        line(f"             {name} lost since {since}: {why}")
    if len(lost) > LOST:
        line(f"             and {len(lost) - LOST:,} more lost: spamd status --json")
    silent = sum(one.silent for one in state.accounts)
    if silent:
        line(
            f"             IDLE is silent in {counted(silent, 'account')}: moves wait"
            " for the next poll;"
        )
        line("             see the limits of Dovecot and the kernel, Growth in docs/operations.md")


def _error_rates_json(rates: "ErrorRates") -> dict[str, object]:
    found: dict[str, object] = {
        "since": rates.since.isoformat(),
        "until": rates.until.isoformat(),
        "corrected": rates.corrected,
        "unsure": rates.unsure,
        "unsure_settled": rates.settled,
    }
    for name, one in rates.estimates:
        estimate, low, high = one.messages
        found[name] = {
            "scanned": one.scanned,
            "corrected": one.wrong,
            "kept": one.right,
            "untouched": one.untouched,
            "least": one.least,
            "rate": one.rate,
            "rate_95": one.interval.to_json(),
            "messages": estimate,
            "messages_95": [low, high],
        }
    return found


def error_rate_lines(rates: "ErrorRates") -> "Iterator[str]":
    """Yield in lines how often mail was judged wrong, as far as people tell."""
    if not any(one.scanned for _, one in rates.estimates):
        return
    yield (
        f"error rates  {rates.corrected:,} verdicts corrected by people,"
        f" {rates.settled:,} of {rates.unsure:,} unsure messages settled"
        f" ({rates.since.astimezone():%Y-%m-%d} to {rates.until.astimezone():%Y-%m-%d})"
    )
    for (_, one), words in zip(rates.estimates, ("spam passed", "ham lost"), strict=True):
        estimate, low, high = one.messages
        least = "at least " if one.least else ""
        yield (
            f"             {words}: {least}{one.rate:.2f} % ({one.interval.low:.2f} to"
            f" {one.interval.high:.2f} %) of {one.scanned:,}, {estimate:,.0f} messages"
            f" ({low:,.0f} to {high:,.0f}): {one.wrong:,} corrected, {one.right:,} kept,"
            f" {one.untouched:,} untouched"
        )


def _size(size: "Size") -> str:
    """Return "12.3 MB, in 90 days about 14.0 MB (2.1 lessons and 310.0 scans a day)"."""
    own = f", {size.user_lessons_a_day:,.1f} of users" if size.user_lessons_a_day else ""
    return (
        f"{size.now / 1e6:,.1f} MB, in 90 days about {size.ahead / 1e6:,.1f} MB"
        f" ({size.lessons_a_day:,.1f} lessons{own} and {size.scans_a_day:,.1f} scans a day)"
    )


def _sources(lessons: "Summary") -> str:
    """Return "120: 100 by imap, 20 by cli"."""
    by = ", ".join(f"{number:,} by {source}" for source, number in lessons.sources.items())
    return f"{lessons.total:,}: {by}" if by else "none"


def _ratio(totals: "Totals") -> str:
    if not totals.spam or not totals.ham:
        return ""
    spam, ham = max(1.0, totals.spam / totals.ham), max(1.0, totals.ham / totals.spam)
    return f" (1 : {ham:.1f})" if ham > 1 else f" ({spam:.1f} : 1)"


def _print_last(lessons: "Sequence[LessonSummary]") -> None:
    from rich import box
    from rich.table import Table

    line("\nThe last lessons, the newest first: probability of spam before → after")
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for title in ("time", "label", "before → after", "source", "by", "id"):
        table.add_column(title, overflow="fold" if title == "by" else "ellipsis")
    for lesson in lessons:
        table.add_row(
            f"{lesson.time.astimezone():%Y-%m-%d %H:%M}",
            str(lesson.label),
            f"{lesson.before:.4f} → {lesson.after:.4f}",
            lesson.source,
            printable(lesson.actor, limit=30),
            lesson.digest.hex(),
        )
    show(table)
