"""An IMAP server is as untrusted as mail: whatever it says, we stay within bounds and say so."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from spamd.feedback.mailboxes.folders import MOST_LISTED
from spamd.feedback.mailboxes.imap import ImapMailbox
from spamd.feedback.mailboxes.mailbox import Folder, FolderError, MailboxError, Place
from spamd.feedback.options import AccountOptions, Tls
from tests.feedback.lying_server import (
    DRIP_S,
    HONEST,
    LIES,
    OPTIONS,
    Cost,
    Lie,
    LyingImap,
    account,
    told,
)
from tests.feedback.scripted import ScriptedImap, plain
from tests.feedback.world import ServerClock, bench_at
from tests.sizes import sized
from tests.waiting import until

MOST_S = 60.0
"""No lie may cost more, on any machine: the deadlines here are half a second."""

MOST_BYTES = 100 * 2**20
"""The answer of 16 MiB that a server may give, a few times over: as bytes, as text, as numbers."""

LARGE = [name for name in LIES if "without end" in name or "huge" in name or "million" in name]

EVENTS = {"account.lost", "folder.failed", "mail.parked"}


@pytest.mark.parametrize("stage", HONEST)
async def test_k7_every_lie_ends_in_words_and_in_time(stage: str) -> None:
    turns = asyncio.Semaphore(8)

    async def one(lie: Lie) -> Cost:
        async with turns:
            cost = await told(stage, lie)
            for _ in range(2):  # on a busy machine the honest part may take too long
                cost = cost if cost.lied else await told(stage, lie)
            return cost

    async with asyncio.TaskGroup() as tasks:
        costs = {name: tasks.create_task(one(lie)) for name, lie in LIES.items()}
    for name, task in costs.items():
        _in_words(name, task.result())
    assert all(task.result().lied for task in costs.values())


def _in_words(name: str, cost: Cost) -> None:
    assert cost.seconds < MOST_S, name
    for event, error in cost.faults:
        assert event in EVENTS, (name, event, error)
        assert isinstance(error, MailboxError), (name, error)
        assert len(str(error)) < 500, name
        assert str(error).isprintable(), (name, error)


@pytest.mark.parametrize(
    "stage", sized(["LIST", "IDLE"], ["LIST", "EXAMINE", "UID SEARCH", "UID FETCH head", "IDLE"])
)
@pytest.mark.parametrize("name", LARGE)
async def test_k7_no_lie_takes_more_memory_than_is_said(stage: str, name: str) -> None:
    cost = await told(stage, LIES[name], measured=True)
    assert cost.lied
    assert cost.memory_bytes < MOST_BYTES


async def test_k7_after_a_lie_the_account_is_tried_again_and_works() -> None:
    turns = iter([LIES["lines without end"], LIES["nesting"], LIES["cut"]])

    def lie(tag: bytes, honest: bytes) -> object:
        one = next(turns, None)
        return [honest] if one is None else one(tag, honest)

    with LyingImap("LIST", lie) as server:  # type: ignore[arg-type] # an iterator of bytes
        async with bench_at(account(server.port), options=OPTIONS, reachable=False) as bench:
            task = asyncio.create_task(bench.watcher.run())
            examined = ("account.examined",)
            await until(lambda: [one for one in bench.observer.events if one[0] in examined])
            task.cancel()
            await asyncio.wait([task])
    assert {name for name, _ in bench.observer.faults} <= EVENTS


async def test_k7_a_uidnext_beyond_all_numbers_asks_no_more_commands_than_there_are_mails() -> None:
    commands: list[str] = []

    def answer(tag: str, rest: str) -> list[str] | None:
        commands.append(rest)
        if rest.startswith("EXAMINE"):
            beyond = f"* OK [UIDNEXT 1{'0' * 30}] x"
            return ["* 120000 EXISTS", "* OK [UIDVALIDITY 1] x", beyond, f"{tag} OK done"]
        if rest.startswith("UID SEARCH"):
            return ["* SEARCH 7 5 -3 9", f"{tag} OK done"]
        return plain(tag, rest)

    with ScriptedImap(answer) as server:
        box = opened(server.port)
        await box.open()
        folder = Folder(name="INBOX", raw="INBOX", place=Place.INBOX)
        changes = await box.changes(folder, None, baseline=True)
        await box.close()
    assert changes is not None
    assert changes.keys == ["5", "7", "9"]
    assert sum("SEARCH" in one for one in commands) == 9  # for mails and two keywords


async def test_k7_a_folder_of_more_mails_than_we_hold_is_named_and_left() -> None:
    def answer(tag: str, rest: str) -> list[str] | None:
        if rest.startswith("EXAMINE"):
            return ["* 4000000000 EXISTS", "* OK [UIDVALIDITY 1] x", f"{tag} OK done"]
        return plain(tag, rest)

    with ScriptedImap(answer) as server:
        box = opened(server.port)
        await box.open()
        folder = Folder(name="INBOX", raw="INBOX", place=Place.INBOX)
        with pytest.raises(FolderError, match=r"folder INBOX holds 4,000,000,000 messages"):
            await box.changes(folder, None, baseline=True)
        await box.close()


async def test_k7_a_folder_name_can_not_bring_a_command_of_its_own() -> None:
    name = 'x" (MESSAGES)\r\nA1 DELETE "INBOX'
    listed = [f'* LIST () "/" {{{len(name)}}}', name, "* LIST () NIL INBOX"]

    def answer(tag: str, rest: str) -> list[str] | None:
        return [*listed, f"{tag} OK done"] if rest.startswith("LIST") else plain(tag, rest)

    with ScriptedImap(answer) as server:
        async with bench_at(account(server.port), options=OPTIONS) as bench:
            assert [folder.name for folder in await bench.mailbox.folders()] == ["INBOX"]
            await bench.watcher.poll()
        assert not any("DELETE" in line for line in server.lines)


async def test_k7_news_without_end_make_no_more_than_one_look_a_second() -> None:
    def answer(tag: str, rest: str) -> list[str] | None:
        if rest == "IDLE":
            return ["+ idling", "* 3 EXISTS"]
        if tag == "DONE":
            return [f"{idle[-1]} OK done"]
        return plain(tag, rest)

    idle: list[str] = []

    def noted(tag: str, rest: str) -> list[str] | None:
        if rest == "IDLE":
            idle.append(tag)
        return answer(tag, rest)

    with ScriptedImap(noted) as server:
        box = opened(server.port)
        await box.open()
        started = time.monotonic()
        for _ in range(3):
            await box.wait(Folder(name="INBOX", raw="INBOX", place=Place.INBOX), 30)
        assert time.monotonic() - started >= 1.9
        await box.close()


async def test_k7_a_goodbye_that_nobody_answers_is_not_waited_for() -> None:
    def answer(tag: str, rest: str) -> list[str] | None:
        return [] if rest == "LOGOUT" else plain(tag, rest, capabilities="IMAP4rev1")

    with ScriptedImap(answer) as server:
        box = opened(server.port)
        await box.open()
        started = time.monotonic()
        await box.close()
        assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    "first", [b"", b"\x16\x03\x03\x40\x00\x02", b"* OK ready\r\n", b"\x15\x03"]
)
async def test_k7_a_handshake_of_tls_that_drips_ends_at_the_deadline(first: bytes) -> None:
    with dripping(first) as port:
        secured = AccountOptions(
            host="127.0.0.1", port=port, tls=Tls.IMPLICIT, user="alice", password="x"
        )
        box = ImapMailbox(secured, OPTIONS, ServerClock(), login="alice", actor="alice")
        started = time.monotonic()
        with pytest.raises(MailboxError, match="can't be reached"):
            await box.open()
        await box.close()
        assert time.monotonic() - started < 10


@pytest.mark.parametrize("capability", ["IMAP4rev1 STARTTLS"])
async def test_k7_what_was_said_before_tls_is_not_read_after_it(capability: str) -> None:
    def answer(tag: str, rest: str) -> list[str] | None:
        if rest == "STARTTLS":
            return [f"{tag} OK go on", "* OK injected", "* CAPABILITY IMAP4rev1 IDLE"]
        return plain(tag, rest, capabilities=capability)

    with ScriptedImap(answer) as server:
        wanted = AccountOptions(
            host="127.0.0.1", port=server.port, tls=Tls.STARTTLS, user="alice", password="x"
        )
        box = ImapMailbox(wanted, OPTIONS, ServerClock(), login="alice", actor="alice")
        with pytest.raises(MailboxError):
            await box.open()
        await box.close()
        assert not any("LOGIN" in line for line in server.lines)


def opened(port: int) -> ImapMailbox:
    return ImapMailbox(account(port), OPTIONS, ServerClock(), login="alice", actor="alice")


@contextmanager
def dripping(first: bytes) -> Iterator[int]:
    """Listen, and send a byte now and then for ever."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()

        def drip() -> None:
            client, _ = listener.accept()
            with client, contextlib.suppress(OSError):
                client.sendall(first)
                while not ended.wait(DRIP_S):
                    client.sendall(b"\0")

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        ended.set()
        thread.join(5)


