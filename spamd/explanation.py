"""An explanation in the words that a person reads: sentences, lines, tables, and all as plain text.

Three sentences come first, for somebody who knows no statistics: what the mail is, what spoke for
and against that, what would change it. Then the words that moved the verdict most.

`spamd explain` prints it with colours and bars, REPORT of the SPAMC protocol gives the plain text:
the words are the same. A text is bounded, whatever the mail holds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from spamd.bayes.counts import Totals
from spamd.bayes.decision import Action, DecisionOptions, Verdict, decide
from spamd.bayes.evidence import ClassifierEvidence, Explanation
from spamd.lists.senders import UNKNOWN_SENDER, Standing
from spamd.message.authentication.proof import Proof
from spamd.message.features import Features
from spamd.report import ScanReport
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

SPOKE = 4
"""Words named for each side in the sentence on what spoke."""

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


def with_sender(found: Explanation, standing: Standing, options: DecisionOptions) -> Explanation:
    """Return an explanation whose decision minds what is known of the sender, as a scan's does."""
    if standing == UNKNOWN_SENDER:
        return found
    probability = standing.shifted(found.evidence.log_odds, found.evidence.probability)
    decision = decide(probability, found.totals, options)
    if standing.decides:
        severest = decide(1.0, found.totals, options)
        decision = standing.decided(decision, reject=severest.action is Action.REJECT)
    return replace(found, decision=decision)


def sentences(
    found: Explanation, mail: Features, standing: Standing = UNKNOWN_SENDER
) -> tuple[str, str, str]:
    """Return what a mail is, what spoke for and against that, and what would change it."""
    change = flip_sentence(found, mail.texts)
    if standing.decides:
        change = f"Without that entry it would be judged by its words. {change}"
    return _what(found, standing), _why(found, mail.texts), change


def word_table(found: Explanation, texts: Sequence[str]) -> Table:
    """Return the words that moved the verdict most, through all classifiers together."""
    totals = found.totals
    return Table(
        title="The words that moved the verdict most (log-odds, + is spam)",
        columns=("word", "in spam", "in ham", "adds"),
        left=1,
        rows=tuple(
            (
                _word(texts[word.index]),
                _share(word.spam, totals.spam),
                _share(word.ham, totals.ham),
                f"{word.effect:+.2f}",
            )
            for word in found.words
        ),
        bars=tuple(word.effect for word in found.words),
    )


def _what(found: Explanation, standing: Standing) -> str:
    decision = found.decision
    if standing.decides:
        does = "let in" if decision.verdict is Verdict.HAM else "kept out"
        return f"This is {does} by a list, whatever its words say: {standing.listed.words()}."
    sure = f"the probability of spam is {percentage(decision.probability)}"
    match decision.verdict:
        case Verdict.SPAM:
            done = "is refused" if decision.action is Action.REJECT else "is marked as spam"
            return f"This is spam: {sure}, and it {done}."
        case Verdict.HAM:
            return f"This is no spam: {sure}, and it is delivered as it is."
        case _ if decision.reason.startswith("probability"):
            return f"It is not clear whether this is spam: {sure}, and it is delivered as it is."
        case _:
            return f"There is no verdict yet ({decision.reason}); as far as that goes, {sure}."


def _why(found: Explanation, texts: Sequence[str]) -> str:
    spam = [_word(texts[each.index]) for each in found.words if each.effect > 0][:SPOKE]
    ham = [_word(texts[each.index]) for each in found.words if each.effect < 0][:SPOKE]
    if not spam and not ham:
        return "No word of it says anything: none was learned, or all as often in spam as in ham."
    for_spam = f"for spam above all {_listed(spam)}" if spam else "no word for spam"
    for_ham = f"for ham {_listed(ham)}" if ham else "no word for ham"
    return f"What spoke: {for_spam}; {for_ham}."


def _listed(words: Sequence[str]) -> str:
    return ", ".join(f"“{word}”" for word in words)


def percentage(probability: float) -> str:
    """Return a probability as people read it; never 0 or 100 %, as nothing is certain."""
    if probability < 0.001:
        return "below 0.1 %"
    if probability > 0.999:
        return "above 99.9 %"
    return f"{100 * probability:.1f} %"


def facts_of(found: Explanation, mail: Features, standing: Standing = UNKNOWN_SENDER) -> list[str]:
    """Return the lines below the verdict: why, what is known of the mail, and its tricks."""
    known, tokens = found.evidence.known, counted(len(mail.texts), "token")
    trained = f"{found.totals.spam:,} spam and {found.totals.ham:,} ham"
    return [
        f"  {found.decision.reason}; action: {found.decision.action}",
        f"  {known:,} of its {tokens} are known from {trained}",
        *_sender(mail.proof, standing),
        *_disguise(Disguise.of(mail)),
    ]


def _sender(proof: Proof, standing: Standing) -> Iterator[str]:
    """Yield who the mail is from, what proves it, and what is known of that sender."""
    yield f"  {printable(proof.words(), limit=300)}"
    if standing.listed.refused and not standing.decides:
        yield f"  {printable(standing.listed.words(), limit=300)}"
    if standing.known.words:
        yield f"  {standing.known.words} ({standing.known.term:+.2f})"


def tables(found: Explanation, mail: Features, *, everything: bool) -> Iterator[Table]:
    """Yield the words that moved the verdict; and everything: each classifier and its clues."""
    if found.words:
        yield word_table(found, mail.texts)
    if not everything:
        return
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
            "No small set of words decides this: without the strongest ones it would still be"
            f" {verdict}."
        )
    named = [_word(texts[index]) for index in flip.without[:FLIP_WORDS]]
    more = len(flip.without) - len(named)
    words = ", ".join(named) + (f" and {more} more" if more else "")
    clues = "this word" if len(flip.without) == 1 else f"these {len(flip.without)} words"
    return f"Without {clues} it would be {flip.verdict} ({flip.probability:.4f}): {words}"


def as_text(found: Explanation, mail: Features, standing: Standing = UNKNOWN_SENDER) -> str:
    """Return all of it as plain text of at most `TEXT_BYTES` bytes of UTF-8."""
    verdict = f"{found.decision.verdict}  {found.decision.probability:.4f}"
    lines = [verdict, *sentences(found, mail, standing), "", *facts_of(found, mail, standing)]
    for table in tables(found, mail, everything=True):
        lines += ["", table.title, *_plain(table)]
    return _bounded("".join(f"{line}\n" for line in lines))


def own_line(user: str, report: ScanReport) -> str:
    """Return what a mail is for a user, and why, in one line."""
    return (
        f"For {printable(user, limit=120)} it is {report.verdict}: {printable(report.reason)}."
        " What the site makes of it:"
    )


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
