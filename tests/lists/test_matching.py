"""Which entry counts, and that nothing a stranger writes makes one count."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spamd.lists.entry import Effect, Entry, EntryError, Kind, checked, named
from spamd.lists.matching import Listed, Lists
from spamd.message.authentication.proof import AuthOptions, Proof, prove
from spamd.message.mime.parser import parse
from tests.message.authentication.test_proof import BORDER, DMARC, FORGED, FROM, OURS, TRUST

OWN = AuthOptions(trusted=("mx.example.org",), own_domains=("example.org",))


def entry(text: str, effect: Effect = Effect.ALLOW, number: int = 1, **more: Any) -> Entry:
    kind, value = named(text)
    return Entry(effect=effect, kind=kind, value=value, number=number, **more)


def deny(text: str, number: int = 2, **more: Any) -> Entry:
    return entry(text, Effect.DENY, number, **more)


def proof(*fields: str, options: AuthOptions = TRUST) -> Proof:
    return prove(parse(("\n".join(fields) + "\n\ntext").encode()), options)


PROVEN = proof(DMARC, BORDER, FROM)
UNPROVEN = proof(OURS + "dmarc=none", BORDER, FROM)


def of(found: Proof, *entries: Entry, options: AuthOptions = TRUST, **about: Any) -> Listed:
    return Lists(options, entries).of(found, **about)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("Anna@Shop.Example", Kind.ADDRESS, "anna@shop.example"),
        ("<anna@shop.example>", Kind.ADDRESS, "anna@shop.example"),
        ("shop.example", Kind.DOMAIN, "shop.example"),
        ("@shop.example", Kind.DOMAIN, "shop.example"),
        ("*.shop.example", Kind.DOMAIN, "shop.example"),
        ("xn--bcher-kva.example", Kind.DOMAIN, "bücher.example"),
        ("203.0.113.0/24", Kind.NETWORK, "203.0.113.0/24"),
        ("203.0.113.9", Kind.NETWORK, "203.0.113.9/32"),
        ("2001:db8::/32", Kind.NETWORK, "2001:db8::/32"),
        ("list:News.Shop.Example", Kind.LIST, "news.shop.example"),
        ("to:abuse@example.org", Kind.RECIPIENT, "abuse@example.org"),
    ],
)
def test_an_entry_names_what_people_write(text: str, kind: Kind, value: str) -> None:
    assert named(text) == (kind, value)
    assert named(entry(text).text) == (kind, value)


@pytest.mark.parametrize(
    "text", ["", "shop", "a@", "203.0.113.9/24", "a b@c.example", "list:", "to:x"]
)
def test_what_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(EntryError):
        named(text)


@pytest.mark.parametrize(
    "text",
    ["news@shop.example", "shop.example", "203.0.113.0/24", "203.0.113.9"],
)
def test_a_proven_mail_is_let_in_by_any_name_of_its_sender(text: str) -> None:
    assert of(PROVEN, entry(text)).effect == "allow"


@pytest.mark.parametrize(
    "text", ["new@shop.example", "shop.exampl", "op.example", "mail.shop.example", "203.0.113.8/32"]
)
def test_another_name_lets_nothing_in(text: str) -> None:
    assert of(PROVEN, entry(text)).entry is None


@pytest.mark.parametrize("text", ["news@shop.example", "shop.example"])
def test_a_mail_without_proof_is_not_let_in_and_it_is_told_why(text: str) -> None:
    found = of(UNPROVEN, entry(text))
    assert found.entry is None
    assert [each.text for each in found.refused] == [text]
    assert "does not count" in found.words()
    assert "news@shop.example" not in found.clause()


def test_without_proof_only_by_explicit_word() -> None:
    assert of(UNPROVEN, entry("shop.example", unproven=True)).effect == "allow"


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.parametrize("text", ["news@shop.example", "shop.example", "list:news.shop.example"])
def test_a_forged_sender_is_not_let_in(name: str, text: str) -> None:
    assert of(proof(*FORGED[name]), entry(text)).entry is None


def test_own_domains_are_never_let_in_without_proof_even_if_an_entry_asks_for_none() -> None:
    mine = entry("example.org", unproven=True)
    with pytest.raises(EntryError, match="own_domains"):
        checked(mine, OWN)
    forged = proof(OURS + "spf=none", BORDER, "From: boss@mail.example.org", options=OWN)
    for each in (
        mine,
        entry("list:a.example", unproven=True),
        entry("to:a@b.example", unproven=True),
    ):
        assert of(forged, each, options=OWN, recipient=b"a@b.example").entry is None
    login = "Received: from pc (pc [203.0.113.9]) by mx.example.org with ESMTPSA id a"
    logged_in = proof(login, "From: boss@example.org", options=OWN)
    assert of(logged_in, mine, options=OWN).effect == "allow"


def test_a_client_that_has_logged_in_proves_no_other_domain() -> None:
    login = "Received: from pc (pc [203.0.113.9]) by mx.example.org with ESMTPSA id a"
    assert of(proof(login, FROM), entry("shop.example")).entry is None


def test_a_mailing_list_is_let_in_if_its_own_domain_is_proven() -> None:
    of_list = ("List-Id: News <news.lists.example>", "From: a@else.example")
    good = proof(OURS + "spf=pass smtp.mailfrom=b@bounce.lists.example", BORDER, *of_list)
    bad = proof(OURS + "dmarc=pass header.from=else.example", BORDER, *of_list)
    assert of(good, entry("list:news.lists.example")).effect == "allow"
    assert of(bad, entry("list:news.lists.example")).entry is None


def test_a_recipient_gets_mail_of_anybody_only_by_explicit_word() -> None:
    with pytest.raises(EntryError, match="unproven"):
        checked(entry("to:abuse@example.org"), TRUST)
    found = of(
        UNPROVEN, entry("to:abuse@example.org", unproven=True), recipient=b"Abuse@Example.org"
    )
    assert found.effect == "allow"


@pytest.mark.parametrize("text", ["0.0.0.0/0", "10.0.0.0/7", "::/0", "2000::/3"])
def test_a_network_that_holds_nearly_all_clients_can_not_be_let_in(text: str) -> None:
    with pytest.raises(EntryError):
        checked(entry(text), TRUST)
    checked(deny(text), TRUST)


@pytest.mark.parametrize(
    ("entries", "user", "number"),
    [
        (
            [entry("shop.example"), deny("shop.example", owner="anna@example.org")],
            "anna@example.org",
            2,
        ),
        (
            [entry("shop.example", owner="anna@example.org"), deny("shop.example")],
            "anna@example.org",
            1,
        ),
        (
            [entry("shop.example", owner="@example.org"), deny("shop.example")],
            "anna@example.org",
            1,
        ),
        (
            [entry("shop.example", owner="@example.org"), deny("shop.example")],
            "anna@else.example",
            2,
        ),
        (
            [entry("shop.example", owner="bob@example.org"), deny("shop.example")],
            "anna@example.org",
            2,
        ),
        ([entry("news@shop.example"), deny("shop.example")], "", 1),
        ([entry("shop.example"), deny("news@shop.example")], "", 2),
        ([entry("203.0.113.0/24"), deny("shop.example")], "", 2),
        ([entry("203.0.113.9"), deny("203.0.113.0/24")], "", 1),
        ([entry("shop.example"), deny("shop.example")], "", 2),
    ],
)
def test_the_users_word_goes_before_the_domains_before_the_sites_the_closer_name_first(
    entries: Sequence[Entry], user: str, number: int
) -> None:
    assert of(PROVEN, *entries, user=user).number == number


def test_an_entry_that_does_not_count_is_passed_over_for_one_that_does() -> None:
    found = of(UNPROVEN, entry("news@shop.example"), deny("shop.example"))
    assert (found.number, len(found.refused)) == (2, 1)


def test_any_of_the_addresses_of_a_strange_sender_is_kept_out() -> None:
    two = proof(FROM, "From: b@else.example")
    assert of(two, deny("shop.example")).effect == "deny"
    assert of(two, entry("shop.example", unproven=True)).entry is None


# What an attacker may write: any of our server's words, at any place below the border, in any
# form of From, with whatever way of his own.

_HEADS = st.sampled_from([
    DMARC,
    OURS + "dkim=pass header.d=shop.example; spf=pass smtp.mailfrom=shop.example",
    DMARC.replace("Authentication-Results", "ARC-Authentication-Results").replace(": ", ": i=1; "),
    "ARC-Seal: i=1; cv=none; d=mx.example.org; s=a; b=x",
    "Received: from localhost (localhost [127.0.0.1]) by mx.example.org with ESMTPSA",
    "Received: from mail.shop.example (mail.shop.example [203.0.113.250]) by mx.example.org",
    "X-Spam-Id: 00112233445566778899-0011223344556677",
    "X-Spam-Status: No",
    "Received-SPF: pass",
    "DKIM-Signature: v=1; d=shop.example",
    "List-Id: <news.shop.example>",
    "Sender: news@shop.example",
    "Return-Path: <news@shop.example>",
    "From: news@shop.example",
    'From: "news@shop.example" <x@evil.example>',
    "From: news@shop.example, x@evil.example",
    "From: news@sh\u043ep.example",
    "no field",
])  # fmt: skip
_OTHERS = st.sampled_from([
    OURS + "dmarc=fail header.from=shop.example",
    OURS + "spf=pass smtp.mailfrom=x@evil.example; dkim=pass header.d=evil.example; dmarc=none",
    OURS + "none",
    "X-Nothing: said",
])  # fmt: skip
_ENTRIES = [
    entry("news@shop.example"),
    entry("shop.example"),
    entry("list:news.shop.example"),
    entry("shop.example", owner="anna@example.org"),
    entry("203.0.113.250"),
    entry("mx.example.org"),
    deny("evil.example", owner="bob@example.org"),
]
_BORDER = (
    "Received: from x.evil.example (x.evil.example [198.51.100.7]) by mx.example.org with SMTP"
)


@given(st.lists(_HEADS, max_size=8), _OTHERS, st.sampled_from([TRUST, OWN]))
def test_nothing_a_stranger_writes_lets_his_mail_in(
    fields: list[str], said: str, options: AuthOptions
) -> None:
    found = proof(said, _BORDER, *fields, options=options)
    for user in ("", "anna@example.org"):
        assert (
            Lists(options, _ENTRIES).of(found, user=user, recipient=b"anna@example.org").entry
            is None
        )


@given(st.lists(_HEADS, max_size=8))
def test_nothing_a_stranger_writes_lets_in_what_he_hands_to_us_himself(fields: list[str]) -> None:
    mail = parse(("\n".join([*fields, "Subject: x"]) + "\n\ntext").encode())
    assert Lists(TRUST, _ENTRIES).of(prove(mail, TRUST, bare=True)).entry is None
