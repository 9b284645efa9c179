"""`spamd database …`: schema, check, size, copy, export and import, reset."""

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spamd import resources
from spamd.cli.arguments import JsonOption
from spamd.cli.exits import Exit, UsageProblem
from spamd.cli.help import Grouped, Plain
from spamd.cli.mail.files import STDIN
from spamd.cli.output import fault, json_line, line, note, stages
from spamd.cli.session import Session, awaited, session
from spamd.errors import SpamdError
from spamd.wording import counted, masked_urls, printable, reason

if TYPE_CHECKING:
    from spamd.storage.engine import Database
    from spamd.storage.maintenance.copying import Copied
    from spamd.storage.maintenance.expiry import Expired
    from spamd.storage.maintenance.export import Imported
    from spamd.storage.maintenance.prune_tokens import Pruned
    from spamd.storage.maintenance.verify import Findings
    from spamd.storage.migrate import Upgrade
    from spamd.storage.options import PruneOptions

app = typer.Typer(help="Maintain the database.", rich_markup_mode=None, cls=Grouped)

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show what would be deleted.")]


@asynccontextmanager
async def database_of(here: Session) -> "AsyncIterator[Database]":
    """Open the database whatever its schema; close it at the end."""
    from spamd.storage.engine import Database

    database = await Database.open(here.settings.database)
    try:
        yield database
    finally:
        await database.close()


