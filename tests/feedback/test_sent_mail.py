"""To whom people write: read from Sent on a real Dovecot, and in a Maildir."""

from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spamd.feedback.mailboxes.mailbox import summary_of
from spamd.feedback.options import AccountOptions
from spamd.feedback.senders import sent_mail
from spamd.feedback.senders.sent_mail import written
from spamd.message.authentication.sender import addresses_of
from tests.feedback.conftest import Account
from tests.feedback.fakes import FakeCorrespondents, FakeMailboxes
from tests.feedback.test_maildir import QUICK as QUICK_MAILDIR
from tests.feedback.test_maildir import Box, maildir_mailbox
from tests.feedback.world import QUICK, Bench, bench_at, world_at

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def letter(to: str, *fields: str, number: int = 0) -> bytes:
    lines = [
        f"Message-ID: <{to.split(maxsplit=1)[0]}.{number}@our.test>",
        "Date: Fri, 02 Jan 2026 12:00:00 +0000",
        "From: Alice <alice@our.test>",
        f"To: {to}",
        *fields,
        "Subject: hello",
    ]
    return "\r\n".join([*lines, "", "See you.", ""]).encode()


async def test_whom_one_writes_to_is_read_from_sent_on_a_dovecot(account: Account) -> None:
    known = FakeCorrespondents()
    async with world_at(*account, correspondents=known) as world:
        world.owner.create("Sent")
        world.owner.append("Sent", letter("Old Friend <old@friends.test>"))
        await world.poll()
        assert known.of(world.user) == ["old@friends.test"]
        world.owner.append("Sent", letter("new@friends.test", "Cc: C <c@x.test>, d@x.test"))
        world.owner.append("Sent", letter("e@x.test", "Bcc: bcc@x.test"))
        world.owner.append("Sent", letter("draft@x.test"), "(\\Draft)")
        world.owner.append("Sent", letter("away@x.test", "Auto-Submitted: auto-replied"))
        world.owner.append("Sent", letter("in@x.test", "X-Spam-Id: id-in"))
        await world.poll()
        await world.poll()
        names = ["bcc@x.test", "c@x.test", "d@x.test", "e@x.test", "new@friends.test"]
        assert known.of(world.user) == sorted(["old@friends.test", *names])
        assert set(known.seen[world.user].values()) == {1}
        assert world.taught() == []
    async with world_at(*account, correspondents=known, mailboxes=world.mailboxes) as world:
        world.owner.append("Sent", letter("later@x.test"))
        await world.poll()
        assert known.seen[world.user]["later@x.test"] == 1
        assert known.seen[world.user]["old@friends.test"] == 1  # a new start reads nothing again


async def test_sent_on_a_dovecot_is_read_in_portions_the_newest_mails_only(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sent_mail, "OLD_MOST", 5)
    known = FakeCorrespondents()
    options = replace(QUICK, chunk=2)
    async with world_at(*account, correspondents=known, options=options) as world:
        world.owner.create("Sent Messages")
        for number in range(8):
            world.owner.append("Sent Messages", letter(f"friend{number}@x.test"))
        told = []
        for _ in range(4):
            await world.poll()
            told.append(len(known.of(world.user)))
        assert told == [2, 4, 5, 5]
        assert known.of(world.user) == [f"friend{number}@x.test" for number in range(3, 8)]


async def test_a_folder_of_sent_mail_that_is_made_anew_is_read_again(account: Account) -> None:
    known = FakeCorrespondents()
    async with world_at(*account, correspondents=known) as world:
        world.owner.create("Sent")
        world.owner.append("Sent", letter("one@x.test"))
        await world.poll()
        world.owner.delete("Sent")
        world.owner.create("Sent")
        world.owner.append("Sent", letter("two@x.test"))
        await world.poll()
        assert known.of(world.user) == ["one@x.test", "two@x.test"]


async def test_whom_one_writes_to_is_read_from_sent_in_a_maildir(tmp_path: Path) -> None:
    known, mailboxes, box = FakeCorrespondents(), FakeMailboxes(), Box(tmp_path / "alice")
    box.create("Sent")
    box.move(box.deliver(letter("old@friends.test")), "Sent")

    def opened() -> AbstractAsyncContextManager[Bench]:
        return bench_at(
            AccountOptions(maildir=box.root),
            options=QUICK_MAILDIR,
            make=maildir_mailbox,
            mailboxes=mailboxes,
            correspondents=known,
        )

    async with opened() as bench:
        await bench.poll()
        box.move(box.deliver(letter("new@friends.test")), "Sent")
        await bench.poll()
        await bench.poll()
        assert known.seen["alice"] == {"old@friends.test": 1, "new@friends.test": 1}
        assert bench.taught() == []
    box.move(box.deliver(letter("later@friends.test")), "Sent")
    async with opened() as bench:
        await bench.poll()
        assert known.of("alice") == ["later@friends.test", "new@friends.test", "old@friends.test"]


async def test_a_maildir_of_many_sent_mails_is_read_to_its_end(tmp_path: Path) -> None:
    known, box = FakeCorrespondents(), Box(tmp_path / "alice")
    box.create("Sent")
    for number in range(7):
        content = letter(f"friend{number}@x.test").replace(b"\r\n", b"\n")
        name = f"{1700000000 + number // 2}.M{number}P1.host:2,S"
        (box.path("Sent") / "cur" / name).write_bytes(content)
    async with bench_at(
        AccountOptions(maildir=box.root),
        options=replace(QUICK_MAILDIR, chunk=3),
        make=maildir_mailbox,
        correspondents=known,
    ) as bench:
        for _ in range(4):
            await bench.poll()
    assert known.of("alice") == [f"friend{number}@x.test" for number in range(7)]


async def test_nobody_reads_sent_where_nothing_is_remembered(account: Account) -> None:
    async with world_at(*account) as world:
        world.owner.create("Sent")
        world.owner.append("Sent", letter("old@friends.test"))
        await world.poll()
        assert all("Sent" not in name for _, name in world.mailboxes.rows)


@pytest.mark.parametrize(
    ("field", "addresses"),
    [
        ("a@x.test", ["a@x.test"]),
        ('A <A@X.Test>, "c@x.test, D" <d@x.test>; b@x.test', ["a@x.test", "d@x.test", "b@x.test"]),
        ("bait@x.test <real@x.test>", ["real@x.test"]),
        ("friends: a@x.test, b@x.test;", ["a@x.test", "b@x.test"]),
        ("undisclosed-recipients:;", []),
        ("=?utf-8?q?x=40y=2Ez?= <a@x.test>", ["a@x.test"]),
        ("a@xn--mnchen-3ya.example", ["a@münchen.example"]),
        ("", []),
    ],
)
def test_recipients_are_read_from_a_field(field: str, addresses: list[str]) -> None:
    assert addresses_of(field) == addresses


def test_the_time_of_a_mail_never_lies_ahead_and_its_recipients_are_bounded() -> None:
    many = ", ".join(f"n{number}@x.test" for number in range(300))
    summary = summary_of(
        "1",
        letter(many),
        flags=frozenset(),
        delivered=datetime(2030, 1, 1, tzinfo=UTC),
        baseline=False,
    )
    found = written(summary, NOW)
    assert found.time == NOW
    assert len(found.addresses) == sent_mail.ADDRESSES
