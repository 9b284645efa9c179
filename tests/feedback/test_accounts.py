"""How watched accounts fare: told in words, kept for others to see, and users that come and go."""

import asyncio
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spamd.errors import StorageUnavailable
from spamd.feedback.account_list import AccountList
from spamd.feedback.account_states import AccountStates
from spamd.feedback.mailboxes.mailbox import FolderError, MailboxError
from spamd.feedback.options import AccountOptions, FeedbackOptions, Tls
from spamd.feedback.ports import AccountState, WatchedAccount
from spamd.feedback.service import Feedback
from spamd.observe.log import LogObserver
from spamd.observe.metrics import Metrics
from spamd.observe.options import LogOptions
from tests.fakes import FakeClock, FakeObserver
from tests.feedback.fakes import FakeAccounts, FakeLeases
from tests.feedback.scripted import ScriptedImap, plain
from tests.feedback.test_imap_idle import scripted
from tests.feedback.test_service import at_work
from tests.feedback.world import ServerClock, bench_at, running, watcher_context
from tests.servers.base import free_port
from tests.waiting import until

QUICK = FeedbackOptions(lease_s=0.15, poll_s=0.1, retry_first_s=0.05, retry_most_s=0.05)


@pytest.fixture
def server() -> Iterator[ScriptedImap]:
    with ScriptedImap(partial(plain, capabilities="IMAP4rev1")) as server:
        yield server


@pytest.fixture
def users(tmp_path: Path) -> Path:
    file = tmp_path / "users"
    file.write_text("anna\n")
    return file


def master(server: ScriptedImap, users: Path) -> AccountOptions:
    return replace(scripted(server), user="filter", users_file=users)


def service(accounts: Sequence[AccountOptions], kept: FakeAccounts, observer: Any) -> Feedback:
    context = replace(watcher_context(), observer=observer)
    options = replace(QUICK, accounts=tuple(accounts))
    return Feedback(options, context, FakeLeases(ServerClock()), "one", kept)


def names(kept: FakeAccounts, state: AccountState) -> set[str]:
    return {name.partition("@")[0] for name, row in kept.rows.items() if row.state is state}


async def test_j6_an_account_that_is_lost_is_told_by_name_host_and_reason() -> None:
    nobody = AccountOptions(
        host="127.0.0.1", port=free_port(), tls=Tls.NONE, user="anna", password="x"
    )
    stream, metrics, kept = io.StringIO(), Metrics(), FakeAccounts()
    observer = LogObserver(LogOptions(format="json"), metrics, ServerClock(), stream)
    async with at_work(service([nobody], kept, observer)):
        await until(lambda: names(kept, AccountState.LOST))
        lost = metrics.registry.get_sample_value("spamd_accounts", {"state": "lost"})
    told = [json.loads(line) for line in stream.getvalue().splitlines()]
    [line] = [each for each in told if each["event"] == "account.lost"]
    assert line["account"] == f"anna@127.0.0.1:{nobody.port}"
    assert f"127.0.0.1:{nobody.port} can't be reached: Connection refused" in line["cause"]
    assert (line["level"], "frames" in line) == ("warning", False)
    assert "Connection refused" in kept.rows[line["account"]].reason
    assert lost == 1


def test_j6_what_went_wrong_with_a_folder_is_told_without_its_name_and_without_frames() -> None:
    stream = io.StringIO()
    clock, metrics = FakeClock(), Metrics()
    observer = LogObserver(LogOptions(format="json"), metrics, clock, stream)
    observer.failed("folder.failed", FolderError("folder Love letters is shut"), account="a@b:1")
    observer.failed("account.lost", MailboxError("the IMAP server b:1 is shut"), account="a@b:1")
    folder, account = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (folder["account"], folder["level"], "frames" in folder) == ("a@b:1", "warning", False)
    assert "Love" not in str(folder)
    assert account["cause"] == "the IMAP server b:1 is shut"


async def test_j6_a_missing_file_of_users_is_one_sentence_and_other_accounts_go_on(
    server: ScriptedImap, tmp_path: Path
) -> None:
    missing = master(server, tmp_path / "nowhere")
    kept, observer = FakeAccounts(), FakeObserver()
    async with at_work(service([missing, scripted(server)], kept, observer)):
        await until(lambda: names(kept, AccountState.WATCHING))
    assert names(kept, AccountState.WATCHING) == {"a"}
    assert names(kept, AccountState.LOST) == {"filter"}
    [error] = [error for event, error in observer.faults if event == "account.lost"]
    assert "nowhere, the users_file of filter at 127.0.0.1, can't be read: No such file" in str(
        error
    )


async def test_j6_a_look_by_hand_names_the_file_and_looks_at_the_others(
    server: ScriptedImap, tmp_path: Path
) -> None:
    missing = master(server, tmp_path / "nowhere")
    kept = FakeAccounts()
    summary = await service([missing, scripted(server)], kept, FakeObserver()).once()
    assert ["nowhere" in fault for fault in summary.faults] == [True]
    assert names(kept, AccountState.WATCHING) == {"a"}


