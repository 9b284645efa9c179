"""Whose mail an address gets: rules, tables, a program, and what was said before."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spamd.errors import ConfigError, TemporaryError
from spamd.users.command import CommandLookup
from spamd.users.directory import NOT_ASKED, Directory
from spamd.users.lookup import CachedLookup
from spamd.users.options import UsersOptions
from tests.fakes import FakeObserver

ORG = UsersOptions(enabled=True, domain="example.org")

TABLE = """\
# what Postfix reads too
info@example.org     anna@example.org
sales                info,
                     nobody-else@example.org
  # a comment between
@old.example         @example.org
@shop.example        bob@example.org
anna@example.org     anna@example.org, archive@backup.example
all@example.org      anna@example.org, bob@example.org
anna+news@example.org  bob@example.org
loop-a               loop-b
loop-b               loop-a
INFO2@Example.Org    \t Anna+x@EXAMPLE.org
"""


class Asked:
    """Knows some users; counts who asks, and can be away or silent."""

    def __init__(self, users: dict[str, tuple[str, ...]]) -> None:
        self.users_by_name = users
        self.asked: list[str] = []
        self.fault: Exception | None = None
        self.silent = False

    async def users(self, name: str) -> Sequence[str]:
        self.asked.append(name)
        if self.silent:
            await asyncio.Event().wait()
        if self.fault is not None:
            raise self.fault
        return self.users_by_name.get(name, ())

    async def close(self) -> None:
        self.asked.append("closed")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "virtual"
    path.write_text(TABLE)
    return path


async def user_of(directory: Directory, address: str) -> str:
    return (await directory.one(address)).user


@pytest.mark.parametrize(
    ("address", "user"),
    [
        ("Anna+shop@Example.org", "anna@example.org"),  # a copy goes elsewhere; it is hers
        ("info@example.org", "anna@example.org"),
        ("Info+a@example.org", "anna@example.org"),
        ("info2@example.org", "anna@example.org"),
        ("carl@old.example", "carl@example.org"),
        ("info@old.example", "anna@example.org"),  # looked up again
        ("what.ever@shop.example", "bob@example.org"),
        ("anna+news@example.org", "bob@example.org"),  # the address with its tag comes first
        ("all@example.org", "@example.org"),  # a group
        ("sales@example.org", "@example.org"),
        ("loop-a@example.org", "loop-a@example.org"),
        ("dora@example.org", "dora@example.org"),
        ("else@elsewhere.example", "else@elsewhere.example"),
        ("info", "anna@example.org"),  # a login name
    ],
)
async def test_a_virtual_alias_table_says_whose_mail_it_is(
    table: Path, address: str, user: str
) -> None:
    directory = Directory(replace(ORG, aliases_file=str(table)))
    assert await user_of(directory, address) == user


async def test_the_settings_name_aliases_too_and_come_before_the_file(table: Path) -> None:
    options = replace(ORG, aliases_file=str(table), aliases={"Info@example.org": "carl"})
    assert await user_of(Directory(options), "info@example.org") == "carl@example.org"


async def test_who_is_no_user_has_what_the_domain_has(tmp_path: Path, table: Path) -> None:
    (tmp_path / "users").write_text("# all\nAnna\nbob@example.org\n\n")
    options = replace(ORG, aliases_file=str(table), users_file=str(tmp_path / "users"))
    directory = Directory(options)
    assert await user_of(directory, "anna+x@example.org") == "anna@example.org"
    assert await user_of(directory, "dora@example.org") == "@example.org"
    assert await user_of(directory, "x@elsewhere.example") == "@elsewhere.example"
    assert await user_of(directory, "sales@example.org") == "anna@example.org"  # one user of two
    assert await user_of(directory, "all@example.org") == "@example.org"
    assert await user_of(Directory(replace(options, domain="")), "nobody") == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("info@example.org\n", "line 1: info@example.org leads to no address"),
        ("a b\n\n/^x/ y\n", "line 3 is of a table of patterns"),
        ("\xff a\n", "not UTF-8"),
    ],
)
def test_a_table_that_can_not_be_read_names_key_file_and_line(
    tmp_path: Path, text: str, says: str
) -> None:
    path = tmp_path / "virtual"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=f"^users.aliases_file: {path}: .*{says}"):
        Directory(replace(ORG, aliases_file=str(path)))


def test_a_file_that_is_not_there_or_names_nobody_names_key_and_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^users.users_file: .*/none: No such file"):
        Directory(replace(ORG, users_file=str(tmp_path / "none")))
    (tmp_path / "empty").write_text("# nobody\n")
    with pytest.raises(ConfigError, match=r"^users.users_file: .*/empty holds no user"):
        Directory(replace(ORG, users_file=str(tmp_path / "empty")))


async def test_a_table_as_large_as_wished_never_leads_to_an_endless_search() -> None:
    chain = {f"a{number}@x.test": f"a{number + 1}@x.test" for number in range(5000)}
    fan = {"all@x.test": ", ".join(f"u{number}@x.test" for number in range(5000))}
    directory = Directory(replace(ORG, aliases=chain | fan))
    assert await user_of(directory, "a0@x.test") == "a0@x.test"
    assert await user_of(directory, "a4900@x.test") == "a5000@x.test"
    assert await user_of(directory, "all@x.test") == "@x.test"


@given(
    st.binary(max_size=60),
    st.dictionaries(
        st.text("ab@+.", min_size=1, max_size=6).filter(lambda text: text.strip()),
        st.text("ab@+., ", min_size=1, max_size=12).filter(lambda text: text.strip(" ,")),
        max_size=6,
    ),
)
async def test_any_address_has_one_answer_by_any_table(
    address: bytes, aliases: dict[str, str]
) -> None:
    directory = Directory(UsersOptions(aliases=aliases))
    (named,) = (await directory.of([address])).values()
    assert named.user == named.user.lower()
    assert (await directory.of([address]))[address] == named


# Asking


def asking(
    lookup: Asked | CommandLookup, observer: FakeObserver | None = None, **changes: float
) -> Directory:
    options = replace(ORG, command=("x",), timeout_s=0.05, cache_s=100.0)
    options = replace(options, **changes)  # type: ignore[arg-type]  # numbers only
    cached = CachedLookup(lookup, observer or FakeObserver(), keep_s=options.cache_s)
    return Directory(options, cached)


async def test_an_answer_is_remembered_nobody_too() -> None:
    lookup = Asked({"info@example.org": ("Anna",), "anna@example.org": ("anna@example.org",)})
    directory = asking(lookup)
    for _ in range(3):
        found = await directory.of(
            [b"info+x@example.org", b"Anna@example.org", b"none@example.org"]
        )
        assert [each.user for each in found.values()] == [
            "anna@example.org", "anna@example.org", "@example.org",
        ]  # fmt: skip
    assert sorted(lookup.asked) == ["anna@example.org", "info@example.org", "none@example.org"]


async def test_an_answer_is_asked_for_again_once_it_is_old() -> None:
    lookup = Asked({"anna@example.org": ("bob",)})
    directory = asking(lookup, cache_s=0.0)
    await directory.one("anna@example.org")
    lookup.users_by_name = {"anna@example.org": ("carl",)}
    assert await user_of(directory, "anna@example.org") == "carl@example.org"


async def test_several_users_are_nobody_unless_the_name_is_one_of_them() -> None:
    lookup = Asked({"all@example.org": ("anna", "bob"), "anna@example.org": ("anna", "archive")})
    directory = asking(lookup)
    assert await user_of(directory, "all@example.org") == "@example.org"
    assert await user_of(directory, "anna@example.org") == "anna@example.org"


@pytest.mark.parametrize("silent", [True, False])
async def test_what_does_not_answer_is_told_once_and_then_left_alone(*, silent: bool) -> None:
    lookup, observer = Asked({"bob@example.org": ("bob",)}), FakeObserver()
    directory = asking(lookup, observer, cache_s=0.0)
    assert await user_of(directory, "bob@example.org") == "bob@example.org"
    lookup.silent, lookup.fault = silent, TemporaryError("away")
    named = await directory.one("Anna+x@example.org")
    assert (named.user, named.missing) == ("anna@example.org", NOT_ASKED)
    for _ in range(5):  # the name by the rules, and what was said before
        assert (await directory.one("anna@example.org")).missing == NOT_ASKED
        assert (await directory.one("bob@example.org")).missing == ""
    assert lookup.asked == ["bob@example.org", "anna@example.org"]
    assert [event for event, _ in observer.faults] == ["users.lost"]


async def test_it_is_asked_again_after_a_while_and_told_when_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spamd.users.lookup.PAUSE_S", 0.0)
    lookup, observer = Asked({"anna@example.org": ("bob",)}), FakeObserver()
    directory = asking(lookup, observer)
    lookup.fault = TemporaryError("away")
    await directory.one("anna@example.org")
    await directory.one("anna@example.org")
    lookup.fault = None
    assert await user_of(directory, "anna@example.org") == "bob@example.org"
    assert [event for event, _ in observer.faults] == ["users.lost"]
    assert [event for event, _ in observer.events] == ["users.regained"]


async def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spamd.users.lookup.MOST", 10)
    lookup = Asked({})
    directory = asking(lookup)
    await directory.of([b"%d@example.org" % number for number in range(100)])
    await directory.of([b"99@example.org"])
    assert len(lookup.asked) == 100
    assert directory._lookup
    assert len(directory._lookup._known) == 10


async def test_what_can_be_no_user_is_never_asked_about() -> None:
    lookup = Asked({})
    directory = asking(lookup)
    await directory.of([b"", b"a\x00b@example.org", b"\x1b[2J@example.org", b"x" * 400])
    assert lookup.asked == []


# A program


def program(tmp_path: Path, text: str) -> tuple[str, ...]:
    path = tmp_path / "whose"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return (str(path), "-f")


async def test_a_program_says_who_it_is(tmp_path: Path) -> None:
    command = program(
        tmp_path, '[ "$1" = -f ] || exit 1\ncase "$2" in info@*) echo Anna;; *) exit 67;; esac'
    )
    directory = asking(CommandLookup(command), timeout_s=10.0)
    assert await user_of(directory, "info@example.org") == "anna@example.org"
    assert await user_of(directory, "none@example.org") == "@example.org"
    assert await user_of(directory, "-x@example.org") == "@example.org"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("exit 75", "ended with code 75"),
        ("yes anna", "more than 64 KiB"),
        ("exec sleep 100", "no answer in time"),
    ],
)
async def test_a_program_that_fails_is_a_fault_and_leaves_nothing_running(
    tmp_path: Path, text: str, says: str
) -> None:
    observer = FakeObserver()
    command = program(tmp_path, f"echo $$ > {tmp_path}/pid\n{text}")
    directory = asking(CommandLookup(command), observer, timeout_s=0.3 if "sleep" in text else 5.0)
    assert (await directory.one("anna@example.org")).missing == NOT_ASKED
    ((_, error),) = observer.faults
    assert says in str(error)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_a_program_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    observer = FakeObserver()
    directory = asking(CommandLookup((str(tmp_path / "none"),)), observer)
    assert (await directory.one("anna")).user == "anna@example.org"
    assert "No such file" in str(observer.faults[0][1])
