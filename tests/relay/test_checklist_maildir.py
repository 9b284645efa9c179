"""Rows L of the checklist: a Maildir as the next hop."""

import os
import time
from pathlib import Path

import pytest

from spamd.report import ScanReport
from tests.fakes import HAM, REJECT, SPAM, FakeInspector
from tests.relay.peers import MESSAGE, Talk, relay


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name[0].isdigit())


async def test_smtp_l01_a_delivered_mail_is_complete_and_has_lf_line_ends(tmp_path: Path) -> None:
    mail = tmp_path / "mail"
    async with relay(f"maildir://{mail}") as running:
        talk = await running.talk()
        answer = await talk.deliver(MESSAGE + b"..dot\r\n", sender=b"<Ann@x.test>")
        (path,) = files(mail)
        assert answer == b"250 2.0.0 %s\r\n" % path.name.encode()
        assert path.parent == mail / "new"
        text = path.read_bytes()
        assert text.startswith(b"Return-Path: <Ann@x.test>\nReceived: from client.test ")
        assert text.endswith(b"X-Spam-Id: fake-id\n" + MESSAGE.replace(b"\r\n", b"\n") + b".dot\n")
        assert b"\r" not in text
        assert list((mail / "tmp").iterdir()) == []


async def test_smtp_l01_and_d23_an_mbox_line_stands_before_return_path(tmp_path: Path) -> None:
    top = b"From a@x.test Mon Jan  1 00:00:00 2024\r\n"
    async with relay(f"maildir://{tmp_path}/mail") as running:
        assert (await (await running.talk()).deliver(top + MESSAGE)).startswith(b"250 ")
        (path,) = files(tmp_path)
        text = path.read_bytes()
        assert text.startswith(top.replace(b"\r\n", b"\n") + b"Return-Path: <a@x.test>\nReceived: ")


async def test_g8_an_indented_line_stands_behind_our_fields(tmp_path: Path) -> None:
    async with relay(f"maildir://{tmp_path}/mail") as running:
        assert (await (await running.talk()).deliver(b" top\r\n" + MESSAGE)).startswith(b"250 ")
        (path,) = files(tmp_path)
        text = path.read_bytes()
        assert text.startswith(b"Return-Path: <a@x.test>\nReceived: ")
        assert b"\nX-Front:\n top\n" + MESSAGE.replace(b"\r\n", b"\n") in text


async def test_smtp_l01_a_large_mail_goes_over_the_disk_unchanged(tmp_path: Path) -> None:
    url = f"maildir://{tmp_path}/mail"
    async with relay(url, memory_bytes=2**16, spool_above_bytes=2**15) as running:
        talk = await running.talk()
        wire = b"Subject: big\r\n\r\n" + b"..dots and words\r\n" * 100_000
        assert (await talk.deliver(wire)).startswith(b"250 ")
        (path,) = files(tmp_path)
        assert path.read_bytes().endswith(b"\n\n" + b".dots and words\n" * 100_000)


async def test_smtp_l01_the_order_of_steps_makes_a_crash_harmless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    sync, rename = os.fsync, Path.rename

    def noted_sync(descriptor: int) -> None:
        steps.append(f"sync {Path(f'/proc/self/fd/{descriptor}').readlink().parent.name}")
        sync(descriptor)

    def noted_rename(path: Path, target: Path) -> Path:
        steps.append(f"rename to {target.parent.name}")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(Path, "rename", noted_rename)
    async with relay(f"maildir://{tmp_path}/mail") as running:
        assert (await (await running.talk()).deliver()).startswith(b"250 ")
    assert steps == ["sync tmp", "rename to new", "sync mail"]


