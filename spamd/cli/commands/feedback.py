"""`spamd feedback …` and `spamd lessons …`: learning from folders, by hand and under review."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from spamd import resources
from spamd.cli.exits import Exit
from spamd.cli.help import Grouped, Plain
from spamd.cli.output import counted, fault, json_line, line
from spamd.cli.session import Session, awaited, session
from spamd.errors import ConfigError
from spamd.observe.text import printable

if TYPE_CHECKING:
    from spamd.feedback.ports import AccountState, Held, Parked
    from spamd.feedback.run_summary import RunSummary
    from spamd.sample import Label

app = typer.Typer(help="Learn from the folders people keep.", rich_markup_mode=None, cls=Grouped)

lessons = typer.Typer(help="Review lessons that were held.", rich_markup_mode=None, cls=Grouped)

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
NumbersArgument = Annotated[
    list[int] | None, typer.Argument(metavar="NUMBER", help="As spamd lessons held shows them.")
]
AllOption = Annotated[bool, typer.Option("--all", help="All lessons that are held.")]


SUBJECT = "subject="
"""How the words of a subject are marked."""


@app.command(cls=Plain)
def once(context: typer.Context, *, as_json: JsonOption = False) -> int:
    """Look at all accounts once, and learn.

    At the first look at an account, mail that spamd never judged teaches nothing: nobody knows who
    put it where it lies. Use spamd bootstrap to learn from it.
    """
    here = session(context)
    _need_accounts(here)
    return awaited(_once(here, as_json=as_json))


@app.command(cls=Plain)
def watch(context: typer.Context) -> None:
    """Watch all accounts until stopped.

    That is what spamd serve does besides taking mail. While a spamd serve on the same database
    watches, this one waits until that ends.
    """
    here = session(context)
    _need_accounts(here)
    awaited(_watch(here))


def _need_accounts(here: Session) -> None:
    if not here.settings.feedback.accounts:
        raise ConfigError(
            "feedback.accounts is empty: say where people keep their mail, with"
            " [[feedback.accounts]] in the settings file"
        )


@app.command(cls=Plain)
def parked(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """List mail that could not be read or learned."""
    awaited(_parked(session(context), as_json=as_json))


@lessons.command(cls=Plain)
def held(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """List lessons that wait for a review.

    They came in a burst and contradict what the filter said. Each shows its number, the domain of
    the sender, the words of the subject (with log.privacy = "full"), its id, what we said, who
    taught it as what, and why it is held.
    """
    awaited(_held(session(context), as_json=as_json))


@lessons.command(cls=Plain)
def release(
    context: typer.Context,
    numbers: NumbersArgument = None,
    *,
    everything: AllOption = False,
    as_json: JsonOption = False,
) -> int:
    """Learn held lessons after all."""
    return awaited(
        _release(session(context), numbers or [], everything=everything, as_json=as_json)
    )


@lessons.command(cls=Plain)
def drop(
    context: typer.Context,
    numbers: NumbersArgument = None,
    *,
    everything: AllOption = False,
    as_json: JsonOption = False,
) -> int:
    """Throw held lessons away."""
    return awaited(_drop(session(context), numbers or [], everything=everything, as_json=as_json))


class Quiet:
    """Tells nobody: the command's own output says all there is to say."""

    def learned(
        self, label: "Label", source: str, outcome: str, before: float, after: float
    ) -> None:
        """Ignore it: the summary counts lessons."""

    def held(self, lesson: "Held") -> None:
        """Ignore it: the summary counts them."""

    def watched(self, accounts: "Mapping[AccountState, int]") -> None:
        """Ignore it: the summary names what went wrong."""

    def happened(self, event: str, **details: str | float) -> None:
        """Ignore it: the summary counts."""

    def failed(self, event: str, error: BaseException, **details: str | float) -> None:
        """Ignore it: the summary names faults."""


async def _once(here: Session, *, as_json: bool) -> int:

    async with resources.open_store(here.settings) as store:
        before = await store.totals()
        summary = await resources.feedback(store, here.settings, Quiet()).once()
        after = await store.totals()
        shown = store.database.shown
    if as_json:
        json_line(
            {
                **summary_json(summary),
                "database": shown,
                "before": {"spam": before.spam, "ham": before.ham},
                "corpus": {"spam": after.spam, "ham": after.ham},
            }
        )
    else:
        print_summary(summary)
        line(f"database       {shown}")
        line(
            f"               {before.spam:,} spam and {before.ham:,} ham before,"
            f" {after.spam:,} spam and {after.ham:,} ham now"
        )
    return summary_exit(summary)


async def _watch(here: Session) -> None:

    async with resources.open_store(here.settings) as store:
        await resources.feedback(store, here.settings, resources.log_observer(here.settings)).run()


def summary_json(summary: "RunSummary") -> dict[str, object]:
    """Return a summary as JSON shows it."""
    return {
        "examined": summary.examined,
        "learned": {str(label): count for label, count in summary.learned.items()},
        "known": summary.already,
        "held": summary.held,
        "parked": summary.parked,
        "skipped": dict(summary.skipped),
        "faults": summary.faults,
    }


