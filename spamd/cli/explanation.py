"""An explanation as a person reads it, and the same as JSON."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from spamd.cli.output import console, counted, line
from spamd.cli.output import show as show_table
from spamd.observe.text import printable
from spamd.sample import Kind

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from spamd.bayes.counts import Totals
    from spamd.bayes.evidence import ClassifierEvidence, Clue, Explanation, FactClue
    from spamd.message.features import Features

COLOURS = {"spam": "red", "ham": "green", "unsure": "yellow"}

PURPOSE = {
    "graham": "Graham: the strongest tokens",
    "multinomial": "Multinomial naive Bayes: all tokens",
    "fisher": "Robinson and Fisher: tokens far from neutral",
    "confidence": "Naive Bayes with each token weighted by the certainty of its counts",
    "logistic": "Logistic regression: learned weights of the tokens",
    "grams": "Logistic regression: character 4-grams (their texts are not kept)",
    "facts": "Naive Bayes over attributes of the message",
    "dependence": "Attributes that depend on each other",
}

TRICKS = {
    "hidden": "text that the reader is not shown",
    "invisible": "invisible characters inside words",
    "split": "comments or empty tags inside words",
    "look-alike": "words in letters of another alphabet",
    "leet": "digits for letters",
    "spaced": "words written letter by letter",
    "look-alike-host": "a host name in look-alike letters",
    "punycode": "a host name in xn-- that means nothing",
}
"""What the tokens `trick:NAME` mean."""

FLIP_WORDS = 12
"""Words named in the sentence on what would flip the verdict; JSON has all."""

TRICK_WORDS = 20
"""Words named for each kind of disguise; JSON has all."""

BAR = 12
"""Columns of the bar that shows a contribution."""

WORD = 44
"""Columns of a word; longer ones are cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disguise:
    """What a mail does to be read otherwise by a filter than by a person.

    names   of the tricks, as in `TRICKS`
    plain   words that a person reads where other characters stand
    hidden  words that a person is not shown
    """

    names: tuple[str, ...]
    plain: tuple[str, ...]
    hidden: tuple[str, ...]

    @classmethod
    def of(cls, mail: "Features") -> Self:
        """Return the disguise of a mail, words in the order of the mail."""
        kinds, texts = mail.sample.kinds, mail.texts
        in_order = np.argsort(texts.first, kind="stable")

        def found(kind: int) -> tuple[str, ...]:
            return tuple(texts[place] for place in in_order if kinds[place] & kind == kind)

        return cls(
            names=tuple(
                text.removeprefix("trick:")
                for text in found(Kind.TRICK)
                if text.startswith("trick:")
            ),
            plain=found(Kind.WORD | Kind.TRICK),
            hidden=tuple(
                text.removeprefix("hidden:")
                for text in found(Kind.HIDDEN)
                if text.startswith("hidden:")
            ),
        )


