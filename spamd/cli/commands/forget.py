"""`spamd forget` and `spamd rollback`: lessons taken back exactly."""

import re
from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from spamd import resources
from spamd.cli.arguments import DaemonOption, JsonOption, refuse_daemon
from spamd.cli.exits import Exit, UsageProblem
from spamd.cli.mail import files
from spamd.cli.mail.files import Unreadable
from spamd.cli.mail.owners import UserOption, owner_named
from spamd.cli.output import fault, json_line, line
from spamd.cli.session import Session, awaited, session
from spamd.cli.targets import Targets, digests_of, refuse_terminal, targets
from spamd.wording import counted, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spamd.training.ports import LessonSummary, Selection


AGO = re.compile(r"(\d{1,6})([mhdw])")
UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def forget(
    context: typer.Context,
    names: Annotated[
        list[str], typer.Argument(metavar="ID|PATH", help="Mail, or the X-Spam-Id of one.")
    ],
    *,
    user: UserOption = "",
    daemon: DaemonOption = False,
    as_json: JsonOption = False,
) -> int:
    """Take back lessons, as if they had never been learned.

    Messages that were never learned are named and change nothing. With --user only what that user
    has said is taken back, and what followed from it for all.
    """
    refuse_daemon(context, daemon=daemon)
    refuse_terminal(context, names)
    owner = owner_named(context, user)
    return awaited(_forget(session(context), targets(names), owner, as_json=as_json))


async def _forget(here: Session, wanted: Targets, user: str, *, as_json: bool) -> int:
    from spamd.cli.mail.extraction import extracted

    async with resources.open_store(here.settings) as store:
        digests, unknown = await digests_of(store, wanted)
        skipped = [
            Unreadable(name=name, reason="no message with this id is known") for name in unknown
        ]
        for one in extracted(files.read(wanted.paths), here.settings.reading):
            if isinstance(one, Unreadable):
                skipped.append(one)
            else:
                digests[one[0]] = one[1].digest
        if user:
            trains = resources.user_trainer(store, here.settings)
            outcomes = await trains.forget(user, list(digests.values()))
        else:
            trainer = resources.trainer(store, here.settings)
            outcomes = await trainer.forget(list(digests.values()))
        after = await store.totals()
        place = store.database.shown
    results = {outcome.digest: outcome for outcome in outcomes}
    forgotten = [name for name, digest in digests.items() if results[digest].label is not None]
    skipped += [
        Unreadable(name=name, reason="this message was never learned")
        for name, digest in digests.items()
        if results[digest].label is None
    ]
    if as_json:
        json_line(
            {
                "database": place,
                "forgotten": forgotten,
                "skipped": [{"path": one.name, "reason": one.reason} for one in skipped],
                "corpus": {"spam": after.spam, "ham": after.ham},
            }
        )
    else:
        line(f"{counted(len(forgotten), 'lesson')} taken back; {place} holds")
        line(f"{after.spam:,} spam and {after.ham:,} ham now")
    for one in skipped:
        fault(f"{printable(one.name)}: {one.reason}")
    if not skipped:
        return Exit.DONE
    return Exit.PARTLY if forgotten else Exit.TROUBLE


def rollback(
    context: typer.Context,
    since: Annotated[
        str | None,
        typer.Option(metavar="T", help="Lessons from then on: 2026-01-31, 2026-01-31T12:00, 3d."),
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="T", help="Lessons before then.")] = None,
    source: Annotated[
        str | None, typer.Option(metavar="S", help="Lessons from imap, maildir, cli, address, …")
    ] = None,
    actor: Annotated[
        str | None, typer.Option(metavar="A", help="Lessons given by this person or account.")
    ] = None,
    domain: Annotated[
        str | None, typer.Option(metavar="D", help="Lessons on mail from this sender's domain.")
    ] = None,
    label: Annotated[
        Literal["spam", "ham"] | None, typer.Option(help="Lessons under this label.")
    ] = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be taken back.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Take back all lessons of a time, source, person or domain.

    Conditions are joined by "and"; at least one is needed. The rest stays as if those lessons had
    never been learned.
    """
    from spamd.sample import Label
    from spamd.training.ports import Selection

    if not any((since, until, source, actor, domain, label)):
        raise UsageProblem(
            "say which lessons: --since, --until, --source, --actor, --domain or --label", context
        )
    now = datetime.now().astimezone()
    selection = Selection(
        since=moment(since, now) if since else None,
        until=moment(until, now) if until else None,
        source=source,
        actor=actor,
        sender_domain=domain,
        label=Label(label) if label else None,
    )
    return awaited(_rollback(session(context), selection, dry_run=dry_run, as_json=as_json))


async def _rollback(here: Session, selection: "Selection", *, dry_run: bool, as_json: bool) -> int:

    async with resources.open_store(here.settings) as store:
        if dry_run:
            lessons = await store.lessons(selection)
        else:
            lessons = await resources.trainer(store, here.settings).rollback(selection)
        after = await store.totals()
        place = store.database.shown
    if as_json:
        json_line(
            {
                "database": place,
                "dry_run": dry_run,
                "lessons": [_lesson_json(each) for each in lessons],
                "corpus": {"spam": after.spam, "ham": after.ham},
            }
        )
        return Exit.DONE
    verb = "would be taken back from" if dry_run else "taken back from"
    line(f"{counted(len(lessons), 'lesson')} {verb} {place}")
    _print_groups(lessons)
    line(f"{after.spam:,} spam and {after.ham:,} ham {'are learned' if dry_run else 'remain'}")
    return Exit.DONE


def _print_groups(lessons: "Sequence[LessonSummary]") -> None:
    groups = Counter((each.label, each.source, each.actor) for each in lessons)
    for (label, source, actor), number in groups.most_common():
        line(f"  {number:>8,}  {label:<5} {source:<10} {printable(actor)}")
    if lessons:
        first, last = lessons[0].time.astimezone(), lessons[-1].time.astimezone()
        line(f"  given from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}")


def _lesson_json(lesson: "LessonSummary") -> dict[str, object]:
    return {
        "id": lesson.digest.hex(),
        "label": str(lesson.label),
        "source": lesson.source,
        "actor": lesson.actor,
        "sender_domain": lesson.sender_domain,
        "time": lesson.time.isoformat(),
        "before": lesson.before,
        "after": lesson.after,
    }


def moment(text: str, now: datetime) -> datetime:
    """Return the time that a text means: a date, a date and time, or how long ago.

    Without a zone it is local time.

    Raises:
        UsageProblem: it means no time.
    """
    try:
        if ago := AGO.fullmatch(text):
            return now - timedelta(**{UNITS[ago[2]]: int(ago[1])})
        return datetime.fromisoformat(text).astimezone()  # the zone of that day: summer time or not
    except (ValueError, OverflowError):
        raise UsageProblem(
            f'"{text}" is no time; write 2026-01-31, 2026-01-31T12:00, 30m, 2h, 3d or 1w'
        ) from None
