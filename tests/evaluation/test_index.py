"""Which mail is evaluated: INDEX files, folders, Maildirs, mbox files."""

import os
from itertools import pairwise
from pathlib import Path

import pytest

from spamd.errors import ConfigError
from spamd.evaluation.index import gather, order, read_index, shuffled
from spamd.sample import Label
from tests.rights import closed, needs_root, nobody


def written(path: Path, content: str, at: int = 1_000_000_000) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode())
    os.utime(path, (at, at))
    return path


def test_an_index_names_label_and_path_relative_to_itself(tmp_path: Path) -> None:
    written(tmp_path / "mail" / "a b.eml", "one")
    index = written(tmp_path / "index", "spam mail/a b.eml\n\nham c.eml\n")
    found = read_index(index)
    assert [(mail.label, mail.path) for mail in found] == [
        (Label.SPAM, tmp_path / "mail" / "a b.eml"),
        (Label.HAM, tmp_path / "c.eml"),
    ]
    assert found[0].read() == b"one"


@pytest.mark.parametrize("line", ["junk a.eml", "spam", "spam "])
def test_a_wrong_line_is_named(tmp_path: Path, line: str) -> None:
    index = written(tmp_path / "index", f"ham a.eml\n{line}\n")
    with pytest.raises(ConfigError, match=r"index, line 2: expected `spam PATH`"):
        read_index(index)


def test_a_missing_index_and_a_missing_mail_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="index: No such file"):
        read_index(tmp_path / "index")
    index = written(tmp_path / "index", "ham gone.eml\n")
    with pytest.raises(ConfigError, match=r"gone\.eml: No such file"):
        read_index(index)[0].read()


def test_folders_are_read_oldest_mail_first_whatever_its_label(tmp_path: Path) -> None:
    written(tmp_path / "s" / "x.eml", "second", at=200)
    written(tmp_path / "h" / "deep" / "y.eml", "first", at=100)
    written(tmp_path / "h" / "z.eml", "third", at=300)
    found = gather([tmp_path / "s"], [tmp_path / "h"])
    assert [(mail.label.value, mail.read()) for mail in found] == [
        ("ham", b"first"),
        ("spam", b"second"),
        ("ham", b"third"),
    ]


def dated(number: int, received: str = "") -> str:
    top = f"Received: from a by b; {received}\n" if received else ""
    return f"{top}Date: Thu, {1 + number:02} Jan 2026 10:00:00 +0000\nSubject: {number}\n\n"


def test_j7_mail_is_tried_in_the_order_in_which_it_came_whatever_its_files_say(
    tmp_path: Path,
) -> None:
    for number in range(20):
        folder = "spam" if number % 2 else "ham"
        written(tmp_path / folder / f"{20 - number}.eml", dated(number), at=1000 - number)
    written(tmp_path / "ham" / "late", dated(0, "Fri, 23 Jan 2026 10:00:00 +0000"), at=1)
    found = gather([tmp_path / "spam"], [tmp_path / "ham"])
    subjects = [mail.read().split(b"Subject: ")[1].split()[0] for mail in found]
    assert subjects == [*(str(number).encode() for number in range(20)), b"0"]


@pytest.mark.parametrize("date", [True, False])
def test_j7_where_one_label_would_come_first_as_a_whole_the_mail_is_mixed(
    tmp_path: Path, *, date: bool
) -> None:
    for number in range(60):
        folder = "spam" if number < 30 else "ham"
        text = dated(number % 30 + (0 if number < 30 else 1)) if date else f"Subject: {number}\n\n"
        written(tmp_path / folder / f"{number}", text, at=100)
    if date:
        for number in range(30):
            written(tmp_path / "spam" / f"{number}", dated(0), at=100)
    found = gather([tmp_path / "spam"], [tmp_path / "ham"])
    labels = [mail.label for mail in found]
    assert sum(one is not other for one, other in pairwise(labels)) > 15
    assert gather([tmp_path / "spam"], [tmp_path / "ham"]) == found


def test_a_maildir_gives_its_messages_but_not_its_housekeeping(tmp_path: Path) -> None:
    written(tmp_path / "cur" / "1.host:2,S", "seen")
    written(tmp_path / "new" / "2.host", "new", at=1_000_000_001)
    written(tmp_path / "tmp" / "3.host", "unfinished")
    written(tmp_path / "dovecot-uidlist", "3 V1")
    written(tmp_path / "cur" / ".hidden", "hidden")
    assert [mail.read() for mail in gather([], [tmp_path])] == [b"seen", b"new"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_mbox_gives_each_message_without_its_from_line(tmp_path: Path, newline: str) -> None:
    lines = [
        "From a@example.org Mon Jan  1 10:00:00 2024",
        "Subject: one",
        "",
        "From here on it is still the first.",
        "",
        "From b@example.org Mon Jan  1 11:00:00 2024",
        "Subject: two",
        "",
        "body",
        "",
    ]
    box = written(tmp_path / "box", newline.join(lines))
    found = gather([box], [])
    assert [mail.read().split()[1] for mail in found] == [b"one", b"two"]
    assert b"still the first" in found[0].read()


def test_a_place_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere is neither a file nor a folder"):
        gather([tmp_path / "nowhere"], [])


@needs_root
def test_f9_a_place_that_may_not_be_looked_into_is_named(tmp_path: Path) -> None:
    folder = closed(tmp_path)
    with nobody(), pytest.raises(ConfigError, match=f"{folder} may not be looked into"):
        gather([folder], [])


def test_an_unreadable_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    box = written(tmp_path / "box", "x")

    def refused(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refused)  # root may read everything
    with pytest.raises(ConfigError, match="box: Permission denied"):
        gather([box], [])


def test_a_seed_gives_the_same_order_again_and_none_keeps_it(tmp_path: Path) -> None:
    index = read_index(written(tmp_path / "index", "".join(f"ham {i}\n" for i in range(50))))
    assert shuffled(index, None) == index
    assert shuffled(index, 3) == shuffled(index, 3)
    assert shuffled(index, 3) != shuffled(index, 4)
    assert sorted(order(50, 3)) == list(range(50))
