"""What a person wishes to be done with mail that is probably spam, and the decision by it.

A wish moves a border between two choices or takes a choice away; the probability is never touched.
A wish to have mail rejected counts only where `decision.reject` allows that at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from spamd.bayes.counts import Totals
from spamd.bayes.decision import (
    CHOICES,
    OUTCOMES,
    Decision,
    DecisionOptions,
    decide,
    lacking,
    thresholds,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What somebody wishes; None leaves it as it is without them.

    tag_from     probability from which mail is tagged as spam
    reject_from  probability from which it is rejected
    tag          False: nothing is ever called spam; it is unsure at most
    reject       False: nothing is rejected, only tagged
    """

    tag_from: float | None = None
    reject_from: float | None = None
    tag: bool | None = None
    reject: bool | None = None

    def __post_init__(self) -> None:
        for name in ("tag_from", "reject_from"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= 1:
                raise ValueError(f"{name} must lie above 0 and be at most 1, not {value:g}")
        if self.reject_from is not None and self.reject_from < (self.tag_from or 0.0):
            raise ValueError("reject_from must not be below tag_from")

    def over(self, other: "Wishes") -> "Wishes":
        """Return these wishes, and those of the other where there is none."""
        tag_from = other.tag_from if self.tag_from is None else self.tag_from
        reject_from = other.reject_from if self.reject_from is None else self.reject_from
        if tag_from is not None and reject_from is not None and reject_from < tag_from:
            # Whose wish stands first is kept; the other's gives way.
            if self.reject_from is None:
                reject_from = tag_from
            else:
                tag_from = reject_from
        return Wishes(
            tag_from=tag_from,
            reject_from=reject_from,
            tag=other.tag if self.tag is None else self.tag,
            reject=other.reject if self.reject is None else self.reject,
        )


NO_WISHES = Wishes()


@lru_cache(maxsize=1024)  # asked for each message
def borders(options: DecisionOptions, wishes: Wishes) -> Mapping[str, float]:
    """Return from which probability on each choice is taken; a choice never taken has no entry."""
    found = dict(thresholds(options))
    if wishes.tag_from is not None:
        found["tag"] = wishes.tag_from
    if wishes.reject_from is not None:
        found["reject"] = wishes.reject_from
    if (not options.reject or wishes.reject is False) and "reject" in found:
        # What can't be rejected is tagged, as with `decision.reject` off.
        rejected_from = found.pop("reject")
        found["tag"] = min(found.get("tag", rejected_from), rejected_from)
    if wishes.tag is False:
        found = {name: at for name, at in found.items() if name in {"accept", "unsure"}}
    # A severer choice that begins earlier takes the place of the milder ones.
    kept: list[tuple[str, float]] = []
    for name in reversed(CHOICES):
        if name in found and (not kept or found[name] < kept[-1][1]):
            kept.append((name, found[name]))
    return dict(reversed(kept))


def decide_for(
    probability: float, totals: Totals, options: DecisionOptions, wishes: Wishes
) -> Decision:
    """Return verdict, action and reason for a probability of spam, as somebody wishes."""
    site = decide(probability, totals, options)
    if wishes == NO_WISHES or lacking(totals, options):
        return site
    at = borders(options, wishes)
    if at == thresholds(options):
        return site
    choice = next((name for name in reversed(tuple(at)) if site.probability >= at[name]), "accept")
    verdict, action = OUTCOMES[choice]
    reason = f"probability {site.probability:.4f}, {choice} from {at.get(choice, 0.0):.4f} by wish"
    return Decision(verdict=verdict, action=action, reason=reason, probability=site.probability)
