"""Received fields: what they tell, and which of them the mail had when it came to us."""

import pytest

from spamd.message.features import extract
from spamd.message.spam_fields import strip_and_prepend
from spamd.message.tokens.tokenizer import TokenizerOptions

from .helpers import mail, tokens

OURS = b"X-Spam-Status: No, score=-2.1 required=3.4\nX-Spam-Id: 0011223344-0011223344556677\n"
LATER = b"Received: from later.example (later.example [192.0.2.9]) by box.example with LMTP; now\n"
OWN = b"Received: from relay.example (mx [192.0.2.7]) by gate.example (spamd) with ESMTP; now\n"
CAME = (
    "Received: from relay.example.org (HELO WORKSTATION) ([198.51.100.7])\n"
    "    by mx.example.co.uk (Postfix 3.7.11) with ESMTPS id 4RTZ9p2xkC\n"
    "    for <you@example.net>; Mon, 1 Jan 2024 10:00:00 +0000 (GMT)"
)


def received(raw: bytes) -> set[str]:
    return {token for token in tokens(raw) if token.startswith(("received:", "received="))}


def test_hosts_addresses_domains_and_programs_of_the_way_are_tokens() -> None:
    assert {
        "received:relay.example.org",
        "received:@example.org",
        "received:198.51.100.7",
        "received:mx.example.co.uk",
        "received:@example.co.uk",
        "received=WORKSTATION",
        "received=Postfix",
        "received=ESMTPS",
    } <= received(mail("x", CAME))


@pytest.mark.parametrize("recipient", ["\n    for <you@example.net>", ""])
def test_what_comes_once_and_never_again_is_no_token(recipient: str) -> None:
    first = CAME.replace("\n    for <you@example.net>", recipient)
    later = first.replace("4RTZ9p2xkC", "4RTaBc7dEf").replace("1 Jan 2024 10", "9 Mar 2025 23")
    assert tokens(mail("x", first)) == tokens(mail("x", later.replace("you@", "me@")))


def test_a_version_is_no_host() -> None:
    assert "received=3.7.11" in received(mail("x", CAME))  # as a word
    assert "received:@3.7.11" not in received(mail("x", CAME))


def test_d14_later_hops_and_our_own_field_change_nothing() -> None:
    raw = mail("x", CAME)
    delivered = LATER + LATER + OWN + OURS + raw
    assert tokens(delivered) == tokens(raw)


@pytest.mark.parametrize("place", ["above", "between", "below"])
def test_a_forged_id_hides_nothing_from_a_mail_that_arrives(place: str) -> None:
    """At the door the forgery counts for nothing, and behind it only our own id is left."""
    forged = b"X-Spam-Id: 0011223344-0011223344556677\n"
    raw = mail("x", CAME, CAME.replace("relay", "first"))
    at = {
        "above": 0,
        "between": raw.index(b"Received: from first"),
        "below": raw.index(b"\n\n") + 1,
    }
    arriving = raw[: at[place]] + forged + raw[at[place] :]
    scanned = extract(arriving, arriving=True)
    delivered = extract(LATER + strip_and_prepend(arriving, OWN + OURS))

    assert list(scanned.texts) == list(extract(raw).texts)
    assert list(delivered.texts) == list(scanned.texts)
    assert (scanned.digest, scanned.id) == (delivered.digest, None)


def test_of_many_fields_those_of_the_servers_near_us_count() -> None:
    fields = [
        f"Received: from hop{number}.example by hop{number + 1}.example" for number in range(40)
    ]
    found = received(mail("x", *fields))
    assert "received:hop0.example" in found
    assert "received:hop30.example" not in found


def test_without_route_the_way_gives_nothing() -> None:
    options = TokenizerOptions(without=frozenset({"route"}))
    assert list(extract(mail("x", CAME), options).texts) == list(extract(mail("x"), options).texts)


@pytest.mark.parametrize(
    "value", ["", ";", "for", "from", "id", "from [", "\xff\xfe", "from " + "a." * 5000, "by . . ."]
)
def test_a_broken_field_breaks_nothing(value: str) -> None:
    raw = mail("x").replace(b"\n\n", b"\nReceived: " + value.encode("latin-1") + b"\n\n", 1)
    assert all(len(token) <= 64 for token in received(raw))
