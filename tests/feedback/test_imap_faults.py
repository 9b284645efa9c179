"""What goes wrong between us and an IMAP server, by the number of the fault."""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pytest

from spamd.bayes.decision import Verdict
from spamd.feedback.mailboxes.imap import ImapMailbox
from spamd.feedback.mailboxes.mailbox import Folder, MessageSummary, header_fields, trace
from spamd.feedback.options import AccountOptions, FeedbackOptions, Tls
from spamd.feedback.ports import Cursor, Sighting
from spamd.ports import Clock
from spamd.sample import Label
from tests.feedback.conftest import Account
from tests.feedback.fakes import FakeMailboxes
from tests.feedback.scripted import ScriptedImap, plain
from tests.feedback.tap import Tap
from tests.feedback.world import ServerClock, bench_at, mail, only, world_at
from tests.servers.dovecot import DovecotFactory

READING = {
    "CAPABILITY", "LOGIN", "LIST", "STATUS", "EXAMINE", "UID SEARCH", "UID FETCH", "IDLE", "DONE",
    "LOGOUT",
}  # fmt: skip
"""Commands that change nothing (LOGIN's answer apart)."""


async def test_e1_reading_leaves_mail_unread(account: Account) -> None:
    async with world_at(*account) as world:
        await world.poll()
        world.owner.append("INBOX", mail("unseen"))
        await world.poll()
        world.owner.move("unseen", "INBOX", "Junk")
        await world.poll()
        assert only(world.taught())[1] is Label.SPAM
        assert b"\\Seen" not in world.owner.flags("unseen", "Junk")


async def test_e14_e17_e19_no_command_changes_anything_on_the_server(account: Account) -> None:
    server, user = account
    with Tap(server.port) as tap:
        async with world_at(server, user, port=tap.port) as world:
            await world.poll()
            world.arrives("offer", Verdict.HAM)
            world.owner.append("INBOX", mail("unjudged"))
            await world.poll()
            world.owner.flag("unjudged", "INBOX", "$Junk")
            world.owner.move("offer", "INBOX", "Junk")
            await world.poll()
            await world.mailbox.wait(next(iter(await world.mailbox.folders())), 0.1)
        assert len(world.taught()) == 2
        assert tap.commands() <= READING
        assert b"BODY[" not in tap.sent


async def test_e2_new_uids_after_delete_and_create_teach_nothing_twice(account: Account) -> None:
    async with world_at(*account) as world:
        world.arrives("pills", Verdict.SPAM, "Junk")
        content = world.arrives("offer", Verdict.HAM)
        await world.poll()
        world.owner.move("offer", "INBOX", "Junk")
        await world.poll()
        taught = world.taught()
        world.owner.delete("Junk")
        world.owner.create("Junk")
        world.owner.append("Junk", content)
        world.owner.append("Junk", mail("a stranger with an old uid"))
        await world.poll()
        await world.poll()
        assert world.taught() == taught == [("offer", Label.SPAM)]


async def test_e2_a_move_after_the_new_uids_counts(account: Account) -> None:
    async with world_at(*account) as world:
        await world.poll()
        world.owner.delete("Junk")
        world.owner.create("Junk")
        world.arrives("offer", Verdict.HAM)
        await world.poll()
        world.owner.move("offer", "INBOX", "Junk")
        await world.poll()
        assert only(world.taught()) == ("offer", Label.SPAM)


async def test_e2_the_inbox_may_get_new_uids_too(dovecot: DovecotFactory) -> None:
    server = dovecot()
    async with world_at(server) as world:
        world.arrives("offer", Verdict.HAM)
        world.arrives("rescued", Verdict.SPAM, "Junk")
        await world.poll()
        world.owner.move("rescued", "Junk", "INBOX")
        await world.poll()
        validity = world.mailboxes.rows[world.mailbox.key, "INBOX"].validity
        await asyncio.sleep(1.1)  # UIDVALIDITY counts seconds
        for pattern in ("dovecot-uid*", "dovecot.index*", "dovecot.list.index*"):
            for file in server.maildir("alice").glob(pattern):
                file.unlink()
        await world.mailbox.close()
        await world.mailbox.open()
        await world.poll()
        await world.poll()
        assert world.mailboxes.rows[world.mailbox.key, "INBOX"].validity != validity
        assert only(world.taught()) == ("rescued", Label.HAM)


