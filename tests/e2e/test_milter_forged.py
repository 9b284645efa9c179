"""Forged fields by the milter: what Dovecot, its Sieve and Python's reader take for ours."""

import contextlib
import smtplib
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.e2e.forged_fields import shapes
from tests.e2e.relay_daemon import Spamd
from tests.e2e.test_forged_fields import assert_nobody_was_misled, hand_over, sieving_dovecot
from tests.listeners.milter.trip import AS_IT_IS
from tests.servers.base import free_port, require
from tests.servers.dovecot import Dovecot
from tests.servers.postfix import Postfix, PostfixOptions, delivering
from tests.servers.sendmail import Sendmail
from tests.waiting import wait_until


@pytest.fixture
def servers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def started(servers: ExitStack, **main: str) -> tuple[Dovecot, Postfix, int]:
    """Start a Dovecot that files what says to be spam, and a Postfix that delivers there."""
    for name in ("postfix", "dovecot", "sieve"):
        require(name)
    port = free_port()
    servers.enter_context(Spamd("maildir://./unused", f'milter.listen = "127.0.0.1:{port}"'))
    store = sieving_dovecot(servers)
    settings = {**delivering(store.lmtp_port, "t.test").main, **AS_IT_IS, **main}
    settings = {key: value.replace("MILTER", str(port)) for key, value in settings.items()}
    return store, servers.enter_context(Postfix(PostfixOptions(main=settings))), port


def test_k3_no_forged_field_comes_through_postfix(servers: ExitStack) -> None:
    store, postfix, _ = started(servers, smtpd_milters="inet:127.0.0.1:MILTER")
    mails = shapes()
    taken = hand_over(postfix.port, mails, "alice@t.test")
    wait_until(lambda: not postfix.queue(), what="an empty queue", deadline_s=60)
    assert_nobody_was_misled(store.login, taken, at_least=len(mails))


def test_k3_no_forged_field_comes_through_sendmail(servers: ExitStack) -> None:
    require("sendmail")
    store, postfix, port = started(servers, myhostname="behind.test")
    line = f"INPUT_MAIL_FILTER(`spamd', `S=inet:{port}@127.0.0.1, F=T')dnl"
    sendmail = servers.enter_context(Sendmail(postfix.port, line))
    taken = 0
    for mail in shapes()[::4]:  # all of them were tried once; each costs a connection
        with contextlib.suppress(smtplib.SMTPServerDisconnected):  # at a bare CR or LF
            taken += hand_over(sendmail.port, [mail], "alice@t.test")
    wait_until(lambda: not sendmail.queued(), what="an empty queue", deadline_s=120)
    wait_until(lambda: not postfix.queue(), what="an empty queue", deadline_s=60)
    assert_nobody_was_misled(store.login, taken, at_least=40)
