from pathlib import Path

import pytest
from publicsuffixlist import PSLFILE, PublicSuffixList

from spamd.message.mime.parser import parse
from spamd.message.reading import read
from spamd.message.tokens.shape import host_tricks, links
from spamd.message.url import Link, canonical_host, cut_out, registrable_domain, take_apart

from .helpers import mail, page, tokens


@pytest.mark.parametrize(
    ("text", "links", "rest"),
    [
        ("see http://a.example/x.", ["http://a.example/x"], "see  "),
        ("(https://a.example/x)", ["https://a.example/x"], "( "),
        ("go to www.a.example, now", ["www.a.example"], "go to  , now"),
        (
            "ftp://a.example and HTTP://B.example",
            ["ftp://a.example", "HTTP://B.example"],
            "  and  ",
        ),
        ("no link at all: a//b", [], "no link at all: a//b"),
        ("http://", [], "http://"),
        ("x://y", [], "x://y"),
        ("awww.cute", [], "awww.cute"),
        (r"http:\\a.example\x", [r"http:\\a.example"], r" \x"),
    ],
)
def test_urls_are_cut_out_of_running_text(text: str, links: list[str], rest: str) -> None:
    found, remaining = cut_out(text)
    assert found == links
    assert remaining.split() == rest.split() or len(found) > 0


@pytest.mark.parametrize(
    ("text", "host", "rest"),
    [
        ("看www.amazon.co.jp转至更多", "www.amazon.co.jp", "看 转至更多"),
        ("请访问http://www.abc.com。更多信息", "www.abc.com", "请访问 。更多信息"),
        ("网址:http://www.abc.com.cn(点击)", "www.abc.com.cn", "网址: (点击)"),
        ("see http://abc.com,soon", "abc.com", "see ,soon"),
        ("http://www.xx商城.com", "www.xx商城.com", ""),
        ("http://www.abc。com", "www.abc.com", ""),
    ],
)
def test_words_that_stand_close_to_a_host_are_none_of_it(text: str, host: str, rest: str) -> None:
    found, remaining = cut_out(text)
    assert [link.host for url in found if (link := take_apart(url)) is not None] == [host]
    assert remaining.split() == rest.split()


@pytest.mark.parametrize(
    ("url", "link"),
    [
        (
            "http://user:pw@WWW.Example.co.uk:8080/Path/to-page.html?id=12&q=abc#top",
            Link(
                scheme="http",
                host="www.example.co.uk",
                port="8080",
                user=True,
                pieces=("path", "to", "page", "html", "id", "abc", "top"),
            ),
        ),
        ("https://a.example", Link(scheme="https", host="a.example")),
        ("//cdn.example/x1", Link(scheme="http", host="cdn.example", pieces=("x1",))),
        ("http://a.example?go=home", Link(scheme="http", host="a.example", pieces=("go", "home"))),
        (
            "mailto:Bob@Example.org?subject=x",
            Link(scheme="mailto", host="example.org", pieces=("bob",)),
        ),
        ("cid:part1@example", Link(scheme="cid")),
        ("javascript:alert(1)", Link(scheme="javascript")),
        ("http://1.2.3.4/", Link(scheme="http", host="1.2.3.4")),
        ("http://a.example/0123456789abcdef0123", Link(scheme="http", host="a.example")),
    ],
)
def test_urls_are_taken_apart(url: str, link: Link) -> None:
    assert take_apart(url) == link


@pytest.mark.parametrize("url", ["#top", "", "page.html", "mailto:nobody"])
def test_what_names_no_place_is_no_link(url: str) -> None:
    assert take_apart(url) is None


@pytest.mark.parametrize("host", ["1.2.3.4", "0x7f000001", "2130706433", "[::1]"])
def test_an_address_for_a_host_is_noticed(host: str) -> None:
    link = take_apart(f"http://{host}/")
    assert link is not None
    assert link.is_address


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.example.com", "example.com"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("localhost", "localhost"),
        ("1.2.3.4", "1.2.3.4"),
        ("co.uk", "co.uk"),
    ],
)
def test_the_registrable_domain_is_found(host: str, domain: str) -> None:
    assert registrable_domain(host) == domain


def test_the_public_suffix_list_is_read_as_its_package_reads_it() -> None:
    package = PublicSuffixList(accept_encoded_idn=False)
    lines = Path(PSLFILE).read_text("utf-8").splitlines()
    names = [line.lstrip("!*.") for line in lines if line and not line.startswith("//")]
    hosts = [f"{front}{name}" for name in names for front in ("", "a.", "b.a.", "c.b.a.")]
    hosts += [f"{host}." for host in hosts[:400]]
    hosts += ["..", ".example.com", "a..example.com", "example.com..", "a.b..", "www.a.com(x)."]

    wrong = [
        host
        for host in hosts
        if "." in host and registrable_domain(host) != (package.privatesuffix(host) or host)
    ]

    assert len(names) > 9_000
    assert wrong == []


@pytest.mark.parametrize(
    ("host", "canonical"),
    [
        ("EXAMPLE.com.", "example.com"),
        ("xn--bcher-kva.example", "bücher.example"),
        ("xn--ab-0000.example", "xn--ab-0000.example"),
        ("xn--.example", "xn--.example"),
        ("xn--" + "9" * 200 + ".example", "xn--" + "9" * 200 + ".example"),
        ("b%C3%BCcher.example", "bücher.example"),
        ("bücher。example", "bücher.example"),
    ],
)
def test_a_host_has_one_spelling(host: str, canonical: str) -> None:
    assert canonical_host(host) == canonical


def test_a_host_in_look_alike_letters_is_a_trick() -> None:
    reading = read(parse(mail("http://pаypal.example/ http://xn--bcher-kva.example/")))
    assert host_tricks(links(reading)) == ["look-alike-host"]


def test_links_give_their_peculiarities_as_tokens() -> None:
    found = tokens(
        page(
            "<a href='http://u:p@1.2.3.4:99/'>x</a><a href='cid:1'>y</a><a href='tel:5'>z</a>"
            "<a href='mailto:Bob@Shop.example'>m</a>"
        )
    )
    assert {"link:user", "link:address", "port:99", "scheme:cid", "scheme:tel"} <= found
    assert {"url:shop.example", "path:bob", "scheme:mailto"} <= found


def test_addresses_in_the_text_are_tokens() -> None:
    found = tokens(mail("write to Ann.B@Example.org or @nobody or x@@y.example or a@b"))
    assert "mail:ann.b@example.org" in found
    assert sum(token.startswith("mail:") for token in found) == 1
