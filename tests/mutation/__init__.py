"""Mutation testing: small faults are put into the code, and its own tests must notice each."""
