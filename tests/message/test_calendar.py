"""Invitations and visiting cards are read as a mail reader shows them."""

import time
from base64 import b64encode

import pytest

from spamd.message.mime.calendar import read
from spamd.message.mime.parser import parse
from spamd.message.reading import read as reading

from .helpers import mail, tokens, words

INVITATION = """BEGIN:VCALENDAR
PRODID:-//Example//EN
VERSION:2.0
METHOD:REQUEST
BEGIN:VEVENT
DTSTART:20261128T100000Z
UID:1@example.org
ORGANIZER;CN="Ann Lee, Boss":mailto:ann@ex
 ample.org
ATTENDEE;CN=Bob;ROLE=REQ-PARTICIPANT:mailto:bob@example.net
SUMMARY;LANGUAGE=en:Pills\\, chea
 p ones\\nYour order
DESCRIPTION;ALTREP="http://alt.example/a":Can
 cel at http://pills.exa
\tmple/cancel?a=1\\; now\\\\then
X-ALT-DESC;FMTTYPE=text/html:<html><body>Rich <b>te
 xt</b> <a href="http://rich.example/x">go</a></body></html>
LOCATION:Room 7\\, Berlin
URL:https://url.example/event
CATEGORIES:Trading
BEGIN:VALARM
DESCRIPTION:Reminderword
END:VALARM
END:VEVENT
END:VCALENDAR
"""
CARD = """BEGIN:VCARD
VERSION:4.0
FN:Dr. Ann Le
 e
ORG:Pills\\, Inc;Sales
NOTE:Buy now\\nYour friend
item1.URL:http://card.exam
 ple/buy
EMAIL;TYPE=work:ann@example.org
PHOTO;ENCODING=b:TWFueXBob3RvYnl0ZXM
END:VCARD
"""


def invitation(text: str, *fields: str, kind: str = "text/calendar") -> bytes:
    return mail(text, *fields, f"Content-Type: {kind}; charset=utf-8; method=REQUEST")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r\r\n"])
@pytest.mark.parametrize("encoded", [False, True])
def test_g7_a_folded_invitation_is_read_whole(newline: str, *, encoded: bool) -> None:
    text = INVITATION.replace("\n", newline)
    raw = invitation(text)
    if encoded:
        raw = invitation(b64encode(text.encode()).decode(), "Content-Transfer-Encoding: base64")
    found = words(raw)
    assert {"Pills", "cheap", "Your", "order", "Cancel", "Room", "Berlin", "Ann", "Lee", "Boss",
            "Bob", "Trading", "Rich", "text", "now", "then"} <= found  # fmt: skip
    assert not {"chea", "p", "cel", "nYour", "te", "xt", "DTSTART", "SUMMARY", "LANGUAGE",
                "Reminderword", "PRODID", "BEGIN"} & found  # fmt: skip


def test_g7_the_links_of_an_invitation_are_whole() -> None:
    assert set(reading(parse(invitation(INVITATION))).links) == {
        "http://alt.example/a",
        "http://pills.example/cancel?a=1",
        "http://rich.example/x",
        "https://url.example/event",
    }
    assert "mail:ann@example.org" in tokens(invitation(INVITATION))


def test_g7_a_fold_inside_a_character_is_healed() -> None:
    data = "BEGIN:VCALENDAR\nSUMMARY:Grüße\n".encode().replace(b"\xc3\xbc", b"\xc3\n \xbc")
    assert "Grüße" in read(data, "utf-8").text


@pytest.mark.parametrize("kind", ["text/vcard", "text/x-vcard", "text/directory"])
def test_g7_a_card_is_read_like_an_invitation(kind: str) -> None:
    raw = invitation(CARD, kind=kind)
    assert {"Ann", "Lee", "Pills", "Inc", "Sales", "Buy", "now", "Your", "friend"} <= words(raw)
    assert not {"nYour", "e", "FN", "PHOTO", "VCARD"} & words(raw)
    assert reading(parse(raw)).links == ("http://card.example/buy",)


def test_g7_an_old_card_in_quoted_printable_is_read() -> None:
    card = (
        "BEGIN:VCARD\nVERSION:2.1\nNOTE;CHARSET=utf-8;ENCODING=QUOTED-PRINTABLE:Gr=C3=BC=\n=C3=9Fe"
        "=0D=0APills\nFN:Ann\nEND:VCARD\n"
    )
    assert {"Grüße", "Pills", "Ann"} <= words(invitation(card, kind="text/x-vcard"))


def test_g7_an_invitation_beside_other_forms_of_the_text_is_read() -> None:
    raw = (
        "Content-Type: multipart/alternative; boundary=b\n\n--b\n\nplain\n"
        f"--b\nContent-Type: text/calendar; method=REQUEST\n\n{INVITATION}\n--b--\n"
    ).encode()
    assert {"plain", "Cancel", "cheap"} <= words(raw)


@pytest.mark.parametrize("text", ["no calendar at all", "BEGIN:VCALENDAR\nbroken lines\nof words"])
def test_g7_what_is_no_calendar_is_read_as_text(text: str) -> None:
    assert set(text.split()[-2:]) <= words(invitation(text))


@pytest.mark.parametrize(
    "line", ["A;", 'A;X="', "A;;;", " ", "\\", "A:\\", "A.", '";', "BEGIN:VALARM\n"]
)
def test_g7_hostile_lines_cost_time_in_step(line: str) -> None:
    def seconds(count: int) -> float:
        data, best = b"BEGIN:VCALENDAR\n" + line.encode() * count, 1e9
        for _ in range(3):
            started = time.thread_time()
            read(data, "")
            best = min(best, time.thread_time() - started)
        return best

    assert seconds(80_000) < 12 * max(seconds(20_000), 0.002)
