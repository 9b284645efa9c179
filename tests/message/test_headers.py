import pytest

from spamd.message.features import extract
from spamd.message.limits import Limits
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.sample import Kind

from .helpers import mail, of_kind, page, tokens


def test_addresses_give_the_address_the_domain_and_their_number() -> None:
    found = tokens(mail("x", "Cc: Eve <Eve@Shop.example.co.uk>, adam@example.com"))
    assert {"cc:eve@shop.example.co.uk", "cc:@example.co.uk", "cc:@example.com"} <= found
    assert {"from:ann@example.org", "from:@example.org", "count:cc:2", "from=Ann"} <= found


def test_the_names_of_fields_are_tokens_as_they_are_spelled() -> None:
    found = tokens(mail("x", "MIME-version: 1.0", "X-Odd-One: y"))
    assert {"header:MIME-version", "header:X-Odd-One", "header:From"} <= found


def test_of_a_message_id_only_the_host_is_used() -> None:
    found = tokens(mail("x", "Message-ID: <20020822.abc@mail.example.com>"))
    assert {"message-id=mail", "message-id=example", "message-id=com"} <= found
    assert not any("abc" in token for token in found)
    for without_host in ("<20020822.abc>", "abc", "<abc@>"):
        found = tokens(mail("x", f"Message-ID: {without_host}"))
        assert not any("abc" in token for token in found)
    found = tokens(
        mail("x", "Message-ID: <abc@mail.example.com> (added by postmaster@relay.example)")
    )
    assert "message-id=mail" in found
    assert "message-id=added" not in found


def test_of_a_date_only_the_zone_is_used() -> None:
    assert "zone:+0800" in tokens(mail("x", "Date: Thu, 22 Aug 2002 18:26:25 +0800 (CST)"))
    assert "zone:+0900" in tokens(mail("x", "Date: Thu, 22 Aug 2002 18:26:25 +0900 (GMT+09:00)"))
    assert "zone:+0900" in tokens(mail("x", "Date: 2002-08-22T18:26:25+0900"))
    assert "zone:none" in tokens(mail("x", "Date: yesterday"))
    assert "zone:none" in tokens(mail("x", "Date: 22-08-2002"))
    assert not any("Aug" in token for token in tokens(mail("x", "Date: 22 Aug 2002")))


@pytest.mark.parametrize("name", ["DKIM-Signature", "DomainKey-Signature"])
def test_of_a_signature_only_its_presence_is_used(name: str) -> None:
    found = tokens(mail("x", f"{name}: v=1; a=rsa-sha256; d=example.org; b=abcdef"))
    assert f"header:{name.lower()}" in found
    assert not any("abcdef" in token for token in found)


def test_a_boundary_gives_its_pattern() -> None:
    found = tokens(mail("x", 'Content-Type: multipart/mixed; boundary="----=_Part_12_9F3A"'))
    assert "boundary:----=_Part_0_0" in found


def test_a_mailer_is_one_token_beside_its_words() -> None:
    found = tokens(mail("x", "X-Mailer: The Bat! 1.52"))
    assert {"mailer:x-mailer:The_Bat!_1.52", "x-mailer=Bat!"} <= found


def test_missing_fields_are_tokens() -> None:
    assert {"missing:date", "missing:subject", "missing:message-id"} <= tokens(mail("x"))
    assert "missing:from" not in tokens(mail("x"))


@pytest.mark.parametrize(
    "name",
    ["Return-Path", "Delivered-To", "X-Spam-Status", "X-Virus-Scanned", "Status",
     "X-UID", "X-Gmail-Labels", "ARC-Seal", "Authentication-Results",
     "X-MS-Exchange-Organization-SCL", "X-OriginalArrivalTime", "X-EOPAttributedMessage",
     "Authentication-Results-Original", "X-Original-Authentication-Results", "DKIM-Filter",
     "X-DKIM", "IronPort-SDR", "X-Brightmail-Tracker", "X-PMX-Version", "X-TM-AS-Product-Ver",
     "X-UI-Out-Filterresults", "X-Quarantine-ID", "X-MIMETrack", "X-MDRemoteIP",
     "X-MDaemon-Deliver-To", "X-MDHeloLookup-Result", "X-hMailServer-LoopCount",
     "X-Cyrus-Session-Id", "X-TUID", "X-OfflineIMAP", "X-Authority-Analysis"],
)  # fmt: skip
def test_fields_of_hops_mailboxes_and_filters_give_nothing(name: str) -> None:
    assert tokens(mail("x", f"{name}: peculiar value")) == tokens(mail("x"))


