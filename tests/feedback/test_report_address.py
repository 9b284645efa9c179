"""Mail to the report addresses."""

import base64
from email.message import EmailMessage

import pytest

from spamd.bayes.decision import Verdict
from spamd.errors import StorageUnavailable
from spamd.feedback.learn import Teacher
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.report_address import ReportAddress, attached
from spamd.message.features import extract
from spamd.sample import Label
from tests.fakes import FakeClock
from tests.feedback.fakes import FakeHeld, FakeSchool
from tests.feedback.world import mail

OPTIONS = FeedbackOptions(
    spam_addresses=("spam@our.test", "junk"), ham_addresses=("ham@our.test",), report_mails=3
)


def desk_of(school: FakeSchool, options: FeedbackOptions = OPTIONS) -> ReportAddress:
    teacher = Teacher(school, FakeHeld(), FakeClock(), options)
    return ReportAddress(options, school, teacher, extract)


def report(*mails: bytes, boundary: bytes = b"b") -> bytes:
    """Return a forward with mails attached, as people's programs make it."""
    lines = [
        b"From: bob@our.test",
        b"To: spam@our.test",
        b"Subject: Fwd: look",
        b"MIME-Version: 1.0",
        b'Content-Type: multipart/mixed; boundary="%s"' % boundary,
        b"",
        b"--" + boundary,
        b"Content-Type: text/plain",
        b"",
        b"This came today.",
    ]
    for one in mails:
        lines += [b"--" + boundary, b"Content-Type: message/rfc822", b"", one]
    return b"\r\n".join([*lines, b"--%s--" % boundary, b""])


@pytest.mark.parametrize(
    ("recipient", "label"),
    [
        (b"spam@our.test", Label.SPAM),
        (b"SPAM@Our.Test", Label.SPAM),
        (b"junk@anywhere.test", Label.SPAM),
        (b"ham@our.test", Label.HAM),
        (b"ham@other.test", None),
        (b"alice@our.test", None),
        (b"", None),
        (b"\xff\xfe@our.test", None),
    ],
)
def test_only_the_report_addresses_take_reports(recipient: bytes, label: Label | None) -> None:
    assert desk_of(FakeSchool(FakeClock())).label_for(recipient) is label


async def test_several_attached_mails_are_learned_and_receipted() -> None:
    school = FakeSchool(FakeClock())
    receipt = await desk_of(school).take(report(mail("one"), mail("two")), Label.SPAM, "bob")
    assert receipt == "2 reported as spam, 2 learned"
    assert set(school.lessons.values()) == {(Label.SPAM, "address", "bob")}
    assert set(school.lessons) == {extract(mail("one")).digest, extract(mail("two")).digest}


async def test_a_report_is_not_a_mail_to_learn_from_itself() -> None:
    school = FakeSchool(FakeClock())
    receipt = await desk_of(school).take(mail("Fwd: buy now"), Label.SPAM, "bob")
    assert school.lessons == {}
    assert "nothing learned" in receipt


async def test_a_reported_mail_is_learned_as_it_was_scanned() -> None:
    school = FakeSchool(FakeClock())
    scanned = school.scanned(mail("offer", identity="id-offer"), "id-offer", Verdict.HAM)
    changed = mail("[LIST] offer", identity="id-offer", body="See you tomorrow.\r\n-- \r\nfooter")
    await desk_of(school).take(report(changed), Label.SPAM, "bob")
    assert list(school.lessons) == [scanned.digest]


async def test_a_second_report_of_the_same_mail_is_a_success_without_effect() -> None:
    school = FakeSchool(FakeClock())
    desk = desk_of(school)
    await desk.take(report(mail("one")), Label.SPAM, "bob")
    receipt = await desk.take(report(mail("one")), Label.SPAM, "bob")
    assert receipt == "1 reported as spam, 0 learned, 1 known"


async def test_d9_a_report_to_the_other_address_corrects_the_lesson() -> None:
    school = FakeSchool(FakeClock())
    desk = desk_of(school)
    await desk.take(report(mail("one")), Label.SPAM, "bob")
    await desk.take(report(mail("one")), Label.HAM, "bob")
    assert [lesson[0] for lesson in school.lessons.values()] == [Label.HAM]


async def test_more_mails_than_allowed_are_counted_and_left_out() -> None:
    school = FakeSchool(FakeClock())
    mails = [mail(f"number {number}") for number in range(5)]
    receipt = await desk_of(school).take(report(*mails), Label.SPAM, "bob")
    assert receipt == "5 reported as spam, 3 learned, 2 too many"


async def test_a_database_that_is_away_makes_the_client_come_again() -> None:
    school = FakeSchool(FakeClock(), down=True)
    with pytest.raises(StorageUnavailable):
        await desk_of(school).take(report(mail("one")), Label.SPAM, "bob")


def test_an_attached_mail_comes_out_byte_for_byte() -> None:
    body = b"From me to you\r\n" + b"long " * 60 + b"\r\n.\r\n\xe2\x28\r\n"
    fields = b"X-Long: " + b"word " * 40 + b"\r\nSubject: =?utf-8?q?=C3=A4?=\r\n"
    original = fields + b"\r\n" + body
    assert [one.rstrip() for one in attached(report(original))] == [original.rstrip()]


def test_a_mail_attached_as_base64_is_unwrapped() -> None:
    inner = mail("wrapped")
    wrapped = (
        b"Subject: x\r\nContent-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\n"
        + base64.encodebytes(inner)
    )
    assert extract(attached(wrapped)[0]).digest == extract(inner).digest


def test_a_mail_attached_as_a_file_is_taken() -> None:
    outer = EmailMessage()
    outer["Subject"] = "x"
    outer.set_content("see file")
    outer.add_attachment(mail("file"), maintype="application", subtype="octet-stream",
                         filename="Offer.EML")  # fmt: skip
    found = attached(outer.as_bytes())
    assert [extract(one).digest for one in found] == [extract(mail("file")).digest]


def test_the_attachments_of_an_attached_mail_belong_to_it() -> None:
    assert len(attached(report(report(mail("inner"), boundary=b"inside")))) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\x00",
        b"Content-Type: message/rfc822\r\n\r\n",
        b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n--b\r\n--b\r\n--b--',
        b"Content-Type: multipart/mixed\r\n\r\n--\r\n",
        b'Content-Type: x/y; name*0*="a%FF; name*1="\r\n\r\nbody',
    ],
)
def test_no_content_makes_a_report_fail(content: bytes) -> None:
    assert all(isinstance(one, bytes) for one in attached(content))
