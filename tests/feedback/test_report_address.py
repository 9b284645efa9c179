"""Mail to the report addresses."""

import base64
import time
from collections.abc import Callable, Sequence
from email import message_from_bytes
from email.message import EmailMessage

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spamd.bayes.decision import Verdict
from spamd.errors import StorageUnavailable
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.report_address import ReportAddress
from spamd.feedback.teacher import Teacher
from spamd.message.features import extract
from spamd.message.mime.parser import attached
from spamd.sample import Label
from tests.fakes import FakeClock, FakeObserver
from tests.feedback.fakes import FakeHeld, FakeJournal, durable
from tests.feedback.world import mail

OPTIONS = FeedbackOptions(
    spam_addresses=("spam@our.test", "junk"), ham_addresses=("ham@our.test",), report_mails=3
)


def handler_of(journal: FakeJournal, options: FeedbackOptions = OPTIONS) -> ReportAddress:
    teacher = Teacher(journal, FakeHeld(journal), FakeClock(), options, FakeObserver())
    return ReportAddress(options, durable(journal, teacher), extract)


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
    assert handler_of(FakeJournal(FakeClock())).label_for(recipient) is label


async def test_several_attached_mails_are_learned_and_receipted() -> None:
    journal = FakeJournal(FakeClock())
    receipt = await handler_of(journal).take(report(mail("one"), mail("two")), Label.SPAM, "bob")
    assert receipt == "2 reported as spam, 2 learned"
    assert set(journal.lessons.values()) == {(Label.SPAM, "address", "bob")}
    assert set(journal.lessons) == {extract(mail("one")).digest, extract(mail("two")).digest}


async def test_a_report_is_not_a_mail_to_learn_from_itself() -> None:
    journal = FakeJournal(FakeClock())
    receipt = await handler_of(journal).take(mail("Fwd: buy now"), Label.SPAM, "bob")
    assert journal.lessons == {}
    assert "nothing learned" in receipt


async def test_a_reported_mail_is_learned_as_it_was_scanned() -> None:
    journal = FakeJournal(FakeClock())
    scanned = journal.scanned(mail("offer", identity="id-offer"), "id-offer", Verdict.HAM)
    changed = mail("[LIST] offer", identity="id-offer", body="See you tomorrow.\r\n-- \r\nfooter")
    await handler_of(journal).take(report(changed), Label.SPAM, "bob")
    assert list(journal.lessons) == [scanned.digest]


async def test_a_second_report_of_the_same_mail_is_a_success_without_effect() -> None:
    journal = FakeJournal(FakeClock())
    handler = handler_of(journal)
    await handler.take(report(mail("one")), Label.SPAM, "bob")
    receipt = await handler.take(report(mail("one")), Label.SPAM, "bob")
    assert receipt == "1 reported as spam, 0 learned, 1 known"


async def test_d9_a_report_to_the_other_address_corrects_the_lesson() -> None:
    journal = FakeJournal(FakeClock())
    handler = handler_of(journal)
    await handler.take(report(mail("one")), Label.SPAM, "bob")
    await handler.take(report(mail("one")), Label.HAM, "bob")
    assert [lesson[0] for lesson in journal.lessons.values()] == [Label.HAM]


async def test_more_mails_than_allowed_are_counted_and_left_out() -> None:
    journal = FakeJournal(FakeClock())
    mails = [mail(f"number {number}") for number in range(5)]
    receipt = await handler_of(journal).take(report(*mails), Label.SPAM, "bob")
    assert receipt == "5 reported as spam, 3 learned, 2 too many"


async def test_a_database_that_is_away_makes_the_client_come_again() -> None:
    journal = FakeJournal(FakeClock(), down=True)
    with pytest.raises(StorageUnavailable):
        await handler_of(journal).take(report(mail("one")), Label.SPAM, "bob")


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


def nested(kind: str, n: int) -> bytes:
    head = f"Content-Type: {kind}\r\n\r\n"
    return b"Subject: top\r\n" + head.encode() * n + b"Subject: last\r\n\r\nbuy pills\r\n"


def multiparts(n: int) -> bytes:
    return b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (level, level)
        for level in range(n)
    )


def one_part(fields: bytes) -> bytes:
    head = b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n"
    return head + fields + b"\r\n\r\n" + mail("inner") + b"\r\n--b--\r\n"


