"""Mail that pretends to be from somebody who is let in: not let in, and told; whatever is listed.

The forgeries go through the scanner, with a model that knows words, so that what is compared is the
probability of the whole verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spamd.bayes.decision import DecisionOptions
from spamd.bayes.model import BayesOptions, Model
from spamd.explanation import facts_of
from spamd.lists.entry import SITE_OWNER, Effect, Entry
from spamd.lists.known import KnownAddresses, KnownOptions, address_hash
from spamd.lists.matching import Lists
from spamd.lists.senders import Senders
from spamd.message.authentication.proof import AuthOptions
from spamd.message.facts import SCHEMA
from spamd.message.features import Features, ReadingOptions, extract
from spamd.person import Person
from spamd.report import ScanReport
from spamd.sample import Label
from spamd.scanning import Scanner
from tests.bayes.samples import teach
from tests.fakes import FakeClock
from tests.lists.test_matching import deny, entry
from tests.message.authentication.test_proof import BORDER, DMARC, OURS

KEY = b"key"
ANNA = "anna@example.org"
AUTH = AuthOptions(trusted=("mx.example.org",), own_domains=("example.org",))
OWNERS = ("", "@example.org", ANNA)
WORDS = "cheap pills, buy cheap pills now"
FAIL = OURS + "dmarc=fail header.from=shop.example"


@dataclass(frozen=True, kw_only=True)
class Forgery:
    """Fields of a forged mail, the entry that would let it in, and what explain says."""

    fields: tuple[str, ...]
    listed: str
    told: str


FORGERIES = {
    "a forged sender": Forgery(
        fields=(FAIL, BORDER, "From: News <news@shop.example>"),
        listed="news@shop.example",
        told="does not count: news@shop.example is not proven: dmarc=fail",
    ),
    "a forged domain": Forgery(
        fields=(OURS + "spf=none", BORDER, "From: any@shop.example"),
        listed="shop.example",
        told="does not count: any@shop.example is not proven: spf=none",
    ),
    "a forged own domain": Forgery(
        fields=(OURS + "spf=fail", BORDER, "From: The Boss <boss@example.org>"),
        listed="example.org",
        told="does not count: boss@example.org is not proven: spf=fail",
    ),
    "a look-alike domain": Forgery(
        fields=(
            OURS + "dmarc=pass header.from=sh\u043ep.example",
            BORDER,
            "From: a@sh\u043ep.example",
        ),
        listed="shop.example",
        told="does not count: sh\u043ep.example only looks like shop.example",
    ),
    "a look-alike domain in digits": Forgery(
        fields=(OURS + "dmarc=pass header.from=sh0p.example", BORDER, "From: news@sh0p.example"),
        listed="news@shop.example",
        told="does not count: news@sh0p.example only looks like news@shop.example",
    ),
    "results of a stranger": Forgery(
        fields=(
            DMARC.replace("mx.example.org", "mx.evil.example"),
            BORDER,
            "From: news@shop.example",
        ),
        listed="news@shop.example",
        told="does not count: nothing is known to prove news@shop.example",
    ),
    "results under our name, below the border": Forgery(
        fields=(BORDER, DMARC, "From: news@shop.example"),
        listed="shop.example",
        told="does not count: nothing is known to prove news@shop.example",
    ),
    "two From fields": Forgery(
        fields=(DMARC, BORDER, "From: news@shop.example", "From: x@evil.example"),
        listed="news@shop.example",
        told="does not count: no sender that could be proven: 2 From fields",
    ),
    "From with two addresses": Forgery(
        fields=(DMARC, BORDER, "From: news@shop.example, x@evil.example"),
        listed="news@shop.example",
        told="a From field without exactly one address",
    ),
    "a display name that is an address": Forgery(
        fields=(
            OURS + "dmarc=pass header.from=evil.example",
            BORDER,
            'From: "news@shop.example" <x@evil.example>',
        ),
        listed="news@shop.example",
        told="a display name that is another address",
    ),
}


@pytest.fixture(scope="module")
def model() -> Model:
    found = Model.empty(SCHEMA, BayesOptions())
    for number in range(10):
        for label, text in ((Label.SPAM, WORDS), (Label.HAM, "minutes of our meeting on Monday")):
            sample = extract(f"Subject: {text}\n\n{text} {number}".encode()).sample
            teach(found, sample, label, b"%d" % number)
    return found


def scanner(model: Model, senders: Senders) -> Scanner:
    return Scanner(
        model=lambda: model, decision=DecisionOptions(), tokenizer=ReadingOptions(auth=AUTH),
        clock=FakeClock(), key=KEY, random=lambda size: b"\0" * size, senders=lambda: senders,
    )  # fmt: skip


def features(fields: Sequence[str]) -> Features:
    content = "\n".join([*fields, "Subject: offer"]) + f"\n\n{WORDS}\n"
    return extract(content.encode(), ReadingOptions(auth=AUTH))


def judged(
    model: Model, mail: Features, *entries: Entry, known: Sequence[str] = (), user: str = ANNA
) -> ScanReport:
    addresses = KnownAddresses(KEY, KnownOptions())
    addresses.add(
        each for name in known for each in (address_hash(KEY, name), address_hash(KEY, name, ANNA))
    )
    senders = Senders(lists=Lists(AUTH, entries), known=addresses)
    return scanner(model, senders).judge(mail, 0.0, Person(user=user))


@pytest.mark.parametrize("owner", OWNERS, ids=["site", "domain", "user"])
@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_not_let_in_and_explain_tells_why(model: Model, name: str, owner: str) -> None:
    forged = FORGERIES[name]
    mail = features(forged.fields)
    without = judged(model, mail)
    found = judged(model, mail, entry(forged.listed, owner=owner, number=7))
    assert (found.verdict, found.probability) == (without.verdict, without.probability)
    assert found.standing.listed.effect == ""
    explanation = scanner(model, Senders()).explain(mail, 3, found.standing)
    assert forged.told in "\n".join(facts_of(explanation, mail, found.standing))


def test_the_genuine_mail_is_let_in_by_the_same_entries(model: Model) -> None:
    mail = features((DMARC, BORDER, "From: News <news@shop.example>"))
    for listed in ("news@shop.example", "shop.example"):
        assert judged(model, mail, entry(listed)).probability == 0.0


# No entry without proof ever lowers the probability of a mail without proof.

_SAID = st.sampled_from([
    FAIL,
    OURS + "none",
    OURS + "spf=pass smtp.mailfrom=evil.example; dkim=pass header.d=evil.example; dmarc=none",
    OURS + "spf=softfail; dkim=fail; arc=pass",
    "X-Nothing: said",
])  # fmt: skip
_FROM = st.sampled_from([
    "From: news@shop.example",
    "From: News <any@mail.shop.example>",
    "From: boss@example.org",
    "From: anna@example.org",
    "From: news@shop.example, x@evil.example",
    'From: "news@shop.example" <x@evil.example>',
    "From: news@sh\u043ep.example",
    "From: =?utf-8?q?news=40shop=2Eexample?= <x@evil.example>",
    "From: news@shop.example\nFrom: x@evil.example",
    "X-From: nobody",
])  # fmt: skip
_WROTE = st.sampled_from([
    DMARC,
    DMARC.replace("mx.example.org", "mx.evil.example"),
    "Received: from localhost (localhost [127.0.0.1]) by mx.example.org with ESMTPSA",
    "ARC-Seal: i=1; cv=none; d=mx.example.org; s=a; b=x",
    "ARC-Authentication-Results: i=1; mx.example.org; dmarc=pass header.from=shop.example",
    "List-Id: <news.shop.example>",
    "Sender: news@shop.example",
    "X-Spam-Status: No",
])  # fmt: skip
_TARGETS = st.sampled_from([
    "news@shop.example", "any@mail.shop.example", "shop.example", "mail.shop.example",
    "example.org", "anna@example.org", "boss@example.org", "list:news.shop.example",
    "203.0.113.250", "127.0.0.1", "10.0.0.0/8", "evil.example.invalid", "x@evil.example",
])  # fmt: skip
_ENTRY = st.builds(
    lambda text, owner, effect: entry(text, effect, owner=owner),
    _TARGETS,
    st.sampled_from([SITE_OWNER, "@example.org", ANNA, "bob@example.org"]),
    st.sampled_from([Effect.ALLOW, Effect.ALLOW, Effect.DENY]),
)
_STRANGER = (
    "Received: from x.evil.example (x.evil.example [198.51.100.7]) by mx.example.org with SMTP"
)


@given(
    said=_SAID,
    sender=_FROM,
    wrote=st.lists(_WROTE, max_size=5),
    entries=st.lists(_ENTRY, max_size=6),
    known=st.lists(st.sampled_from(["news@shop.example", "x@evil.example", ANNA]), max_size=3),
    user=st.sampled_from(["", ANNA, "bob@example.org"]),
)
def test_no_entry_without_proof_ever_lowers_the_probability_of_a_mail_without_proof(
    model: Model,
    said: str,
    sender: str,
    wrote: list[str],
    entries: list[Entry],
    known: list[str],
    user: str,
) -> None:
    mail = features([said, _STRANGER, *wrote, sender])
    if mail.proof.by:  # evil.example has proven itself: that is no forgery
        return
    plain = judged(model, mail, user=user).probability
    found = judged(model, mail, *entries, known=known, user=user).probability
    assert plain is not None
    assert found is not None
    assert found >= plain


def test_the_property_sees_an_entry_that_would_let_in(model: Model) -> None:
    """It could fail: an entry that asks for no proof lowers the probability, as it says."""
    mail = features([FAIL, _STRANGER, "From: news@shop.example"])
    asks_nothing = entry("shop.example", unproven=True)
    assert judged(model, mail, asks_nothing).probability == 0.0
    assert judged(model, mail, deny("shop.example")).probability == 1.0
