"""Counts of other programs, read from the text that they export.

    bogofilter    bogoutil -d wordlist.db       "word spam ham date" a line, mails in .MSG_COUNT
    SpamBayes     sb_dbexpimp -e -f FILE        CSV: ham and spam mails; then word, ham, spam
    SpamAssassin  sa-learn --backup             holds hashes of words: nothing can be taken over
    rspamd        statistics in redis           likewise

The words of another tokeniser are only partly ours. Marks of header words are translated where both
programs know the field; other words with a mark are left out, because they could be spelled like
tokens that we make. Plain words come in as they are, and those that never turn up in mail again
fall to `prune`.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from hashlib import blake2b

import numpy as np

from spamd.message.identity import DIGEST_BYTES
from spamd.message.tokens.kinds import OF_FIELD, prefix_of
from spamd.storage.corpus.imported_counts import ImportedCounts

FIELDS = {"subj": "subject", "subject": "subject", "from": "from", "to": "to"}
"""Marks of bogofilter and SpamBayes, and the header field that each stands for."""

HASHES_ONLY = (
    "holds hashes instead of words, so nothing of it can be taken over; teach the mail itself"
)


RSPAMD_JSON = b'{"pattern"'
"""How `rspamadm statistics_dump dump --json` begins."""

_RSPAMD = re.compile(r'REDIS\d|\{"pattern"|"\w+_keys": ?\[')
"""A dump of redis, and of `rspamadm statistics_dump dump` with JSON and without."""


MOST = 2**29
"""Mails of one label: three such files still fit into a word's count, an int32."""


class FormatError(ValueError):
    """A text is not what it should be."""


def read(content: bytes, time: datetime) -> ImportedCounts:
    """Return the counts that another program exported.

    Raises:
        FormatError: no program that we know wrote this, or it holds no words.
    """
    lines = [_text(line) for line in content.splitlines()]
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("v\t") or first.split()[:1] == ["db_version"]:
        raise FormatError(f"sa-learn's backup {HASHES_ONLY}")
    if _RSPAMD.match(first) or "learns_spam" in first:
        raise FormatError(f"rspamd's dump {HASHES_ONLY}")
    if any(line.startswith(".MSG_COUNT ") for line in lines):
        source, spam, ham, counts = "bogofilter", *_bogofilter(lines)
    elif _is_csv_head(first):
        source, spam, ham, counts = "spambayes", *_spambayes(lines)
    else:
        raise FormatError("this is no export of spamd, bogofilter (bogoutil -d) or SpamBayes")
    if max(spam, ham) > MOST:
        raise FormatError(f"it counts {max(spam, ham)} messages, which can't be true")
    words = _sum(counts)
    # A word can't stand in more mails than there were; some dumps say so after an expiry.
    capped = [(min(in_spam, spam), min(in_ham, ham)) for in_spam, in_ham in words.values()]
    return ImportedCounts(
        digest=blake2b(content, digest_size=DIGEST_BYTES, person=b"spamd tally").digest(),
        source=source,
        time=time,
        spam=spam,
        ham=ham,
        words=tuple(words),
        counts=np.array(capped, dtype=np.int32).reshape(-1, 2),
    )


def _text(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin_1")


def _bogofilter(lines: Iterable[str]) -> tuple[int, int, list[tuple[str, int, int]]]:
    totals = (0, 0)
    counts = []
    for line in lines:
        columns = line.rsplit(" ", 3)
        if len(columns) != 4 or not all(column.isdigit() for column in columns[1:]):
            continue
        word, spam, ham = columns[0], int(columns[1]), int(columns[2])
        if word == ".MSG_COUNT":
            totals = (spam, ham)
        elif not word.startswith("."):  # notes of its own
            counts.append((_translated(word), spam, ham))
    return *totals, counts


def _translated(word: str) -> str:
    """Return a word as we spell it, "" when it is none of ours."""
    mark, colon, rest = word.partition(":")
    if prefix_of(rest if colon else word) != "word":
        return ""
    if not colon:
        return word
    return f"{FIELDS[mark]}{OF_FIELD}{rest}" if mark in FIELDS and rest else ""


def _is_csv_head(line: str) -> bool:
    columns = line.split(",")
    return len(columns) == 2 and all(column.strip().isdigit() for column in columns)


def _spambayes(lines: Iterable[str]) -> tuple[int, int, list[tuple[str, int, int]]]:
    rows: Iterator[list[str]] = csv.reader(line for line in lines if line.strip())
    ham, spam = (int(column) for column in next(rows))
    counts = [
        (_translated(row[0]), int(row[2]), int(row[1]))
        for row in rows
        if len(row) == 3 and row[1].isdigit() and row[2].isdigit()
    ]
    return spam, ham, counts


def _sum(counts: Iterable[tuple[str, int, int]]) -> dict[str, tuple[int, int]]:
    """Return the counts by word, without those that can't be tokens of ours."""
    words: dict[str, tuple[int, int]] = {}
    for word, spam, ham in counts:
        if word and len(word.split()) == 1 and word.isprintable() and spam + ham > 0:
            before = words.get(word, (0, 0))
            words[word] = (before[0] + spam, before[1] + ham)
    return words
