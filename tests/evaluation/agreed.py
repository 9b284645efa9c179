"""What the JSON of `spamd evaluate` is agreed to hold: programs read it."""

RATES = [
    "roca",
    "ham_misclassified",
    "spam_misclassified",
    "unsure",
    "lam",
    "spam_missed_at_0.1",
    "calibration_error",
    "errors",
]
"""The rates of a classifier, in their order."""
