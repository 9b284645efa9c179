"""What proves a sender, and what a stranger writes to have it look so.

The places that count: above the Received field of our border; right below it where the settings say
that our servers take out what others wrote under their name.
"""

import pytest

from spamd.message.authentication.proof import AuthOptions, Proof, prove
from spamd.message.features import ReadingOptions, extract
from spamd.message.mime.parser import parse
from spamd.message.tokens.tokenizer import TokenizerOptions

TRUST = AuthOptions(trusted=("mx.example.org",))
CLEANS = AuthOptions(trusted=("mx.example.org",), removes_forged=True)
OURS = "Authentication-Results: mx.example.org; "
BORDER = "Received: from mail.shop.example (mail.shop.example [203.0.113.9]) by mx.example.org"
INSIDE = "Received: from localhost (localhost [127.0.0.1]) by mx.example.org (Postfix)"
DMARC = OURS + "dmarc=pass header.from=shop.example"
FROM = "From: Shop <news@shop.example>"


def proof(*fields: str, options: AuthOptions = TRUST, bare: bool = False) -> Proof:
    return prove(parse(("\n".join(fields) + "\n\ntext").encode()), options, bare=bare)


@pytest.mark.parametrize(
    ("said", "by"),
    [
        ("dmarc=pass header.from=shop.example", "dmarc"),
        ("dkim=pass header.d=shop.example", "dkim"),
        ("dkim=pass header.i=@mail.shop.example", "dkim"),
        ("dkim=fail header.d=shop.example; dkim=pass header.d=news.shop.example", "dkim"),
        ("spf=pass smtp.mailfrom=bounce@b.shop.example", "spf"),
        ("spf=fail smtp.mailfrom=shop.example; dkim=pass header.d=shop.example", "dkim"),
        ("dmarc=none header.from=shop.example; spf=pass smtp.mailfrom=shop.example", "spf"),
        ("dmarc=pass header.from=evil.example", ""),
        ("dmarc=pass header.from=mail.shop.example", ""),
        ("dmarc=pass", ""),
        ("dkim=pass header.d=evil.example", ""),
        ("dkim=pass header.d=example", ""),
        ("dkim=pass header.d=notshop.example", ""),
        ("dkim=pass header.d=evil.example header.i=@shop.example", ""),
        ("spf=pass smtp.helo=shop.example", ""),
        ("spf=softfail smtp.mailfrom=shop.example", ""),
        ("dkim=pass header.d=shop.example; dmarc=fail header.from=shop.example", ""),
        ("none", ""),
    ],
)
def test_a_method_proves_the_domain_of_the_sender_if_it_is_aligned(said: str, by: str) -> None:
    assert proof(OURS + said, BORDER, FROM).by == by


def test_what_our_servers_say_counts_above_the_received_field_of_our_border() -> None:
    assert proof(INSIDE, DMARC, BORDER, FROM).by == "dmarc"
    assert proof(DMARC, INSIDE, BORDER, FROM).by == "dmarc"
    assert proof(DMARC, FROM).by == "dmarc"


