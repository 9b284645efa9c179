"""Authentication-Results as RFC 8601 writes them, and as attackers would like them to be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spamd.message.authentication.results import Result, results_of


def pairs(value: bytes) -> list[tuple[str, str]]:
    """Return the methods and results of a field that is well-formed."""
    found = results_of(value)
    assert found is not None
    return [(each.method, each.result) for each in found.results]


def only(value: bytes) -> Result:
    found = results_of(value)
    assert found is not None
    (result,) = found.results
    return result


RFC_8601 = {
    "B.2": (b" example.org 1; none", "example.org", []),
    "B.3": (
        b" example.com;\n          spf=pass smtp.mailfrom=example.net",
        "example.com",
        [("spf", "pass")],
    ),
    "B.4": (
        (b" example.com;\n          auth=pass (cram-md5) smtp.auth=sender@example.net;\n"
        b"          spf=pass smtp.mailfrom=example.net"),
        "example.com",
        [("auth", "pass"), ("spf", "pass")],
    ),
    "B.4, second": (
        b" example.com; iprev=pass\n          policy.iprev=192.0.2.200",
        "example.com",
        [("iprev", "pass")],
    ),
    "B.5": (
        (b" example.com;\n          sender-id=fail header.from=example.com;\n"
        b"          dkim=pass (good signature) header.d=example.com"),
        "example.com",
        [("sender-id", "fail"), ("dkim", "pass")],
    ),
    "B.6": (
        (b" example.com;\n      dkim=pass reason=\"good signature\"\n"
        b"        header.i=@mail-router.example.net;\n"
        b"      dkim=fail reason=\"bad signature\"\n        header.i=@newyork.example.com"),
        "example.com",
        [("dkim", "pass"), ("dkim", "fail")],
    ),
    "B.7": (
        (b" foo.example.net (foobar) 1 (baz);\n"
        b"    dkim (Because I like it) / 1 (One yay) = (wait for it) fail\n"
        b"      policy (A dot can go here) . (like that) expired\n"
        b"      (this surprised me) = (as I wasn't expecting it) 1362471462"),
        "foo.example.net",
        [("dkim", "fail")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("place", RFC_8601)
def test_the_examples_of_the_standard_are_read(place: str) -> None:
    value, server, results = RFC_8601[place]
    found = results_of(value)
    assert found is not None
    assert (found.server, pairs(value)) == (server, results)


def test_a_property_stands_with_its_value_whatever_comments_say() -> None:
    result = only(RFC_8601["B.7"][0])
    assert result.properties == (("policy.expired", "1362471462"),)


@pytest.mark.parametrize(
    ("value", "name", "found"),
    [
        (b"mx; spf=pass smtp.mailfrom=SRS0=a=b@c.example", "smtp.mailfrom", "SRS0=a=b@c.example"),
        (b'mx; spf=pass smtp.mailfrom="a;b"@c.example', "smtp.mailfrom", "a;b@c.example"),
        (b"mx; dkim=pass header.b=ab/c+d=", "header.b", "ab/c+d="),
        (b"mx; dmarc=pass (p=NONE dis=NONE) header.from=c.example", "header.from", "c.example"),
        (b"mx; dmarc=pass action=none header.from=c.example;", "header.from", "c.example"),
        (b"mx; dkim=pass header.d=a.example header.d=b.example", "header.d", ""),
    ],
)
def test_values_are_read_as_mail_servers_write_them(value: bytes, name: str, found: str) -> None:
    assert only(value).of(name) == found


@pytest.mark.parametrize(
    "value",
    [
        b"mx; dkim=pass header.d=bank.example(.evil.example",
        b"mx; dkim=pass header.d=bank.example(.a).evil.example",
        b'mx; spf=pass smtp.mailfrom="a',
        b'mx; spf=pass smtp.mailfrom=a"; dkim=pass header.d=bank.example; x="@evil.example',
        b"mx; spf=pass smtp.mailfrom=a b;dkim=pass header.d=bank.example@evil.example c@d",
        b"mx; dkim=pass header.d=bank.example)",
        b"mx 2; dkim=pass header.d=bank.example",
        b"mx; dkim",
        b"mx; =pass",
        b"spf=pass smtp.mailfrom=a.example",
        b"mx; (dkim=pass header.d=bank.example",
        b"\xff\xfe; dkim=pass",
        b"",
        b"mx;" + b" dkim=pass header.d=bank.example;" * 400,
    ],
)
def test_a_malformed_field_says_nothing_at_all(value: bytes) -> None:
    assert results_of(value) is None


@given(st.binary(max_size=300))
def test_any_bytes_are_read(value: bytes) -> None:
    results_of(value)
    results_of(b"mx; dkim=pass " + value)
