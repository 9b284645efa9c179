"""`spamd filter`, and lessons from standard input: once for each mail, so nothing slow is loaded.

While a daemon answers, no module here loads regular expressions, types, dataclasses or TOML: each
takes as long as a mail. `judging` is what happens without a daemon, in a process of its own.
"""
