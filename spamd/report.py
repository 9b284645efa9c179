"""One `ScanReport` holds everything known about one scan.

Header fields, SMTP reply, log line, metrics, history row and explanation are all rendered from it,
so they can't disagree. The fields follow SpamAssassin's well-known shape, so that Sieve rules
written for it work unchanged: `X-Spam-Status` begins with "Yes" or "No", `X-Spam-Flag: YES` stands
on spam only. A mail for several people has a report for the site, and one for each person whose own
differs from it: `Verdicts`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import log

from spamd.bayes.decision import Action, Verdict
from spamd.lists.senders import UNKNOWN_SENDER, Standing
from spamd.message.features import Features

PROBABILITY_FLOOR = 1e-9
"""Scores are log-odds of a probability clipped to [1e-9, 1 − 1e-9]: from −20.7 to 20.7."""

WANTED = {Verdict.HAM: "No", Verdict.UNSURE: "No", Verdict.UNSCANNED: "No", Verdict.SPAM: "Yes"}


def log_odds(probability: float) -> float:
    """Return ln(p / (1 − p)) of a probability clipped to [`PROBABILITY_FLOOR`, 1 − it]."""
    clipped = min(max(probability, PROBABILITY_FLOOR), 1.0 - PROBABILITY_FLOOR)
    return log(clipped / (1.0 - clipped))


@lru_cache(8)
def _required(probability: float) -> str:
    """Return a threshold as the header field shows it; all mails have the same few."""
    return f"{log_odds(probability):.1f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReport:
    """What one scan found.

    id            our id of the message, with its keyed check (`message.identity.new_id`)
    probability   P(spam) in 0 … 1; None when the message was not scanned
    required      the probability from which the verdict is spam
    reason        one clause on how the verdict came about
    scores        each classifier's score (log-odds of spam, finite)
    known         tokens of the message that the corpus knows, out of `tokens`
    duration_s    CPU-bound time from bytes to verdict, in seconds
    features      what was scored; None when the message was not scanned
    standing      what is known of the sender: which entry of a list decided, who has written there
    user          whose verdict it is; "" means the site's, which holds for everybody without an own
    """

    id: str
    verdict: Verdict
    action: Action
    reason: str
    probability: float | None
    required: float
    scores: Mapping[str, float]
    size_bytes: int
    tokens: int
    known: int
    duration_s: float
    features: Features | None
    user: str = ""
    standing: Standing = UNKNOWN_SENDER

    @property
    def digest(self) -> bytes:
        """Return the identity of the message, empty when it was not scanned."""
        return self.features.digest if self.features else b""

    def fields(self) -> list[tuple[str, str]]:
        """Return the header fields that go on top of the message, in order."""
        status = (
            f"{WANTED[self.verdict]}, score={log_odds(self._shown_probability):.1f}"
            f" required={_required(self.required)} verdict={self.verdict} ({self.reason})"
        )
        fields = [("X-Spam-Status", status)]
        if self.verdict is Verdict.SPAM:
            fields.append(("X-Spam-Flag", "YES"))
        if self.probability is not None:
            fields.append(("X-Spam-Probability", f"{self.probability:.6f}"))
        fields.append(("X-Spam-Id", self.id))
        return fields

    @property
    def _shown_probability(self) -> float:
        return 0.5 if self.probability is None else self.probability


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What one scan found for all recipients of a message.

    site   the report for everybody who has no other
    own    the reports of those recipients whose own differs, by their address as the envelope has
           it; two addresses of one person share one report
    """

    site: ScanReport
    own: Mapping[bytes, ScanReport] = field(default_factory=dict)

    def of(self, recipient: bytes) -> ScanReport:
        """Return the report for a recipient."""
        return self.own.get(recipient, self.site)

    def distinct(self, recipients: Sequence[bytes]) -> list[ScanReport]:
        """Return each report that one of the recipients gets, once; the site's if there is none."""
        found = {id(report): report for report in map(self.of, recipients)}
        return list(found.values()) or [self.site]

    def for_all(self, recipients: Sequence[bytes]) -> ScanReport:
        """Return the one report where all recipients must get the same.

        It is theirs if they share a verdict, else the site's; but then a mail is rejected only if
        each of them has it rejected, and tagged as spam otherwise.
        """
        reports = self.shared(self.distinct(recipients) if self.own else [self.site])
        if len({id(report) for report in reports}) == 1:
            return reports[0]
        if self.site.action is not Action.REJECT or all(
            report.action is Action.REJECT for report in reports
        ):
            return self.site
        return replace(self.site, action=Action.TAG)

    def shared(self, reports: Sequence[ScanReport]) -> list[ScanReport]:
        """Return the reports, the same one for all that are told the same.

        Two people's probabilities are never quite alike: of those with the same verdict and action
        all get the site's report, if it says so too, else that of the first.
        """
        same = {(self.site.verdict, self.site.action): self.site}
        return [same.setdefault((report.verdict, report.action), report) for report in reports]

    def sized(self, size_bytes: int) -> "Verdicts":
        """Return them for a message of that size, of which only the start was judged."""
        # What was one report stays one: by that one sees who shares it.
        same: dict[int, ScanReport] = {}
        for report in (self.site, *self.own.values()):
            same.setdefault(id(report), replace(report, size_bytes=size_bytes))
        own = {recipient: same[id(report)] for recipient, report in self.own.items()}
        return Verdicts(site=same[id(self.site)], own=own)
