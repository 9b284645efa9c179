"""How sure we are that a message is spam, and what to do with it: pure arithmetic over counts."""