async def test_spam_goes_to_the_junk_folder(tmp_path: Path) -> None:
    async with relay(f"maildir://{tmp_path}/mail", inspector=FakeInspector(SPAM)) as running:
        assert (await (await running.talk()).deliver()).startswith(b"250 ")
        (path,) = files(tmp_path)
        assert path.parent == tmp_path / "mail" / ".Junk" / "new"
        assert (tmp_path / "mail" / ".Junk" / "maildirfolder").exists()
        assert b"X-Spam-Flag: YES\n" in path.read_bytes()


async def test_rejected_spam_is_in_no_folder(tmp_path: Path) -> None:
    async with relay(f"maildir://{tmp_path}/mail", inspector=FakeInspector(REJECT)) as running:
        assert (await (await running.talk()).deliver()).startswith(b"550 5.7.1 ")
        assert files(tmp_path) == []


async def test_smtp_l02_a_disk_that_refuses_is_452_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with relay(f"maildir://{tmp_path}/mail") as running:
        talk = await running.talk()
        await talk.begin()

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            await talk.send(MESSAGE + b".\r\n")
            assert (await talk.reply()).startswith(b"452 4.3.1 ")
        ((event, fault),) = running.observer.faults
        assert (event, type(fault.__cause__)) == ("message.failed", OSError)
        assert files(tmp_path) == []
        assert (await talk.deliver(hello=b"")).startswith(b"250 ")


async def test_smtp_l02_a_maildir_that_is_not_there_is_421(tmp_path: Path) -> None:
    url = f"maildir://{tmp_path}/absent"
    async with relay(url, next_hop={"maildir_create": False}) as running:
        talk = await running.talk()
        assert (await talk.say(b"EHLO c.test")).startswith(b"421 4.4.1 ")


async def test_smtp_l02_a_file_where_the_maildir_should_be_is_421(tmp_path: Path) -> None:
    (tmp_path / "mail").write_text("a file")
    async with relay(f"maildir://{tmp_path}/mail") as running:
        assert (await (await running.talk()).say(b"EHLO c.test")).startswith(b"421 4.4.1 ")


@pytest.mark.parametrize(("folder", "report"), [(".", HAM), (".Junk", SPAM)])
async def test_smtp_l03_what_crashes_left_is_removed_after_36_hours(
    tmp_path: Path, folder: str, report: ScanReport
) -> None:
    tmp = tmp_path / "mail" / folder / "tmp"
    tmp.mkdir(parents=True)
    for name, age_h in (("old", 37), ("recent", 35)):
        (tmp / name).write_text("half a mail")
        moment = time.time() - age_h * 3600
        os.utime(tmp / name, (moment, moment))
    async with relay(f"maildir://{tmp_path}/mail", inspector=FakeInspector(report)) as running:
        assert (await (await running.talk()).deliver()).startswith(b"250 ")
    assert [path.name for path in tmp.iterdir()] == ["recent"]


