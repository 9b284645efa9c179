"""Reading mail from files: nothing split wrongly, nothing changed, nothing passed over."""

import io
import os
from pathlib import Path

import pytest

from spamd.cli import mailboxes
from spamd.cli.mailboxes import Mail, Unreadable, read, size_bytes

MAIL = b"Subject: one\n\nHello \xe2\n"


def contents(*paths: Path | str) -> list[bytes]:
    return [found.content for found in read(map(str, paths)) if isinstance(found, Mail)]


def refusals(*paths: Path | str) -> list[tuple[str, str]]:
    return [(f.name, f.reason) for f in read(map(str, paths)) if isinstance(f, Unreadable)]


@pytest.fixture
def maildir(tmp_path: Path) -> Path:
    for folder in ("cur", "new", "tmp", ".Junk/cur", ".Junk/new", ".Junk/tmp"):
        (tmp_path / "Maildir" / folder).mkdir(parents=True)
    return tmp_path / "Maildir"


def test_a_file_is_one_message_byte_for_byte(tmp_path: Path) -> None:
    file = tmp_path / "mail.eml"
    file.write_bytes(MAIL)

    assert list(read([str(file)])) == [Mail(name=str(file), content=MAIL)]


def test_a_message_with_a_leading_from_line_stays_as_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "0001.abc"
    content = b"From me@example.org  Mon Jul 29 11:28:02 2002\n" + MAIL + b"\n>From here on\n\n"
    file.write_bytes(content)

    assert contents(file) == [content]


def test_a_maildir_gives_cur_and_new_in_order_of_delivery(maildir: Path) -> None:
    (maildir / "cur/100.a:2,S").write_bytes(b"first")
    (maildir / "new/200.b").write_bytes(b"second")
    (maildir / "cur/300.c:2,").write_bytes(b"third")
    (maildir / "tmp/400.d").write_bytes(b"unfinished")

    assert contents(maildir) == [b"first", b"second", b"third"]


def test_a_dot_folder_is_read_only_when_it_is_named(maildir: Path) -> None:
    (maildir / ".Junk/cur/100.a:2,S").write_bytes(MAIL)

    assert contents(maildir) == []
    assert contents(maildir / ".Junk") == [MAIL]


def test_a_message_that_is_renamed_meanwhile_is_found(maildir: Path) -> None:
    for number in range(3):
        (maildir / f"new/{number}.a").write_bytes(MAIL)
    messages = read([str(maildir)])
    next(messages)

    (maildir / "new/1.a").rename(maildir / "cur/1.a:2,S")
    (maildir / "new/2.a").unlink()

    assert list(messages) == [
        Mail(name=str(maildir / "new/1.a"), content=MAIL),
        Unreadable(name=str(maildir / "new/2.a"), reason="it vanished while the mailbox was read"),
    ]


def test_reading_leaves_names_and_times_alone(maildir: Path) -> None:
    file = maildir / "new/1.a"
    file.write_bytes(MAIL)
    os.utime(file, (1, 1))

    contents(maildir)

    assert file.stat().st_mtime == 1


def test_a_directory_is_read_with_its_sub_directories_but_not_hidden_files(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name in ("a", "b/c", ".hidden"):
        (tmp_path / name).write_bytes(name.encode())

    assert contents(tmp_path) == [b"a", b"b/c"]


def test_an_mbox_is_split_at_a_blank_line_and_a_date_only(tmp_path: Path) -> None:
    file = tmp_path / "mbox"
    file.write_bytes(
        b"From a@example.org Mon Jul 29 11:28:02 2002\nSubject: 1\n\nFrom me to you, with love.\n\n"
        b"From here on it gets better\n\n"
        b"From - Tue Jul 30 11:28:02 2002 +0200\nSubject: 2\n\n>From one\n>>From two\n\n"
    )

    assert contents(file) == [
        b"Subject: 1\n\nFrom me to you, with love.\n\nFrom here on it gets better\n",
        b"Subject: 2\n\nFrom one\n>From two\n",
    ]


def test_an_mbox_of_one_message_is_known_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "spam.mbox"
    file.write_bytes(b"From a Mon Jul 29 11:28:02 2002\r\nSubject: 1\r\n\r\n>From x\r\n\r\n")

    assert contents(file) == [b"Subject: 1\r\n\r\nFrom x\r\n"]


def test_messages_of_an_mbox_are_numbered(tmp_path: Path) -> None:
    file = tmp_path / "mbox"
    file.write_bytes(b"From a Mon Jul 29 11:28:02 2002\nSubject: x\n\n\n" * 2)

    assert [found.name for found in read([str(file)])] == [f"{file}#1", f"{file}#2"]


def test_f1_an_mbox_comes_through_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BytesIO(b"From a Mon Jul 29 11:28:02 2002\nSubject: x\n\n\n" * 2)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream))

    assert [found.name for found in read(["-"])] == ["-#1", "-#2"]


def test_f1_empty_standard_input_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))

    assert refusals("-") == [("-", "standard input is empty")]


def test_an_empty_directory_holds_no_messages(tmp_path: Path, maildir: Path) -> None:
    assert list(read([str(maildir), str(tmp_path / "Maildir/tmp")])) == []


def test_what_is_missing_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    file = tmp_path / "mail"
    file.write_bytes(MAIL)
    missing = tmp_path / "missing"

    assert contents(missing, file) == [MAIL]
    assert refusals(missing, file) == [(str(missing), "no such file or directory")]


def test_a_pipe_in_a_directory_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert refusals(tmp_path) == [(str(tmp_path / "pipe"), "not a regular file")]


def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "mail").write_bytes(MAIL)
    (tmp_path / "loop").symlink_to(tmp_path)

    assert contents(tmp_path) == [MAIL]


def test_a_message_too_large_for_the_memory_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mailboxes, "LARGEST_BYTES", 100)
    postmark = b"From a Mon Jul 29 11:28:02 2002\n"
    (tmp_path / "a.eml").write_bytes(b"x" * 101)
    (tmp_path / "b.mbox").write_bytes(postmark + b"y\n" * 60 + b"\n" + postmark + b"z\n\n")

    found = list(read([str(tmp_path)]))

    assert [type(one).__name__ for one in found] == ["Unreadable", "Unreadable", "Mail"]
    assert isinstance(found[2], Mail)
    assert found[2].content == b"z\n"


def test_the_size_of_all_mail_is_known_for_a_progress_bar(maildir: Path) -> None:
    (maildir / "new/1.a").write_bytes(MAIL)
    (maildir / "cur/2.b:2,S").write_bytes(MAIL)

    assert size_bytes([str(maildir), str(maildir / "missing")]) == 2 * len(MAIL)
    assert size_bytes(["-"]) is None
