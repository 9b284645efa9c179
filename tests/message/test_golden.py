"""Golden mails: what each gives, token by token. `--update-golden` rewrites the expected files."""

from pathlib import Path

import pytest

from spamd.message.facts import SCHEMA
from spamd.message.features import Features, extract
from spamd.sample import FIXED_POINT, Kind

FOLDER = Path(__file__).parents[1] / "golden"
MAILS = sorted(FOLDER.glob("*.eml"))


def described(found: Features) -> str:
    """Return the features as text: defects, facts, then the tokens by kind with their counts."""
    lines = [f"defects: {', '.join(found.defects) or 'none'}", f"sender: {found.sender_domain}"]
    sample = found.sample
    for (name, values), index in zip(SCHEMA.discrete, sample.discrete, strict=True):
        lines.append(f"{name} = {values[index]}")
    for name, number in zip(SCHEMA.continuous, sample.continuous, strict=True):
        lines.append(f"{name} = {number / FIXED_POINT:.3f}")
    lines.append("")
    rows = zip(sample.kinds.tolist(), found.texts, sample.occurrences.tolist(), strict=True)
    for kind, text, occurrences in sorted(rows):
        names = "+".join(flag.name or "" for flag in Kind if flag & kind)
        lines.append(f"{names.lower()}\t{text}" + (f"\t×{occurrences}" if occurrences > 1 else ""))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", MAILS, ids=lambda path: path.stem)
def test_a_golden_mail_gives_the_tokens_it_always_gave(
    path: Path,
    *,
    update_golden: bool,
) -> None:
    expected = path.with_suffix(".tokens")
    now = described(extract(path.read_bytes()))
    if update_golden:
        expected.write_text(now, encoding="utf-8")
    assert now == expected.read_text(encoding="utf-8")
