"""The tables of `spamd evaluate`: one run, several orders and settings, attacks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spamd.cli.output import line, show
from spamd.wording import counted

if TYPE_CHECKING:
    from spamd.evaluation.attacks.attack import Attacked, AttackRow
    from spamd.evaluation.attacks.kept import KeptAttackRow
    from spamd.evaluation.compare import Comparison
    from spamd.evaluation.rates import Outcomes, Rates
    from spamd.evaluation.results import EvaluationResult, LessonCount

RATES = (
    ("1-ROCA %", "roca", "{:.4f}"),
    ("ham→spam %", "ham_misclassified", "{:.2f}"),
    ("spam→ham %", "spam_misclassified", "{:.2f}"),
    ("unsure %", "unsure", "{:.2f}"),
    ("lam %", "lam", "{:.2f}"),
    ("missed at 0.1", "spam_missed", "{:.2f}"),
    ("calibr. error", "calibration_error", "{:.4f}"),
    ("errors", "errors", "{:d}"),
)

BOLD = ("fused", "mean", "none")
"""Rows that are looked for first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of an evaluation: as one JSON object, as tables, and the runs to draw.

    beside  runs to draw thinner: the classifiers
    """

    as_json: Mapping[str, object]
    show: Callable[[], None]
    runs: "Mapping[str, Outcomes]" = field(default_factory=dict)
    beside: "Mapping[str, Outcomes]" = field(default_factory=dict)


def of_result(result: "EvaluationResult") -> Report:
    """Return the report on one run."""
    return Report(
        as_json=result.to_json(),
        show=lambda: _print_result(result),
        runs={"fused": result.fused},
        beside=result.classifiers,
    )


def of_comparisons(compared: "Sequence[Comparison]") -> Report:
    """Return the report on several orders, with one setting or several."""
    first = compared[0].results[0]
    spam = int(first.fused.spam.sum())
    return Report(
        as_json={
            "messages": len(first.fused),
            "ham": len(first.fused) - spam,
            "spam": spam,
            "protocol": first.protocol,
            "settings": [one.to_json() for one in compared],
        },
        show=lambda: _print_comparisons(compared),
        runs={
            f"{one.name}, {result.order}": result.fused
            for one in compared
            for result in one.results
        },
    )


def of_attacks(found: "Attacked") -> Report:
    """Return the report on attacks."""

    def show_all() -> None:
        _print_attacks(found.rows)
        if found.kept:
            _print_kept(found.kept)

    return Report(
        as_json={
            "attacks": [row.to_json() for row in found.rows],
            "kept": [row.to_json() for row in found.kept],
        },
        show=show_all,
    )


def _print_result(result: "EvaluationResult") -> None:
    from spamd.evaluation.thresholds import suggest

    _print_head(result, f"order of the {result.order}")
    _rates("", {"fused": result.rates, **result.classifier_rates()})
    if windows := result.windows():
        _rates("fused, over time", windows)
    if result.lessons:
        _lessons("lessons in force", result.lessons)
    bounds = result.intervals()
    line("\n95 % confidence intervals of the fused rates")
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


def _print_comparisons(compared: "Sequence[Comparison]") -> None:
    first = compared[0]
    _print_head(first.results[0], counted(len(first.results), "order"))
    for one in compared:
        each = {result.order: result.rates for result in one.results}
        spread = {"spread": one.spread} if len(each) > 1 else {}
        _rates(f"{one.name}: the fused filter", each | {"mean": one.mean} | spread)
        _rates(
            f"{one.name}: means over time, and of each classifier",
            one.windows() | one.classifiers(),
        )
        if one.lessons():
            _lessons(f"{one.name}: lessons in force", one.lessons())
    if len(first.results) > 1:
        line("Spread is the standard deviation from one order to the next.")
    for one in compared[1:]:
        line(
            f"{one.name}: 1-ROCA {one.mean.roca:.4f} instead of {first.mean.roca:.4f},"
            f" better in {one.better_than(first)} of {counted(len(first.results), 'order')}"
        )


def _print_attacks(rows: "Sequence[AttackRow]") -> None:
    line(
        "Two thirds were learned, the rest was attacked. Caught is spam above the threshold that"
        "\nloses 0.5 % of ham before any attack; called is the verdict by your thresholds. Percent."
    )
    _table(
        "",
        ("attack", "spam caught", "ham lost", "spam called spam", "ham called spam"),
        [
            (
                row.attack,
                f"{row.caught:.1f}",
                f"{row.ham_lost:.2f}",
                f"{row.spam_called:.1f}",
                f"{row.ham_called:.2f}",
            )
            for row in rows
        ],
    )
    _table(
        "spam caught by each classifier alone",
        ("attack", *rows[0].classifiers),
        [(row.attack, *(f"{caught:.1f}" for caught in row.classifiers.values())) for row in rows],
    )


def _print_kept(rows: "Sequence[KeptAttackRow]") -> None:
    line(
        "\nSpam among the best ham words is read and kept, after the first lessons. How far the"
        "\nlog-odds of spam fall, for the attacker's next mail and for his spam without the words."
    )
    _table(
        "",
        ("attack", "lessons", "next mail", "plain", "at most"),
        [
            (
                row.attack,
                f"{row.lessons:.2f}",
                f"{row.carried:.2f}",
                f"{row.plain:.2f}",
                f"{row.most:.2f}",
            )
            for row in rows
        ],
    )


def _print_head(result: "EvaluationResult", orders: str) -> None:
    spam = int(result.fused.spam.sum())
    line(
        f"{counted(len(result.fused), 'message')}: {len(result.fused) - spam:,} ham, {spam:,} spam;"
        f" {result.protocol}, {orders}"
    )


def _rates(title: str, rows: "Mapping[str, Rates]") -> None:
    _table(
        title,
        ("", *(heading.replace(" ", "\n", 1) for heading, _, _ in RATES)),  # fits 80 columns
        [
            (name, *(form.format(getattr(found, field)) for _, field, form in RATES))
            for name, found in rows.items()
        ],
    )


def _lessons(title: str, lessons: "Mapping[str, LessonCount]") -> None:
    _table(
        title,
        ("source", "ham", "spam", "of these wrong"),
        [
            (source, f"{count.ham:,}", f"{count.spam:,}", f"{count.wrong:,}")
            for source, count in lessons.items()
        ],
    )


def _table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(
        title=title or None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 0, 0, 1),
    )
    for heading in headings:
        table.add_column(heading, justify="right" if heading != headings[0] else "left")
    for row in rows:
        table.add_row(*row, style="bold" if row[0] in BOLD else "")
    line()
    show(table)