@pytest.mark.parametrize("name", ["Junk", "Archive"])
async def test_e2_a_renamed_folder_teaches_nothing(account: Account, name: str) -> None:
    async with world_at(*account) as world:
        if name != "Junk":
            world.owner.create(name)
        for number in range(3):
            world.owner.append(name, mail(f"unjudged {number}"))
        world.arrives("pills", Verdict.SPAM, "Junk")
        await world.poll()
        world.owner.rename(name, "Old mail")
        await world.poll()
        await world.poll()
        assert world.taught() == []


async def test_e3_a_server_without_uidvalidity_teaches_each_mail_once() -> None:
    content = mail("offer", identity="id-offer").decode()
    head = content.partition("\r\n\r\n")[0] + "\r\n\r\n"
    where = "INBOX"

    def answer(tag: str, rest: str) -> list[str] | None:
        words = rest.split(" ")
        match words[0]:
            case "STATUS":
                held = int(words[1].strip('"') == where)
                return [f"* STATUS {words[1]} (MESSAGES {held})", f"{tag} OK done"]
            case "EXAMINE":
                held = int(words[1].strip('"') == where)
                return ["* FLAGS ()", f"* {held} EXISTS", f"{tag} OK done"]
            case "UID" if words[1] == "SEARCH":
                return ["* SEARCH" + ("" if "KEYWORD" in rest else " 7"), f"{tag} OK done"]
            case "UID":
                return [
                    f"* 1 FETCH (UID 7 FLAGS () BODY[HEADER.FIELDS (X)] {{{len(head)}}}",
                    f"{head})",
                    f"{tag} OK done",
                ]
            case _:
                return plain(tag, rest, capabilities="IMAP4rev1")

    with ScriptedImap(answer) as server:
        account = AccountOptions(
            host="127.0.0.1", port=server.port, tls=Tls.NONE, user="a", password="x"
        )
        async with bench_at(account) as world:
            world.journal.scanned(content.encode(), "id-offer", Verdict.HAM)
            await world.watcher.poll()
            where = "Junk"
            for _ in range(3):
                await world.watcher.poll()
                await world.mailbox.close()
                await world.mailbox.open()
        assert [label for _, label in world.journal.history] == [Label.SPAM]


async def test_e3_a_refused_folder_is_reported_and_asked_for_again_later() -> None:
    def answer(tag: str, rest: str) -> list[str] | None:
        if rest.startswith("STATUS") and "Junk" in rest:
            return [f"{tag} NO [LIMIT] too many"]
        return plain(tag, rest)

    with ScriptedImap(answer) as server:
        account = AccountOptions(
            host="127.0.0.1", port=server.port, tls=Tls.NONE, user="a", password="x"
        )
        async with bench_at(account) as world:
            summary = await world.watcher.poll()
        assert "LIMIT" in summary.faults[0]
        assert any("EXAMINE" in line and "INBOX" in line for line in server.lines)
        assert sum("Junk" in line for line in server.lines) == 1


class Robbed(ImapMailbox):
    """Somebody expunges mail between our SEARCH and our FETCH."""

    rob: Callable[[], None] | None = None

    async def summaries(
        self, folder: Folder, keys: Sequence[str], cursor: Cursor
    ) -> Sequence[MessageSummary]:
        if self.rob is not None:
            self.rob()
            self.rob = None
        return await super().summaries(folder, keys, cursor)


def robbed(
    account: AccountOptions, options: FeedbackOptions, clock: Clock, _: FakeMailboxes
) -> Robbed:
    return Robbed(account, options, clock, login=account.user, actor=account.user)


async def test_e10_mail_that_vanishes_between_search_and_fetch_stops_nothing(
    account: Account,
) -> None:
    async with world_at(*account, make=robbed) as world:
        await world.poll()
        for name in ("first", "second", "third"):
            world.arrives(name, Verdict.HAM)
        await world.poll()
        world.owner.move("first", "INBOX", "Junk")
        world.owner.move("third", "INBOX", "Junk")
        assert isinstance(world.mailbox, Robbed)
        world.mailbox.rob = lambda: world.owner.remove("first", "Junk")
        await world.poll()
        assert only(world.taught()) == ("third", Label.SPAM)


