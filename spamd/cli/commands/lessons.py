"""`spamd lessons …`: review lessons that were held."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from spamd import resources
from spamd.cli.arguments import JsonOption
from spamd.cli.exits import Exit
from spamd.cli.help import Grouped, Plain
from spamd.cli.output import fault, json_line, line
from spamd.cli.run_summary import print_summary, summary_json
from spamd.cli.session import Session, awaited, session
from spamd.wording import counted, printable

if TYPE_CHECKING:
    from spamd.feedback.ports import Held

app = typer.Typer(help="Review lessons that were held.", rich_markup_mode=None, cls=Grouped)

NumbersArgument = Annotated[
    list[int] | None,
    typer.Argument(metavar="NUMBER", help="Number of a held lesson, from: spamd lessons held."),
]
AllOption = Annotated[bool, typer.Option("--all", help="All lessons that are held.")]


SUBJECT = "subject="
"""How the words of a subject are marked."""


@app.command(cls=Plain)
def held(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """List lessons that wait for a review.

    They came in a burst and contradict the verdicts of spamd. For each you see its number, the
    sender's domain, the words of the subject (with log.privacy = "full"), its id, the verdict, the
    label and who gave it, and why it is held.
    """
    awaited(_held(session(context), as_json=as_json))


@app.command(cls=Plain)
def release(
    context: typer.Context,
    numbers: NumbersArgument = None,
    *,
    everything: AllOption = False,
    as_json: JsonOption = False,
) -> int:
    """Learn held lessons."""
    return awaited(
        _release(session(context), numbers or [], everything=everything, as_json=as_json)
    )


@app.command(cls=Plain)
def drop(
    context: typer.Context,
    numbers: NumbersArgument = None,
    *,
    everything: AllOption = False,
    as_json: JsonOption = False,
) -> int:
    """Delete held lessons."""
    return awaited(_drop(session(context), numbers or [], everything=everything, as_json=as_json))


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
        domain = printable(row.features.sender_domain, limit=80) or "an unknown domain"
        line(f"{row.number}  mail from {domain}, id {row.features.digest.hex()}")
        if full:
            subject = " ".join(_subject_words(row))
            line(f"    subject    {printable(subject, limit=300) or 'none'} (its words, unordered)")
        line(f"    verdict    {row.verdict}, probability of spam {row.probability:.4f}")
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
        fault("give --all or numbers of held lessons; spamd lessons held lists them")
        return Exit.USAGE
    fault(f"{len(set(numbers)) - done} of these numbers not found; spamd lessons held lists all")
    return Exit.PARTLY if done else Exit.TROUBLE
