"""What an admin may set, and what stops the start."""

from pathlib import Path
from typing import Any

import pytest

from spamd.feedback.options import AccountOptions, FeedbackOptions, Tls

PASSWORD: dict[str, Any] = {"host": "mail.test", "user": "alice", "password": "x"}


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, 'either "host"'),
        ({**PASSWORD, "maildir": Path("/m")}, 'either "host"'),
        ({"host": "mail.test", "password": "x"}, 'needs a "user"'),
        ({"host": "mail.test", "user": "a"}, "it has none"),
        ({**PASSWORD, "password_file": Path("/p")}, "password and password_file"),
        ({**PASSWORD, "port": 70000}, "65535"),
        ({**PASSWORD, "tls": Tls.NONE}, "in the clear"),
    ],
)
def test_an_impossible_account_is_refused(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        AccountOptions(**values)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"poll_s": 0}, "poll_s"),
        ({"idle_s": 1740}, "29 minutes"),
        ({"retry_first_s": 10, "retry_most_s": 5}, "retry_most_s"),
        ({"attempts": 0}, "attempts"),
        ({"chunk": 0}, "chunk"),
        ({"spam_addresses": ("A@b.test",), "ham_addresses": ("a@B.test",)}, "both"),
        ({"accounts": (AccountOptions(**PASSWORD), AccountOptions(**PASSWORD))}, "twice"),
    ],
)
def test_impossible_options_are_refused(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        FeedbackOptions(**values)


@pytest.mark.parametrize(
    ("tls", "port", "effective", "implicit"),
    [
        (Tls.AUTO, 0, 993, True),
        (Tls.AUTO, 993, 993, True),
        (Tls.AUTO, 143, 143, False),
        (Tls.IMPLICIT, 10993, 10993, True),
        (Tls.STARTTLS, 0, 143, False),
    ],
)
def test_port_and_tls_follow_each_other(
    tls: Tls,
    port: int,
    effective: int,
    implicit: bool,  # noqa: FBT001
) -> None:
    account = AccountOptions(**PASSWORD, tls=tls, port=port)
    assert (account.effective_port, account.implicit_tls) == (effective, implicit)


def test_f13_a_password_is_not_part_of_what_is_printed() -> None:
    account = AccountOptions(**{**PASSWORD, "password": "hunter2"})
    assert "hunter2" not in repr(FeedbackOptions(accounts=(account,)))


def test_e18_the_key_of_an_account_tells_it_from_every_other() -> None:
    keys = {
        AccountOptions(host=host, user=user, port=port, password="x").key
        for host in ("a.test", "b.test")
        for user in ("alice", "bob")
        for port in (993, 10993)
    }
    assert len(keys) == 8
