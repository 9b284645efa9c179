"""An explanation on the terminal, with colours and bars, and the same as JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spamd import explanation
from spamd.cli.output import console, line
from spamd.cli.output import show as show_table
from spamd.explanation import Disguise
from spamd.lists.senders import UNKNOWN_SENDER
from spamd.wording import printable

if TYPE_CHECKING:
    from rich.text import Text

    from spamd.bayes.evidence import ClassifierEvidence, Explanation
    from spamd.lists.senders import Standing
    from spamd.message.features import Features
    from spamd.report import ScanReport

COLOURS = {"spam": "red", "ham": "green", "unsure": "yellow"}

BAR = 12
"""Columns of the bar that shows a contribution."""


def as_json(
    found: "Explanation", mail: "Features", standing: "Standing" = UNKNOWN_SENDER
) -> dict[str, object]:
    """Return the explanation as the object that `explain --json` prints."""
    flip, texts, disguise = found.flip, mail.texts, Disguise.of(mail)
    return {
        "verdict": str(found.decision.verdict),
        "probability": found.decision.probability,
        "log_odds": found.evidence.log_odds + found.prior,
        "sentences": list(explanation.sentences(found, mail, standing)),
        "action": str(found.decision.action),
        "reason": found.decision.reason,
        "sender": _sender_json(mail, standing),
        "tokens": len(texts),
        "known": found.evidence.known,
        "trained": {"spam": found.totals.spam, "ham": found.totals.ham},
        "tricks": {
            "names": list(disguise.names),
            "plain": list(disguise.plain),
            "hidden": list(disguise.hidden),
        },
        "bias": found.bias,
        "prior": found.prior,
        "words": [
            {
                "token": texts[word.index],
                "spam": word.spam,
                "ham": word.ham,
                "effect": word.effect,
            }
            for word in found.words
        ],
        "classifiers": [_classifier_json(classifier, texts) for classifier in found.classifiers],
        "flip": flip
        and {
            "without": [texts[index] for index in flip.without],
            "probability": flip.probability,
            "verdict": str(flip.verdict),
        },
    }


def own_json(user: str, report: "ScanReport") -> dict[str, object]:
    """Return what a mail is for a user, as the object that `explain --json` prints."""
    return {
        "user": user,
        "verdict": str(report.verdict),
        "probability": report.probability,
        "action": str(report.action),
        "reason": report.reason,
    }


def _sender_json(mail: "Features", standing: "Standing") -> dict[str, object]:
    proof, listed = mail.proof, standing.listed
    return {
        "address": proof.sender.address,
        "trouble": proof.sender.trouble,
        "proven_by": proof.by,
        "results": dict(proof.results),
        "login": proof.login,
        "client": proof.client,
        "list_id": proof.list_id,
        "entry": listed.number or None,
        "effect": listed.effect,
        "refused": [entry.number for entry in listed.refused],
        "known": standing.known.words,
        "adds": standing.known.term,
    }


def _classifier_json(classifier: "ClassifierEvidence", texts: Sequence[str]) -> dict[str, object]:
    return {
        "name": classifier.name,
        "score": classifier.score,
        "effect": classifier.effect,
        "clues": [
            {
                "token": texts[clue.index],
                "spam": clue.spam,
                "ham": clue.ham,
                "probability": clue.probability,
                "contribution": clue.contribution,
            }
            for clue in classifier.clues
        ],
        "facts": [
            {"name": fact.name, "value": fact.value, "contribution": fact.contribution}
            for fact in classifier.facts
        ],
    }


def show(
    name: str,
    found: "Explanation",
    mail: "Features",
    standing: "Standing" = UNKNOWN_SENDER,
    *,
    everything: bool = False,
) -> None:
    """Print the verdict, what it is, why, and the words that moved it; or everything."""
    from rich.text import Text

    verdict = found.decision.verdict
    console().print(
        Text.assemble(
            (f"{verdict}", f"bold {COLOURS.get(verdict, '')}"),
            f"  {found.decision.probability:.4f}  {printable(name)}",
        ),
        soft_wrap=True,
    )
    for text in explanation.sentences(found, mail, standing):
        line(text)
    line()
    for text in explanation.facts_of(found, mail, standing):
        line(text)
    for table in explanation.tables(found, mail, everything=everything):
        _show(table)


def _show(table: explanation.Table) -> None:
    """Print a table, with a bar behind each row that has one."""
    from rich import box
    from rich import table as rich
    from rich.text import Text

    console().print(Text(f"\n{table.title}", style="bold"), soft_wrap=True)
    shown = rich.Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for place, title in enumerate(table.columns):
        shown.add_column(title, justify="left" if place < table.left else "right")
    shown.add_column("")
    largest = max((abs(bar) for bar in table.bars if bar is not None), default=0.0)
    for row, bar in zip(table.rows, table.bars, strict=True):
        total = row[0] == "sum" and bar is None
        shown.add_row(
            *row, "" if bar is None else _bar(bar, largest), style="bold" if total else ""
        )
    show_table(shown, spare=True)


def _bar(value: float, largest: float) -> "Text":
    """Return a bar of up to `BAR` columns, red for spam, green for ham."""
    from rich.text import Text

    length = round(BAR * abs(value) / largest) if largest else 0
    return Text("█" * length, style="red" if value > 0 else "green")
