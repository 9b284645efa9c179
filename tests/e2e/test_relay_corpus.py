"""Thousands of real mails, trained on, sent through and compared at the other end."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from email.parser import BytesHeaderParser
from pathlib import Path

import pytest

from tests.e2e.relay_daemon import Spamd
from tests.relay.peers import Talk
from tests.servers.postfix import SmtpSinkFactory, SunkMail
from tests.sizes import sized

CONNECTIONS = 8


def wire(content: bytes) -> bytes:
    """Return a file as a client sends it: lines end in CRLF, dots are doubled."""
    lines = re.split(rb"\r?\n", content.removesuffix(b"\n"))
    return b"".join((b"." if line.startswith(b".") else b"") + line + b"\r\n" for line in lines)


def meant(content: bytes) -> bytes:
    """Return what a reader must find: the sender's lines without fields that claim to be ours."""
    text = re.sub(rb"\r?\n", b"\n", content.removesuffix(b"\n")) + b"\n"
    text = text.replace(b"\r", b" ")  # bare ones: `relay.bare_newline` is "normalize"
    return b"".join(_without_ours(text.splitlines(keepends=True)))


def _without_ours(lines: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the lines but those before the first empty one that may pass for a field of ours."""
    ours = False
    header = True
    for line in lines:
        header = header and line != b"\n"
        if header and not line.startswith((b" ", b"\t")):
            ours = line.lower().startswith(b"x-spam-")
        if not (header and ours):
            yield line


def below_our_fields(mail: SunkMail) -> bytes:
    """Return a received mail without the fields on top, an mbox line included."""
    end = mail.content.index(b"\nX-Spam-Id:") + 1
    return mbox_line(mail.content) + mail.content[mail.content.index(b"\n", end) + 1 :]


def mbox_line(content: bytes) -> bytes:
    """Return the line of a mailbox file that was left in front of a mail, if it is there."""
    return content[: content.index(b"\n") + 1] if content.startswith((b"From ", b">From ")) else b""


async def send_all(port: int, paths: Sequence[Path]) -> None:
    """Send each file in a transaction of its own, over several connections at once."""
    waiting = iter(list(enumerate(paths)))

    async def send_some() -> None:
        talk = await Talk.to(port)
        hello = b"EHLO client.test"
        for number, path in waiting:
            answer = await talk.deliver(
                wire(await asyncio.to_thread(path.read_bytes)),
                hello=hello,
                sender=b"<s%d@x.test>" % number,
                recipients=(b"<r%d@y.test>" % number,),
            )
            assert answer.startswith(b"250 "), (path, answer)
            hello = b""
        await talk.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(send_some())


@pytest.mark.timeout(1200)
def test_half_a_corpus_taught_and_the_other_half_sent_arrives_as_it_was_judged(
    spamassassin_corpus: Path, smtp_sink: SmtpSinkFactory, tmp_path: Path
) -> None:
    lines = (spamassassin_corpus / "index").read_text().splitlines()[: sized(500, 6_046)]
    entries = [(label, spamassassin_corpus / name) for label, name in map(str.split, lines)]
    half = len(entries) // 2
    for label, path in entries[:half]:
        folder = tmp_path / label
        folder.mkdir(exist_ok=True)
        (folder / path.name).symlink_to(path)
    later = [path for _, path in entries[half:]]
    sink = smtp_sink()
    spamd = Spamd(f"smtp://127.0.0.1:{sink.port}")
    spamd.run("train", "ham", str(tmp_path / "ham"))
    spamd.run("train", "spam", str(tmp_path / "spam"))
    scans = spamd.run("scan", "--json", *map(str, later))
    scanned = {scan["path"]: scan for scan in map(json.loads, scans.splitlines())}
    with spamd:
        asyncio.run(send_all(spamd.port, later))
        mails = sink.mails(at_least=len(later))

    assert Counter(mail.sender for mail in mails) == Counter(
        f"<s{number}@x.test>" for number in range(len(later))
    )
    for mail in mails:
        number = int(re.sub(r"\D", "", mail.sender))
        path = later[number]
        assert mail.recipients == (f"<r{number}@y.test>",)
        assert below_our_fields(mail) == meant(path.read_bytes()), path
        head = mail.content.removeprefix(mbox_line(mail.content))
        field = BytesHeaderParser().parsebytes(head)
        scan = scanned[str(path)]
        assert f"verdict={scan['verdict']} " in re.sub(r"\s+", " ", field["X-Spam-Status"])
        assert float(field["X-Spam-Probability"]) == pytest.approx(scan["probability"], abs=2e-6)
        assert (field["X-Spam-Flag"] == "YES") == (scan["verdict"] == "spam")
