"""What stands in front of a mail is no part of it: as much of the mail is judged as ever."""

import asyncio

import pytest

from spamd.listeners.preface import Preface, judged_behind
from spamd.message.envelope import Client, Envelope
from spamd.network.deadlines import TimeLimit
from spamd.network.shared import Shared
from spamd.network.spool import SpooledMessage
from spamd.relay.options import RelayOptions
from tests.fakes import FakeClock, FakeInspector, FakeObserver, NoTeacher

PREFACE = (
    b"From ann Thu Jan  1 00:00:00 2026\n"
    b"X-Envelope-From: <ann@x.test>\nX-Envelope-To: bert@y.test,carl@y.test\n"
)
CLIENT = Client(address="", port=0, helo="", name="", tls=False, login=None, protocol="SPAMC")


@pytest.mark.parametrize("preface", [b"", PREFACE])
@pytest.mark.parametrize("spool_above_bytes", [1, 2**20])
async def test_as_much_is_looked_at_of_a_mail_behind_a_preface_as_of_any(
    preface: bytes, spool_above_bytes: int
) -> None:
    mail = b"Subject: long\n\n" + b"".join(b"word %d\n" % number for number in range(1000))
    inspector = FakeInspector(reads_bytes=500)
    shared = Shared.of(
        RelayOptions(spool_above_bytes=spool_above_bytes),
        inspector, NoTeacher(), FakeObserver(), FakeClock(),
    )  # fmt: skip
    message = SpooledMessage(shared.budget.share(""))
    message.append(preface + mail)
    await message.settled()
    limit = TimeLimit(asyncio.get_running_loop(), shared.deadline_timer)
    envelope = Envelope(sender=b"", recipients=(), client=CLIENT)

    found = await Preface.in_front_of(message)
    report = await judged_behind(found, message, shared.judge, envelope, limit)

    ((seen, _),) = inspector.seen
    assert found.length == len(preface)
    assert mail.startswith(seen)
    assert len(seen) > inspector.reads_bytes
    assert report.site.size_bytes == len(mail)
    message.close()
    shared.close()