SHAPES: dict[str, Callable[[int], bytes]] = {
    "messages in messages": lambda n: nested("message/rfc822", n),
    "multiparts in multiparts": multiparts,
    "messages in multiparts": lambda n: report(
        *[mail(f"m{number}") for number in range(n // 20)]
    ),
    "quoted pairs in a name": lambda n: one_part(
        b'Content-Type: message/rfc822; name="' + b'\\"; ' * (n * 10)
    ),
    "quoted pairs in a file name": lambda n: one_part(
        b'Content-Disposition: attachment; filename="' + b'\\"; ' * (n * 10)
    ),
    "continuations": lambda n: one_part(
        b"Content-Type: application/x"
        + b"".join(b"; name*%d*=%%41" % number for number in range(n))
    ),
    "parameters": lambda n: one_part(b"Content-Type: message/rfc822" + b"; a=b" * n),
    "comments": lambda n: one_part(b"Content-Transfer-Encoding: " + b"(" * n),
    "delimiters": lambda n: report(mail("x")) + b"--b\r\n" * n,
    "dashes": lambda n: report(mail("x\r\n" + "--\r\n" * n)),
    "fields": lambda n: one_part(b"X: y\r\n" * n + b"Content-Type: message/rfc822"),
    "folds": lambda n: one_part(b"X: y" + b"\r\n " * n + b"\r\nContent-Type: message/rfc822"),
    "base64": lambda n: one_part(
        b"Content-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\n"
        + b"QUJD\n=" * n
    ),
    "white space": lambda n: one_part(b"Content-Type:" + b" \t" * n + b"message/rfc822"),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
async def test_h6_no_shape_of_a_report_is_an_error(shape: str) -> None:
    journal = FakeJournal(FakeClock())
    for size in (0, 1, 300, 500, 20_000):
        receipt = await handler_of(journal).take(SHAPES[shape](size), Label.SPAM, "bob")
        assert receipt.isascii()


@pytest.mark.parametrize("shape", SHAPES)
def test_h6_a_report_is_taken_apart_in_linear_time(shape: str) -> None:
    def cpu_s(size: int) -> float:
        content = SHAPES[shape](size)
        taken = []
        for _ in range(3):
            started = time.process_time()
            attached(content)
            taken.append(time.process_time() - started)
        return min(taken)

    assert cpu_s(16_000) < 8 * cpu_s(4_000) + 0.02


def test_h6_of_mails_in_mails_the_outermost_is_the_reported_one() -> None:
    (found,) = attached(nested("message/rfc822", 300))
    assert found.startswith(b"Content-Type: message/rfc822")
    assert found.endswith(b"buy pills\r\n")


def test_h6_a_forward_of_a_forward_reports_the_forward_and_not_what_was_in_it() -> None:
    inner = report(mail("the spam"), boundary=b"inner")
    (found,) = attached(report(inner, boundary=b"outer"))
    assert extract(found).digest == extract(inner).digest


def test_h6_a_forward_in_the_text_is_no_attached_mail() -> None:
    text = "-------- Forwarded Message --------\r\nSubject: pills\r\nFrom: x@y\r\n\r\nbuy"
    assert attached(mail("Fwd: pills", body=text)) == []


def test_h6_a_digest_reports_each_of_its_mails() -> None:
    digest = report(mail("one"), mail("two")).replace(b"multipart/mixed", b"multipart/digest")
    digest = digest.replace(b"Content-Type: message/rfc822\r\n", b"")
    digest = digest.replace(b"Content-Type: text/plain\r\n\r\nThis came today.", b"")
    wanted = {extract(mail(subject)).digest for subject in ("one", "two")}
    assert wanted <= {extract(found).digest for found in attached(digest)}


PIECES = st.sampled_from([
    b"Content-Type: message/rfc822", b"Content-Type: multipart/mixed; boundary=b", b"\r\n",
    b"\r\n\r\n", b"--b\r\n", b"--b--\r\n", b"Content-Transfer-Encoding: base64", b"QUJD",
    b'Content-Disposition: attachment; filename="a.eml"', b"Subject: x", b" ", b"\r", b"\n", b"\0",
    b"\xff", b"(", b'"', b"\\", b";", b"=",
])  # fmt: skip


@given(st.lists(PIECES | st.binary(max_size=5), max_size=60))
def test_h6_no_bytes_make_a_report_fail(pieces: list[bytes]) -> None:
    content = b"".join(pieces)
    for found in attached(content):
        assert found.strip()
        assert len(found) <= 2 * len(content)


@given(
    st.lists(st.sampled_from(["one", "two", "three"]), max_size=4),
    st.sampled_from(["7bit", "8bit", "base64"]),
)
def test_h6_what_is_attached_is_what_the_standard_library_finds(
    subjects: Sequence[str], encoding: str
) -> None:
    mails = [mail(subject) for subject in subjects]
    content = report(*mails)
    if encoding == "base64":
        for one in mails:
            coded = base64.encodebytes(one).replace(b"\n", b"\r\n")
            plain = b"Content-Type: message/rfc822\r\n\r\n" + one
            head = b"Content-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\n"
            content = content.replace(plain, head + coded, 1)
    parts = message_from_bytes(content).get_payload()
    assert isinstance(parts, list)
    number = sum(part.get_content_type() == "message/rfc822" for part in parts)  # type: ignore[union-attr] # parts of a multipart are messages
    found = attached(content)
    assert len(found) == number == len(mails)
    assert [extract(one).digest for one in found] == [extract(one).digest for one in mails]
