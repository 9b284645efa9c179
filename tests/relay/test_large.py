"""A large mail is judged by the same start of it, whether it comes by SMTP or from a file."""

import os

import pytest

from spamd.bayes.decision import DecisionOptions
from spamd.bayes.model import BayesOptions, Model
from spamd.extraction.extractor import Extractor
from spamd.message.facts import SCHEMA
from spamd.message.features import Features, extract
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.network.judge import start_of
from spamd.network.spool import Budget, SpooledMessage
from spamd.relay.content.data import unstuffed
from spamd.report import ScanReport
from spamd.scanning import Scanner, ScanningInspector
from tests.fakes import FakeClock, FakeInspector, FakeObserver
from tests.relay.peers import ScriptedNextHop, Talk, relay

MIB = 2**20
LIMITS = TokenizerOptions().limits


class Notes:
    """Keeps the reports (`ports.ScanLog`)."""

    def __init__(self) -> None:
        self.reports: list[ScanReport] = []

    def record(self, report: ScanReport) -> None:
        self.reports.append(report)


def large(part: bytes, parts: int) -> bytes:
    """Return a mail of so many parts, each with words of its own around `part`."""
    head = b"From: a@x.test\nSubject: large\nContent-Type: multipart/mixed; boundary=b\n\n"
    pieces = [
        b"--b\nContent-Type: text/plain\n\nword%dstart\n%s\nword%dend\n" % (number, part, number)
        for number in range(parts)
    ]
    return head + b"".join(pieces) + b"--b--\n"


def wire(content: bytes) -> bytes:
    lines = content.split(b"\n")[:-1]
    return b"".join((b"." if line[:1] == b"." else b"") + line + b"\r\n" for line in lines)


PLAIN = b"x" * 76 + b"\n"
MAILS = {
    "ordinary lines": large(PLAIN * 2_600, 30),
    "lines that take twice their size on the wire": large(b".\n" * 100_000, 30),
    "one line without end": large(b"y" * 200_000, 30),
    "as much as is looked at": large(PLAIN * 2_600, 20),
}


@pytest.mark.parametrize("content", MAILS.values(), ids=list(MAILS))
async def test_a_large_mail_has_the_same_words_by_smtp_and_from_a_file(content: bytes) -> None:
    notes, clock = Notes(), FakeClock()
    extractor = Extractor(TokenizerOptions(), wait_s=60, work_s=60)
    scanner = Scanner(
        model=lambda: Model.empty(SCHEMA, BayesOptions()),
        decision=DecisionOptions(),
        tokenizer=TokenizerOptions(),
        clock=clock,
        key=b"0123456789abcdef",
        random=os.urandom,
    )
    inspector = ScanningInspector(scanner, extractor, clock, notes, FakeObserver())
    async with ScriptedNextHop() as hop, relay(hop.url, real_inspector=inspector) as running:
        talk: Talk = await running.talk()
        assert (await talk.deliver(wire(content))).startswith(b"250 ")
        (relayed,) = hop.messages
        (told,) = running.observer.scans
    await extractor.close()
    (report,) = notes.reports
    assert told[0].size_bytes == len(wire(content))
    by_smtp = report.features
    assert by_smtp is not None
    same(by_smtp, extract(content))
    assert ("message cut" in by_smtp.defects) == (len(content) > LIMITS.message_bytes + 200)
    # And as it lies in a folder afterwards, with our fields on top.
    same(by_smtp, extract(relayed.replace(b"\r\n..", b"\r\n.")))


def same(one: Features, other: Features) -> None:
    assert one.digest == other.digest
    assert list(one.texts) == list(other.texts)
    assert one.sample.continuous.tolist() == other.sample.continuous.tolist()


@pytest.mark.parametrize("limit", [1, 5, 6, 100, 101, 5_000])
async def test_of_a_spooled_message_more_is_read_than_is_looked_at(limit: int) -> None:
    for content in (b"a\n" * 1_000, b".\n" * 1_000, b"\n" * 1_000, b"z" * 999 + b"\n"):
        message = SpooledMessage(
            Budget(memory_bytes=0, spool_bytes=MIB, spool_above_bytes=0, directory="").share("")
        )
        message.append(wire(content))
        await message.settled()
        text = start_of(message, limit, unstuffed).replace(b"\r\n", b"\n")
        message.close()
        assert content.startswith(text.removesuffix(b"\r"))
        assert len(text) > min(limit, len(content) - 1)
        assert len(text) <= 2 * limit + 3


@pytest.mark.parametrize("before", range(5))
async def test_the_end_of_what_is_looked_at_falls_anywhere(before: int) -> None:
    inspector = FakeInspector(reads_bytes=100)
    sent = b"Not a field\r\n" + b"x" * (80 + before) + b"\r\n..dots\r\n..\r\n" + b"y\r\n" * 100
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, inspector=inspector, spool_above_bytes=10) as running,
    ):
        talk = await running.talk()
        assert (await talk.deliver(sent)).startswith(b"250 ")
        assert hop.messages[0].endswith(b"\r\n\r\n" + sent)


@pytest.mark.parametrize("front", [b"", b"no field\r\n"])
async def test_k3_a_header_that_goes_on_beyond_what_is_looked_at_is_552(front: bytes) -> None:
    """Dovecot reads on to an empty line, and would take a field of ours that stands there."""
    inspector = FakeInspector(reads_bytes=100)
    sent = front + b"X-A: b\r\nno field\r\n" + b"y\r\n" * 100 + b"X-Spam-Flag: YES\r\n\r\nbody\r\n"
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, inspector=inspector, spool_above_bytes=10) as running,
    ):
        talk = await running.talk()
        assert (await talk.deliver(sent)).startswith(b"552 5.3.4 ")
        assert hop.messages == []


@pytest.mark.parametrize("before", range(5))
async def test_a_header_section_above_what_is_looked_at_is_552(before: int) -> None:
    inspector = FakeInspector(reads_bytes=100)
    sent = b"X: " + b"x" * (80 + before) + b"\r\nX-Spam-Status: No\r\n\r\nbody\r\n"
    async with (
        ScriptedNextHop() as hop,
        relay(hop.url, inspector=inspector, spool_above_bytes=10) as running,
    ):
        talk = await running.talk()
        assert (await talk.deliver(sent)).startswith(b"552 5.3.4 ")
