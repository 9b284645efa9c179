"""People teach one folder after the other: the verdicts must stand that."""

from pathlib import Path

import pytest

from spamd.evaluation.index import LabelledMail, read_index
from spamd.sample import Label
from tests.cli.conftest import Spamd


def folders(mails: tuple[LabelledMail, ...], home: Path, name: str) -> None:
    for label in Label:
        (home / name / label).mkdir(parents=True)
    for mail in mails:
        (home / name / mail.label / mail.path.name).symlink_to(mail.path)


@pytest.mark.parametrize("labels", [("spam", "ham"), ("ham", "spam")])
def test_one_folder_taught_after_the_other_gives_useful_verdicts(
    spamd: Spamd, home: Path, spamassassin_corpus: Path, labels: tuple[str, str]
) -> None:
    mails = read_index(spamassassin_corpus / "index")
    folders(mails[:600], home, "taught")
    folders(mails[600:900], home, "new")
    for label in labels:
        assert spamd("train", label, f"taught/{label}").code == 0

    verdicts = {
        label: [line.split()[0] for line in spamd("scan", f"new/{label}").out.splitlines()]
        for label in labels
    }

    assert verdicts["ham"].count("ham") > 0.9 * len(verdicts["ham"])
    assert verdicts["spam"].count("ham") < 0.05 * len(verdicts["spam"])
    assert verdicts["spam"].count("spam") > 0.5 * len(verdicts["spam"])