async def test_k6_of_more_folders_than_the_limit_the_first_are_watched_and_that_is_said() -> None:
    listed = [f'* LIST () "/" "f{number:05}"' for number in range(3300)]
    listed += ["* LIST () NIL INBOX", '* LIST (\\Junk) "/" Zunk']
    asked: list[str] = []

    def answer(tag: str, rest: str) -> list[str] | None:
        asked.append(rest)
        return [*listed, f"{tag} OK done"] if rest.startswith("LIST") else plain(tag, rest)

    options = replace(OPTIONS, max_folders=20, timeout_s=10)
    with ScriptedImap(answer) as server:
        async with bench_at(account(server.port), options=options) as bench:
            await bench.watcher.poll()
            await bench.watcher.poll()
    assert {one.split(" ")[1] for one in asked if one.startswith("EXAMINE")} == {
        '"Zunk"', '"INBOX"', *(f'"f{number:05}"' for number in range(18))
    }  # fmt: skip
    told = [str(error) for event, error in bench.observer.faults if event == "folders.left"]
    assert len(told) == 1
    assert told[0].startswith("3,302 folders, of which 20 are watched")


async def test_k6_listing_100_000_folders_leaves_the_event_loop_alone() -> None:
    listed = [f'* LIST () "/" "a{number % 100}/b{number}"' for number in range(100_000)]
    text = "\r\n".join([*listed, "* LIST () NIL INBOX"])

    def answer(tag: str, rest: str) -> list[str] | None:
        return [text, f"{tag} OK done"] if rest.startswith("LIST") else plain(tag, rest)

    with ScriptedImap(answer) as server:
        options = replace(OPTIONS, timeout_s=60)
        box = ImapMailbox(account(server.port), options, ServerClock(), login="a", actor="alice")
        await box.open()
        main = time.thread_time()
        assert len(await box.folders()) == MOST_LISTED + 1
        assert time.thread_time() - main < 0.3  # sorting them takes a second
        await box.close()


async def test_k7_a_server_that_can_nothing_is_no_error_of_ours() -> None:
    """Found by fuzzing: without capabilities they were asked for again, outside of any border."""

    def answer(tag: str, rest: str) -> list[str] | None:
        if rest == "CAPABILITY" and logged_in:
            return [f"{tag} OK done"]
        if rest.startswith("LOGIN"):
            logged_in.append(tag)
        return plain(tag, rest)

    logged_in: list[str] = []
    with ScriptedImap(answer) as server:
        async with bench_at(account(server.port), options=OPTIONS, reachable=False) as bench:
            summary = await bench.watcher.once()
    assert len(summary.faults) == 1
    assert all(isinstance(error, MailboxError) for _, error in bench.observer.faults)
