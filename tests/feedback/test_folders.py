"""Which folder is what: by special use, by name, by setting."""

import time
from collections.abc import Callable

import pytest

from spamd.feedback.mailboxes.folders import MOST_LISTED, Listed, watched
from spamd.feedback.mailboxes.mailbox import Place
from spamd.feedback.options import AccountOptions, FeedbackOptions

ACCOUNT = AccountOptions(host="localhost", user="alice", password="x")


def listed(name: str, *attributes: str, delimiter: str = "/") -> Listed:
    return Listed(name=name, raw=name, attributes=frozenset(attributes), delimiter=delimiter)


def places(
    folders: list[Listed],
    account: AccountOptions = ACCOUNT,
    options: FeedbackOptions = FeedbackOptions(),  # noqa: B008 - frozen
) -> dict[str, Place]:
    return {folder.name: folder.place for folder in watched(folders, account, options)}


@pytest.mark.parametrize(
    "name", ["Junk", "Spam", "SPAM", "Junk E-mail", "INBOX/Spam", "Bulk", "迷惑メール"]
)
def test_e7_junk_is_found_by_its_name(name: str) -> None:
    assert places([listed("INBOX"), listed(name)])[name] is Place.JUNK


def test_e7_special_use_comes_before_the_name() -> None:
    found = places([listed("Müll", "\\junk"), listed("Spam", "\\archive")])
    assert found == {"Müll": Place.JUNK, "Spam": Place.OTHER}


def test_e7_children_of_junk_are_junk_unless_set_otherwise() -> None:
    folders = [listed("Junk", "\\junk"), listed("Junk/Checked")]
    apart = FeedbackOptions(junk_children=False)
    assert places(folders)["Junk/Checked"] is Place.JUNK
    assert places(folders, options=apart)["Junk/Checked"] is Place.OTHER


def test_e7_an_account_may_name_its_own_junk_folder() -> None:
    account = AccountOptions(host="localhost", user="a", password="x", junk_folders=("Werbung",))
    assert places([listed("Werbung")], account) == {"Werbung": Place.JUNK}


@pytest.mark.parametrize(
    "name", ["Trash", "Deleted Items", "Drafts", "Entwürfe", "Sent", "Gesendet", "Outbox"]
)
def test_e5_folders_that_teach_nothing_are_not_watched(name: str) -> None:
    assert places([listed("INBOX"), listed(name), listed(f"{name}/2026")]) == {"INBOX": Place.INBOX}


@pytest.mark.parametrize("use", ["\\trash", "\\drafts", "\\sent", "\\all"])
def test_e5_special_uses_that_teach_nothing_are_not_watched(use: str) -> None:
    assert places([listed("Poubelle", use)]) == {}


def test_a_name_that_only_sounds_like_junk_teaches_nothing() -> None:
    assert places([listed("Old spam"), listed("not-spam")]) == {}


def test_e6_any_other_folder_teaches() -> None:
    found = places([listed("Archive/2026"), listed("Family", delimiter="")])
    assert found == {"Archive/2026": Place.OTHER, "Family": Place.OTHER}


def kept(folders: list[Listed], account: AccountOptions = ACCOUNT) -> set[str]:
    found = watched([listed("INBOX"), *folders], account, FeedbackOptions())
    return {folder.name for folder in found if folder.place is Place.OTHER and folder.kept}


@pytest.mark.parametrize(
    "trash", [listed("Afval", "\\trash"), listed("Trash"), listed("INBOX/Papierkorb")]
)
def test_e6_where_the_trash_is_known_people_keep_what_they_put_elsewhere(trash: Listed) -> None:
    assert kept([trash, listed("Work")]) == {"Work"}


@pytest.mark.parametrize(
    "other", [listed("Work"), listed("Drafts"), listed("Sent/Old"), listed("not-spam")]
)
def test_h1_where_nobody_says_which_folder_is_the_trash_any_may_be(other: Listed) -> None:
    assert kept([other, listed("Afval")]) == set()


def test_e6_an_archive_and_what_an_admin_names_are_no_trash() -> None:
    folders = [listed("Archive/2026"), listed("Keep", "\\archive"), listed("Afval")]
    assert kept(folders) == {"Archive/2026", "Keep"}
    named = AccountOptions(host="localhost", user="a", password="x", folders=("Work",))
    assert kept([listed("Work"), listed("Afval")], named) == {"Work"}
    told = AccountOptions(host="localhost", user="a", password="x", excluded_folders=("Afval",))
    assert kept([listed("Work"), listed("Afval")], told) == {"Work"}


def test_e13_names_are_compared_without_case_and_composition() -> None:
    decomposed = "Entwu\u0308rfe"
    assert places([listed(decomposed)]) == {}


def test_the_watched_folders_can_be_limited() -> None:
    account = AccountOptions(host="localhost", user="a", password="x", folders=("Archive",))
    folders = [listed("INBOX"), listed("Junk"), listed("Archive"), listed("Lists")]
    assert list(places(folders, account)) == ["Junk", "INBOX", "Archive"]


def test_folders_below_the_inbox_are_folders_of_their_own() -> None:
    folders = [listed("INBOX", delimiter="."), listed("INBOX.Work", delimiter=".")]
    assert places(folders)["INBOX.Work"] is Place.OTHER


def test_a_folder_that_can_not_be_selected_is_not_watched() -> None:
    assert places([listed("Archive", "\\noselect"), listed("Archive/2026")]) == {
        "Archive/2026": Place.OTHER
    }


@pytest.mark.parametrize(
    "names",
    [
        lambda n: ["/".join(["x"] * depth) for depth in range(1, int((2 * n) ** 0.5))],
        lambda n: [f"folder {number}" for number in range(n)],
        lambda n: [f"a{number % 10}/b{number % 100}/c{number}" for number in range(n)],
        lambda n: [f"Junk/{number}" for number in range(n)],
    ],
)
def test_k6_folders_are_sorted_in_linear_time(names: Callable[[int], list[str]]) -> None:
    def cpu_s(count: int) -> float:
        folders = [listed(name) for name in names(count)]
        taken = []
        for _ in range(3):
            started = time.process_time()
            watched(folders, ACCOUNT, FeedbackOptions())
            taken.append(time.process_time() - started)
        return min(taken)

    assert cpu_s(16_000) < 8 * cpu_s(4_000) + 0.05


def test_k6_a_folder_far_below_junk_is_junk_and_one_below_trash_teaches_nothing() -> None:
    deep = "/".join(["x"] * 2000)
    folders = [listed("Junk"), listed(f"Junk/{deep}"), listed("Trash"), listed(f"Trash/{deep}")]
    assert places(folders) == {"Junk": Place.JUNK, f"Junk/{deep}": Place.JUNK}


def test_k6_of_siblings_with_like_names_only_those_below_are_below() -> None:
    found = places([listed("Junk"), listed("Junk mails/x"), listed("Junk/a b"), listed("Junk-2/x")])
    assert found["Junk/a b"] is Place.JUNK
    assert found["Junk mails/x"] is Place.OTHER
    assert found["Junk-2/x"] is Place.OTHER


def test_k6_of_a_hundred_thousand_folders_junk_and_inbox_are_found_wherever_they_stand() -> None:
    many = [listed(f"a{number}") for number in range(100_000)]
    found = places([*many, listed("Zunk", "\\junk"), listed("INBOX"), listed("Trash")])
    assert list(found.items())[:2] == [("Zunk", Place.JUNK), ("INBOX", Place.INBOX)]
    assert len(found) == MOST_LISTED + 2
