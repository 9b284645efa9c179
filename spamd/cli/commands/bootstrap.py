"""`spamd bootstrap`: the first lessons, from mail that people have sorted already."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spamd import resources
from spamd.cli.arguments import JsonOption
from spamd.cli.exits import Exit, UsageProblem
from spamd.cli.output import QuietObserver, fault, json_line, line, progress, show
from spamd.cli.run_summary import print_summary, summary_exit, summary_json
from spamd.cli.session import Session, awaited, session
from spamd.wording import printable

if TYPE_CHECKING:
    from spamd.feedback.bootstrap import Bootstrap, BootstrapOptions, Plan
    from spamd.feedback.mailboxes.mailbox import Mailbox
    from spamd.storage.store import Store


def bootstrap(
    context: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="MAILDIR", help="Maildirs; default: the accounts in the settings."),
    ] = None,
    *,
    limit: Annotated[int, typer.Option(help="At most N messages of each label.")] = 2000,
    everything: Annotated[
        bool, typer.Option("--unbalanced", help="Learn all, though one label has more messages.")
    ] = False,
    filtered: Annotated[
        bool,
        typer.Option(
            "--filtered", help="Also what another filter marked, if nobody can forge its marks."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Learn without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what there is.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Learn from the folders that users have sorted already.

    Spam is taken from Junk, except messages that a filter put there. Ham is taken from archive
    folders, and from messages that were answered or are answers to a message in Sent. The same
    number of each is learned, the newest first. The command shows what it found and asks before it
    learns; the mailboxes are not changed.
    """
    if limit < 1:
        raise UsageProblem("--limit must be at least 1", context)
    if not (yes or dry_run) and not sys.stdin.isatty():
        raise UsageProblem(
            "standard input is not a terminal, so nothing can be asked: give --yes or --dry-run",
            context,
        )
    from spamd.feedback.bootstrap import BootstrapOptions

    ratio = float("inf") if everything else 1.0
    options = BootstrapOptions(limit=limit, ratio=ratio, filtered=filtered)
    return awaited(
        _bootstrap(
            session(context), paths or [], options, yes=yes, dry_run=dry_run, as_json=as_json
        )
    )


async def _bootstrap(
    here: Session,
    paths: Sequence[Path],
    options: "BootstrapOptions",
    *,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    from spamd.sample import Label

    async with resources.open_store(here.settings) as store:
        learner = _learner(here, store, paths, options)
        with progress("reading folders", None) as advance:
            plan = await learner.plan(advance)
        if not as_json:
            _print_plan(plan)
        chosen = sum(plan.chosen(label) for label in Label)
        if dry_run or not chosen:
            if as_json:
                json_line({"plan": _plan_json(plan), "faults": plan.faults})
            if plan.faults:
                return Exit.PARTLY if plan.sources else Exit.TROUBLE
            return Exit.DONE
        if not yes and not typer.confirm(f"Learn these {chosen:,} messages?"):
            return Exit.DONE
        with progress("learning", chosen) as advance:
            summary = await learner.learn(plan, advance)
        after = await store.totals()
        shown = store.database.shown
    summary.faults = plan.faults + summary.faults
    if as_json:
        json_line(
            {
                "plan": _plan_json(plan),
                **summary_json(summary),
                "database": shown,
                "corpus": {"spam": after.spam, "ham": after.ham},
            }
        )
    else:
        faults, summary.faults = summary.faults, []
        print_summary(summary)
        summary.faults = faults
        line(f"database       {shown}: {after.spam:,} spam and {after.ham:,} ham now")
    return summary_exit(summary)


def _learner(
    here: Session, store: "Store", paths: Sequence[Path], options: "BootstrapOptions"
) -> "Bootstrap":
    from spamd.feedback.bootstrap import Bootstrap

    return Bootstrap(
        _mailboxes(here, store, paths),
        store.scans,
        resources.trainer(store, here.settings),
        resources.extract(here.settings),
        options,
    )


def _mailboxes(here: Session, store: "Store", paths: Sequence[Path]) -> "Sequence[Mailbox]":
    from spamd.feedback.options import AccountOptions
    from spamd.feedback.service import mailboxes

    options = here.settings.feedback
    if paths:
        accounts = tuple(AccountOptions(maildir=path.absolute()) for path in paths)
        options = replace(options, accounts=accounts)
    return mailboxes(options, resources.watcher_context(store, here.settings, QuietObserver()))


def _print_plan(plan: "Plan") -> None:
    from rich import box
    from rich.table import Table

    from spamd.sample import Label

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for title in ("account", "folder", "learned as", "found", "chosen"):
        table.add_column(title, justify="right" if title in {"found", "chosen"} else "left")
    for source in plan.sources:
        table.add_row(
            printable(source.mailbox.key, limit=50),
            printable(source.folder.name, limit=40),
            str(source.label),
            f"{source.found:,}",
            f"{len(source.keys):,}",
        )
    if plan.sources:
        show(table)
    spam, ham = plan.chosen(Label.SPAM), plan.chosen(Label.HAM)
    line(f"{spam:,} spam and {ham:,} ham to learn; {plan.sent:,} messages in Sent are answers")
    if plan.filtered:
        line(
            f"{plan.filtered:,} messages in Junk are left out, as a filter put them there;"
            " --filtered takes those of another filter"
        )
    if not spam and not ham and plan.sources:
        line(
            "one label has no messages, so none of the other is learned;"
            " --unbalanced learns it alone"
        )
    if not plan.sources:
        line("no sorted mail was found: no Junk folder, no archive folder, no answered message")
    for each in plan.faults:
        fault(printable(each, limit=400))


def _plan_json(plan: "Plan") -> list[dict[str, object]]:
    return [
        {
            "account": source.mailbox.key,
            "folder": source.folder.name,
            "label": str(source.label),
            "found": source.found,
            "chosen": len(source.keys),
        }
        for source in plan.sources
    ]
