"""How good the verdicts are on mail whose labels are known: protocols, rates, curves, attacks."""
