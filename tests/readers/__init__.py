"""What other mail readers make of a mail, to hold against what spamd reads of it.

    make compare-parsers          over the public corpora
    python -m tests.readers PATH…  over any mail in files

Two readers are asked: Python's `email` and GMime (Geary, Balsa and notmuch read with it; LGPL, in
Debian; lenient where mail is broken, and made by other people on other assumptions, which Python's
own are not: MIME::Tools and mailparser follow RFCs more strictly and give up earlier). Compared are
the parts with their bytes and their text, and Subject and From as decoded. Each difference has to
have a reason of `reasons`, proven on the mail itself; there is none for the rest.
"""
