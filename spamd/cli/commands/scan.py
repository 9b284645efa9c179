"""`spamd scan`, `filter` and `explain`: what spamd thinks of mail, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from spamd import resources
from spamd.cli.arguments import JsonLinesOption
from spamd.cli.exits import Exit, ScanExit
from spamd.cli.lookup import Words, looked_up
from spamd.cli.mail import files
from spamd.cli.mail.files import Unreadable
from spamd.cli.mail.owners import UserOption, owner_named
from spamd.cli.output import fault, json_line, line, progress
from spamd.cli.pipe.filtering import Options, filtered
from spamd.cli.session import Session, awaited, session
from spamd.cli.targets import Targets, named, refuse_terminal, remembered, targets
from spamd.clock import WallClock
from spamd.errors import SpamdError
from spamd.loading import loading
from spamd.wording import printable

if TYPE_CHECKING:
    from spamd.message.features import Features
    from spamd.person import Person
    from spamd.report import ScanReport
    from spamd.scanning import Scanner
    from spamd.settings import Settings

T = TypeVar("T")

CLOCK = WallClock()

BATCH = 100
"""Mails whose words are looked up in the database together."""

CODES = {"spam": ScanExit.SPAM, "ham": ScanExit.HAM, "unsure": ScanExit.UNSURE}


def scan(
    context: typer.Context,
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH", help="Mailboxes or files; - is standard input.")
    ],
    *,
    user: UserOption = "",
    as_json: JsonLinesOption = False,
) -> int:
    """Classify messages and print their verdicts.

    PATH is a Maildir, an mbox, a folder of files or one file. Nothing is learned or changed.
    Exit code for one mail: 0 spam, 1 ham, 2 unsure, 3 trouble; for several 0 when all were
    scanned, 3 when one was not.
    """
    refuse_terminal(context, paths)
    owner = owner_named(context, user)
    return _scan(session(context), paths, owner, as_json=as_json)


def _scan(here: Session, paths: Sequence[str], user: str, *, as_json: bool) -> int:
    with loading():
        from spamd.cli.mail.extraction import extracted

    codes: list[ScanExit] = []
    person = awaited(_person(here, user))
    size = files.extent(paths, files.MANY_FILES).size_bytes
    with looked_up(here.settings) as words:
        secret = words.secret()
        with progress("scanning", size) as advance:
            found = extracted(files.read(paths), here.settings.reading)
            for batch in files.batches(found, BATCH):
                readable = [one for one in batch if not isinstance(one, Unreadable)]
                scanner = _scanner(words, here.settings, secret, [mail for _, mail in readable])
                for one in batch:
                    if isinstance(one, Unreadable):
                        codes.append(_unscanned(one, as_json=as_json))
                        continue
                    name, mail = one
                    report = scanner.judge(mail, CLOCK.monotonic(), person)
                    _print(name, named(mail, secret), report, as_json=as_json)
                    codes.append(CODES[report.verdict])
                    advance(mail.size_bytes)
    if len(codes) == 1:
        return codes[0]
    return Exit.TROUBLE if ScanExit.TROUBLE in codes else Exit.DONE


async def _person(here: Session, user: str) -> "Person":
    from spamd.person import SITE

    if not user:
        return SITE
    async with resources.open_store(here.settings) as store:
        return await resources.person(store, user)


def _same(value: T) -> T:
    return value


def _scanner(
    words: Words, settings: "Settings", secret: bytes, mails: Sequence["Features"]
) -> "Scanner":
    """Return a scanner whose model knows the words of these mails."""
    from spamd.bayes.counts import distinct

    model = words.load_model(distinct(mail.sample.ids for mail in mails))
    senders = words.senders(settings.auth, settings.known)
    return resources.scanner(settings, lambda: model, secret, lambda: senders)


def _print(name: str, identity: str, report: "ScanReport", *, as_json: bool) -> None:
    if as_json:
        json_line(
            {
                "path": name,
                "id": identity,
                "verdict": str(report.verdict),
                "probability": report.probability,
                "action": str(report.action),
                "reason": report.reason,
                "user": report.user,
                "listed": report.standing.listed.short(),
                "classifiers": dict(report.scores),
            }
        )
        return
    why = "" if report.reason.startswith("probability") else f"  ({report.reason})"
    line(f"{report.verdict:<6}  {report.probability:.4f}  {printable(name)}{why}")


def _unscanned(one: Unreadable, *, as_json: bool) -> ScanExit:
    if as_json:
        json_line(
            {
                "path": one.name,
                "id": None,
                "verdict": "unscanned",
                "probability": None,
                "action": "accept",
                "reason": one.reason,
                "user": "",
                "listed": "",
                "classifiers": {},
            }
        )
    fault(f"{printable(one.name)}: {one.reason}")
    return ScanExit.TROUBLE


def filter_(
    context: typer.Context,
    *,
    only_fields: Annotated[
        bool, typer.Option("--only-fields", help="Write our header fields, not the mail.")
    ] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 0 spam, 1 ham, 2 unsure, 3 not judged.")
    ] = False,
    defer: Annotated[
        bool, typer.Option("--defer", help="Exit with 75 when the mail could not be judged.")
    ] = False,
) -> int:
    """Pipe a mail through and put our header fields on top.

    The daemon judges it if it listens at spamc.listen; else it is judged here. Whatever goes wrong,
    the mail is written as it came. Exit code: 0; 75 if the mail could not be read or written
    whole. Why a mail was not judged stands in the system's log.
    """
    refuse_terminal(context, ["-"])
    here = session(context)
    return filtered(
        Options(
            config=None if here.config is None else str(here.config),
            given=here.overrides,
            only_fields=only_fields,
            exit_code=exit_code,
            defer=defer,
        )
    )


def explain(
    context: typer.Context,
    names: Annotated[
        list[str],
        typer.Argument(metavar="PATH|ID", help="Mail, or the X-Spam-Id of one; - is stdin."),
    ],
    clues: Annotated[int, typer.Option(metavar="N", min=1, help="Words shown in each table.")] = 8,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Also what each classifier says, and its words.")
    ] = False,
    user: UserOption = "",
    as_json: JsonLinesOption = False,
) -> int:
    """Explain a verdict by its words, and say what would change it.

    First in three sentences, then by the words that moved the verdict most.

    A message given by its X-Spam-Id is explained as it was scanned, for database.scans_days days
    after the scan; the counts are those of now. With --user first what it is for that user, and
    whose word that is, then what the site makes of it.
    """
    refuse_terminal(context, names)
    shown = _Shown(clues=clues, everything=everything, as_json=as_json)
    owner = owner_named(context, user)
    return awaited(_explain(session(context), targets(names), owner, shown))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """How much an explanation shows, and how."""

    clues: int
    everything: bool
    as_json: bool


async def _explain(here: Session, wanted: Targets, user: str, shown: _Shown) -> int:
    from spamd.bayes.evidence import explain as explained
    from spamd.cli import explanation
    from spamd.cli.mail.extraction import extracted
    from spamd.explanation import own_line, with_sender

    done, failed = 0, 0
    async with resources.open_store(here.settings) as store:
        secret, senders = await store.secret(), await store.load_senders()
        person = await resources.person(store, user) if user else None
        found = await remembered(store, wanted)
        found += extracted(files.read(wanted.paths), here.settings.reading)
        for one in found:
            if isinstance(one, Unreadable):
                fault(f"{printable(one.name)}: {one.reason}")
                failed += 1
                continue
            name, mail = one
            standing = senders.of(mail.proof)
            model = await store.load_model(mail.sample.ids)
            own = None
            if person is not None:
                scanner = resources.scanner(
                    here.settings, partial(_same, model), secret, partial(_same, senders)
                )
                own = scanner.judge(mail, CLOCK.monotonic(), person)
            result = explained(model, mail.sample, shown.clues)
            result = with_sender(result, standing, here.settings.decision)
            if shown.as_json:
                named_as = {"path": name, "id": named(mail, secret)}
                told = explanation.as_json(result, mail, standing)
                json_line(named_as | told | {"own": own and explanation.own_json(user, own)})
            else:
                if done:
                    line()
                if own is not None:
                    line(own_line(user, own))
                explanation.show(name, result, mail, standing, everything=shown.everything)
            done += 1
    if failed and not done:
        raise SpamdError("nothing could be explained")
    return Exit.PARTLY if failed else Exit.DONE