async def test_j10_users_that_come_and_go_are_followed_without_restart(
    server: ScriptedImap, users: Path
) -> None:
    kept, observer = FakeAccounts(), FakeObserver()
    write, remove = users.write_text, users.unlink
    async with at_work(service([master(server, users)], kept, observer)):
        await until(lambda: names(kept, AccountState.WATCHING) == {"anna"})
        write("anna\nbert\n")
        await until(lambda: names(kept, AccountState.WATCHING) == {"anna", "bert"})
        write("bert\n")
        await until(lambda: names(kept, AccountState.LEFT) == {"anna"})
        remove()
        await until(lambda: observer.faults)
        assert names(kept, AccountState.WATCHING) == {"bert"}
        write("bert\ncarl\n")
        await until(lambda: names(kept, AccountState.WATCHING) == {"bert", "carl"})
    told = [details for event, details in observer.events if event == "accounts.changed"]
    assert told[0] == {"come": 1, "gone": 0, "watched": 2}
    assert [line for line in server.lines if "LOGIN" in line and '"filter"' in line] == []


def test_j10_a_file_that_did_not_change_is_not_read_again(users: Path) -> None:
    account_list = AccountList(
        [AccountOptions(host="a.test", user="m", password="x", users_file=users)]
    )
    assert [account_list.read(), account_list.read()] == [True, False]
    users.write_text("anna\nbert\n")
    assert account_list.read()
    assert [each.login for each in account_list.logins()] == ["anna*m", "bert*m"]


@pytest.mark.parametrize("content", ["", "# nobody\n"])
def test_j10_a_master_user_without_users_is_not_watched_himself(users: Path, content: str) -> None:
    users.write_text(content)
    account_list = AccountList(
        [AccountOptions(host="a.test", user="m", password="x", users_file=users)]
    )
    assert account_list.read()
    assert account_list.logins() == []


class Silent:
    """A server to whose inbox a mail comes while we wait; it tells in IDLE, or doesn't."""

    def __init__(self, *, tells: bool) -> None:
        self.tells = tells
        self.mails = 0
        self.tag = ""

    def answer(self, tag: str, rest: str) -> list[str] | None:
        match rest.split(" "):
            case ["IDLE"]:
                self.mails += 1
                self.tag = tag
                return ["+ idling", *([f"* {self.mails} EXISTS"] if self.tells else [])]
            case _ if tag == "DONE":
                return [f"{self.tag} OK done"]
            case ["STATUS", '"INBOX"' | "INBOX", *_]:
                state = f"(MESSAGES {self.mails} UIDNEXT {self.mails + 1} UIDVALIDITY 1)"
                return [f"* STATUS INBOX {state}", f"{tag} OK done"]
            case ["EXAMINE", '"INBOX"' | "INBOX"]:
                told = [f"* {self.mails} EXISTS", f"* OK [UIDNEXT {self.mails + 1}] x"]
                return [*told, "* OK [UIDVALIDITY 1] x", f"{tag} OK [READ-ONLY] x"]
            case _:
                return plain(tag, rest)


@pytest.mark.parametrize("tells", [True, False])
async def test_j3_a_server_whose_idle_is_silent_is_noticed(tells: bool) -> None:  # noqa: FBT001 - a column
    script = Silent(tells=tells)
    options = FeedbackOptions(poll_s=0.05, retry_first_s=0.05)
    with ScriptedImap(script.answer) as server:
        async with bench_at(scripted(server), options=options) as bench, running(bench):
            await until(lambda: script.mails > 5)
            await asyncio.sleep(0)
            assert bench.mailbox.silent is not tells


async def test_j6_states_are_kept_with_their_time_and_written_again_each_hour() -> None:
    clock, kept = FakeClock(), FakeAccounts()
    states = AccountStates(kept, clock, FakeObserver())
    states.watch({"a@b:1"})
    states.lost("a@b:1", "no answer in time")
    began = clock.now()
    await states.write()
    clock.seconds += 1800
    states.lost("a@b:1", "Connection refused")
    await states.write()
    assert kept.rows["a@b:1"] == WatchedAccount(
        name="a@b:1",
        state=AccountState.LOST,
        since=began,
        reason="Connection refused",
        silent=False,
    )
    clock.seconds += 3600
    await states.write()
    assert clock.now() - kept.times["a@b:1"] < timedelta(seconds=1)


class SlowAccounts(FakeAccounts):
    """While it writes, an account is reached."""

    states: AccountStates
    away = False

    async def write(self, accounts: Sequence[WatchedAccount], watched: datetime) -> None:
        if self.away:
            raise StorageUnavailable("the database is away")
        await super().write(accounts, watched)
        self.states.opened("bob@host:143")


async def test_what_changes_while_the_states_are_written_is_written_next() -> None:
    kept = SlowAccounts()
    kept.states = states = AccountStates(kept, ServerClock(), FakeObserver())
    states.watch({"bob@host:143"})
    kept.away = True
    await states.write()
    kept.away = False
    await states.write()
    written = [kept.rows["bob@host:143"].state]
    await states.write()
    written.append(kept.rows["bob@host:143"].state)
    assert written == [AccountState.NOT_YET, AccountState.WATCHING]