@pytest.mark.parametrize(
    "name", ["Entwürfe neu", "迷惑メール箱", "A&B", 'with "quotes"', "back\\slash", "🙂"]
)
async def test_e13_any_folder_name_teaches(account: Account, name: str) -> None:
    async with world_at(*account) as world:
        world.arrives("invoice", Verdict.SPAM, "Junk")
        await world.poll()
        world.owner.create(name)
        world.owner.move("invoice", "Junk", name)
        summary = await world.poll()
        assert summary.faults == []
        assert only(world.taught()) == ("invoice", Label.HAM)
        assert (world.mailbox.key, name) in world.mailboxes.rows


async def test_e14_a_junk_keyword_needs_no_permanent_flags(account: Account) -> None:
    async with world_at(*account) as world:
        await world.poll()
        world.arrives("marked", Verdict.UNSURE)
        world.owner.append("INBOX", world.judged("came marked", Verdict.UNSURE), "($Junk)")
        await world.poll()
        world.owner.flag("marked", "INBOX", "$Junk")
        await world.poll()
        assert only(world.taught()) == ("marked", Label.SPAM)


async def test_e15_one_bad_folder_does_not_stop_the_others(dovecot: DovecotFactory) -> None:
    server = dovecot()
    async with world_at(server) as world:
        for name in ("AAA", "Broken", "ZZZ"):
            world.owner.create(name)
        world.arrives("invoice", Verdict.SPAM, "Junk")
        world.arrives("bill", Verdict.SPAM, "Junk")
        await world.poll()
        world.owner.move("invoice", "Junk", "AAA")
        world.owner.move("bill", "Junk", "ZZZ")
        broken = server.maildir("alice") / ".Broken"
        for file in broken.glob("dovecot*"):
            file.unlink()
        shutil.rmtree(broken / "cur")
        (broken / "cur").write_text("not a folder")
        summary = await world.poll()
        assert world.taught() == [("invoice", Label.HAM), ("bill", Label.HAM)]
        assert len(summary.faults) == 1
        assert "Broken" in summary.faults[0]


async def test_e15_one_bad_mail_does_not_stop_the_others(account: Account) -> None:
    async with world_at(*account, poison=ArithmeticError) as world:
        for name, body in [("first", "fine"), ("second", "poison"), ("third", "fine")]:
            world.owner.append("INBOX", mail(name, body=body))
        await world.poll()
        for name in ("first", "second", "third"):
            world.owner.move(name, "INBOX", "Junk")
        summary = await world.poll()
        assert (summary.learned[Label.SPAM], summary.parked) == (2, 1)


async def test_e16_a_mail_that_always_fails_is_tried_three_times_and_then_listed(
    account: Account,
) -> None:
    patient = FeedbackOptions(poll_s=1e-6, attempts=3, rule_window_s=0)
    async with world_at(*account, options=patient, poison=ArithmeticError) as world:
        world.owner.append("INBOX", mail("bad", body="poison"))
        await world.poll()
        world.owner.move("bad", "INBOX", "Junk")
        summaries = [await world.poll() for _ in range(6)]
        parked = await world.mailboxes.parked()
        assert [summary.parked for summary in summaries] == [1, 1, 1, 0, 0, 0]
        assert [(row.attempts, row.folder) for row in parked] == [(3, "Junk")]
        assert "this mail is too much" in parked[0].reason


async def test_e16_a_mail_that_fails_once_is_learned_at_the_next_try(account: Account) -> None:
    patient = FeedbackOptions(poll_s=1e-6, rule_window_s=0)
    async with world_at(*account, options=patient, poison=ArithmeticError) as world:
        world.owner.append("INBOX", mail("bad", body="poison"))
        await world.poll()
        world.owner.move("bad", "INBOX", "Junk")
        await world.poll()
        async with world_at(
            *account, options=patient, mailboxes=world.mailboxes, journal=world.journal
        ) as healthy:
            await healthy.poll()
        assert only(world.taught())[1] is Label.SPAM
        assert await world.mailboxes.parked() == []