def as_json(found: "Explanation", mail: "Features") -> dict[str, object]:
    """Return the explanation as the object that `explain --json` prints."""
    flip, texts, disguise = found.flip, mail.texts, Disguise.of(mail)
    return {
        "verdict": str(found.decision.verdict),
        "probability": found.decision.probability,
        "log_odds": found.evidence.log_odds + found.prior,
        "action": str(found.decision.action),
        "reason": found.decision.reason,
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
        "classifiers": [_classifier_json(classifier, texts) for classifier in found.classifiers],
        "flip": flip
        and {
            "without": [texts[index] for index in flip.without],
            "probability": flip.probability,
            "verdict": str(flip.verdict),
        },
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


def show(name: str, found: "Explanation", mail: "Features") -> None:
    """Print verdict, tricks, classifiers, clues of each, and what would flip the verdict."""
    from rich.text import Text

    texts = mail.texts
    verdict = found.decision.verdict
    out = console()
    out.print(
        Text.assemble(
            (f"{verdict}", f"bold {COLOURS.get(verdict, '')}"),
            f"  {found.decision.probability:.4f}  {printable(name)}",
        ),
        soft_wrap=True,
    )
    line(f"  {found.decision.reason}; action: {found.decision.action}")
    line(
        f"  {found.evidence.known:,} of its {counted(len(texts), 'token')} are known from"
        f" {found.totals.spam:,} spam and {found.totals.ham:,} ham"
    )
    _show_disguise(Disguise.of(mail))
    _show_classifiers(found)
    for classifier in found.classifiers:
        if classifier.clues:
            _show_clues(classifier.name, classifier.clues, texts, found.totals)
        if classifier.facts:
            _show_facts(classifier.name, classifier.facts)
    line()
    line(flip_sentence(found, texts))


def flip_sentence(found: "Explanation", texts: Sequence[str]) -> str:
    """Return what would flip the verdict."""
    verdict, flip = found.decision.verdict, found.flip
    if flip is None:
        return (
            "No small set of tokens decides this: without the strongest ones it would still be"
            f" {verdict}."
        )
    named = [_word(texts[index]) for index in flip.without[:FLIP_WORDS]]
    more = len(flip.without) - len(named)
    words = ", ".join(named) + (f" and {more} more" if more else "")
    clues = "this token" if len(flip.without) == 1 else f"these {len(flip.without)} tokens"
    return f"Without {clues} it would be {flip.verdict} ({flip.probability:.4f}): {words}"


def _show_disguise(found: Disguise) -> None:
    if found.names:
        line(f"  Tricks found: {', '.join(TRICKS.get(name, name) for name in found.names)}")
    for what, words in (
        ("Words that are shown", found.plain),
        ("Words that are hidden", found.hidden),
    ):
        if words:
            named = [_word(word) for word in words[:TRICK_WORDS]]
            more = f" and {len(words) - len(named)} more" if len(words) > len(named) else ""
            line(f"  {what}: {', '.join(named)}{more}")


def _show_classifiers(found: "Explanation") -> None:
    table = _table(
        "What each classifier says, and what it adds to the verdict (log-odds, + is spam)"
    )
    for title in ("classifier", "score", "adds"):
        table.add_column(title, justify="left" if title == "classifier" else "right")
    table.add_column("")
    largest = max((abs(classifier.effect) for classifier in found.classifiers), default=0.0)
    for classifier in found.classifiers:
        bar = _bar(classifier.effect, largest)
        table.add_row(classifier.name, f"{classifier.score:+.2f}", f"{classifier.effect:+.2f}", bar)
    table.add_row("(bias)", "", f"{found.bias:+.2f}", "")
    if found.prior:
        table.add_row("(share of spam)", "", f"{found.prior:+.2f}", "")
    together = found.evidence.log_odds + found.prior
    table.add_row("sum", "", f"{together:+.2f}", "", style="bold")
    show_table(table, spare=True)


def _show_clues(
    classifier: str, clues: "Iterable[Clue]", texts: Sequence[str], totals: "Totals"
) -> None:
    shown = list(clues)
    table = _table(PURPOSE.get(classifier, classifier))
    table.add_column("token", max_width=WORD)
    for title in ("in spam", "in ham", "P(spam|token)", "adds"):
        table.add_column(title, justify="right")
    table.add_column("")
    largest = max(abs(clue.contribution) for clue in shown)
    for clue in shown:
        table.add_row(
            _word(texts[clue.index]),
            _share(clue.spam, totals.spam),
            _share(clue.ham, totals.ham),
            f"{clue.probability:.4f}",
            f"{clue.contribution:+.2f}",
            _bar(clue.contribution, largest),
        )
    show_table(table, spare=True)


def _show_facts(classifier: str, facts: "Iterable[FactClue]") -> None:
    shown = [fact for fact in facts if fact.contribution][:8]
    if not shown:
        return
    table = _table(PURPOSE.get(classifier, classifier))
    for title in ("attribute", "value"):
        table.add_column(title)
    table.add_column("adds", justify="right")
    table.add_column("")
    largest = max(abs(fact.contribution) for fact in shown)
    for fact in shown:
        bar = _bar(fact.contribution, largest)
        table.add_row(fact.name, printable(fact.value), f"{fact.contribution:+.2f}", bar)
    show_table(table, spare=True)


def _table(title: str) -> "Table":
    """Print a title and return the table that is to follow it."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console().print(Text(f"\n{title}", style="bold"), soft_wrap=True)
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)


def _bar(value: float, largest: float) -> "Text":
    """Return a bar of up to `BAR` columns, red for spam, green for ham."""
    from rich.text import Text

    length = round(BAR * abs(value) / largest) if largest else 0
    return Text("█" * length, style="red" if value > 0 else "green")


def _share(count: int, total: int) -> str:
    """Return "312 (12 %)": messages, and their share of all that were taught."""
    if not count:
        return "—"
    share = 100 * count / total if total else 0
    return f"{count:,} ({share:.0f} %)" if share >= 1 else f"{count:,} (<1 %)"


def _word(text: str) -> str:
    return printable(text, limit=WORD - 1)
