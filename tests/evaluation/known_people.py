"""People one knows, over public mail: who answers whom, and what knowing that does to verdicts.

    python -m tests.evaluation.known_people /corpora/spamassassin /corpora/modern

Ham B that names ham A in In-Reply-To or References answers it: B's author has written to A's. From
then on A's author is known here; to B's author, whose mail he answers, as one of his own. The mail
is judged in the order of the index, each before it is learned. No server that we would trust wrote
into these mails, so the proof is put beside them, after the classifiers have spoken: they learn
nothing from it.

    ham       proven, from people who are known by then: how many are tagged or unsure
    forged    spam in the name of those people, which our servers disprove, or say nothing of
    taken     spam that is proven to be from their accounts
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from email.utils import unquote
from pathlib import Path
from re import findall

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.counts import Totals
from spamd.bayes.decision import DecisionOptions, Verdict, decide
from spamd.bayes.model import BayesOptions
from spamd.evaluation.index import LabelledMail, read_index
from spamd.evaluation.protocol import EvaluationOptions, evaluate
from spamd.evaluation.rates import CALLED
from spamd.evaluation.results import EvaluationResult
from spamd.lists.known import KnownAddresses, KnownOptions, address_hash
from spamd.lists.senders import Senders
from spamd.message.authentication.proof import Proof
from spamd.message.authentication.sender import Sender, sender_of
from spamd.message.limits import Limits
from spamd.message.mime.parser import parse
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.sample import Label

KEY = b"of this experiment"
TAUGHT = Totals(spam=1000, ham=1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """Of a mail: who wrote it, and which mails it names."""

    sender: Sender
    id: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """A mail from somebody who is known: its place in the index, and to whom he is known."""

    place: int
    sender: Sender
    reader: str


def letter_of(raw: bytes) -> Letter:
    """Return who wrote a mail, and what it answers."""
    message = parse(raw, Limits())
    named = [
        str(name)
        for field in ("in-reply-to", "references")
        for value in message.all(field)
        for name in findall(r"<[^<>\s]+>", value.decode("latin_1"))
    ]
    own = findall(r"<[^<>\s]+>", (message.first("message-id") or b"").decode("latin_1"))
    return Letter(
        sender=sender_of(message),
        id=unquote(own[0]) if own else "",
        answers=tuple(map(unquote, named)),
    )


def met(letters: Sequence[tuple[Label, Letter]]) -> Iterator[tuple[Met, KnownAddresses]]:
    """Yield each ham of somebody who is known by then, with all who are."""
    known = KnownAddresses(KEY, KnownOptions())
    author: dict[str, str] = {}
    answered: dict[str, list[str]] = {}
    pairs: set[tuple[str, str]] = set()
    people: set[str] = set()
    for place, (label, letter) in enumerate(letters):
        writer = letter.sender.address
        if label is Label.SPAM or not writer:
            continue
        read_by = [author[each] for each in letter.answers if each in author]
        if writer in people:
            own = [reader for reader in read_by if (reader, writer) in pairs]
            yield Met(place=place, sender=letter.sender, reader=own[0] if own else ""), known
        fresh = {(writer, to) for to in read_by if to != writer}
        fresh |= {(by, writer) for by in answered.get(letter.id, ()) if by != writer}
        for user, to in fresh - pairs:
            known.add([address_hash(KEY, to, user), address_hash(KEY, to)])
            people.add(to)
        pairs |= fresh
        author[letter.id] = writer
        for each in letter.answers:
            answered.setdefault(each, []).append(writer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What knowing people does; numbers of mails.

    ham        ham from known people         before, after   of it unsure or tagged
    forged     spam in their name            helped          of it judged milder than unknown
    taken      spam of their accounts        passed_before, passed   of it called ham
    """

    ham: int
    own: int
    before: int
    after: int
    forged: int
    helped: int
    harder: int
    taken: int
    passed_before: int
    passed: int

    def __str__(self) -> str:
        """Return them as lines."""
        return (
            f"ham from known people {self.ham:,} (to their own readers {self.own:,}):"
            f" unsure or tagged {self.before} before, {self.after} after\n"
            f"forged in their name {self.forged:,}: helped {self.helped},"
            f" judged more severely {self.harder}\n"
            f"spam of their accounts {self.taken:,}: called ham {self.passed_before} before,"
            f" {self.passed} after"
        )


def verdict_of(probability: float) -> Verdict:
    """Return what the default decision makes of a probability."""
    return decide(probability, TAUGHT, DecisionOptions()).verdict


def figures(index: Sequence[LabelledMail], result: EvaluationResult) -> Figures:
    """Return what knowing people does to the verdicts of an evaluation in the index's order."""
    letters = [(mail.label, letter_of(mail.read())) for mail in index]
    log_odds: NDArray[np.float64] = result.fused.log_odds
    plain = [1 / (1 + float(np.exp(-z))) for z in log_odds]
    count = dict.fromkeys(("ham", "own", "before", "after"), 0)
    people: list[Sender] = []
    known: KnownAddresses | None = None
    for one, all_known in met(letters):
        known = all_known
        people.append(one.sender)
        standing = Senders(known=known).of(Proof(sender=one.sender, by="dkim"), user=one.reader)
        after = verdict_of(standing.shifted(float(log_odds[one.place]), plain[one.place]))
        count["ham"] += 1
        count["own"] += standing.known.who == "own"
        count["before"] += CALLED[result.fused.called[one.place]] is not Verdict.HAM
        count["after"] += after is not Verdict.HAM
    spam = [place for place, (label, _) in enumerate(letters) if label is Label.SPAM]
    tried = _spam(spam, people, known, log_odds, plain) if known is not None else {}
    return Figures(**count, **tried)


def _spam(
    places: Sequence[int],
    people: Sequence[Sender],
    known: KnownAddresses,
    log_odds: NDArray[np.float64],
    plain: Sequence[float],
) -> dict[str, int]:
    """Return what becomes of spam in the name of known people, each by the next of them."""
    found = dict.fromkeys(("forged", "helped", "harder", "taken", "passed_before", "passed"), 0)
    senders = Senders(known=known)
    for number, place in enumerate(places):
        sender, z = people[number % len(people)], float(log_odds[place])
        nothing = Proof(sender=sender)
        for proof in (nothing, replace(nothing, results=(("dmarc", "fail"), ("spf", "fail")))):
            judged = senders.of(proof).shifted(z, plain[place])
            found["forged"] += 1
            found["helped"] += judged < plain[place]
            found["harder"] += judged > plain[place]
        judged = senders.of(replace(nothing, by="dkim")).shifted(z, plain[place])
        found["taken"] += 1
        found["passed_before"] += verdict_of(plain[place]) is Verdict.HAM
        found["passed"] += verdict_of(judged) is Verdict.HAM
    return found


def main(corpora: Sequence[str]) -> None:
    """Print the figures of some corpora."""
    for corpus in corpora:
        index = read_index(Path(corpus) / "index")
        result = evaluate(index, EvaluationOptions(), BayesOptions(), TokenizerOptions())
        print(f"{corpus}\n{figures(index, result)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
