"""`spamd train` and `spamd retrain`: lessons given by an admin."""

import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from spamd import resources
from spamd.cli.advice import advices
from spamd.cli.arguments import DaemonOption, JsonOption, refuse_daemon
from spamd.cli.exits import Exit, UsageProblem
from spamd.cli.mail import files
from spamd.cli.mail.files import Unreadable
from spamd.cli.mail.owners import UserOption, owner_named
from spamd.cli.output import fault, json_line, line, progress
from spamd.cli.session import Session, awaited, session
from spamd.cli.targets import Targets, actor, refuse_terminal, remembered, targets
from spamd.errors import TemporaryError
from spamd.wording import counted, printable

if TYPE_CHECKING:
    from spamd.bayes.counts import Totals
    from spamd.cli.mail.extraction import Extracted
    from spamd.message.features import Features
    from spamd.settings import Settings
    from spamd.storage.store import Store
    from spamd.training import Outcome

    Teach = Callable[[Sequence[Features]], Awaitable[Sequence[Outcome]]]
    Finish = Callable[[], Awaitable[object]]

LabelArgument = Annotated[
    Literal["spam", "ham"], typer.Argument(metavar="spam|ham", help="What the mail is.")
]

NAMED = 20
"""Skipped messages that are listed for a person; JSON has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Mail of one label that is to be taught."""

    label: str
    mail: Targets
    extent: files.Extent


@dataclass(slots=True, kw_only=True)
class TrainSummary:
    """What became of the mail that a command read.

    results       by `training.Result`: learned, relabelled, known, …
    interrupted   somebody pressed Ctrl-C; what was learned by then stays
    """

    examined: int = 0
    interrupted: bool = False
    results: Counter[str] = field(default_factory=Counter)
    skipped: list[Unreadable] = field(default_factory=list)

    @property
    def exit_code(self) -> Exit:
        """Return done, partly done, or trouble when nothing at all was done; interrupted."""
        if self.interrupted:
            return Exit.INTERRUPTED
        if not self.skipped:
            return Exit.DONE
        return Exit.PARTLY if self.results.total() else Exit.TROUBLE

    def skip(self, one: Unreadable) -> None:
        """Note what was skipped."""
        self.examined += 1
        self.skipped.append(one)


def train(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="spam|ham PATH", help="What the mail is, and where; - is standard input."
        ),
    ] = None,
    *,
    spam: Annotated[
        list[str] | None, typer.Option(metavar="PATH…", help="Mail that is spam.")
    ] = None,
    ham: Annotated[
        list[str] | None, typer.Option(metavar="PATH…", help="Mail that is ham, in the same run.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Don't ask, however many files there are.")
    ] = False,
    user: UserOption = "",
    daemon: DaemonOption = False,
    as_json: JsonOption = False,
) -> int:
    """Teach that mail is spam, or ham.

    PATH is a Maildir, an mbox, a folder of files or one file, also compressed (gzip, bzip2, xz,
    zip); nothing in it is changed. Files that are no mail messages are skipped and named. A message
    that was learned before is not counted again; if it was learned under the other label, that
    lesson is corrected. After an interruption run the same command again: it learns what is
    missing. With --user it is that user's word: it counts for them, and for all as far as users
    agree. With --daemon it is a person's report: a burst of them may be held for a review.
    """
    refuse_daemon(context, daemon=daemon)
    wanted = _labelled(context, names or [], spam or [], ham or [])
    runs = []
    for label, paths in wanted.items():
        refuse_terminal(context, paths)
        extent = files.extent(paths, files.MANY_FILES)
        if not yes and extent.files > files.MANY_FILES:
            many = f"there are more than {files.MANY_FILES:,} files in {' '.join(paths)}"
            if not sys.stdin.isatty():
                raise UsageProblem(f"{many}; say --yes if all of them are mail", context)
            typer.confirm(f"{printable(many).capitalize()}. Teach all as {label}?", abort=True)
        runs.append(Run(label=label, mail=Targets(paths=paths, ids=[], digests=[]), extent=extent))
    owner = owner_named(context, user)
    return awaited(_train(session(context), runs, owner, as_json=as_json))


def _labelled(
    context: typer.Context, names: Sequence[str], spam: Sequence[str], ham: Sequence[str]
) -> dict[str, list[str]]:
    """Return the paths of each label, as either form of the command line names them.

    Raises:
        UsageProblem: it is neither form.
    """
    wanted = {label: list(paths) for label, paths in (("spam", spam), ("ham", ham)) if paths}
    if not names:
        if not wanted:
            raise UsageProblem("say what the mail is: spamd train spam PATH", context)
        return wanted
    if wanted:
        raise UsageProblem(f"{names[0]} stands before --spam or --ham; name it behind one", context)
    if names[0] not in {"spam", "ham"}:
        raise UsageProblem(f"{names[0]!r} is neither spam nor ham", context)
    if len(names) == 1:
        raise UsageProblem("Missing argument 'PATH'.", context)
    return {names[0]: list(names[1:])}


