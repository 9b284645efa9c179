"""train, retrain, forget, rollback: what they say, what they exit with, what they leave behind."""

import io
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spamd.cli.commands.forget import moment
from tests.cli.conftest import Spamd, made_up


def corpus(spamd: Spamd) -> dict[str, int]:
    totals: dict[str, int] = spamd("status", "--json").json["corpus"]
    return {"spam": totals["spam"], "ham": totals["ham"]}


def test_training_says_what_became_of_every_mail_and_which_database_it_wrote(spamd: Spamd) -> None:
    ran = spamd("train", "spam", "spam")

    assert ran.code == 0
    assert ran.out.splitlines() == [
        "examined             12",
        "learned              12  as spam",
        "already known         0",
        "skipped               0",
        "database       sqlite:///var/spamd.db",
        "               0 spam and 0 ham before, 12 spam and 0 ham now",
        "               verdicts start after 5 more ham; until then all mail is unsure",
    ]


def test_training_again_learns_nothing_and_is_a_success(spamd: Spamd) -> None:
    spamd("train", "ham", "ham")

    again = spamd("train", "ham", "ham", "--json")

    assert again.code == 0
    assert (again.json["learned"], again.json["known"]) == (0, 12)
    assert again.json["corpus"] == {"spam": 0, "ham": 12}


def test_both_labels_may_be_taught_in_one_run(spamd: Spamd) -> None:
    ran = spamd("train", "--spam", "spam/00.eml", "spam/01.eml", "--ham", "ham", "--json")

    assert ran.code == 0
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [(row["label"], row["learned"]) for row in rows] == [("spam", 2), ("ham", 12)]
    assert corpus(spamd) == {"spam": 2, "ham": 12}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "say what the mail is"),
        (("--spam",), "'--spam' requires an argument"),
        (("--spam", "--ham", "ham"), "'--spam' requires an argument"),
        (("spam", "spam", "--ham", "ham"), "stands before --spam or --ham"),
    ],
)
def test_a_line_that_names_no_label_or_no_mail_teaches_nothing(
    spamd: Spamd, arguments: tuple[str, ...], words: str
) -> None:
    ran = spamd("train", *arguments)

    assert ran.code == 64
    assert words in ran.err
    assert corpus(spamd) == {"spam": 0, "ham": 0}


def test_when_the_mail_of_one_label_can_not_be_read_the_other_is_taught_and_it_is_partly_done(
    spamd: Spamd,
) -> None:
    ran = spamd("train", "--spam", "nowhere", "--ham", "ham")

    assert ran.code == 1
    assert corpus(spamd) == {"spam": 0, "ham": 12}


def test_training_under_the_other_label_corrects(spamd: Spamd) -> None:
    spamd("train", "ham", "spam/00.eml")

    ran = spamd("train", "spam", "spam/00.eml", "--json")

    assert ran.json["corrected"] == 1
    assert corpus(spamd) == {"spam": 1, "ham": 0}


def test_the_same_mail_from_two_folders_counts_once(spamd: Spamd, home: Path) -> None:
    (home / "copy.eml").write_bytes((home / "ham/00.eml").read_bytes())

    ran = spamd("train", "ham", "ham/00.eml", "copy.eml", "--json")

    assert (ran.json["learned"], ran.json["known"]) == (1, 1)


def test_one_unreadable_of_many_is_named_and_exits_partly_done(spamd: Spamd, home: Path) -> None:
    (home / "ham/00.eml").unlink()
    (home / "ham/00.eml").symlink_to("nowhere")

    ran = spamd("train", "ham", "ham")

    assert ran.code == 1
    assert "spamd: skipped ham/00.eml: no such file or directory" in ran.err
    assert corpus(spamd)["ham"] == 11


def test_nothing_but_unreadable_mail_is_trouble(spamd: Spamd) -> None:
    ran = spamd("train", "ham", "missing", "--json")

    assert ran.code == 3
    assert ran.json["skipped"] == [{"path": "missing", "reason": "no such file or directory"}]


def test_an_empty_mail_is_skipped_with_its_reason(spamd: Spamd, home: Path) -> None:
    (home / "empty.eml").touch()

    ran = spamd("train", "spam", "empty.eml", "spam/00.eml", "--json")

    assert ran.code == 1
    assert ran.json["skipped"][0]["path"] == "empty.eml"