@pytest.mark.parametrize(
    "field",
    ["Reply-To: a@b.example", "List-Id: <a.b.example>", "In-Reply-To: <a@b.example>",
     "References: <a@b.example>", "X-Mailer: bat",
     "Date: Thu, 22 Aug 2002 18:26:25 +0800", "Message-ID: <a@b.example>"],
)  # fmt: skip
def test_without_route_the_fields_of_the_way_give_nothing(field: str) -> None:
    options = TokenizerOptions(without=frozenset({"route"}))
    with_field = extract(mail("x", field), options).sample
    assert with_field.ids.tolist() == extract(mail("x"), options).sample.ids.tolist()
    assert with_field.grams.tolist() == extract(mail("x"), options).sample.grams.tolist()


@pytest.mark.parametrize(
    ("group", "kind"),
    [
        ("headers", Kind.FIELD),
        ("pairs", Kind.PAIR),
        ("twins", Kind.TWIN),
        ("shape", Kind.SHAPE),
        ("tricks", Kind.TRICK),
        ("hidden", Kind.HIDDEN),
    ],
)
def test_a_group_of_tokens_can_be_left_out(group: str, kind: Kind) -> None:
    raw = mail("V\u200biagra <b hidden>poison</b>", "Subject: Offer now", "Content-Type: text/html")
    assert of_kind(raw, kind)
    sample = extract(raw, TokenizerOptions(without=frozenset({group}))).sample
    assert not (sample.kinds & kind).any()


def test_without_links_neither_links_nor_addresses_of_the_text_give_tokens() -> None:
    raw = mail("http://shop.example/buy or eve@shop.example", "Subject: x")
    made = {"url:shop.example", "domain:shop.example", "path:buy", "mail:eve@shop.example"}

    assert made <= tokens(raw)
    assert not made & tokens(raw, TokenizerOptions(without=frozenset({"links"})))


def test_without_twins_the_words_of_the_subject_give_no_pairs() -> None:
    raw = mail("x", "Subject: Cheap pills here now")

    assert "Cheap pills" in of_kind(raw, Kind.PAIR)
    assert not any(
        " " in text for text in tokens(raw, TokenizerOptions(without=frozenset({"twins"})))
    )


def test_without_tricks_nothing_is_read_through_its_disguise() -> None:
    masked = "v\u0456agra"  # a Cyrillic letter among Latin ones
    raw = mail("x", "Subject: p1lls now", f"X-A: {masked}")

    assert {"pills", "viagra"} <= tokens(raw)
    assert not {"pills", "viagra"} & tokens(raw, TokenizerOptions(without=frozenset({"tricks"})))


def test_the_title_of_a_page_gives_its_words_behind_a_prefix() -> None:
    raw = page("<title>Cheap pills</title><p>Hello")

    assert {"title:Cheap", "title:pills"} <= of_kind(raw, Kind.HIDDEN)
    assert "trick:hidden" not in tokens(raw)


def test_an_unknown_group_is_refused() -> None:
    with pytest.raises(ValueError, match="bogus is none of"):
        TokenizerOptions(without=frozenset({"bogus"}))


@pytest.mark.parametrize("wrong", [{"parts": 0}, {"occurrences": 256}, {"token_chars": 40}])
def test_senseless_limits_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must"):
        Limits(**wrong)


def test_a_field_gives_a_bounded_number_of_words() -> None:
    raw = mail("x", "X-Long: " + " ".join(f"w{n}x" for n in range(1000)))
    assert sum(token.startswith("x-long=") for token in tokens(raw)) == Limits().field_words