FORGED = {
    "below the border": (BORDER, DMARC, FROM),
    "below the stranger's own way": (
        BORDER,
        "Received: from [127.0.0.1] (localhost [127.0.0.1]) by mx.example.org",
        DMARC,
        FROM,
    ),
    "another server's": (DMARC.replace("mx.example.org", "mx.evil.example"), BORDER, FROM),
    "a server whose name ends like ours": (
        DMARC.replace("mx.example.org", "a.mx.example.org"),
        BORDER,
        FROM,
    ),
    "our name in a comment": (
        (
            "Authentication-Results: (mx.example.org;) evil.example; "
            "dmarc=pass header.from=shop.example"
        ),
        BORDER,
        FROM,
    ),
    "below From": (FROM, DMARC),
    "a border that is told to be this machine": (
        "Received: from [127.0.0.1] (unknown [203.0.113.9]) by mx.example.org",
        DMARC,
        BORDER,
        FROM,
    ),
    "a greeting that closes its bracket": (
        "Received: from x(localhost [127.0.0.1]) (unknown [203.0.113.9]) by mx.example.org",
        DMARC,
        BORDER,
        FROM,
    ),
    "two From fields": (DMARC, BORDER, FROM, "From: x@evil.example"),
    "From with two addresses": (DMARC, BORDER, "From: news@shop.example, x@evil.example"),
    "a display name that is an address": (
        OURS + "dmarc=pass header.from=evil.example",
        BORDER,
        'From: "news@shop.example" <x@evil.example>',
    ),
    "a look-alike domain": (
        OURS + "dmarc=pass header.from=xn--shp-tna.example",
        BORDER,
        "From: news@shop.example",
    ),
    "below an id of ours that is none": (BORDER, "X-Spam-Id: 00-00", DMARC, FROM),
    "ARC by a stranger": (
        OURS + "arc=pass",
        BORDER,
        "ARC-Seal: i=1; cv=none; d=evil.example; s=a; b=x",
        "ARC-Authentication-Results: i=1; mx.example.org; dmarc=pass header.from=shop.example",
        FROM,
    ),
    "ARC of ours that a stranger sealed over": (
        OURS + "arc=pass",
        BORDER,
        "ARC-Seal: i=2; cv=pass; d=evil.example; s=a; b=x",
        "ARC-Authentication-Results: i=2; mx.evil.example; none",
        "ARC-Seal: i=1; cv=none; d=example.org; s=a; b=x",
        "ARC-Authentication-Results: i=1; mx.example.org; dmarc=pass header.from=shop.example",
        FROM,
    ),
    "ARC that nobody has checked": (
        BORDER,
        "ARC-Seal: i=1; cv=none; d=example.org; s=a; b=x",
        "ARC-Authentication-Results: i=1; mx.example.org; dmarc=pass header.from=shop.example",
        FROM,
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_stranger_proves_nothing_of_others_by_what_he_writes(name: str) -> None:
    found = proof(*FORGED[name])
    assert not found.by or found.sender.domain != "shop.example"


def test_a_mail_that_a_stranger_hands_over_proves_nothing_by_itself() -> None:
    assert proof(DMARC, FROM, bare=True).results == ()
    assert proof(DMARC, INSIDE, FROM, bare=True).results == ()


def test_below_the_border_counts_where_our_servers_take_out_what_others_wrote() -> None:
    assert proof(BORDER, DMARC, FROM, options=CLEANS).by == "dmarc"
    assert proof(DMARC, FROM, options=CLEANS, bare=True).by == "dmarc"
    assert proof(BORDER, BORDER, DMARC, FROM, options=CLEANS).by == ""
    assert proof(BORDER, FROM, DMARC, options=CLEANS).by == ""


def test_of_a_method_the_topmost_field_counts() -> None:
    fails = OURS + "dmarc=fail header.from=shop.example"
    assert proof(fails, DMARC, BORDER, FROM).by == ""


def test_arc_results_count_if_a_named_server_sealed_last_and_the_chain_is_intact() -> None:
    found = proof(
        OURS + "arc=pass; dmarc=none",
        BORDER,
        "ARC-Seal: i=2; cv=pass; d=lists.example; s=a; b=x",
        "ARC-Authentication-Results: i=2; mx.lists.example; dkim=pass header.d=shop.example",
        "ARC-Seal: i=1; cv=none; d=else.example; s=a; b=x",
        FROM,
        options=AuthOptions(trusted=("mx.example.org", "mx.lists.example")),
    )
    assert found.by == "arc"


def test_own_servers_hand_mail_on_by_the_networks_of_the_settings() -> None:
    inner = "Received: from mx (mx.example.org [10.1.2.3]) by store.example.org"
    inside = AuthOptions(trusted=("mx.example.org",), networks=("10.0.0.0/8",))
    assert proof(inner, DMARC, BORDER, FROM, options=inside).by == "dmarc"
    assert proof(inner, DMARC, BORDER, FROM).by == ""


def test_the_border_says_who_handed_the_mail_over() -> None:
    found = proof(INSIDE, BORDER.replace("by mx", "by mx with ESMTPSA id a"), FROM)
    assert (found.client, found.name) == ("203.0.113.9", "mail.shop.example")
    login = "Received: from pc (pc.example.org [192.0.2.4]) by mx.example.org with ESMTPSA id a"
    assert proof(login, FROM).login
    assert not proof(login.replace("ESMTPSA", "ESMTPS"), FROM).login
    named = login.replace(" with ESMTPSA id a", ' with ESMTP id a for <" with ESMTPSA "@x>')
    assert not proof(named, FROM).login


def test_nobody_is_believed_unless_the_settings_name_him() -> None:
    found = proof(DMARC, BORDER, FROM, options=AuthOptions())
    assert (found.by, found.results, found.tokens()) == ("", (), [])
    assert (found.sender.address, found.client) == ("news@shop.example", "203.0.113.9")


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("dmarc=pass header.from=shop.example", "pass"),
        ("dkim=pass header.d=evil.example", "mixed"),
        ("spf=softfail smtp.mailfrom=shop.example", "fail"),
        ("spf=none; dkim=none; dmarc=none", "none"),
    ],
)
def test_what_is_proven_is_a_fact_and_tokens_for_the_classifiers(said: str, fact: str) -> None:
    mail = f"{OURS}{said}\n{BORDER}\n{FROM}\n\ntext".encode()
    found = extract(mail, ReadingOptions(auth=TRUST))
    plain = extract(mail, TokenizerOptions())
    assert found.proof.fact == fact
    added = set(found.texts) - set(plain.texts)
    assert added == set(found.proof.tokens())
    assert ("auth:proven" in added) == (fact == "pass")


@pytest.mark.parametrize(
    "options",
    [
        {"trusted": ("",)},
        {"trusted": ("mx; example",)},
        {"networks": ("10.0.0.1/8",)},
        {"own_domains": ("not a domain",)},
    ],
)
def test_settings_that_can_not_be_right_are_refused(options: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        AuthOptions(**options)  # type: ignore[arg-type]  # parametrized
