import pytest
from hypothesis import given
from hypothesis import strategies as st

from spamd.users.names import canonical, domain_of


@pytest.mark.parametrize(
    "address",
    [
        b"anna@example.org",
        b"Anna@Example.ORG",
        b"anna+shop@example.org",
        b"ANNA+Shop+x@example.org",
        b'"anna"@example.org',
        b'"a\\nna+x"@example.org',
        b"@relay.example,@b.example:anna@example.org",
        b" anna@example.org. ",
    ],
)
def test_one_person_has_one_name_however_the_address_is_written(address: bytes) -> None:
    assert canonical(address, separators="+") == "anna@example.org"


def test_without_separators_there_are_no_tags() -> None:
    assert canonical("anna+shop@example.org") == "anna+shop@example.org"


def test_several_separators_work_at_once() -> None:
    assert canonical("anna-x+y@example.org", separators="+-") == "anna@example.org"


def test_a_local_part_that_begins_with_a_separator_is_no_tag() -> None:
    assert canonical("+49123@example.org", separators="+") == "+49123@example.org"


def test_a_login_name_gets_the_domain_of_the_settings() -> None:
    assert canonical("Anna", domain="Example.org") == "anna@example.org"
    assert canonical("anna") == "anna"


def test_a_domain_has_one_name_in_both_spellings() -> None:
    assert canonical("jörg@bücher.example".encode()) == canonical("jörg@xn--bcher-kva.example")


def test_the_domain_of_a_name_is_behind_its_last_at() -> None:
    assert domain_of("anna@example.org") == "example.org"
    assert domain_of("anna") == ""


@given(st.binary(max_size=200), st.sampled_from(["", "+", "+-"]))
def test_any_bytes_have_a_name_and_a_name_is_its_own_name(address: bytes, separators: str) -> None:
    name = canonical(address, separators=separators, domain="example.org")
    assert canonical(name, separators=separators, domain="example.org") == name