def test_a_long_name_of_a_field_is_cut() -> None:
    name = "X-" + "a" * 50
    found = {token for token in tokens(mail("x", f"{name}: word")) if "aaa" in token}

    assert found == {f"header:{name[:40]}", f"{name.lower()[:20]}=word"}


def test_whether_a_field_is_a_filters_is_asked_of_the_first_64_characters_of_its_name() -> None:
    assert "x-" + "a" * 18 + "=word" not in tokens(mail("x", "X-" + "a" * 58 + "spam: word"))
    assert "x-" + "a" * 18 + "=word" in tokens(mail("x", "X-" + "a" * 59 + "spam: word"))


def test_addresses_are_cut_and_no_more_than_twenty_are_told() -> None:
    found = tokens(mail("x", "Reply-To: " + "U" * 30 + "@" + "h" * 45 + ".example"))
    host = "h" * 40
    assert {token for token in found if token.startswith("reply-to:")} == {
        f"reply-to:@{host}",
        f"reply-to:{'u' * 24}@{host}"[:64],
    }
    found = tokens(mail("x", "Cc: " + "U" * 30 + "@" + "h" * 45 + ".example"))
    assert f"cc:{'u' * 24}@{host}"[:64] in found

    found = tokens(mail("x", "Cc: " + ", ".join(f"u{n}x@h.example" for n in range(21))))
    cc = {token for token in found if token.startswith("cc:")}
    assert cc == {f"cc:u{n}x@h.example" for n in range(20)} | {"cc:@h.example"}
    assert "count:cc:5" in found


def test_a_zone_far_behind_the_start_of_a_date_is_none() -> None:
    assert "zone:+0800" in tokens(mail("x", "Date: " + "x" * 193 + " +0800"))
    assert "zone:none" in tokens(mail("x", "Date: " + "x" * 194 + " +0800"))


def test_a_mailer_is_cut_at_forty_characters() -> None:
    assert f"mailer:x-mailer:{'m' * 40}" in tokens(mail("x", "X-Mailer: " + "m" * 50))


def test_of_a_content_type_nothing_behind_the_boundary_is_used() -> None:
    found = tokens(mail("x", "Content-Type: text/plain; Boundary=abc; charset=utf-8"))
    assert {token for token in found if token.startswith("content-type=")} == {
        "content-type=text",
        "content-type=plain",
    }


def test_a_blank_behind_the_host_of_a_message_id_changes_nothing() -> None:
    assert {"message-id=mail", "message-id=example"} <= tokens(
        mail("x", "Message-ID: <a@mail.example \t>")
    )


@pytest.mark.parametrize(
    ("before", "count"),
    [
        ("уважаемый".encode("cp1251"), 1),
        (b"=?utf-8?Q?word?=", 1),
        (b"plain", 100),
    ],
)
def test_the_charset_of_the_first_odd_fields_only_is_guessed(before: bytes, count: int) -> None:
    odd = b"X-A: " + "уважаемый".encode("cp1251") + b"\n"

    def guessed(number: int) -> bool:
        return "x-a=уважаемый" in tokens((b"X-C: " + before + b"\n") * number + odd + b"\nx")

    assert guessed(count * (Limits().guesses - 1))
    assert guessed(count * Limits().guesses) == (before == b"plain")


def test_the_charset_of_a_received_field_is_never_guessed() -> None:
    value = b"from a.example (" + "уважаемый клиент добрый день".encode("cp1251") + b")\n"
    assert "x-a=клиент" in tokens(b"X-A: " + value + b"\nx")
    assert "received=клиент" not in tokens(b"Received: " + value + b"\nx")


def test_words_of_a_field_are_normalised() -> None:
    assert "x-a=Free" in tokens(mail("x", "X-A: Ｆｒｅｅ"))


def test_a_message_id_gives_its_host_as_it_is_or_nothing() -> None:
    def of_id(value: str) -> set[str]:
        return {text for text in tokens(mail("x", value)) if text.startswith("message-id=")}

    assert of_id("Message-ID: <a@mail.exampleX>") == {"message-id=mail", "message-id=exampleX"}
    assert of_id("Message-ID: <abc>") == set()
