"""What an admin should know about the balance of what was taught."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spamd.bayes.counts import Totals
    from spamd.settings import Settings

LOPSIDED = 5
"""A larger class more than this many times the smaller one is worth a word."""


def advices(totals: "Totals", settings: "Settings") -> list[str]:
    """Return what an admin should know about the balance of the corpus."""
    decision = settings.decision
    missing = [
        f"{minimum - count:,} more {label}"
        for label, count, minimum in (
            ("spam", totals.spam, decision.minimum_spam),
            ("ham", totals.ham, decision.minimum_ham),
        )
        if count < minimum
    ]
    if missing:
        return [f"verdicts start after {' and '.join(missing)}; until then all mail is unsure"]
    fewer, more = sorted((("spam", totals.spam), ("ham", totals.ham)), key=lambda each: each[1])
    if more[1] > LOPSIDED * max(fewer[1], 1):
        return [f"there is little {fewer[0]}: teach more of it, {LOPSIDED}:1 is still good"]
    return []
