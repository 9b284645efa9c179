"""`spamd evaluate`: how good the filter is on labelled mail, and what attacks do to it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from spamd.cli import rates
from spamd.cli.arguments import JsonOption
from spamd.cli.exits import UsageProblem
from spamd.cli.output import json_line, note, stages
from spamd.cli.session import Session, session
from spamd.errors import ConfigError, SpamdError
from spamd.wording import reason

if TYPE_CHECKING:
    from spamd.bayes.model import BayesOptions
    from spamd.evaluation.index import LabelledMail
    from spamd.evaluation.material import Progress
    from spamd.evaluation.protocol import EvaluationOptions
    from spamd.message.features import ReadingOptions

AS_SET = "as set"
"""The name of the settings that are in force, beside those of --compare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be measured, on which mail, with which settings; `settings` by their names."""

    mail: "Sequence[LabelledMail]"
    unseen: "Sequence[LabelledMail]"
    settings: "dict[str, tuple[BayesOptions, ReadingOptions]]"
    options: "EvaluationOptions"
    seeds: tuple[int | None, ...]


def evaluate(
    context: typer.Context,
    index: Annotated[
        Path | None,
        typer.Argument(metavar="INDEX", help='File of lines "spam PATH" or "ham PATH".'),
    ] = None,
    spam: Annotated[
        list[Path] | None, typer.Option(metavar="PATH", help="Spam to judge, instead of INDEX.")
    ] = None,
    ham: Annotated[
        list[Path] | None, typer.Option(metavar="PATH", help="Ham to judge, instead of INDEX.")
    ] = None,
    protocol: Annotated[
        Literal["online", "delayed", "cross", "moves"],
        typer.Option(
            help="online: judge, then learn, one after the other; delayed: learn some messages"
            " later; cross: k-fold; moves: learn some messages, then only what people move or keep."
        ),
    ] = "online",
    delay: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Messages until a label arrives, with delayed; with moves at most, and until what"
            " lies in the inbox counts as kept.",
        ),
    ] = 100,
    taught: Annotated[
        int,
        typer.Option(metavar="N", help="With moves: messages learned with their labels at first."),
    ] = 200,
    corrects: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="With moves: share of the errors that people move to where they belong, of those"
            " that they read (nine of ten).",
        ),
    ] = 0.7,
    unsure_moved: Annotated[
        float,
        typer.Option(
            metavar="SHARE", help="With moves: share of the unsure spam that people move to Junk."
        ),
    ] = 1.0,
    slips: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="With moves: share of the moves that take a message along that lay right.",
        ),
    ] = 0.01,
    folds: Annotated[int, typer.Option(metavar="N", help="Parts, with cross.")] = 10,
    seeds: Annotated[
        list[str] | None,
        typer.Option(
            "--seed",
            metavar="N",
            help="Shuffle the order by this seed; several times for several orders and their mean."
            ' "index" is the order as it stands.',
        ),
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SECTION.KEY=VALUE",
            help="Try this setting beside yours, over the same orders. Again for a third; several"
            " keys, separated by blanks, are one.",
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUP",
            help="Leave tokens out: route (Received, Date, Message-ID, list, reply and X- fields),"
            " headers, pairs, twins, links, shape, tricks, hidden.",
        ),
    ] = None,
    unseen: Annotated[
        Path | None,
        typer.Option(
            metavar="INDEX", help="Learn all of the mail, then judge this other mail unseen."
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.svg", help="Draw ROC, reliability and learning curve into this file."
        ),
    ] = None,
    *,
    kept: Annotated[
        bool,
        typer.Option(
            "--kept/--no-kept",
            help="With moves: teach as ham some of what people read and keep.",
        ),
    ] = True,
    attack: Annotated[
        bool,
        typer.Option(
            "--attack",
            help="Learn two thirds, then attack: good words, hidden text, disguised words,"
            " poisoned and wrong lessons, spam that is kept.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure how good the filter is on labelled mail.

    The database is neither read nor changed: an empty filter with your settings goes through the
    messages. "fused" is the whole filter, the other rows are its classifiers alone. Rates are in
    percent. 1-ROCA is the chance that a ham message scores higher than a spam message. lam is the
    logistic average of ham→spam and spam→ham. "missed at 0.1" is the share of spam that gets
    through when one ham message in a thousand may be lost. "calibr. error" is how far probabilities
    are from the share of spam found at them. "errors" counts ham called spam and spam called ham.
    """
    from spamd.evaluation.index import gather, read_index
    from spamd.evaluation.people import PeopleOptions
    from spamd.evaluation.plots import picture
    from spamd.evaluation.protocol import EvaluationOptions, Protocol

    several = bool(compare) or len(seeds or ()) > 1
    if bool(index) == bool(spam or ham) or bool(spam) != bool(ham):
        raise UsageProblem("give either INDEX, or both --spam and --ham", context)
    if attack + bool(unseen) + several > 1:
        raise UsageProblem(
            "--attack, --unseen, and several --seed or --compare are tried one at a time", context
        )
    if plot is not None and (attack or plot.suffix != ".svg"):
        problem = "an attack has no curves" if attack else f"{plot} must end in .svg"
        raise UsageProblem(f"--plot: {problem}", context)
    try:
        orders = tuple(_seed(text) for text in seeds or ("index",))
        options = EvaluationOptions(
            protocol=Protocol(protocol),
            seed=orders[0],
            delay=delay,
            people=PeopleOptions(
                taught=taught,
                corrects=corrects,
                unsure_moved=unsure_moved,
                slips=slips,
                kept=kept,
            ),
            folds=folds,
            route="route" not in (without or ()),
        )
        settings = _settings(session(context), compare or (), frozenset(without or ()))
    except ValueError as error:
        raise UsageProblem(str(error), context) from error
    try:
        wish = Wish(
            mail=read_index(index) if index else gather(spam or [], ham or []),
            unseen=read_index(unseen) if unseen else (),
            settings=settings,
            options=options,
            seeds=orders,
        )
        if plot is not None:
            _see_writable(plot)
        with stages() as told:
            found = _attacked(wish, told) if attack else _measured(wish, told, several=several)
    except ConfigError as error:  # of the mail, not of the settings
        raise SpamdError(str(error)) from error
    if as_json:
        json_line(found.as_json)
    else:
        found.show()
    if plot is not None:
        plot.write_text(picture(found.runs, found.beside), encoding="utf-8")
        note(f"curves drawn into {plot}")