def test_an_empty_folder_is_a_success(spamd: Spamd, home: Path) -> None:
    (home / "nothing").mkdir()

    ran = spamd("train", "spam", "nothing")

    assert ran.code == 0
    assert ran.out.startswith("examined              0\n")


def test_f1_an_mbox_on_standard_input_is_learned(
    spamd: Spamd, monkeypatch: pytest.MonkeyPatch
) -> None:
    postmark = b"From a Mon Jul 29 11:28:02 2002\r\n"
    mbox = b"".join(postmark + made_up("ham", number) + b"\r\n" for number in range(3))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(mbox)))

    assert spamd("train", "ham", "-", "--json").json["learned"] == 3


def test_a_mail_of_an_mbox_is_the_same_mail_as_its_file(spamd: Spamd, home: Path) -> None:
    postmark = b"From a Mon Jul 29 11:28:02 2002\r\n"
    (home / "all.mbox").write_bytes(postmark + made_up("ham", 0) + b"\r\n")
    spamd("train", "ham", "all.mbox")

    assert spamd("train", "ham", "ham/00.eml", "--json").json["known"] == 1


@pytest.mark.parametrize(
    "arguments",
    [("train",), ("train", "spam"), ("train", "spam/00.eml"), ("train", "junk", "spam/00.eml")],
)
def test_the_label_can_t_be_left_out_or_misspelt(spamd: Spamd, arguments: tuple[str, ...]) -> None:
    ran = spamd(*arguments)

    assert ran.code == 64
    assert "Usage: spamd train [OPTIONS] [spam|ham PATH]..." in ran.err


class Terminal(io.TextIOWrapper):
    """Standard input of somebody who forgot the path."""

    def isatty(self) -> bool:
        return True


def test_f1_mail_is_never_awaited_from_a_terminal(
    spamd: Spamd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(io.BytesIO()))

    assert spamd("train", "ham", "-").code == 64


def test_many_mails_go_through_several_processes_in_order(spamd: Spamd, home: Path) -> None:
    (home / "many").mkdir()
    for number in range(200):
        (home / f"many/{number:03}.eml").write_bytes(made_up("ham", number))

    ran = spamd("train", "ham", "many", "--json")

    assert (ran.json["examined"], ran.json["learned"]) == (200, 200)


def test_retrain_by_id_flips_a_lesson(spamd: Spamd) -> None:
    spamd("train", "ham", "spam/00.eml")
    identity = spamd("scan", "spam/00.eml", "--json").json["id"]

    ran = spamd("retrain", "spam", identity, "--json")

    assert (ran.code, ran.json["corrected"]) == (0, 1)
    assert corpus(spamd) == {"spam": 1, "ham": 0}


def test_retrain_of_an_unknown_id_is_named(spamd: Spamd) -> None:
    ran = spamd("retrain", "spam", "0" * 20 + "-" + "0" * 16)

    assert ran.code == 3
    assert ran.err == f"spamd: skipped {'0' * 20}-{'0' * 16}: no message with this id is known\n"


def test_forget_by_path_and_by_id_takes_lessons_back(taught: Spamd) -> None:
    identity = taught("scan", "ham/01.eml", "--json").json["id"]

    ran = taught("forget", "ham/00.eml", identity, "--json")

    assert (ran.code, ran.json["forgotten"]) == (0, [identity, "ham/00.eml"])
    assert corpus(taught) == {"spam": 10, "ham": 8}


def test_forgetting_what_was_never_taught_changes_nothing_and_says_so(taught: Spamd) -> None:
    some = taught("forget", "ham/00.eml", "ham/11.eml")
    none = taught("forget", "ham/11.eml")

    assert (some.code, none.code) == (1, 3)
    assert "spamd: ham/11.eml: this message was never learned" in none.err
    assert corpus(taught) == {"spam": 10, "ham": 9}


def test_forgetting_everything_leaves_an_empty_database(taught: Spamd) -> None:
    taught("forget", *[f"{label}/{n:02}.eml" for label in ("spam", "ham") for n in range(10)])

    assert taught("status", "--json").json["corpus"] == {"spam": 0, "ham": 0, "tokens": 0}
    assert taught("database", "verify").code == 0