def everything(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


async def to_several(talk: Talk, hello: bytes, *recipients: bytes) -> None:
    await talk.begin(hello=hello, recipients=recipients)
    await talk.send(MESSAGE + b".\r\n")


async def test_one_maildir_gets_one_copy_whatever_the_recipients(tmp_path: Path) -> None:
    async with relay(f"maildir://{tmp_path}/mail") as running:
        talk = await running.talk()
        await to_several(talk, b"EHLO c.test", b"<a@y.test>", b"<b@y.test>")
        assert (await talk.reply()).startswith(b"250 ")
        assert len(files(tmp_path)) == 1


async def test_smtp_l04_all_recipients_have_the_mail_or_none(tmp_path: Path) -> None:
    url = f"maildir://{tmp_path}/{{domain}}/{{local}}/mail"
    for name in ("ann", "bob", "carl", "dora"):
        (tmp_path / "y.test" / name).mkdir(parents=True)
    async with relay(url) as running:
        talk = await running.talk()
        await to_several(talk, b"EHLO c.test", b"<Ann@Y.test>", b"<bob@y.test>")
        assert (await talk.reply()).startswith(b"250 ")
        assert len(files(tmp_path / "y.test" / "ann" / "mail" / "new")) == 1
        assert len(files(tmp_path / "y.test" / "bob" / "mail" / "new")) == 1
        (tmp_path / "y.test" / "carl" / "mail").write_text("no folder can be made here")
        await to_several(talk, b"", b"<dora@y.test>", b"<carl@y.test>")
        assert (await talk.reply()).startswith(b"452 4.3.1 ")
        assert files(tmp_path / "y.test" / "dora") == []


async def test_smtp_l04_lmtp_has_a_reply_for_each_recipient(tmp_path: Path) -> None:
    url = f"maildir://{tmp_path}/{{local}}"
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    async with relay(url, listen=(), listen_lmtp=("127.0.0.1:0",)) as running:
        talk = await running.talk()
        await to_several(talk, b"LHLO c.test", b"<a@y.test>", b"<b@y.test>")
        assert [(await talk.reply())[:4] for _ in range(2)] == [b"250 ", b"250 "]


BAD = [
    b"<../../etc/passwd@y.test>",
    b"<a/b@y.test>",
    b'<"a b"@y.test>',
    b'<"../x"@y.test>',
    b"<..@y.test>",
    b"<.hidden@y.test>",
    b"<a@../..>",
    b"<a..b@y.test>",
    b"<@y.test>",
    b"<a@>",
    b"<%2e%2e%2fx@y.test>",
    b"<" + b"a" * 300 + b"@y.test>",
]


@pytest.mark.parametrize("address", BAD)
async def test_smtp_l05_no_address_leads_out_of_the_root(tmp_path: Path, address: bytes) -> None:
    root = tmp_path / "deep" / "root"
    async with relay(f"maildir://{root}/{{domain}}/{{local}}") as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>")
        assert (await talk.say(b"RCPT TO:" + address)).startswith(b"550 5.1.1 ")
        assert not (tmp_path / "deep").exists()


async def test_smtp_l05_unknown_recipients_are_refused_when_none_are_made(tmp_path: Path) -> None:
    (tmp_path / "known@y.test" / "new").mkdir(parents=True)
    for part in ("cur", "tmp"):
        (tmp_path / "known@y.test" / part).mkdir()
    options = {"maildir_create": False}
    async with relay(f"maildir://{tmp_path}/{{address}}", next_hop=options) as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>")
        assert (await talk.say(b"RCPT TO:<other@y.test>")).startswith(b"550 5.1.1 ")
        assert (await talk.say(b"RCPT TO:<Known@y.test>")).startswith(b"250 ")
        assert (await talk.say(b"DATA")).startswith(b"354")
        await talk.send(MESSAGE + b".\r\n")
        assert (await talk.reply()).startswith(b"250 ")


async def test_smtp_l06_the_capabilities_of_a_maildir(tmp_path: Path) -> None:
    async with relay(f"maildir://{tmp_path}/mail") as running:
        answer = await (await running.talk()).say(b"EHLO c.test")
        keywords = [line[4:].split(b" ")[0] for line in answer.split(b"\r\n")[1:-1]]
        assert keywords == [
            b"PIPELINING",
            b"SIZE",
            b"8BITMIME",
            b"SMTPUTF8",
            b"ENHANCEDSTATUSCODES",
            b"CHUNKING",
        ]


async def test_c18_non_ascii_addresses_need_smtputf8(tmp_path: Path) -> None:
    address = "<jürgen@x.test>".encode()
    async with relay(f"maildir://{tmp_path}/mail") as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test")
        assert (await talk.say(b"MAIL FROM:" + address)).startswith(b"553 5.6.7 ")
        assert (await talk.say(b"MAIL FROM:" + address + b" SMTPUTF8")).startswith(b"250 ")
        assert (await talk.say(b"RCPT TO:" + address)).startswith(b"250 ")


@pytest.mark.parametrize("link", ["new", "tmp", "cur", ".Junk", ".Junk/new", ".Junk/tmp"])
async def test_k8_nothing_is_written_or_removed_through_links_in_a_maildir(
    tmp_path: Path, link: str
) -> None:
    mail, elsewhere = tmp_path / "mail", tmp_path / "elsewhere"
    for part in ("new", "cur", "tmp", "elsewhere"):
        (elsewhere / part).mkdir(parents=True)
    old = elsewhere / "1.precious"
    old.write_bytes(b"kept")
    os.utime(old, (0, 0))
    (mail / link).parent.mkdir(parents=True, exist_ok=True)
    (mail / link).symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    async with relay(f"maildir://{mail}", inspector=FakeInspector(SPAM)) as running:
        talk = await running.talk()
        answer = await talk.say(b"EHLO client.test")  # 421 when the Maildir itself is no good
        if answer.startswith(b"250"):
            answer = await talk.deliver(hello=b"")
        assert answer.startswith(b"4")
    assert sorted(elsewhere.rglob("*")) == before


async def test_k8_the_mark_of_a_folder_does_not_follow_a_link(tmp_path: Path) -> None:
    junk = tmp_path / "mail" / ".Junk"
    junk.mkdir(parents=True)
    (junk / "maildirfolder").symlink_to(tmp_path / "made")
    async with relay(f"maildir://{tmp_path}/mail", inspector=FakeInspector(SPAM)) as running:
        assert (await (await running.talk()).deliver()).startswith(b"250 ")
    assert not (tmp_path / "made").exists()


STRANGERS = [
    b"<nobody@y.test>",
    b"<ann@elsewhere.test>",
    b"<ann.@y.test>",
    b"<ann@y.test.>",
    b"<ann/@y.test>",
    b"<ann/new@y.test>",
    b"<ann@y.test/ann>",
    b"<ann\x7f@y.test>",
    b"<%61nn@y.test>",
    b"<ann@@y.test>",
    b"<a@ann@y.test>",
    b"<%(user)s@y.test>",
    b"<{local}@y.test>",
    b"<{address}>",
    b"<cur@y.test>",
    b"<-@y.test>",
    b"<" + b"a" * 200 + b"@y.test>",
    b"<" + b"a" * 5_000 + b"@y.test>",
    b'<"ann"@y.test>',
    b'<"../y.test/ann"@y.test>',
    b'<"ann\\"@y.test>',
    "<\u212bnn@y.test> SMTPUTF8".encode(),
    *BAD,
]


def tells_apart(template: str, address: bytes) -> bool:
    """Tell whether a template has another folder for an address than for ann@y.test."""
    of_ann = address.endswith(b"ann@elsewhere.test>") or address.startswith(b"<ann@y.test")
    return not (template.startswith("{local}") and of_ann)


@pytest.mark.parametrize(
    ("template", "address"),
    [
        (template, address)
        for template in ("{domain}/{local}", "{address}", "{local}", "{local}/Maildir")
        for address in STRANGERS
        if tells_apart(template, address)
    ],
)
async def test_k15_no_folder_is_made_for_a_recipient_who_has_none(
    tmp_path: Path, template: str, address: bytes
) -> None:
    root = tmp_path / "root"
    known = {"{local}": "ann", "{domain}": "y.test", "{address}": "ann@y.test"}
    owner = template.removesuffix("/Maildir")
    for mark, value in known.items():
        owner = owner.replace(mark, value)
    (root / owner).mkdir(parents=True)
    before = everything(tmp_path)
    async with relay(f"maildir://{root}/{template}") as running:
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test> SMTPUTF8")
        assert (await talk.say(b"RCPT TO:" + address))[:1] == b"5"
        assert everything(tmp_path) == before
        assert (await talk.say(b"RCPT TO:<Ann@Y.test>")).startswith(b"250 ")
        assert (await talk.say(b"DATA")).startswith(b"354")
        assert (await talk.say(MESSAGE + b".")).startswith(b"250 ")
        (path,) = files(root)
        assert (root / owner) in path.parents
