"""The one way a message goes: bytes → features → evidence → verdict → report.

`Scanner` is the plain use case (CPU work, no waiting); `ScanningInspector` is the same for the
relay: it keeps the event loop free while a large message is read, and remembers each report
so that a mail which a person moves later is trained on exactly what was scored.

The model may change between two scans but not during one: features may be extracted elsewhere,
the weighing (well under a millisecond) always happens on the loop that also refreshes the model.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from spamd.bayes.classifiers.logistic import sigmoid
from spamd.bayes.decision import Action, DecisionOptions, Verdict
from spamd.bayes.evidence import Explanation, explain
from spamd.bayes.model import CLASSIFIERS, Evidence, Model
from spamd.bayes.own import OwnWord
from spamd.bayes.wishes import borders, decide_for
from spamd.errors import Overloaded
from spamd.explanation import with_sender
from spamd.extraction.extractor import Extractor
from spamd.lists.senders import NOBODY, UNKNOWN_SENDER, Senders, Standing
from spamd.message.authentication.route import plain_address, within
from spamd.message.features import Features, believed, extract
from spamd.message.identity import CUT, new_id, with_rest
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.person import SITE, Person, own_word
from spamd.report import ScanReport, Verdicts

if TYPE_CHECKING:  # a command that scans needs nothing else of the ports
    from spamd.message.envelope import Client, Envelope
    from spamd.ports import Clock, Observer, People

INLINE_BYTES = 8 * 1024
"""Up to this size features are extracted on the event loop: the worst that was found takes 20 ms.
Larger ones go to an extraction worker: a thread would hold the interpreter lock all the same."""


class ScanLog(Protocol):
    """Remembers what was said about a message until a person may disagree."""

    def record(self, report: ScanReport) -> None:
        """Keep the report for some days; never blocks, never fails."""
        ...


class OutgoingMail(Protocol):
    """Remembers to whom our own users write."""

    def sent(self, login: str, recipients: Sequence[bytes]) -> None:
        """Note the recipients of a mail from a client that has logged in; never fails."""
        ...


@dataclass(frozen=True, slots=True)
class Weighed:
    """What the site's model makes of a mail, and what its reader's own lessons say."""

    model: Model
    evidence: Evidence
    own: OwnWord | None = None

    @property
    def log_odds(self) -> float:
        """Return the log-odds of spam for this reader."""
        return self.evidence.log_odds if self.own is None else self.own.log_odds

    @property
    def probability(self) -> float:
        """Return the probability of spam for this reader."""
        return self.evidence.probability if self.own is None else sigmoid(self.own.log_odds)


class Scanner:
    """Judges messages by the current model.

    Args:
        model: returns the current model; called once for each message.
        decision: how a probability becomes verdict and action.
        tokenizer: how bytes become features.
        clock: measures how long a scan took.
        key: the installation's secret that marks our message ids as ours.
        random: returns that many random bytes.
        senders: returns what is known of senders; called once for each message.
    """

    def __init__(
        self,
        *,
        model: Callable[[], Model],
        decision: DecisionOptions,
        tokenizer: TokenizerOptions,
        clock: "Clock",
        key: bytes,
        random: Callable[[int], bytes],
        senders: Callable[[], Senders] = lambda: NOBODY,
    ) -> None:
        self._model = model
        self._decision = decision
        self._tokenizer = tokenizer
        self._auth = believed(tokenizer)
        self._clock = clock
        self._key = key
        self._random = random
        self._senders = senders

    @property
    def reads_bytes(self) -> int:
        """How much of the start of a message is looked at, lines ended by LF."""
        return self._tokenizer.limits.read_bytes

    def scan(self, content: bytes) -> ScanReport:
        """Return the report on a message; no content makes it fail."""
        started = self._clock.monotonic()
        return self.judge(self.extract(content), started)

    def extract(self, content: bytes, *, arriving: bool = False, bare: bool = False) -> Features:
        """Return the features of a message: the part of a scan that may run elsewhere.

        An `arriving` message has not been relayed by us yet, whatever its fields say.
        """
        return extract(content, self._tokenizer, arriving=arriving, bare=bare)

    def is_bare(self, client: "Client") -> bool:
        """Tell whether a client's mail is as a stranger wrote it."""
        return client.bare and not within(client.address, self._auth.networks)

    def from_client(self, features: Features, client: "Client") -> Features:
        """Return the features with what SMTP, or the mail server that asks, says of its client."""
        proof, address = features.proof, plain_address(client.address)
        if within(address, self._auth.networks):
            address = ""  # of our own servers, one
        login = proof.login or client.login is not None
        if (address in ("", proof.client)) and login == proof.login:
            return features
        proof = replace(proof, client=address or proof.client, login=login)
        return replace(features, proof=proof)

    def judge(self, features: Features, started: float, person: Person = SITE) -> ScanReport:
        """Return a person's report on features; extraction began at `started` (monotonic s)."""
        model, standing = self._model(), self._senders().of(features.proof, user=person.user)
        weighed = Weighed(model, model.weigh(features.sample), own_word(person, features))
        return self._report(features, started, weighed, person, standing)

    def verdicts(
        self, features: Features, started: float, people: Mapping[bytes, Person]
    ) -> Verdicts:
        """Return the reports on features for all these recipients; they are weighed once."""
        model = self._model()
        evidence = model.weigh(features.sample)
        senders, proof = self._senders(), features.proof
        common = senders.of(proof)
        site = self._report(features, started, Weighed(model, evidence), SITE, common)
        by_user: dict[tuple[Person, Standing], ScanReport] = {}
        own: dict[bytes, ScanReport] = {}
        for recipient, person in people.items():
            standing = senders.of(proof, user=person.user, recipient=recipient)
            if person.layer is None and not person.differs and standing == common:
                continue
            key = (person, standing)
            if key not in by_user:
                weighed = Weighed(model, evidence, own_word(person, features))
                differs = person.differs or weighed.own is not None or standing != common
                found = self._report(features, started, weighed, person, standing)
                by_user[key] = found if differs else site
            if by_user[key] is not site:
                own[recipient] = by_user[key]
        return Verdicts(site=site, own=own)

    def _report(
        self,
        features: Features,
        started: float,
        weighed: "Weighed",
        person: Person,
        standing: Standing,
    ) -> ScanReport:
        model, evidence = weighed.model, weighed.evidence
        probability = standing.shifted(weighed.log_odds, weighed.probability)
        decision = decide_for(probability, model.totals, self._decision, person.wishes)
        turned = False
        if standing.known.term:
            before = decide_for(weighed.probability, model.totals, self._decision, person.wishes)
            turned = (before.verdict, before.action) != (decision.verdict, decision.action)
        if standing.decides:
            severest = decide_for(1.0, model.totals, self._decision, person.wishes)
            decision = standing.decided(decision, reject=severest.action is Action.REJECT)
        said = weighed.own.words if weighed.own and not standing.decides else ""
        clauses = (said, standing.reason(turned=turned), person.missing)
        missing = "".join(f"; {each}" for each in clauses if each)
        return ScanReport(
            id=new_id(self._random(10), self._key),
            verdict=decision.verdict,
            action=decision.action,
            reason=decision.reason + missing,
            probability=decision.probability,
            required=self._required(person),
            scores=dict(zip(CLASSIFIERS, evidence.scores.tolist(), strict=True)),
            size_bytes=features.size_bytes,
            tokens=len(features.sample.ids),
            known=evidence.known,
            duration_s=self._clock.monotonic() - started,
            features=features,
            user=person.user if person.differs or weighed.own or standing.own else "",
            standing=standing,
        )

    def _required(self, person: Person) -> float:
        """Return from which probability on a person's mail is spam."""
        bounds = borders(self._decision, person.wishes)
        return bounds.get("tag", bounds.get("reject", 1.0))

    def explain(
        self, features: Features, clues: int, standing: Standing = UNKNOWN_SENDER
    ) -> Explanation:
        """Return why features are judged as they are, with so many clues for each classifier."""
        found = explain(self._model(), features.sample, clues)
        return with_sender(found, standing, self._decision)

    def unscanned(self, reason: str, size_bytes: int) -> ScanReport:
        """Return the report on a message that goes on without having been judged."""
        return ScanReport(
            id=new_id(self._random(10), self._key),
            verdict=Verdict.UNSCANNED,
            action=Action.ACCEPT,
            reason=reason,
            probability=None,
            required=self._required(SITE),
            scores={},
            size_bytes=size_bytes,
            tokens=0,
            known=0,
            duration_s=0.0,
            features=None,
        )


