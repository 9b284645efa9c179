"""Names of what was found, for rules to match: of the verdict, the probability, each classifier.

    SPAMD_SPAM, BAYES_99, SPAMD_GRAHAM_SPAM, SPAMD_FACTS_HAM

The first says the verdict. BAYES_NN is the probability in SpamAssassin's steps, which rules of old
name. A classifier that leans to neither side has none.
"""

from bisect import bisect_right

from spamd.report import ScanReport

_STEPS = (0.01, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 0.99)
_BAYES = ("00", "05", "20", "40", "50", "60", "80", "95", "99")
_SURE = 0.999


def symbols(report: ScanReport) -> list[str]:
    """Return the names, the most telling first."""
    names = [f"SPAMD_{report.verdict.upper()}"]
    if report.probability is not None:
        names.append(f"BAYES_{_BAYES[bisect_right(_STEPS, report.probability)]}")
        if report.probability >= _SURE:
            names.append("BAYES_999")
    for classifier, value in report.scores.items():
        if value:
            names.append(f"SPAMD_{classifier.upper()}_{'SPAM' if value > 0 else 'HAM'}")
    return names
