"""An explanation in the words that a person reads: lines and tables, and both as plain text.

`spamd explain` prints it with colours and bars, REPORT of the SPAMC protocol gives the plain text:
the words are the same. A text is bounded, whatever the mail holds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from spamd.bayes.counts import Totals
from spamd.bayes.evidence import ClassifierEvidence, Explanation
from spamd.message.features import Features
from spamd.sample import Kind
from spamd.wording import counted, printable

CLUES = 8
"""Tokens shown for each classifier where nobody says how many."""

FACTS = 8
"""Attributes shown, at most."""

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

WORD = 44
"""Columns of a word; longer ones are cut."""

TEXT_BYTES = 24 * 1024
"""Of a plain text; Exim reads 32 KB, and a page says enough. Longer ones end at a line."""


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
    def of(cls, mail: Features) -> Self:
        """Return the disguise of a mail, words in the order of the mail."""
        kinds, texts = mail.sample.kinds, mail.texts
        in_order = np.argsort(texts.first, kind="stable")

        def found(kind: int) -> tuple[str, ...]:
            held = kinds[in_order] & int(kind) == int(kind)
            return tuple(texts[place] for place in in_order[held].tolist())

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows below a title.

    columns  what stands above them
    left     how many of the columns hold words; the others hold numbers
    bars     for each row what it adds, None for a row without a bar
    """

    title: str
    columns: tuple[str, ...]
    left: int
    rows: tuple[tuple[str, ...], ...]
    bars: tuple[float | None, ...]


def facts_of(found: Explanation, mail: Features) -> list[str]:
    """Return the lines below the verdict: why, what is known of the mail, and its tricks."""
    known, tokens = found.evidence.known, counted(len(mail.texts), "token")
    trained = f"{found.totals.spam:,} spam and {found.totals.ham:,} ham"
    return [
        f"  {found.decision.reason}; action: {found.decision.action}",
        f"  {known:,} of its {tokens} are known from {trained}",
        *_disguise(Disguise.of(mail)),
    ]


def tables(found: Explanation, mail: Features) -> Iterator[Table]:
    """Yield what each classifier says, then the clues of each."""
    yield _classifiers(found)
    for classifier in found.classifiers:
        if classifier.clues:
            yield _clues(classifier, mail.texts, found.totals)
        if any(fact.contribution for fact in classifier.facts):
            yield _facts(classifier)


def flip_sentence(found: Explanation, texts: Sequence[str]) -> str:
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


def as_text(found: Explanation, mail: Features) -> str:
    """Return all of it as plain text of at most `TEXT_BYTES` bytes of UTF-8."""
    lines = [f"{found.decision.verdict}  {found.decision.probability:.4f}", *facts_of(found, mail)]
    for table in tables(found, mail):
        lines += ["", table.title, *_plain(table)]
    lines += ["", flip_sentence(found, mail.texts)]
    return _bounded("".join(f"{line}\n" for line in lines))


def _bounded(text: str) -> str:
    data = text.encode("utf_8", "replace")
    if len(data) <= TEXT_BYTES:
        return text
    return data[: data.rfind(b"\n", 0, TEXT_BYTES - 3) + 1].decode() + "…\n"


def _plain(table: Table) -> Iterator[str]:
    """Yield the lines of a table: words to the left, numbers to the right."""
    rows = (table.columns, *table.rows)
    widths = [max(len(row[place]) for row in rows) for place in range(len(table.columns))]
    for number, row in enumerate(rows):
        cells = [
            cell.ljust(width) if place < table.left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield ("  " + "  ".join(cells)).rstrip()
        if not number:
            yield "  " + "-" * (sum(widths) + 2 * len(widths) - 2)


def _disguise(found: Disguise) -> Iterator[str]:
    if found.names:
        yield f"  Tricks found: {', '.join(TRICKS.get(name, name) for name in found.names)}"
    for what, words in (
        ("Words that are shown", found.plain),
        ("Words that are hidden", found.hidden),
    ):
        if words:
            named = [_word(word) for word in words[:TRICK_WORDS]]
            more = f" and {len(words) - len(named)} more" if len(words) > len(named) else ""
            yield f"  {what}: {', '.join(named)}{more}"


def _classifiers(found: Explanation) -> Table:
    rows = [
        (classifier.name, f"{classifier.score:+.2f}", f"{classifier.effect:+.2f}")
        for classifier in found.classifiers
    ]
    rows.append(("(bias)", "", f"{found.bias:+.2f}"))
    if found.prior:
        rows.append(("(share of spam)", "", f"{found.prior:+.2f}"))
    rows.append(("sum", "", f"{found.evidence.log_odds + found.prior:+.2f}"))
    bars = [classifier.effect for classifier in found.classifiers]
    return Table(
        title="What each classifier says, and what it adds to the verdict (log-odds, + is spam)",
        columns=("classifier", "score", "adds"),
        left=1,
        rows=tuple(rows),
        bars=(*bars, *([None] * (len(rows) - len(bars)))),
    )


def _clues(classifier: ClassifierEvidence, texts: Sequence[str], totals: Totals) -> Table:
    return Table(
        title=PURPOSE.get(classifier.name, classifier.name),
        columns=("token", "in spam", "in ham", "P(spam|token)", "adds"),
        left=1,
        rows=tuple(
            (
                _word(texts[clue.index]),
                _share(clue.spam, totals.spam),
                _share(clue.ham, totals.ham),
                f"{clue.probability:.4f}",
                f"{clue.contribution:+.2f}",
            )
            for clue in classifier.clues
        ),
        bars=tuple(clue.contribution for clue in classifier.clues),
    )


def _facts(classifier: ClassifierEvidence) -> Table:
    shown = [fact for fact in classifier.facts if fact.contribution][:FACTS]
    return Table(
        title=PURPOSE.get(classifier.name, classifier.name),
        columns=("attribute", "value", "adds"),
        left=2,
        rows=tuple(
            (fact.name, printable(fact.value), f"{fact.contribution:+.2f}") for fact in shown
        ),
        bars=tuple(fact.contribution for fact in shown),
    )


def _share(count: int, total: int) -> str:
    """Return "312 (12 %)": messages, and their share of all that were taught."""
    if not count:
        return "—"
    share = 100 * count / total if total else 0
    return f"{count:,} ({share:.0f} %)" if share >= 1 else f"{count:,} (<1 %)"


def _word(text: str) -> str:
    return printable(text, limit=WORD - 1)