async def test_e18_two_accounts_share_nothing_but_the_database(
    account: Account, other_account: Account
) -> None:
    async with (
        world_at(*account) as first,
        world_at(*other_account, mailboxes=first.mailboxes, journal=first.journal) as second,
    ):
        first.arrives("invoice", Verdict.SPAM, "Junk")
        await first.poll()
        second.owner.append("INBOX", mail("invoice", identity="id-invoice"))
        await second.poll()
        assert first.taught() == []
        accounts = {account for account, _ in first.mailboxes.rows}
        assert accounts == {first.mailbox.key, second.mailbox.key}


async def test_e21_bytes_that_are_no_text_pass(account: Account) -> None:
    async with world_at(*account) as world:
        await world.poll()
        raw = b"From: a@b.test\r\nSubject: raw \xe2\xff\r\n\r\nbody \xe2\x28\xa1 \x00 end\r\n"
        world.owner.append("INBOX", raw.replace(b"\x00", b""))
        await world.poll()
        world.owner.move("raw", "INBOX", "Junk")
        await world.poll()
        assert only(world.taught())[1] is Label.SPAM


@pytest.mark.parametrize("part", ["HEADER", "BODY.PEEK[]"])
async def test_e16_a_mail_that_makes_the_server_hang_up_is_parked_and_the_others_are_read(
    part: str,
) -> None:
    head = mail("some mail").partition(b"\r\n\r\n")[0].decode().replace("some", "some{0}")

    def one(uid: int, rest: str) -> str:
        text = head.format(uid) + "\r\n\r\n"
        name = "BODY[HEADER.FIELDS (X)]" if "HEADER" in rest else "BODY[]<0>"
        date = 'INTERNALDATE "01-Jan-2026 00:00:00 +0000"'
        return f"* {uid} FETCH (UID {uid} FLAGS () {date} {name} {{{len(text)}}}\r\n{text})"

    def answer(tag: str, rest: str) -> list[str] | None:
        words = rest.split(" ")
        held = 40 if "Junk" in rest else 0
        match words[0]:
            case "STATUS":
                state = f"MESSAGES {held} UIDNEXT 41 UIDVALIDITY 1"
                return [f"* STATUS {words[1]} ({state})", f"{tag} OK done"]
            case "EXAMINE":
                return [
                    f"* {held} EXISTS",
                    "* OK [UIDVALIDITY 1] x",
                    "* OK [UIDNEXT 41] x",
                    f"{tag} OK done",
                ]
            case "UID" if words[1] == "SEARCH":
                odd = "KEYWORD" in rest or "DELETED" in rest
                found = "" if odd else " ".join(map(str, range(1, 41)))
                return [f"* SEARCH {found}", f"{tag} OK done"]
            case "UID":
                uids = [int(uid) for uid in words[2].split(",")]
                if 17 in uids and part in rest:
                    return None
                return [*(one(uid, rest) for uid in uids), f"{tag} OK done"]
            case _:
                return plain(tag, rest)

    with ScriptedImap(answer) as server:
        account = AccountOptions(
            host="127.0.0.1", port=server.port, tls=Tls.NONE, user="a", password="x"
        )
        async with bench_at(account, reachable=False) as bench:
            key = bench.mailbox.key
            cursors = [watched_before(key, "INBOX", 40), watched_before(key, "Junk", 0)]
            lay = [lay_in_inbox(uid, f"{head.format(uid)}\r\n\r\n") for uid in range(1, 41)]
            await bench.mailboxes.save(key, cursors, lay)
            summary = await bench.watcher.once()
            parked = await bench.mailboxes.parked()
        assert summary.faults == []
        assert [(row.folder, row.uid) for row in parked] == [("Junk", "17")]
        assert "the connection ends" in parked[0].reason
        assert bench.mailboxes.rows[bench.mailbox.key, "Junk"].next_uid == 41


def lay_in_inbox(uid: int, head: str) -> Sighting:
    """Return what was seen of a mail that lay in the inbox before, under this UID."""
    delivered = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
    mail = trace(header_fields(head.encode()))
    return Sighting(folder="INBOX", key=str(uid), mail=mail, delivered=delivered)


def watched_before(account: str, folder: str, mails: int) -> Cursor:
    """Return the cursor of a folder that was looked at before and held so many mails."""
    return Cursor(
        account=account,
        folder=folder,
        validity=1,
        next_uid=mails + 1,
        modseq=0,
        messages=mails,
        baseline=1,
        marked="",
        time=ServerClock().now(),
    )
