"""Exactly one From field with exactly one address; all else is no sender."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spamd.message.authentication.sender import (
    Sender,
    address_name,
    domain_name,
    same_organisation,
    sender_of,
)
from spamd.message.mime.parser import parse


def sender(*fields: str) -> Sender:
    return sender_of(parse(("\n".join(fields) + "\n\ntext").encode()))


@pytest.mark.parametrize(
    ("field", "address"),
    [
        ("anna@shop.example", "anna@shop.example"),
        ("<Anna@Shop.Example>", "anna@shop.example"),
        ("Anna B. <anna@shop.example>", "anna@shop.example"),
        ('"B, Anna (shop)" <anna@shop.example>', "anna@shop.example"),
        ('"anna@shop.example" <anna@shop.example>', "anna@shop.example"),
        ("anna@shop.example (Anna (of the shop))", "anna@shop.example"),
        ("=?utf-8?q?Anna_=C3=84?= <anna@shop.example>", "anna@shop.example"),
        ("Änna <anna@bücher.example>", "anna@bücher.example"),
        ("anna@xn--bcher-kva.example", "anna@bücher.example"),
        ("anna@shop.example.", "anna@shop.example"),
    ],
)
def test_one_address_is_the_sender_however_it_is_dressed(field: str, address: str) -> None:
    assert sender(f"From: {field}") == Sender(address=address, addresses=(address,))


@pytest.mark.parametrize(
    "field",
    [
        "",
        "anna@shop.example, bob@evil.example",
        "anna@shop.example; bob@evil.example",
        "anna@shop.example <bob@evil.example>",
        "<anna@shop.example> <bob@evil.example>",
        '"anna@shop.example" <bob@evil.example>',
        "=?utf-8?q?anna=40shop=2Eexample?= <bob@evil.example>",
        "=?utf-8?b?YW5uYUBzaG9wLmV4YW1wbGU=?= <bob@evil.example>",
        '"anna＠shop.example" <bob@evil.example>',
        "bob@evil.example (anna@shop.example)",
        "friends: anna@shop.example;",
        "<@shop.example:bob@evil.example>",
        '"anna@shop.example bob"@evil.example',
        "anna@shop.example\0@evil.example",
        "anna@shop.example bob@evil.example",
        "<anna(x)@shop.example>",
        "<anna@shop.example",
        "anna@shop.example>",
        '"anna" <anna@shop.example> <x>',
        "B, Anna <anna@shop.example>",
        "anna@[203.0.113.9]",
        "anna@-shop.example",
        "anna@shop..example",
        '"anna@shop.example <bob@evil.example>',
        "x" * 2_100 + " <anna@shop.example>",
    ],
)
def test_what_readers_could_take_in_two_ways_is_no_sender(field: str) -> None:
    found = sender(f"From: {field}")
    assert found.address == ""
    assert found.trouble


@pytest.mark.parametrize(
    "fields",
    [
        ("From: anna@shop.example", "From: bob@evil.example"),
        ("From: anna@shop.example", "From : bob@evil.example"),
        ("From: anna@shop.example", "from: anna@shop.example"),
        ("From: anna@shop.example", "no field", "Subject: x"),
        ("Subject: x",),
    ],
)
def test_two_from_fields_none_or_lines_that_are_no_field_give_no_sender(
    fields: tuple[str, ...],
) -> None:
    assert sender(*fields).address == ""


def test_all_addresses_of_all_fields_are_known_to_be_kept_out() -> None:
    found = sender("From: a@one.example, <b@two.example>", "From: x <c@three.example>")
    assert found.addresses == ("b@two.example", "c@three.example")


@pytest.mark.parametrize(
    "look_alike",
    [
        "ban\u212a.example",
        "b\u0430nk.example",
        "bank.examp\u217ce",
        "ｂank.example",
        "bank.exampIe",
    ],
)
def test_a_domain_in_look_alike_letters_is_another_domain(look_alike: str) -> None:
    assert domain_name(look_alike) != "bank.example"
    assert address_name(f"a@{look_alike}") != "a@bank.example"


def test_the_two_spellings_of_an_international_name_are_one() -> None:
    assert domain_name("BÜCHER.example") != domain_name("bücher.example")  # A to Z only
    assert domain_name("xn--bcher-kva.EXAMPLE") == domain_name("bücher。example")


@pytest.mark.parametrize(
    ("domain", "other", "same"),
    [
        ("shop.example", "shop.example", True),
        ("mail.shop.example", "news.shop.example", True),
        ("shop.co.uk", "other.co.uk", False),
        ("anna.github.io", "bob.github.io", False),
        ("shop.example", "shop.example.evil.example", False),
        ("localhost", "localhost", True),
        ("", "", False),
    ],
)
def test_domains_are_aligned_when_they_were_registered_as_one(
    domain: str, other: str, *, same: bool
) -> None:
    assert same_organisation(domain, other) is same


@given(st.text(max_size=60))
def test_any_text_is_a_from_field(text: str) -> None:
    found = sender_of(parse(f"From: {text}\n\n".encode("utf-8", "replace")))
    assert found.address == "" or address_name(found.address) == found.address
    assert bool(found.address) != bool(found.trouble)