class ScanningInspector:
    """The relay's `Inspector`: a `Scanner` that never holds the event loop for long.

    Args:
        scanner: judges.
        extractor: reads large messages.
        clock: measures how long a scan took.
        log: remembers each report.
        observer: is told of messages that were judged by their start, or deferred.
        people: knows for whom a mail is; None judges all mail as the site.
        outgoing: is told of mail that our own users send.
        defer: defer a message that gets no worker, instead of judging it by its start.
    """

    def __init__(
        self,
        scanner: Scanner,
        extractor: Extractor,
        clock: "Clock",
        log: ScanLog,
        observer: "Observer",
        *,
        people: "People | None" = None,
        outgoing: OutgoingMail | None = None,
        defer: bool = False,
    ) -> None:
        self._scanner = scanner
        self._extractor = extractor
        self._clock = clock
        self._log = log
        self._observer = observer
        self._people = people
        self._outgoing = outgoing
        self._defer = defer

    @property
    def reads_bytes(self) -> int:
        """How much of the start of a message is looked at, lines ended by LF."""
        return self._scanner.reads_bytes

    async def inspect(
        self,
        read: Callable[[], bytes],
        size_bytes: int,
        envelope: "Envelope",
        rest: Callable[[], bytes],
    ) -> Verdicts:
        """Return the verdicts on a message and remember them; it is read when its turn has come.

        Raises:
            Overloaded: it can't be judged whole now, and isn't to be judged by its start.
        """
        started = self._clock.monotonic()
        if size_bytes <= INLINE_BYTES:
            bare = self._scanner.is_bare(envelope.client)
            features = self._scanner.extract(read(), arriving=True, bare=bare)
            features = await _whole(features, rest)
        else:
            features = await self._large(read, size_bytes, envelope.client, rest)
        features = self._scanner.from_client(features, envelope.client)
        if self._people is None:
            report = self._scanner.judge(features, started)
            self._log.record(report)
            self._note(report, envelope)
            return Verdicts(site=report)
        readers = envelope.readers
        people = await self._people.of(readers)
        verdicts = self._scanner.verdicts(features, started, people)
        for report in verdicts.distinct(readers):
            self._log.record(report)
        self._note(verdicts.site, envelope)
        return verdicts

    def _note(self, report: ScanReport, envelope: "Envelope") -> None:
        """Remember to whom one of our users writes, but not what a stolen login sends.

        A mail without a sender is an answer that no person wrote (RFC 5321 §4.5.5).
        """
        login, written = envelope.client.login, report.verdict is not Verdict.SPAM
        if self._outgoing is not None and login is not None and envelope.sender and written:
            self._outgoing.sent(login, envelope.recipients)

    async def _large(
        self,
        read: Callable[[], bytes],
        size_bytes: int,
        client: "Client",
        rest: Callable[[], bytes],
    ) -> Features:
        bare = self._scanner.is_bare(client)
        try:
            features = await self._extractor.extract(read, size_bytes, client.address, bare=bare)
            return await _whole(features, rest)
        except Overloaded as error:
            self._observer.failed("message.overloaded", error)
            if self._defer:
                raise
        return await self._extractor.extract_start(read, client.address, bare=bare)

    def unscanned(self, reason: str, size_bytes: int) -> ScanReport:
        """Return the report on a message that goes on without having been judged."""
        return self._scanner.unscanned(reason, size_bytes)

    def explain(self, report: ScanReport, clues: int) -> Explanation | None:
        """Return why the message was judged as it was, None for one that was not."""
        features = report.features
        if features is None:
            return None
        return self._scanner.explain(features, clues, report.standing)


async def _whole(features: Features, rest: Callable[[], bytes]) -> Features:
    """Return features that stand for all of a message, of which maybe only the start was read."""
    if CUT not in features.defects:
        return features
    return replace(features, digest=with_rest(features.digest, await asyncio.to_thread(rest)))