def retrain(
    context: typer.Context,
    label: LabelArgument,
    names: Annotated[
        list[str], typer.Argument(metavar="ID|PATH", help="Mail, or the X-Spam-Id of one.")
    ],
    *,
    user: UserOption = "",
    daemon: DaemonOption = False,
    as_json: JsonOption = False,
) -> int:
    """Correct a lesson or a verdict: this mail is spam, or ham.

    A message given by its X-Spam-Id is learned as it was scanned. A lesson under the other label is
    taken back first, in the same transaction. --user and --daemon are as for train.
    """
    refuse_daemon(context, daemon=daemon)
    refuse_terminal(context, names)
    wanted = targets(names)
    extent = files.extent(wanted.paths, files.MANY_FILES)
    runs = [Run(label=label, mail=wanted, extent=extent)]
    owner = owner_named(context, user)
    return awaited(_train(session(context), runs, owner, as_json=as_json))


async def _train(here: Session, runs: Sequence[Run], user: str, *, as_json: bool) -> int:
    from spamd.cli.mail.extraction import extracted

    codes: set[Exit] = set()
    async with resources.open_store(here.settings) as store:
        for run in runs:
            before = await store.totals()
            kept = await remembered(store, run.mail)
            mails = files.mail_only(files.read(run.mail.paths))
            found = extracted(mails, here.settings.reading, packed=True)
            with progress("learning", run.extent.size_bytes) as advance:
                batches = files.batches(chain(kept, found), here.settings.training.batch)
                teach, finish = _teaching(store, here.settings, run.label, user)
                summary = await _teach(teach, finish, batches, advance)
            after = await store.totals()
            place = store.database.shown
            if as_json:
                json_line(_as_json(run.label, summary, place, before, after))
            else:
                _print(run.label, summary, place, before, after, here.settings)
                _name_skipped(summary.skipped)
            codes.add(summary.exit_code)
            if summary.interrupted:
                if not as_json:
                    fault("interrupted; run it again to learn what is missing")
                break
    if Exit.INTERRUPTED in codes:
        return Exit.INTERRUPTED
    return codes.pop() if len(codes) == 1 else Exit.PARTLY


def _teaching(
    store: "Store", settings: "Settings", label: str, user: str
) -> "tuple[Teach, Finish | None]":
    """Return what teaches a batch, for a user or for the site, and what is done after the last."""
    from spamd.sample import Label

    if user:
        own = resources.user_trainer(store, settings)
        return lambda mails: own.train(user, mails, Label(label), source="cli"), None
    site, me = resources.trainer(store, settings), actor()
    teach = partial(site.train, label=Label(label), source="cli", actor=me)
    return teach, site.rehearse


async def _teach(
    teach: "Teach",
    finish: "Finish | None",
    batches: Iterable[list["Extracted | Unreadable"]],
    advance: Callable[[int], None],
) -> TrainSummary:
    """Teach in batches, each one transaction; say how far it came when it is stopped."""
    from asyncio import CancelledError, current_task

    summary = TrainSummary()
    try:
        for batch in batches:
            mails = _taken(batch, summary)
            outcomes = await teach(mails) if mails else []
            summary.examined += len(mails)
            summary.results.update(str(outcome.result) for outcome in outcomes)
            advance(sum(mail.size_bytes for mail in mails))
        if finish is not None:
            await finish()
    except TemporaryError as error:
        done = counted(summary.results.total(), "message")
        raise type(error)(f"{error}; {done} had been dealt with before") from error
    except (CancelledError, KeyboardInterrupt):  # Ctrl-C; batches that are done stay
        summary.interrupted = True
        if (task := current_task()) is not None:
            task.uncancel()
    return summary


def _taken(batch: list["Extracted | Unreadable"], summary: TrainSummary) -> "list[Features]":
    """Return the mails of a batch; what is none, or empty, is noted as skipped."""
    mails = []
    for one in batch:
        if isinstance(one, Unreadable):
            summary.skip(one)
        elif not one[1].size_bytes:
            summary.skip(Unreadable(name=one[0], reason="it is empty"))
        else:
            mails.append(one[1])
    return mails


def _as_json(
    label: str, summary: TrainSummary, place: str, before: "Totals", after: "Totals"
) -> dict[str, object]:
    return {
        "label": label,
        "database": place,
        "examined": summary.examined,
        "learned": summary.results["learned"],
        "corrected": summary.results["relabelled"],
        "known": summary.results["known"],
        "skipped": [{"path": one.name, "reason": one.reason} for one in summary.skipped],
        "before": {"spam": before.spam, "ham": before.ham},
        "corpus": {"spam": after.spam, "ham": after.ham},
        "interrupted": summary.interrupted,
    }


def _print(
    label: str,
    summary: TrainSummary,
    place: str,
    before: "Totals",
    after: "Totals",
    settings: "Settings",
) -> None:
    line(f"examined       {summary.examined:>8,}")
    line(f"learned        {summary.results['learned']:>8,}  as {label}")
    if summary.results["relabelled"]:
        other = "ham" if label == "spam" else "spam"
        line(f"corrected      {summary.results['relabelled']:>8,}  from {other}")
    line(f"already known  {summary.results['known']:>8,}")
    line(f"skipped        {len(summary.skipped):>8,}")
    line(f"database       {place}")
    line(
        f"               {before.spam:,} spam and {before.ham:,} ham before,"
        f" {after.spam:,} spam and {after.ham:,} ham now"
    )
    for advice in advices(after, settings):
        line(f"               {advice}")


def _name_skipped(skipped: list[Unreadable]) -> None:
    for one in skipped[:NAMED]:
        fault(f"skipped {printable(one.name)}: {one.reason}")
    if len(skipped) > NAMED:
        fault(f"and {len(skipped) - NAMED:,} more skipped: --json names all")
