"""The same mail by every way in: one identity, the same tokens, the same probability.

A way is a function that sends a mail to a listener whose judge is `inspector`, and returns the
report of it; each listener adds its own to `WAYS`.
"""

import gzip
import re
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from spamd.bayes.decision import DecisionOptions
from spamd.bayes.model import BayesOptions, Model
from spamd.clock import WallClock
from spamd.extraction.extractor import Extractor
from spamd.message.facts import SCHEMA
from spamd.message.features import extract
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.ports import Inspector
from spamd.report import ScanReport
from spamd.sample import Label
from spamd.scanning import Scanner, ScanningInspector
from tests.bayes.samples import teach
from tests.cli.conftest import made_up
from tests.fakes import FakeObserver
from tests.listeners.milter.mta import POSTFIX
from tests.listeners.milter.mta import listening as milter_listening
from tests.listeners.spamc.clients import request
from tests.listeners.spamc.clients import running as spamc_running
from tests.listeners.web.broken import RSPAMC
from tests.listeners.web.clients import chunked
from tests.listeners.web.clients import request as http_request
from tests.listeners.web.clients import running as web_running

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.eml"))
MAILS = {path.stem: path.read_bytes() for path in GOLDEN}
MAILS["large"] = made_up("spam", 1) + b"more words\r\n" * 500_000
EXIM = (
    b"From a@x.test Sat Nov 28 10:00:00 2026\nX-Envelope-From: <a@x.test>\n"
    b"X-Envelope-To: b@y.test\n"
)

FIELD = re.compile(rb"([!-9;-~]+):([^\n]*(?:\n[ \t][^\n]*)*)\n")

Way = Callable[[Inspector, bytes], Awaitable[ScanReport]]


class NoLog:
    """Keeps no scans."""

    def record(self, report: ScanReport) -> None:
        pass


def scanner() -> Scanner:
    """Return a scanner whose model was taught ten of each label."""
    model = Model.empty(SCHEMA, BayesOptions())
    for number in range(10):
        for label in Label:
            teach(model, extract(made_up(label, number)).sample, label, b"%d" % number)
    return Scanner(
        model=lambda: model, decision=DecisionOptions(), tokenizer=TokenizerOptions(),
        clock=WallClock(), key=b"key", random=lambda size: b"\0" * size,
    )  # fmt: skip


async def _by_spamc(inspector: Inspector, data: bytes, spool_above: int = 2**20) -> ScanReport:
    async with spamc_running(inspector, spool_above_bytes=spool_above) as here:
        await here.ask(data)
        ((report, _, _),) = here.observer.scans
    return report


async def spamc(inspector: Inspector, mail: bytes) -> ScanReport:
    return await _by_spamc(inspector, request("CHECK", mail))


async def spamc_in_lf(inspector: Inspector, mail: bytes) -> ScanReport:
    return await _by_spamc(inspector, request("PROCESS", mail.replace(b"\r\n", b"\n")))


async def spamc_on_disk(inspector: Inspector, mail: bytes) -> ScanReport:
    return await _by_spamc(inspector, request("HEADERS", mail), spool_above=100)


async def spamc_compressed(inspector: Inspector, mail: bytes) -> ScanReport:
    data = zlib.compress(mail)
    return await _by_spamc(inspector, request("CHECK", data, ["Compress: zlib"]))


async def exim(inspector: Inspector, mail: bytes) -> ScanReport:
    mail = EXIM + mail.replace(b"\r\n", b"\n")
    return await _by_spamc(inspector, request("REPORT", mail, version="1.2"))


async def _by_milter(inspector: Inspector, mail: bytes, offer: tuple[int, int, int]) -> ScanReport:
    """Have a mail server show the fields and the body of a mail."""
    text, fields, at = mail.replace(b"\r\n", b"\n"), [], 0
    while (field := FIELD.match(text, at)) is not None:
        fields.append((field[1], field[2]))
        at = field.end()
    body = text[at:].removeprefix(b"\n").replace(b"\n", b"\r\n")
    async with milter_listening(inspector) as here:
        await here.message(fields, body, offer)
        ((report, _, _),) = here.observer.scans
    return report


async def _by_http(inspector: Inspector, data: bytes, spool_above: int = 2**20) -> ScanReport:
    async with web_running(inspector, spool_above_bytes=spool_above) as here:
        await here.ask(data)
        ((report, _, _),) = here.observer.scans
    return report


async def milter(inspector: Inspector, mail: bytes) -> ScanReport:
    return await _by_milter(inspector, mail, POSTFIX)


async def old_milter(inspector: Inspector, mail: bytes) -> ScanReport:
    return await _by_milter(inspector, mail, (2, 0x3F, 0x7F))


async def http(inspector: Inspector, mail: bytes) -> ScanReport:
    return await _by_http(inspector, http_request("/checkv2", mail))


async def http_in_lf_on_disk(inspector: Inspector, mail: bytes) -> ScanReport:
    data = http_request("/checkv2", mail.replace(b"\r\n", b"\n"))
    return await _by_http(inspector, data, spool_above=100)


async def http_in_chunks(inspector: Inspector, mail: bytes) -> ScanReport:
    return await _by_http(inspector, chunked("/symbols", [mail[:99], mail[99:]]))


async def http_compressed(inspector: Inspector, mail: bytes) -> ScanReport:
    data = http_request("/checkv2", gzip.compress(mail), ["Content-Encoding: gzip"])
    return await _by_http(inspector, data)


async def exim_by_rspamd(inspector: Inspector, mail: bytes) -> ScanReport:
    mail = EXIM + mail.replace(b"\r\n", b"\n")
    return await _by_http(inspector, RSPAMC % len(mail) + mail)


WAYS: list[Way] = [
    *(spamc, spamc_in_lf, spamc_on_disk, spamc_compressed, exim, milter, old_milter),
    *(http, http_in_lf_on_disk, http_in_chunks, http_compressed, exim_by_rspamd),
]
MILTERS = (milter, old_milter)


@pytest.mark.parametrize("name", MAILS)
async def test_a_mail_has_one_identity_and_one_probability_by_every_way(name: str) -> None:
    mail, judge = MAILS[name], scanner()
    extractor = Extractor(TokenizerOptions(), wait_s=60, work_s=60)
    inspector = ScanningInspector(judge, extractor, WallClock(), NoLog(), FakeObserver())
    scanned = judge.scan(mail)
    assert scanned.features is not None
    try:
        for way in WAYS:
            if way in MILTERS and name == "broken":
                continue  # a line that is no field: a mail server ends the header section there
            report = await way(inspector, mail)
            assert report.features is not None, way.__name__
            if way not in MILTERS or name != "large":  # of which only the start is asked for
                assert report.digest == scanned.digest, way.__name__
            assert report.probability == scanned.probability, way.__name__
            assert list(report.features.sample.ids) == list(scanned.features.sample.ids)
    finally:
        await extractor.close()
