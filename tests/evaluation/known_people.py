"""People one knows, over public mail: who answers whom, and what knowing that does to verdicts.

    python -m tests.evaluation.known_people /corpora/spamassassin /corpora/modern

Ham B that names ham A in In-Reply-To or References answers it: B's author has written to A's. So
he has to whom he names in To or Cc, which is what the product reads, and all that is left where a
corpus has lost the fields of answers (modern). From then on that person is known here; to B's
author, if he writes to him, as one of his own. To whom very many write is a mailing list and no
person. The mail is judged in the order of the index, each before it is learned. No server that we
would trust wrote into these mails, so the proof is put beside them, after the classifiers have
spoken: they learn nothing from it.

    ham       proven, from people who are known by then: how many are tagged or unsure
    forged    spam in the name of those people, which our servers disprove, or say nothing of
    broken    that ham, if all of it were disproven on its way, as forwarders do
    taken     spam that is proven to be from their accounts

Twice: as the filter judges that learns each mail, in five orders; and as one does at the start,
that has learned the other corpus only.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.utils import unquote
from pathlib import Path
from re import findall

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.counts import Totals
from spamd.bayes.decision import DecisionOptions, Verdict, decide
from spamd.bayes.model import BayesOptions
from spamd.evaluation.index import LabelledMail, order, read_index
from spamd.evaluation.material import prepare
from spamd.evaluation.protocol import EvaluationOptions, run, transfer
from spamd.lists.known import DEFAULTS, KnownAddresses, KnownOptions, address_hash
from spamd.lists.senders import Senders
from spamd.message.authentication.proof import Proof
from spamd.message.authentication.sender import Sender, addresses_of, sender_of
from spamd.message.limits import Limits
from spamd.message.mime.parser import parse
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.sample import Label

KEY = b"of this experiment"
MOST_FRIENDS = 30
"""Authors who write to one person, at most."""

TAUGHT = Totals(spam=1000, ham=1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """Of a mail: who wrote it, to whom, and which mails it names."""

    sender: Sender
    id: str
    answers: tuple[str, ...]
    to: tuple[str, ...]


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
    to = [
        address
        for field in ("to", "cc")
        for value in message.all(field)
        for address in addresses_of(value.decode("utf-8", "replace"))
    ]
    return Letter(
        to=tuple(to),
        sender=sender_of(message),
        id=unquote(own[0]) if own else "",
        answers=tuple(map(unquote, named)),
    )


def lists_of(letters: Sequence[tuple[Label, Letter]]) -> set[str]:
    """Return the addresses that are no person's: very many authors write there."""
    authors: dict[str, set[str]] = {}
    for label, letter in letters:
        for address in letter.to if label is Label.HAM else ():
            authors.setdefault(address, set()).add(letter.sender.address)
    return {address for address, by in authors.items() if len(by) > MOST_FRIENDS}


def met(
    letters: Sequence[tuple[Label, Letter]], options: KnownOptions = DEFAULTS
) -> Iterator[tuple[Met, KnownAddresses]]:
    """Yield each ham of somebody who is known by then, with all who are."""
    known = KnownAddresses(KEY, options)
    author: dict[str, str] = {}
    answered: dict[str, list[str]] = {}
    pairs: set[tuple[str, str]] = set()
    people: set[str] = set()
    lists = lists_of(letters)
    for place, (label, letter) in enumerate(letters):
        writer = letter.sender.address
        if label is Label.SPAM or not writer or writer in lists:
            continue
        read_by = [author[each] for each in letter.answers if each in author]
        read_by += [address for address in letter.to if address not in lists]
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


Counts = Counter[str]
"""Numbers of mails.

ham, own      ham from known people, and of it to those to whom they are known
before, after of it unsure or tagged
broken        of it unsure or tagged, if all were disproven
forged        spam in their name, helped: of it judged milder than if nobody knew them, harder
taken         spam of their accounts, passed_before, passed: of it called ham
"""


