"""Ways to log in: TLS from the start, STARTTLS, password file, master user, OAuth2."""

import base64
from pathlib import Path

import pytest

from spamd.feedback.mailboxes.imap import ImapMailbox
from spamd.feedback.mailboxes.mailbox import AccessError, MailboxError
from spamd.feedback.options import AccountOptions, FeedbackOptions, Tls
from spamd.feedback.service import mailboxes
from tests.feedback.conftest import Account
from tests.feedback.scripted import ScriptedImap, plain
from tests.feedback.world import QUICK, ServerClock, watcher_context
from tests.servers.dovecot import MASTER, MASTER_PASSWORD, PASSWORD, Dovecot


def mailbox(account: AccountOptions) -> ImapMailbox:
    return ImapMailbox(account, QUICK, ServerClock(), login=account.user, actor=account.user)


async def names(account: AccountOptions) -> list[str]:
    box = mailbox(account)
    try:
        await box.open()
        return [folder.name for folder in await box.folders()]
    finally:
        await box.close()


@pytest.mark.parametrize("tls", [Tls.IMPLICIT, Tls.STARTTLS, Tls.AUTO])
async def test_the_connection_is_encrypted_and_the_certificate_checked(
    account: Account, tls: Tls
) -> None:
    server, user = account
    secured = AccountOptions(
        host="localhost",
        port=server.imaps_port if tls is Tls.IMPLICIT else server.port,
        tls=tls,
        ca_file=server.authority,
        user=user,
        password=PASSWORD,
    )
    assert await names(secured) == ["Junk", "INBOX"]


@pytest.mark.parametrize("tls", [Tls.IMPLICIT, Tls.STARTTLS])
async def test_a_certificate_of_a_stranger_is_refused(account: Account, tls: Tls) -> None:
    server, user = account
    doubtful = AccountOptions(
        host="localhost",
        port=server.imaps_port if tls is Tls.IMPLICIT else server.port,
        tls=tls,
        user=user,
        password=PASSWORD,
    )
    with pytest.raises(MailboxError, match="check tls, port and ca_file"):
        await names(doubtful)


async def test_no_password_goes_over_a_line_without_the_tls_that_was_asked_for() -> None:
    with ScriptedImap(plain) as server:
        account = AccountOptions(
            host="127.0.0.1", port=server.port, tls=Tls.STARTTLS, user="a", password="secret"
        )
        with pytest.raises(MailboxError, match="offers no STARTTLS"):
            await names(account)
        assert not any("secret" in line for line in server.lines)


async def test_a_password_file_is_read_at_each_login(account: Account, tmp_path: Path) -> None:
    server, user = account
    file = tmp_path / "password"
    file.write_text("wrong\n")
    box = mailbox(
        AccountOptions(
            host="127.0.0.1", port=server.port, tls=Tls.NONE, user=user, password_file=file
        )
    )
    with pytest.raises(AccessError, match="refuses the login"):
        await box.open()
    await box.close()
    file.write_text(f"{PASSWORD}\n")
    await box.open()
    await box.close()


async def test_a_password_file_that_is_missing_is_named(account: Account, tmp_path: Path) -> None:
    server, user = account
    with pytest.raises(AccessError, match="nowhere can't be read"):
        await names(
            AccountOptions(
                host="127.0.0.1",
                port=server.port,
                tls=Tls.NONE,
                user=user,
                password_file=tmp_path / "nowhere",
            )
        )


async def test_a_master_user_opens_the_mail_of_each_user(
    account: Account, other_account: Account, tmp_path: Path
) -> None:
    server: Dovecot = account[0]
    users_file = tmp_path / "users"
    users_file.write_text(f"# the second\n{other_account[1]}\n\n")
    master = AccountOptions(
        host="127.0.0.1",
        port=server.port,
        tls=Tls.NONE,
        user=MASTER,
        password=MASTER_PASSWORD,
        users=(account[1],),
        users_file=users_file,
    )
    boxes = mailboxes(FeedbackOptions(accounts=(master,)), watcher_context())
    assert [box.actor for box in boxes] == [account[1], other_account[1]]
    for box in boxes:
        await box.open()
        assert [folder.name for folder in await box.folders()] == ["Junk", "INBOX"]
        await box.close()


@pytest.mark.parametrize("source", ["file", "command"])
async def test_an_access_token_logs_in_by_xoauth2(tmp_path: Path, source: str) -> None:
    sent: list[str] = []

    def answer(tag: str, rest: str) -> list[str] | None:
        if rest.startswith("AUTHENTICATE"):
            sent.append(rest)
            waiting.append(tag)
            return ["+ "]
        if waiting and not rest:
            sent.append(base64.b64decode(tag).decode())
            return [f"{waiting.pop()} OK done"]
        return plain(tag, rest, capabilities="IMAP4rev1 AUTH=XOAUTH2")

    waiting: list[str] = []
    token = tmp_path / "token"
    token.write_text("ya29.token\n")
    with ScriptedImap(answer) as server:
        account = AccountOptions(
            host="127.0.0.1",
            port=server.port,
            tls=Tls.NONE,
            user="alice@our.test",
            token_file=token if source == "file" else None,
            token_command=("cat", str(token)) if source == "command" else (),
        )
        assert await names(account) == ["Junk", "INBOX"]
    assert sent == [
        "AUTHENTICATE XOAUTH2",
        "user=alice@our.test\x01auth=Bearer ya29.token\x01\x01",
    ]


async def test_a_token_command_that_fails_is_named() -> None:
    with ScriptedImap(plain) as server:
        account = AccountOptions(
            host="127.0.0.1",
            port=server.port,
            tls=Tls.NONE,
            user="alice",
            token_command=("false",),
        )
        with pytest.raises(AccessError, match="the token command of alice failed"):
            await names(account)
