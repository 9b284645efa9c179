"""Tokens of links, addresses, attachments and structure, and how much of each is kept."""

from spamd.message.mime.parser import parse
from spamd.message.reading import read
from spamd.message.tokens.shape import address_tokens, host_tricks, link_tokens, shape_tokens
from spamd.message.url import Link

from .helpers import mail, tokens


def shape(raw: bytes) -> list[str]:
    message = parse(raw)
    return shape_tokens(message, read(message))


def attached(name: str, kind: str, size: int) -> bytes:
    return mail(
        f"--b\n\nx\n--b\nContent-Type: {kind}\n"
        f'Content-Disposition: attachment; filename="{name}"\n\n{"y" * size}\n--b--\n',
        "Content-Type: multipart/mixed; boundary=b",
    )


def test_a_plain_link_gives_its_host_its_domain_and_its_path() -> None:
    plain = Link(scheme="http", host="www.shop.example", pieces=("a", "b"))

    assert link_tokens([plain]) == [
        "url:www.shop.example",
        "domain:shop.example",
        "path:a",
        "path:b",
    ]


def test_what_is_odd_about_a_link_gives_tokens_beside() -> None:
    odd = Link(scheme="ftp", host="192.0.2.1", port="808080", user=True)

    assert link_tokens([odd]) == [
        "url:192.0.2.1",
        "domain:192.0.2.1",
        "port:80808",
        "link:address",
        "link:user",
        "scheme:ftp",
    ]


def test_a_link_without_host_gives_the_start_of_its_scheme_and_the_next_is_read() -> None:
    assert link_tokens([Link(scheme="x" * 30), Link(scheme="http", host="a.example")]) == [
        "scheme:" + "x" * 20,
        "url:a.example",
        "domain:a.example",
    ]


def test_of_a_long_host_the_end_is_kept() -> None:
    host = "a" * 60 + ".example"

    assert link_tokens([Link(scheme="http", host=host)]) == [
        "url:" + "a" * 48 + ".example",
        "domain:" + "a" * 48 + ".example",
    ]


def test_an_address_in_the_text_is_cut_to_28_and_30_characters() -> None:
    assert address_tokens("Ann@Example.org") == ["mail:ann@example.org"]
    assert address_tokens("u" * 29 + "@" + "h" * 30 + ".example") == [
        "mail:" + "u" * 28 + "@" + "h" * 22 + ".example"
    ]
    assert address_tokens("a" + "b" * 64 + "@x.example") == ["mail:" + "b" * 28 + "@x.example"]
    assert address_tokens("a" + "b" * 63 + "@x.example") == ["mail:a" + "b" * 27 + "@x.example"]
    assert address_tokens("no user: @x.example, but b@x.example") == ["mail:b@x.example"]


def test_of_many_addresses_in_the_text_fifty_are_read() -> None:
    text = " ".join(f"u{number}@x.example" for number in range(60))

    assert address_tokens(text) == [f"mail:u{number}@x.example" for number in range(50)]


def test_a_host_that_only_looks_like_another_is_a_trick() -> None:
    assert host_tricks([Link(scheme="http", host="plain.example")]) == []
    assert host_tricks([Link(scheme="http", host="xn--pple-43d.example")])[:1] == ["punycode"]
    assert host_tricks([Link(scheme="http", host="pаypal.example")]) == ["look-alike-host"]
    assert host_tricks([Link(scheme="http", host="bücher.example")]) == []
    assert host_tricks([Link(scheme="http", host="сор.example")]) == []
    assert host_tricks(
        [Link(scheme="http", host=host) for host in ("xn--bcher-kva.example", "pаypal.example")]
    ) == ["punycode", "look-alike-host"]


def test_a_plain_mail_has_the_shape_of_one_part() -> None:
    assert shape(mail()) == ["type:text/plain", "charset:utf-8", "parts:1"]


def test_an_attachment_gives_its_type_its_size_class_its_ending_and_the_words_of_its_name() -> None:
    found = shape(attached("one two three 44 five six.seven eight.PDF", "application/pdf", 100))

    assert found == [
        "type:multipart/mixed",
        "type:text/plain",
        "type:application/pdf",
        "charset:ascii",
        "parts:2",
        "boundary:b",
        "attachment:application/pdf:7",
        "ending:pdf",
        "file:one",
        "file:two",
        "file:three",
        "file:five",
        "file:six",
    ]


def test_names_types_and_boundaries_are_cut() -> None:
    found = shape(attached("a." + "e" * 20, "application/" + "k" * 60, 1))

    assert "attachment:application/" + "k" * 38 + ":1" in found
    assert "ending:" + "e" * 12 in found
    boundary = "z" * 50
    raw = mail(
        f"--{boundary}\n\nx\n--{boundary}--\n",
        f"Content-Type: multipart/mixed; boundary={boundary}",
    )
    assert "boundary:" + "z" * 40 in shape(raw)


def test_a_name_without_ending_gives_words_only() -> None:
    found = shape(attached("invoice", "application/pdf", 1))

    assert "file:invoice" in found
    assert not any(token.startswith("ending:") for token in found)


def test_no_token_but_a_pair_holds_a_blank() -> None:
    raw = mail("--y z\n\nx\n--y z--\n", 'Content-Type: multipart/mixed; boundary="y z"')

    assert "boundary:y_z" in tokens(raw)