@app.command(cls=Plain)
def upgrade(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """Bring the tables to this version's schema.

    A SQLite file with data is first copied to a file beside it. All steps are one transaction: an
    upgrade that is interrupted changes nothing. With SQLite, spamd serve upgrades at the start.
    """

    async def run() -> "tuple[str, Upgrade]":
        from spamd.storage.migrate import upgrade as upgraded

        async with database_of(session(context)) as database:
            return database.shown, await upgraded(database)

    shown, done = awaited(run())
    if as_json:
        backup = str(done.backup) if done.backup else None
        json_line({"database": shown, "before": done.before, "after": done.after, "backup": backup})
    elif done.before == done.after:
        line(f"{shown} has schema {done.after} already")
    else:
        line(f"{shown}: schema {done.before or 'none'} → {done.after}")
        if done.backup:
            line(f"copy of the state before: {done.backup}")


@app.command(cls=Plain)
def verify(context: typer.Context, *, as_json: JsonOption = False) -> int:
    """Recompute all counts from the lessons and compare.

    Nothing is changed. Exit code 3 when something does not agree.
    """

    async def run() -> "tuple[str, Findings]":
        from spamd.message.facts import SCHEMA
        from spamd.storage.maintenance.verify import verify as verified

        async with resources.open_store(session(context).settings) as store:
            return store.database.shown, await verified(store.database, SCHEMA)

    shown, found = awaited(run())
    if as_json:
        json_line(
            {
                "database": shown,
                "lessons": found.lessons,
                "tokens": found.tokens,
                "faults": found.faults,
            }
        )
    else:
        line(f"{shown}: {counted(found.lessons, 'lesson')}, {counted(found.tokens, 'token')}")
        line(
            "all counts agree with the lessons"
            if not found.faults
            else "these counts do not agree with the lessons:"
        )
        for fault in found.faults:
            line(f"  {fault}")
    return Exit.TROUBLE if found.faults else Exit.DONE


@app.command(cls=Plain)
def prune(
    context: typer.Context,
    unseen_days: Annotated[
        int | None,
        typer.Option(metavar="N", help="Delete tokens last learned more than N days ago …"),
    ] = None,
    seen_in: Annotated[
        int | None, typer.Option(metavar="N", help="… and seen in at most N lessons.")
    ] = None,
    floor: Annotated[
        int | None, typer.Option(metavar="N", help="Keep at least this many tokens.")
    ] = None,
    *,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Delete tokens that are old and rare, and expired records.

    As spamd serve does each day. Without options database.prune_days, prune_seen_in and prune_floor
    count. The age of a token is counted back from the newest lesson, not from the clock. Every
    lesson can still be taken back exactly afterwards. Expired records are deleted too, as spamd
    serve does each hour: scans, held lessons, parked messages, records of messages in accounts that
    are no longer watched (database.scans_days, feedback.held_days, parked_days, seen_days).
    """
    from spamd.storage.options import PruneOptions

    said = {"unseen_days": unseen_days, "seen_in": seen_in, "floor": floor}
    given = {name: value for name, value in said.items() if value is not None}
    try:
        options = replace(session(context).settings.database.prune or PruneOptions(), **given)
    except ValueError as error:
        raise UsageProblem(str(error), context) from error
    shown, done, gone = awaited(_prune(session(context), options, dry_run=dry_run))
    if as_json:
        json_line(
            {
                "database": shown,
                "dry_run": dry_run,
                "examined": done.examined,
                "removed": done.removed,
                "spared": done.spared,
                "lessons": done.lessons,
                **asdict(gone),
            }
        )
        return
    verb = "would be deleted" if dry_run else "deleted"
    line(f"{shown}: {done.removed:,} of {counted(done.examined, 'token')} {verb}")
    line(f"  from {counted(done.lessons, 'lesson')}; {done.spared:,} more are kept by --floor")
    line(
        f"  {counted(gone.scans, 'scan')}, {counted(gone.kept, 'record')} of read and unread"
        f" messages, {counted(gone.changes, 'change record')} {verb}"
    )
    line(
        f"  {counted(gone.held, 'held lesson')}, {counted(gone.parked, 'parked message')},"
        f" {counted(gone.sightings, 'record')} of {counted(gone.accounts, 'unwatched account')}"
        f" {verb}"
    )


async def _prune(
    here: Session, options: "PruneOptions", *, dry_run: bool
) -> "tuple[str, Pruned, Expired]":
    from spamd.clock import WallClock
    from spamd.storage.maintenance.expiry import expire
    from spamd.storage.maintenance.prune_tokens import prune as pruned

    async with resources.open_store(here.settings) as store:
        done = await pruned(store.database, WallClock(), options, dry_run=dry_run)
        gone = await expire(store.database, WallClock(), here.settings.ages, dry_run=dry_run)
        return store.database.shown, done, gone


@app.command(cls=Plain)
def copy(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="FROM", help="URL of the database to copy.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="URL of an empty database.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Copy a whole database to another one, SQLite or PostgreSQL.

    Every row of every table, as they are when the copy begins; stop the daemon before, or what it
    writes meanwhile is missing. A copy that was interrupted goes on with the same command; until it
    is whole no process uses it. Then set database.url. PostgreSQL takes passwords from PGPASSFILE.
    """
    from spamd.storage.options import DatabaseOptions

    try:
        first, second = DatabaseOptions(url=source), DatabaseOptions(url=target)
    except ValueError as error:
        raise UsageProblem(str(error).replace("database.url", "FROM and TO"), context) from error
    if first.place == second.place:
        raise UsageProblem("FROM and TO are the same database", context)
    done = awaited(_copy(session(context), source, target))
    if as_json:
        urls = {"from": masked_urls(source), "to": masked_urls(target)}
        json_line({**urls, **asdict(done)})
        return
    rows = sum(done.rows.values())
    line(f"{masked_urls(target)} holds all of {masked_urls(source)} now")
    again = f", {done.written:,} of them now: the copy went on" if done.resumed else ""
    line(f"{counted(rows, 'row')} in {counted(len(done.rows), 'table')}{again}")


async def _copy(here: Session, source: str, target: str) -> "Copied":
    from spamd.storage.engine import Database, look_at_file
    from spamd.storage.maintenance.copying import copy as copied

    options = here.settings.database
    from_, to = replace(options, url=source), replace(options, url=target)
    if from_.path and not look_at_file(from_.path):
        raise SpamdError(f"{from_.path}: there is no such file")
    async with AsyncExitStack() as stack:
        first = await Database.open(from_)
        stack.push_async_callback(first.close)
        second = await Database.open(to)
        stack.push_async_callback(second.close)
        with stages() as told:
            return await copied(first, second, told)


@app.command("export", cls=Plain)
def export_(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", help="New file; *.gz is compressed; - is stdout.")
    ],
    *,
    as_json: JsonOption = False,
) -> None:
    """Write all lessons into a text file.

    One JSON object a line, with the words of each lesson: treat the file like mail. It can be
    imported into SQLite and PostgreSQL alike.
    """
    shown, number = awaited(_export(session(context), file))
    if as_json and file != STDIN:
        json_line({"database": shown, "lessons": number})
    else:
        note(f"{counted(number, 'lesson')} exported from {shown}")


async def _export(here: Session, file: str) -> tuple[str, int]:
    from spamd.storage.maintenance.export import export, export_file

    async with resources.open_store(here.settings) as store:
        if file == STDIN:
            return store.database.shown, await export(store.database, sys.stdout)
        try:
            return store.database.shown, await export_file(store.database, Path(file))
        except FileExistsError as error:
            raise SpamdError(
                f"{printable(file)}: the file exists already; give another name"
            ) from error
        except OSError as error:
            raise SpamdError(f"{printable(file)}: {reason(error)}") from error


@app.command("import", cls=Plain)
def import_(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", help="Exported file; - is standard input.")
    ],
    *,
    take_back: Annotated[
        bool, typer.Option("--take-back", help="Take the counts of bogofilter or SpamBayes back.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Add the lessons of an exported file.

    A message that was learned before keeps its lesson. Lines that can't be read are skipped and
    named. FILE may also be an export of bogofilter (bogoutil -d) or SpamBayes (sb_dbexpimp -e): its
    counts are added once and can be taken back. SpamAssassin and rspamd export hashes only: train
    the messages instead.
    """
    shown, done = awaited(_import(session(context), file, take_back=take_back))
    if as_json:
        json_line(
            {
                "database": shown,
                "learned": done.learned,
                "known": done.known,
                "skipped": done.skipped,
                "faults": done.faults,
                "complete": done.complete,
                "programs": done.programs,
            }
        )
    else:
        line(f"learned        {done.learned:>8,}")
        line(f"already known  {done.known:>8,}")
        line(f"skipped        {done.skipped:>8,}")
        for program in done.programs:
            line(f"counts of      {program:>8}  {'taken back' if take_back else 'added'}")
        line(f"database       {shown}")
    for each in done.faults:
        fault(f"{printable(file)}: {each}")
    if not done.complete:
        fault(f"{printable(file)}: the file ends early; what stands before was imported")
    return Exit.PARTLY if done.skipped or not done.complete else Exit.DONE


async def _import(here: Session, file: str, *, take_back: bool) -> "tuple[str, Imported]":
    from spamd.clock import WallClock
    from spamd.storage.maintenance.export import (
        import_file,
        import_lines,
        take_back_file,
    )
    from spamd.storage.maintenance.foreign_exports import FormatError
    from spamd.storage.maintenance.people_rows import add_missing

    async with resources.open_store(here.settings) as store:
        try:
            if take_back:
                done = await take_back_file(store.unit_of_work, Path(file), WallClock())
            elif file == STDIN:
                done = await import_lines(store.unit_of_work, sys.stdin)
            else:
                done = await import_file(store.unit_of_work, Path(file), WallClock())
        except (FormatError, UnicodeDecodeError, EOFError) as error:
            raise SpamdError(f"{printable(file)}: {error}") from error
        except OSError as error:
            raise SpamdError(f"{printable(file)}: {reason(error)}") from error
        await add_missing(store.database, WallClock(), done.rows)
        return store.database.shown, done


@app.command(cls=Plain)
def reset(
    context: typer.Context,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Forget everything that was taught, after a backup.

    The backup of a SQLite database lies beside it, that of PostgreSQL is an export in the current
    folder. To take back part of it, see spamd rollback.
    """
    here = session(context)
    place = here.settings.database.url
    if not yes:
        if not sys.stdin.isatty():
            raise UsageProblem(
                "this deletes everything that was learned; give --yes to confirm", context
            )
        typer.confirm(f"Delete everything learned in {masked_urls(place)}?", abort=True)

    async def run() -> tuple[str, Path]:
        from spamd.clock import WallClock
        from spamd.storage.maintenance.reset import reset as reset_all

        async with resources.open_store(here.settings) as store:
            try:
                backup = await reset_all(store.database, WallClock(), Path.cwd())
            except OSError as error:
                raise SpamdError(f"the backup can't be written: {reason(error)}") from error
            return store.database.shown, backup

    shown, backup = awaited(run())
    if as_json:
        json_line({"database": shown, "backup": str(backup)})
    else:
        line(f"{shown} is empty now; backup: {backup}")