def test_rollback_first_says_what_it_would_take_back(taught: Spamd) -> None:
    would = taught("rollback", "--since", "1h", "--label", "spam", "--dry-run")
    assert would.out.startswith("10 lessons would be taken back from sqlite:///var/spamd.db\n")
    assert corpus(taught) == {"spam": 10, "ham": 10}

    done = taught("rollback", "--since", "1h", "--label", "spam", "--json")

    assert (done.code, len(done.json["lessons"])) == (0, 10)
    assert corpus(taught) == {"spam": 0, "ham": 10}


@pytest.mark.parametrize("text", ["999999w", "2026-02-30", "yesterday"])
def test_a_time_that_can_not_be_is_named(spamd: Spamd, text: str) -> None:
    ran = spamd("rollback", "--since", text)
    assert (ran.code, f'"{text}" is no time' in ran.err) == (64, True)


@pytest.mark.parametrize(
    ("text", "utc"), [("2026-07-01T12:00", 10), ("2026-01-01T12:00", 11), ("2026-01-01T12:00Z", 12)]
)
def test_a_time_without_a_zone_is_local_time_of_that_day(
    monkeypatch: pytest.MonkeyPatch, text: str, utc: int
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        found = moment(text, datetime.now(UTC))
    time.tzset()
    assert found.astimezone(UTC).hour == utc


def test_rollback_by_source_leaves_the_others(taught: Spamd) -> None:
    assert taught("rollback", "--source", "imap", "--json").json["lessons"] == []


@pytest.mark.parametrize(
    "arguments", [(), ("--since", "yesterday"), ("--until", "3x"), ("--since", "999999w")]
)
def test_rollback_wants_to_know_which_lessons(spamd: Spamd, arguments: tuple[str, ...]) -> None:
    assert spamd("rollback", *arguments).code == 64


def test_status_says_what_is_missing_and_proves_the_last_lessons(spamd: Spamd) -> None:
    spamd("train", "spam", "spam/00.eml")

    text = spamd("status").out
    state = spamd("status", "--json").json

    assert "verdicts start after 4 more spam and 5 more ham" in text
    assert "1: 1 by cli" in text
    assert state["missing"] == {"spam": 4, "ham": 5}
    assert state["lessons"]["last"][0]["label"] == "spam"
    assert 0 <= state["lessons"]["last"][0]["before"] <= state["lessons"]["last"][0]["after"] <= 1


def test_d13_status_warns_of_lopsided_training(spamd: Spamd, home: Path) -> None:
    (home / "many").mkdir()
    for number in range(40):
        (home / f"many/{number:03}.eml").write_bytes(made_up("ham", number))
    spamd("train", "ham", "many")
    for number in range(6):
        spamd("train", "spam", f"spam/{number:02}.eml")

    assert "there is little spam: teach more of it" in spamd("status").out


def test_j8_files_that_are_no_mail_are_skipped_and_named(spamd: Spamd, home: Path) -> None:
    (home / "spam" / "note.txt").write_text("hello\n")
    (home / "spam" / "ls").write_bytes(Path("/bin/ls").read_bytes())

    ran = spamd("train", "spam", "spam")

    assert ran.code == 1
    assert "learned              12  as spam" in ran.out
    for name in ("spam/note.txt", "spam/ls"):
        assert f"spamd: skipped {name}: not a mail message" in ran.err


def test_j8_a_run_over_more_files_than_mail_folders_hold_asks_first(
    spamd: Spamd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spamd.cli.mail.files.MANY_FILES", 11)

    refused = spamd("train", "spam", "spam")
    assert (refused.code, "more than 11 files in spam" in refused.err) == (64, True)
    assert spamd("train", "spam", "spam", "--yes", "--json").json["learned"] == 12


def test_j8_ctrl_c_prints_what_was_done_by_then(
    spamd: Spamd, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_size: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    @contextmanager
    def progress(_title: str, _total: int | None) -> Iterator[Callable[[int], None]]:
        yield interrupted

    monkeypatch.setattr("spamd.cli.commands.train.progress", progress)
    ran = spamd("--set", "training.batch=5", "train", "spam", "spam")

    assert ran.code == 130
    assert "learned               5  as spam" in ran.out
    assert "5 spam and 0 ham now" in ran.out
    assert "interrupted; run it again to learn what is missing" in ran.err
