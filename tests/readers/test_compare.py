"""What we read is what other readers show; where it is not, a reason is proven."""

import re
from pathlib import Path

import pytest

from tests.message.test_corpora import mails
from tests.servers.base import require

from . import made
from .compare import Report, compare
from .difference import Difference
from .reasons import CHARACTERS, ENCODINGS, FIELDS, STRUCTURE, UNPAIRED, reason
from .shown import Leaf

GOLDEN = Path(__file__).parents[1] / "golden"


def assert_explained(report: Report) -> None:
    assert report.parts
    told = [f"{name}: {difference}" for name, difference in report.unexplained]
    assert not told, "\n".join(told[:20])


def test_g1_g2_mails_in_odd_encodings_are_read_as_two_other_readers_do() -> None:
    require("gmime")
    report = compare(made.mails())
    assert_explained(report)
    assert report.mails > 500


def test_g1_g2_the_golden_mails_are_read_as_two_other_readers_do() -> None:
    require("gmime")
    assert_explained(compare((path.name, path.read_bytes()) for path in GOLDEN.glob("*.eml")))


@pytest.mark.parametrize("corpus", ["modern_corpus", "hostile_corpus"])
def test_public_mail_is_read_as_two_other_readers_do(
    corpus: str, request: pytest.FixtureRequest
) -> None:
    require("gmime")
    folder: Path = request.getfixturevalue(corpus)
    files = (each for each in mails(folder, one_of=4) if not re.match("MANIFEST", each[0].name))
    assert_explained(compare((str(path), raw) for path, raw in files))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("other words", "these words"), ("these", "these words"), ("these words more", "these words")],
)
def test_a_difference_that_nothing_explains_is_none_that_has_a_reason(
    ours: str, theirs: str
) -> None:
    leaves = [
        Leaf(type="text/plain", content=text.encode(), label="utf-8", text=text, encoded=b"x")
        for text in (ours, theirs)
    ]
    raw = b"Subject: x\nContent-Type: text/plain; charset=utf-8\n\nx\n"
    for our_leaf, their_leaf in ((leaves[0], leaves[1]), (leaves[0], None), (None, leaves[1])):
        for reader in ("GMime", "Python"):
            found = Difference(
                reader=reader, what="part", raw=raw, our_leaf=our_leaf, their_leaf=their_leaf
            )
            assert reason(found) is None
    field = Difference(reader="GMime", what="Subject", raw=raw, our_text=ours, their_text=theirs)
    assert reason(field) is None


def test_each_reason_has_a_name_of_its_own() -> None:
    names = [name for kind in (CHARACTERS, ENCODINGS, STRUCTURE, FIELDS) for name in kind]
    shared = {
        "we read the fields behind a line that is none",
        "we read a field behind a byte order mark",
    }
    assert len(names) - len(set(names)) == len(shared)
    assert set(UNPAIRED) <= set(names)
