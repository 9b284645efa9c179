"""`spamd evaluate`: how good the filter is on labelled mail."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from spamd.cli.exits import UsageProblem
from spamd.cli.output import console, counted, json_line, line, note, stages
from spamd.cli.session import session

if TYPE_CHECKING:
    from spamd.evaluation.protocol import EvaluationResult
    from spamd.evaluation.rates import Rates

RATES = (
    ("1-ROCA %", "roca", "{:.4f}"),
    ("ham→spam %", "ham_misclassified", "{:.2f}"),
    ("spam→ham %", "spam_misclassified", "{:.2f}"),
    ("unsure %", "unsure", "{:.2f}"),
    ("lam %", "lam", "{:.2f}"),
    ("missed at 0.1", "spam_missed", "{:.2f}"),
    ("calibration", "calibration_error", "{:.4f}"),
    ("errors", "errors", "{:d}"),
)


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
        Literal["online", "delayed", "cross"],
        typer.Option(
            help="online: judge, then learn, one after the other; delayed: learn some messages"
            " later; cross: k-fold."
        ),
    ] = "online",
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Shuffle the order by this seed.")
    ] = None,
    delay: Annotated[
        int, typer.Option(metavar="N", help="Messages until a label arrives, with delayed.")
    ] = 100,
    folds: Annotated[int, typer.Option(metavar="N", help="Parts, with cross.")] = 10,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the curves into this SVG file.")
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure how good the filter is on labelled mail.

    The database is neither read nor changed: an empty filter with your settings goes through the
    mail. Rates are in percent. 1-ROCA is the chance that a ham looks more like spam than a spam
    does; "missed at 0.1" is the spam that gets through when one ham in a thousand may be lost.
    """
    from spamd.errors import ConfigError, SpamdError
    from spamd.evaluation.curves import picture
    from spamd.evaluation.index import gather, read_index
    from spamd.evaluation.protocol import EvaluationOptions, Protocol
    from spamd.evaluation.protocol import evaluate as run

    if bool(index) == bool(spam or ham) or bool(spam) != bool(ham):
        raise UsageProblem("give either INDEX, or both --spam and --ham", context)
    settings = session(context).settings
    try:
        options = EvaluationOptions(
            protocol=Protocol(protocol), seed=seed, delay=delay, folds=folds
        )
    except ValueError as error:
        raise UsageProblem(str(error), context) from error
    try:
        mail = read_index(index) if index else gather(spam or [], ham or [])
        with stages() as told:
            result = run(mail, options, settings.bayes, settings.tokenizer, told)
    except ConfigError as error:  # of the mail, not of the settings
        raise SpamdError(str(error)) from error
    if plot is not None:
        plot.write_text(picture({"fused": result.fused, **result.heads}), encoding="utf-8")
        note(f"curves drawn into {plot}")
    if as_json:
        json_line(result.to_json())
    else:
        _print(result)


def _print(result: "EvaluationResult") -> None:
    from spamd.evaluation.thresholds import suggest

    spam = int(result.fused.spam.sum())
    line(
        f"{counted(len(result.fused), 'message')}: {len(result.fused) - spam:,} ham, {spam:,} spam;"
        f" {result.protocol}, order of the {result.order}"
    )
    rows = {"fused": result.rates, **result.head_rates()}
    _table("", rows)
    _table("the product over time", result.windows())
    bounds = result.intervals()
    line("95 % bounds of the fused rates")
    for title, name, _form in RATES:
        if name in bounds:
            line(f"  {title:<14} {bounds[name].low:.4f} … {bounds[name].high:.4f}")
    line('\nCut-offs for decision.spam_cutoff that this mail supports (with rule = "cutoffs")')
    for found in suggest(result.fused):
        line(
            f"  lose at most {found.wished:g} % of ham: {found.spam_cutoff:.4f}"
            f"  loses {found.ham_lost} here (true loss below {found.ham_lost_at_most:.2f} %),"
            f" misses {found.spam_missed:.2f} % of spam"
        )


def _table(title: str, rows: "dict[str, Rates]") -> None:
    from rich import box
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("")
    for heading, _, _ in RATES:
        table.add_column(heading, justify="right")
    for name, rates in rows.items():
        cells = [form.format(getattr(rates, field)) for _, field, form in RATES]
        table.add_row(name, *cells, style="bold" if name == "fused" else "")
    console().print(table)