def print_summary(summary: "RunSummary") -> None:
    """Print a summary for a person; what failed goes to standard error."""
    by_label = ", ".join(f"{count:,} {label}" for label, count in sorted(summary.learned.items()))
    line(f"examined       {summary.examined:>8,}")
    line(f"learned        {summary.learned.total():>8,}" + (f"  {by_label}" if by_label else ""))
    line(f"already known  {summary.already:>8,}")
    for reason, count in sorted(summary.skipped.items()):
        line(f"skipped        {count:>8,}  {reason}")
    if summary.held:
        line(f"held           {summary.held:>8,}  for review: spamd lessons held")
    if summary.parked:
        line(f"parked         {summary.parked:>8,}  could not be learned: spamd feedback parked")
    for each in summary.faults:
        fault(printable(each, limit=400))


def summary_exit(summary: "RunSummary") -> Exit:
    """Return done, partly done, or trouble when nothing could be looked at."""
    if not summary.faults and not summary.parked:
        return Exit.DONE
    return Exit.PARTLY if summary.examined else Exit.TROUBLE


async def _parked(here: Session, *, as_json: bool) -> None:

    async with resources.open_store(here.settings) as store:
        rows = await store.mailboxes.parked()
    if as_json:
        json_line({"parked": [_parked_json(row) for row in rows]})
        return
    limit = here.settings.feedback.attempts
    for row in rows:
        again = "given up" if row.attempts >= limit else "will be tried again"
        line(
            f"{printable(row.account)}  {printable(row.folder)}  {printable(row.uid)}"
            f"  tried {row.attempts}, {again}: {printable(row.reason)}"
        )
    if not rows:
        line("no mail is parked")


def _parked_json(row: "Parked") -> dict[str, object]:
    return {
        "account": row.account,
        "folder": row.folder,
        "uid": row.uid,
        "attempts": row.attempts,
        "reason": row.reason,
        "time": row.time.isoformat(),
    }


async def _held(here: Session, *, as_json: bool) -> None:

    async with resources.open_store(here.settings) as store:
        rows = await store.held.held()
    full = here.settings.log.privacy == "full"
    if as_json:
        json_line({"held": [_held_json(row, full=full) for row in rows]})
    elif rows:
        _print_held(rows, full=full)
    else:
        line("no lesson is held")


def _held_json(row: "Held", *, full: bool) -> dict[str, object]:
    return {
        "number": row.number,
        "id": row.features.digest.hex(),
        "sender_domain": row.features.sender_domain,
        "subject_words": _subject_words(row) if full else None,
        "label": str(row.label),
        "verdict": str(row.verdict),
        "probability": row.probability,
        "source": row.source,
        "actor": row.actor,
        "reason": row.reason,
        "time": row.time.isoformat(),
    }


def _subject_words(row: "Held") -> list[str]:
    """Return the words of the subject as they would be taught: each once, in no order."""
    words = (text.removeprefix(SUBJECT) for text in row.features.texts if text.startswith(SUBJECT))
    return list({word.casefold(): word for word in sorted(words)}.values())


def _print_held(rows: "Iterable[Held]", *, full: bool) -> None:
    for row in rows:
        domain = printable(row.features.sender_domain, limit=80) or "nobody known"
        line(f"{row.number}  mail from {domain}, id {row.features.digest.hex()}")
        if full:
            subject = " ".join(_subject_words(row))
            line(f"    subject    {printable(subject, limit=300) or 'none'} (its words, unordered)")
        line(f"    we said    {row.verdict}, probability of spam {row.probability:.4f}")
        actor, when = printable(row.actor, limit=80), f"{row.time.astimezone():%Y-%m-%d %H:%M}"
        line(f"    taught as  {row.label} by {actor} ({row.source}), {when}")
        line(f"    why held   {printable(row.reason, limit=300)}")
    if not full:
        line('words of the subjects are shown with log.privacy = "full"')
    line("learn them: spamd lessons release NUMBER… | --all; or: spamd lessons drop …")


async def _release(here: Session, numbers: list[int], *, everything: bool, as_json: bool) -> int:
    from spamd.feedback.teacher import release as released

    async with resources.open_store(here.settings) as store:
        chosen = None if everything else numbers
        summary = await released(store.held, resources.trainer(store, here.settings), chosen)
    if as_json:
        json_line(summary_json(summary))
    else:
        print_summary(summary)
    return _all_found(summary.examined, numbers, everything=everything)


async def _drop(here: Session, numbers: list[int], *, everything: bool, as_json: bool) -> int:

    async with resources.open_store(here.settings) as store:
        there = [row.number for row in await store.held.held()]
        dropped = await store.held.drop([one for one in there if everything or one in numbers])
    if as_json:
        json_line({"dropped": dropped})
    else:
        line(f"{counted(dropped, 'lesson')} dropped")
    return _all_found(dropped, numbers, everything=everything)


def _all_found(done: int, numbers: list[int], *, everything: bool) -> Exit:
    if everything or done == len(set(numbers)) != 0:
        return Exit.DONE
    if not numbers:
        fault("give the numbers of lessons, or --all: spamd lessons held shows them")
        return Exit.USAGE
    fault(f"{len(set(numbers)) - done} of these numbers are not held: see spamd lessons held")
    return Exit.PARTLY if done else Exit.TROUBLE
