"""Passwords as they are kept."""

import pytest

from spamd.listeners.web.access.passwords import PasswordHash

SALT = b"0123456789abcdef"


def test_what_is_kept_matches_its_password_only_and_reads_as_it_was_written() -> None:
    kept = PasswordHash.of("pässword".encode(), SALT, log_n=10, p=1)
    again = PasswordHash.read(str(kept))
    assert again == kept
    assert again.matches("pässword".encode())
    assert not again.matches(b"password")
    assert not again.matches(b"")


def test_the_usual_work_is_what_owasp_asks_for() -> None:
    assert str(PasswordHash.of(b"x", SALT)).startswith("$scrypt$ln=15,r=8,p=3$")


def test_a_line_of_passlib_is_read() -> None:
    line = "$scrypt$ln=10,r=8,p=1$MDEyMzQ1Njc4OWFiY2RlZg$" + "A" * 43
    assert PasswordHash.read(line).salt == SALT


@pytest.mark.parametrize(
    "line",
    [
        "",
        "secret",
        "$scrypt$ln=15,r=8,p=3$MDEyMzQ1Njc4OWFiY2RlZg$short",
        "$scrypt$ln=30,r=8,p=1$MDEyMzQ1Njc4OWFiY2RlZg$" + "A" * 43,
        "$scrypt$ln=1,r=8,p=1$MDEyMzQ1Njc4OWFiY2RlZg$" + "A" * 43,
        "$scrypt$ln=15,r=0,p=1$MDEyMzQ1Njc4OWFiY2RlZg$" + "A" * 43,
    ],
)
def test_what_is_no_such_line_or_asks_for_too_much_work_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"line|work"):
        PasswordHash.read(line)