def _see_writable(file: Path) -> None:
    """See that the curves can be drawn before an hour of work, not behind it.

    Raises:
        SpamdError: they can't.
    """
    try:
        file.open("a").close()
    except OSError as error:
        raise SpamdError(f"--plot: {file}: {reason(error)}") from error


def _seed(text: str) -> int | None:
    """Return the seed that a word of the command line names.

    Raises:
        ValueError: it is neither a number nor "index".
    """
    if text == "index":
        return None
    if not text.isdecimal():
        raise ValueError(f'--seed {text}: a seed is a number, or "index" for the order as it is')
    return int(text)


def _settings(
    here: Session, compare: Sequence[str], without: frozenset[str]
) -> "dict[str, tuple[BayesOptions, ReadingOptions]]":
    """Return the settings in force and those beside them, by name.

    Raises:
        ConfigError: a setting of --compare is wrong.
        ValueError: there is no such group of tokens.
    """
    found = {}
    for name in (AS_SET, *compare):
        settings = here.settings if name == AS_SET else here.varied(name.split())
        tokenizer = replace(settings.reading, without=settings.reading.without | without)
        found[name] = (settings.bayes, tokenizer)
    return found


def _attacked(wish: Wish, told: "Progress") -> rates.Report:
    from spamd.evaluation.attacks.attack import AttackOptions, attack

    options = AttackOptions(seed=wish.seeds[0])
    return rates.of_attacks(attack(wish.mail, options, *wish.settings[AS_SET], told))


def _measured(wish: Wish, told: "Progress", *, several: bool) -> rates.Report:
    from spamd.evaluation.compare import compare
    from spamd.evaluation.material import prepare
    from spamd.evaluation.protocol import Protocol, run, transfer

    options, told_first = wish.options, wish.options.people.taught
    if options.protocol is Protocol.MOVES and told_first >= len(wish.mail):
        raise SpamdError(f"--taught {told_first}: there are only {len(wish.mail)} messages")
    material = {
        tokenizer: prepare(wish.mail, tokenizer, route=options.route, progress=told)
        for _, tokenizer in wish.settings.values()
    }
    bayes, tokenizer = wish.settings[AS_SET]
    if wish.unseen:
        other = prepare(wish.unseen, tokenizer, route=options.route, progress=told)
        return rates.of_result(transfer(material[tokenizer], other, options, bayes, told))
    if not several:
        return rates.of_result(run(material[tokenizer], options, bayes, told))
    return rates.of_comparisons(
        [
            comparison
            for name, (bayes, tokenizer) in wish.settings.items()
            for comparison in compare(material[tokenizer], {name: bayes}, wish.seeds, options, told)
        ]
    )