def line(counts: Counts) -> str:
    """Return numbers as lines."""
    return (
        f"  ham from known people {counts['ham']:,}, {counts['own']:,} of it to their own friends:"
        f" unsure or tagged {counts['before']} before, {counts['after']} after;"
        f" {counts['broken']} if disproven\n"
        f"  forged in their name {counts['forged']:,}: helped {counts['helped']},"
        f" judged more severely {counts['harder']:,}\n"
        f"  spam of their accounts {counts['taken']:,}: called ham {counts['passed_before']}"
        f" before, {counts['passed']} after"
    )


def verdict_of(probability: float) -> Verdict:
    """Return what the default decision makes of a probability."""
    return decide(probability, TAUGHT, DecisionOptions()).verdict


def figures(
    letters: Sequence[tuple[Label, Letter]],
    log_odds: NDArray[np.float64],
    options: KnownOptions = DEFAULTS,
) -> Counts:
    """Return what knowing people does to the verdicts on mails that came in this order."""
    plain = [1 / (1 + float(np.exp(-z))) for z in log_odds]
    counts: Counts = Counter()
    people: list[Sender] = []
    known: KnownAddresses | None = None
    for one, known in met(letters, options):
        senders, z, before = Senders(known=known), float(log_odds[one.place]), plain[one.place]
        proven = senders.of(Proof(sender=one.sender, by="dkim"), user=one.reader)
        broken = senders.of(disproven(one.sender), user=one.reader)
        counts["ham"] += 1
        counts["own"] += proven.known.who == "own"
        counts["before"] += verdict_of(before) is not Verdict.HAM
        counts["after"] += verdict_of(proven.shifted(z, before)) is not Verdict.HAM
        counts["broken"] += verdict_of(broken.shifted(z, before)) is not Verdict.HAM
        people.append(one.sender)
    spam = [place for place, (label, _) in enumerate(letters) if label is Label.SPAM]
    senders = Senders(known=known) if known is not None else Senders()
    for number, place in enumerate(spam if people else ()):
        z, before = float(log_odds[place]), plain[place]
        counts += of_spam(people[number % len(people)], senders, z, before)
    return counts


def disproven(sender: Sender) -> Proof:
    """Return what our servers say of a mail that is not from its sender."""
    return Proof(sender=sender, results=(("dmarc", "fail"), ("spf", "fail")))


def of_spam(sender: Sender, senders: Senders, z: float, before: float) -> Counts:
    """Return what becomes of a spam in the name of somebody who is known, and by his account."""
    counts: Counts = Counter()
    for proof in (Proof(sender=sender), disproven(sender)):
        judged = senders.of(proof).shifted(z, before)
        counts["forged"] += 1
        counts["helped"] += judged < before
        counts["harder"] += judged > before
    proven = senders.of(Proof(sender=sender, by="dkim")).shifted(z, before)
    counts["taken"] += 1
    counts["passed_before"] += verdict_of(before) is Verdict.HAM
    counts["passed"] += verdict_of(proven) is Verdict.HAM
    return counts


def read(index: Sequence[LabelledMail]) -> list[tuple[Label, Letter]]:
    """Return who wrote which mails."""
    return [(mail.label, letter_of(mail.read())) for mail in index]


def main(corpora: Sequence[str]) -> None:
    """Print the figures of some corpora."""
    indexes = [read_index(Path(corpus) / "index") for corpus in corpora]
    materials = [prepare(index, TokenizerOptions()) for index in indexes]
    for number, (corpus, index, material) in enumerate(
        zip(corpora, indexes, materials, strict=True)
    ):
        letters, total = read(index), Counter[str]()
        for seed in (None, 1, 2, 3, 4):
            result = run(material, EvaluationOptions(seed=seed), BayesOptions())
            arranged = [letters[place] for place in order(len(letters), seed)]
            total += figures(arranged, result.fused.log_odds)
        print(f"{corpus}, each learned, five orders\n{line(total)}", flush=True)
        for other, learned in enumerate(materials):
            if other != number:
                result = transfer(learned, material, EvaluationOptions(), BayesOptions())
                found = line(figures(letters, result.fused.log_odds))
                print(f"{corpus}, at the start ({corpora[other]} learned)\n{found}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
