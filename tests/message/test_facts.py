import math

import pytest

from spamd.message.facts import SCHEMA, continuous, discrete
from spamd.message.mime.parser import parse
from spamd.message.reading import read
from spamd.sample import FIXED_POINT

from .helpers import mail, page


def fact(raw: bytes, name: str) -> str:
    """Return the value of one discrete fact of a mail."""
    message = parse(raw)
    names = [schema_name for schema_name, _ in SCHEMA.discrete]
    place = names.index(name)
    return SCHEMA.discrete[place][1][int(discrete(message, read(message))[place])]


def number(raw: bytes, name: str, tokens: int = 10) -> float:
    """Return the value of one continuous fact of a mail."""
    message = parse(raw)
    place = SCHEMA.continuous.index(name)
    return int(continuous(message, read(message), tokens)[place]) / FIXED_POINT


def attached(name: str, kind: str = "application/octet-stream") -> bytes:
    return (
        f"From: a@example.org\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nsee\n"
        f'--b\nContent-Type: {kind}; name="{name}"\n\nxx\n--b--\n'
    ).encode()


@pytest.mark.parametrize(
    ("raw", "name", "value"),
    [
        (mail("x", charset="us-ascii"), "charset", "ascii"),
        (mail("ü"), "charset", "utf-8"),
        (mail("ü", charset="iso-8859-1"), "charset", "western"),
        (mail("привет", charset="koi8-r"), "charset", "cyrillic"),
        (mail("发票", charset="gb18030"), "charset", "cjk"),
        (mail("x", charset="cp1256"), "charset", "other"),
        (mail("ü", "Content-Type: text/plain; charset=bogus"), "charset", "bad"),
        (
            attached("x.bin").replace(b"\n\nsee", b"\nContent-Type: image/png\n\nsee"),
            "charset",
            "none",
        ),
        (mail("x"), "form", "plain"),
        (page("x"), "form", "html"),
        (mail("x", "Content-Type: image/png"), "form", "none"),
        (mail("x"), "attachment", "none"),
        (attached("a.exe"), "attachment", "program"),
        (attached("a.zip"), "attachment", "archive"),
        (attached("a.PDF"), "attachment", "document"),
        (attached("a.png", "image/png"), "attachment", "image"),
        (attached("a.xyz"), "attachment", "other"),
        (mail("Subject: y\n\nx", "Content-Type: message/rfc822"), "attachment", "message"),
        (mail("x"), "recipients", "one"),
        (mail("x", "Cc: a@b.example, c@d.example"), "recipients", "few"),
        (mail("x", "Cc: " + ", ".join(["a@b.example"] * 9)), "recipients", "many"),
        (b"To: undisclosed-recipients:;\n\nx", "recipients", "undisclosed"),
        (b"Subject: x\n\nx", "recipients", "none"),
        (mail("x"), "authentication", "none"),
        (mail("x", "List-Id: <a.b>"), "list", "list"),
        (mail("x", "List-Unsubscribe: <mailto:a@b>"), "list", "unsubscribe"),
        (mail("x", "Precedence: bulk"), "list", "unsubscribe"),
        (mail("x"), "list", "no"),
        (mail("x", "In-Reply-To: <a@b>"), "reply", "yes"),
        (mail("x", "Subject: Re: x"), "reply", "claimed"),
        (mail("x"), "reply", "no"),
        (mail("x"), "subject", "none"),
        (mail("x", "Subject: hello"), "subject", "lower"),
        (mail("x", "Subject: Hello you"), "subject", "normal"),
        (mail("x", "Subject: BUY NOW"), "subject", "capitals"),
        (mail("x", "Subject: Buy now!!!"), "subject", "signs"),
        (mail("x"), "links", "none"),
        (mail("http://a.example"), "links", "one"),
        (mail("http://a.example http://b.example"), "links", "few"),
        (mail(" ".join(f"http://{n}.example" for n in range(12))), "links", "many"),
        (mail(" "), "script", "none"),
        (mail("Grüße an alle"), "script", "latin"),
        (mail("Привет, мир, IBM"), "script", "cyrillic"),
        (mail("发票优惠"), "script", "cjk"),
        (mail("عزيزي العميل"), "script", "arabic"),
        (mail("Καλημέρα κόσμε"), "script", "other"),
        (mail("x"), "priority", "none"),
        (mail("x", "X-Priority: 1 (Highest)"), "priority", "high"),
        (mail("x", "X-Priority: 3"), "priority", "normal"),
        (mail("x", "Importance: low"), "priority", "low"),
        (mail("x"), "sender", "named"),
        (b"From: a@b.example\n\nx", "sender", "bare"),
        (b"Subject: x\n\nx", "sender", "none"),
        (mail("x", "Reply-To: other@elsewhere.example"), "sender", "other-reply"),
        (page("<b hidden>no</b>yes"), "tricks", "hidden"),
        (mail("V\u200biagra"), "tricks", "masked"),
        (mail("x"), "tricks", "none"),
        (mail("x", "X-Mailer: y"), "mailer", "named"),
        (mail("x"), "mailer", "none"),
    ],
)
def test_each_fact_has_its_value(raw: bytes, name: str, value: str) -> None:
    assert fact(raw, name) == value


def test_every_discrete_fact_has_at_least_two_distinct_values() -> None:
    for _, values in SCHEMA.discrete:
        assert len(set(values)) == len(values) >= 2


def test_continuous_facts_are_logarithms_and_shares() -> None:
    raw = mail("ABCD efgh 12ü" + " " * 3)
    assert number(raw, "size") == pytest.approx(math.log2(1 + 17), abs=1e-3)
    assert number(raw, "words", tokens=7) == 3
    assert number(raw, "capitals") == pytest.approx(4 / 8, abs=1e-3)
    assert number(raw, "digits") == pytest.approx(2 / 16, abs=1e-3)
    assert number(raw, "foreign") == pytest.approx(1 / 16, abs=1e-3)
    assert number(raw, "links_per_kb") == 0


def test_facts_of_nothing_are_finite() -> None:
    for name in SCHEMA.continuous:
        assert number(b"", name, tokens=0) == 0
