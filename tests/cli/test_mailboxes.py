"""Reading mail from files: nothing split wrongly, nothing changed, nothing passed over."""

import bz2
import gzip
import io
import lzma
import os
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from spamd.cli.mail.files import Extent, Mail, Unreadable, extent, mail_only, read

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
        Unreadable(
            name=str(maildir / "new/2.a"), reason="the file was removed while the mailbox was read"
        ),
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
    monkeypatch.setattr("spamd.cli.mail.files.LARGEST_BYTES", 100)
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

    both = [str(maildir), str(maildir / "missing")]
    assert extent(both, 9) == Extent(files=2, size_bytes=2 * len(MAIL))
    assert extent(both, 1) == Extent(files=2, size_bytes=None)
    assert extent(["-"], 9) == Extent(files=0, size_bytes=None)


POSTMARK = b"From a@b Mon Jan  1 10:00:00 2024\n"
MBOX = POSTMARK + b"Subject: a\n\na\n\n" + POSTMARK + MAIL


@pytest.mark.parametrize(
    ("ending", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_j8_compressed_mail_is_read_whatever_it_is_called(
    tmp_path: Path, ending: str, compress: Callable[[bytes], bytes]
) -> None:
    (tmp_path / f"a.mbox{ending}").write_bytes(compress(MBOX))
    (tmp_path / "b").write_bytes(compress(MAIL))

    assert contents(tmp_path) == [b"Subject: a\n\na\n", MAIL, MAIL]


def test_j8_each_file_of_a_zip_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "mail.zip", "w") as archive:
        archive.writestr("folder/one.eml", MAIL)
        archive.writestr("box.mbox", MBOX)

    assert contents(tmp_path) == [MAIL, b"Subject: a\n\na\n", MAIL]
    assert next(read([str(tmp_path)])).name == f"{tmp_path}/mail.zip/folder/one.eml"


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, None])
def test_j8_a_broken_archive_is_named(
    tmp_path: Path, compress: Callable[[bytes], bytes] | None
) -> None:
    whole = compress(MAIL * 99) if compress else b"PK\x03\x04 and no more"
    (tmp_path / "mail").write_bytes(whole[: len(whole) - 9])

    ((name, reason),) = refusals(tmp_path)
    assert name == str(tmp_path / "mail")
    assert "can't be unpacked" in reason or "not a gzipped file" in reason


def test_j8_an_archive_that_unpacks_without_end_is_too_large_and_never_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spamd.cli.mail.files.LARGEST_BYTES", 1_000_000)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"Subject: x\n\n" + bytes(3_000_000)))

    assert [reason for _, reason in refusals(tmp_path)] == ["larger than 0 MiB"]


@pytest.mark.parametrize(
    "content",
    [
        Path("/bin/ls").read_bytes()[:99_999],
        b"hello\n\nSubject: not a header any more\n",
        b"HTTP/1.1 200 OK\nServer: x\n\n",
        b"\x89PNG\r\n\x1a\n" + bytes(99),
        b"key: value\nother: value\n",
    ],
)
def test_j8_what_is_no_mail_is_named(content: bytes) -> None:
    (found,) = mail_only([Mail(name="it", content=content)])
    assert found == Unreadable(name="it", reason="not a mail message: no header field found")


@pytest.mark.parametrize(
    "content",
    [
        MAIL,
        b"\n\n" + MAIL,
        b"From a@b Mon Jan 1\nDATE : x\n\n",
        b"X: y\r\r\nFrom: a\r\r\n\r\r\nb",
        b"X: y\rFrom: a\r\rb",
    ],
)
def test_what_is_mail_passes(content: bytes) -> None:
    mail = Mail(name="it", content=content)
    assert list(mail_only([mail])) == [mail]


def test_k8_in_a_maildir_only_regular_files_are_mail(maildir: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"root:x:0:0\n")
    (maildir / "cur/100.a:2,S").write_bytes(MAIL)
    (maildir / "cur/200.link:2,S").symlink_to(tmp_path / "secret")
    os.mkfifo(maildir / "cur/300.fifo:2,S")
    (maildir / "new/400.null").symlink_to("/dev/null")
    (maildir / "cur/500.folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(maildir / "cur/600.sock"))

    assert contents(maildir) == [MAIL]
    assert {(Path(name).name, reason) for name, reason in refusals(maildir)} == {
        ("200.link:2,S", "not a regular file"),
        ("300.fifo:2,S", "not a regular file"),
        ("400.null", "not a regular file"),
        ("600.sock", "not a regular file"),
    }
    for file in (maildir / "cur").iterdir():  # also when the shell names them
        assert contents(file) == ([MAIL] if file.name == "100.a:2,S" else [])


def test_k8_links_of_a_folder_of_ones_own_are_followed(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (tmp_path / "mail").write_bytes(MAIL)
    (folder / "1").symlink_to(tmp_path / "mail")
    (folder / "2").symlink_to(tmp_path)  # a folder elsewhere is not gone into
    os.mkfifo(folder / "3")

    assert contents(folder) == [MAIL]
    assert refusals(folder) == [(str(folder / "3"), "not a regular file")]


def test_k8_new_and_cur_that_are_links_lead_nowhere(maildir: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/1").write_bytes(b"secret")
    (maildir / "new").rmdir()
    (maildir / "new").symlink_to(tmp_path / "elsewhere")
    (maildir / "cur/100.a:2,S").write_bytes(MAIL)

    assert contents(maildir) == [MAIL]


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r\r\n", b"\r"])
def test_g9_an_mbox_is_split_whatever_ends_its_lines(tmp_path: Path, newline: bytes) -> None:
    mark = b"From me@example.org  Mon Jul 29 11:28:02 2002\n"
    text = mark + b"Subject: one\n\nHello\n\n" + mark + b"Subject: two\n\n>From here\n\n"
    file = tmp_path / "two.mbox"
    file.write_bytes(text.replace(b"\n", newline))

    first, second = contents(file)
    assert b"".join(first.split()) == b"Subject:oneHello"
    assert b"".join(second.split()) == b"Subject:twoFromhere"


def test_g9_a_file_without_any_line_end_is_no_mbox(tmp_path: Path) -> None:
    file = tmp_path / "long.mbox"
    file.write_bytes(b"From " + b"1:11 " * 100_000)

    assert len(contents(file)) == 1
