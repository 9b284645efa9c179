"""All that is known of the sender of a mail beside its words: the lists, and who has written there.

standing = Senders(lists, known).of(features.proof, user="anna@example.org")
"""

from dataclasses import dataclass, field, replace
from math import exp

from spamd.bayes.decision import Action, Decision, Verdict
from spamd.lists.entry import Effect
from spamd.lists.known import NOT_KNOWN, Acquaintance, KnownAddresses, KnownOptions
from spamd.lists.matching import NOT_LISTED, Listed, Lists
from spamd.message.authentication.proof import AuthOptions, Proof


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the lists say of a mail, and who knows its sender."""

    listed: Listed = NOT_LISTED
    known: Acquaintance = NOT_KNOWN

    @property
    def decides(self) -> bool:
        """Whether an entry decides, whatever the words of the mail say."""
        return self.listed.entry is not None

    @property
    def own(self) -> bool:
        """Whether it is a user's own, and not the site's."""
        entry = self.listed.entry
        return (entry is not None and bool(entry.owner)) or self.known.who == "own"

    def reason(self, *, turned: bool) -> str:
        """Return it as a clause of the reason, without a name or address of anybody.

        turned  the verdict or the action would be another one if nobody knew the sender
        """
        if self.decides:
            return ""
        known = self.known.words if turned else ""
        return "; ".join(filter(None, (self.listed.clause(), known)))

    def words(self) -> str:
        """Return it as a clause for those who may read addresses."""
        return "; ".join(filter(None, (self.listed.words(), self.known.words)))

    def shifted(self, log_odds: float, probability: float) -> float:
        """Return the probability of spam with what is known of the sender."""
        if not self.known.term:
            return probability
        z = log_odds + self.known.term
        return 1 / (1 + exp(-z)) if z > 0 else exp(z) / (1 + exp(z))

    def decided(self, weighed: Decision, *, reject: bool) -> Decision:
        """Return the decision of the entry in place of the one that the words led to.

        What is kept out is rejected where the surest spam is, else marked as spam.
        """
        entry = self.listed.entry
        if entry is None:
            return weighed
        without = f"probability {weighed.probability:.4f} without it"
        reason = f"{self.listed.clause()}; {without}"
        if entry.effect is Effect.ALLOW:
            return replace(
                weighed, verdict=Verdict.HAM, action=Action.ACCEPT, reason=reason, probability=0.0
            )
        action = Action.REJECT if reject else Action.TAG
        return replace(weighed, verdict=Verdict.SPAM, action=action, reason=reason, probability=1.0)


UNKNOWN_SENDER = Standing()


@dataclass(frozen=True, slots=True, kw_only=True)
class Senders:
    """What is known of senders now."""

    lists: Lists = field(default_factory=lambda: Lists(AuthOptions()))
    known: KnownAddresses = field(default_factory=lambda: KnownAddresses(b"", KnownOptions()))

    def of(self, proof: Proof, *, user: str = "", recipient: bytes = b"") -> Standing:
        """Return what is known of the sender of a mail for a user, or for the site."""
        listed = self.lists.of(proof, user=user, recipient=recipient)
        known = self.known.of(proof, user)
        if listed is NOT_LISTED and known is NOT_KNOWN:
            return UNKNOWN_SENDER
        return Standing(listed=listed, known=known)


NOBODY = Senders()
