"""Hold our reading against the others', and name the reason of each difference.

Neither of the others takes a bare CR for a line end, so they are given mail whose line ends are
LF. Parts without content count for nothing. Parts are aligned by their words (by their bytes if
they are no text), so that one part more on one side is one difference.
"""

import base64
import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path

from spamd.message.mime.charset import decode

from . import ours, python
from .difference import Difference
from .reasons import reason
from .shown import Leaf, Shown, one_line

DEBIAN_PYTHON = Path("/usr/bin/python3")
GMIME = Path(__file__).with_name("gmime.py")
_CR = re.compile(rb"(?<!\r)\r+\n|\r")
_MOST_PARTS = 600  # aligning takes time in square; ours ends at 500 parts


@dataclass(slots=True)
class Report:
    """What was compared, and the differences: counted by reader and reason, and those without."""

    mails: int = 0
    parts: int = 0
    words: int = 0
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    unexplained: list[tuple[str, Difference]] = field(default_factory=list)


def compare(mails: Iterable[tuple[str, bytes]]) -> Report:
    """Compare what all three readers make of the mails, each given by its name and bytes."""
    report = Report()
    with subprocess.Popen(
        [DEBIAN_PYTHON, GMIME], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as gmime:
        assert gmime.stdin is not None
        assert gmime.stdout is not None
        for name, raw in mails:
            data = _CR.sub(b"\n", raw)
            gmime.stdin.write(base64.b64encode(data).decode() + "\n")
            gmime.stdin.flush()
            own = ours.shown(raw)
            report.mails += 1
            report.parts += len(own.leaves)
            report.words += sum(len(leaf.words) for leaf in own.leaves)
            others = {"GMime": _from_json(gmime.stdout.readline()), "Python": python.shown(data)}
            for reader, other in others.items():
                for difference in _differences(reader, data, own, other):
                    found = reason(difference)
                    if found is None:
                        report.unexplained.append((name, difference))
                    else:
                        report.reasons[reader, found] += 1
        gmime.stdin.close()
    return report


def _from_json(line: str) -> Shown:
    found = json.loads(line)
    leaves: list[Leaf] = []
    for each in found["leaves"]:
        content = base64.b64decode(each["content"])
        text = each["text"]
        if text is None and each["type"].startswith(("text/", "message/")):
            # the bindings fail on bytes that are no UTF-8: then only the bytes are compared
            text = decode(content, each["label"]).text
        leaves.append(Leaf(type=each["type"], content=content, label=each["label"], text=text))
    return Shown(
        subject=one_line(found["subject"]),
        sender=one_line(found["sender"]),
        leaves=tuple(leaves),
        fault=found["fault"],
    )


def _differences(reader: str, raw: bytes, own: Shown, other: Shown) -> Iterator[Difference]:
    if other.fault:
        yield Difference(reader=reader, what=f"fault: {other.fault}", raw=raw)
        return
    for what, one, two in (
        ("Subject", own.subject, other.subject),
        ("From", own.sender, other.sender),
    ):
        if one != two:
            yield Difference(reader=reader, what=what, raw=raw, our_text=one, their_text=two)
    for our_leaf, their_leaf in _unlike(own.leaves, other.leaves):
        yield Difference(
            reader=reader, what="part", raw=raw, our_leaf=our_leaf, their_leaf=their_leaf
        )


def _unlike(
    one: tuple[Leaf, ...], two: tuple[Leaf, ...]
) -> Iterator[tuple[Leaf | None, Leaf | None]]:
    """Yield the parts that are not the same on both sides, those in the same place together."""
    one = tuple(leaf for leaf in one if leaf.lines)[:_MOST_PARTS]
    two = tuple(leaf for leaf in two if leaf.lines)[:_MOST_PARTS]
    ours, theirs = [leaf.key for leaf in one], [leaf.key for leaf in two]
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    for what, start, end, their_start, their_end in matcher.get_opcodes():
        if what != "equal":
            yield from zip_longest(one[start:end], two[their_start:their_end])
