"""No command prints a secret, wherever in the settings it stands and whatever is wrong there."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Spamd

MARK = "hunter2"

ACCOUNT = 'host = "imap.test"\nuser = "me"\n'

SETTINGS = {
    "a password in a URL": 'database.url = "postgresql://spamd:hunter2@127.0.0.1:1/db"',
    "one with an @": 'database.url = "postgresql://spamd:x@hunter2@127.0.0.1:1/db"',
    "one with a slash": 'database.url = "postgresql://spamd:x/hunter2@127.0.0.1:1/db"',
    "one with a ?": 'database.url = "postgresql://spamd:a?hunter2@127.0.0.1:1/db"',
    "in a query": 'database.url = "postgresql://spamd@127.0.0.1:1/db?password=hunter2"',
    "second in a query": 'database.url = "postgresql://127.0.0.1:1/db?user=a&password=hunter2"',
    "of a wrong scheme": 'database.url = "mysql://spamd:hunter2@127.0.0.1/db"',
    "of a next hop": 'next_hop.url = "smtp://me:hunter2@127.0.0.1:25"',
    "of a next hop that is none": 'next_hop.url = "smpt://me:hunter2@127.0.0.1:25"',
    "of a route": 'next_hop.routes = {"a.test" = "http://me:hunter2@127.0.0.1:25"}',
    "of an account": f'[[feedback.accounts]]\n{ACCOUNT}password = "hunter2"',
    "arguments of a command": (
        f'[[feedback.accounts]]\n{ACCOUNT}token_command = ["get", "--secret", "hunter2"]'
    ),
    "a command as text": f'[[feedback.accounts]]\n{ACCOUNT}token_command = "get hunter2"',
    "two ways at once": (
        f'[[feedback.accounts]]\n{ACCOUNT}password = "hunter2"\ntoken_command = ["hunter2"]'
    ),
    "a list for a password": f'[[feedback.accounts]]\n{ACCOUNT}password = ["hunter2"]',
    "a table for a password": f'[[feedback.accounts]]\n{ACCOUNT}password = {{value = "hunter2"}}',
    "an account that is a URL": 'feedback.accounts = ["imaps://me:hunter2@imap.test"]',
    "an account that is text": 'feedback.accounts = ["me hunter2 imap.test"]',
    "accounts that are text": 'feedback.accounts = "me:hunter2 imap.test"',
    "an unknown key": f'[[feedback.accounts]]\n{ACCOUNT}passwort = "hunter2"',
    "a host that is a URL": '[[feedback.accounts]]\nhost = "imap://me:hunter2@a"\nuser = "me"',
}


@pytest.mark.parametrize(
    "command",
    [
        "config show",
        "config show --json",
        "config show --changed",
        "config check",
        "config check --json",
        "status",
        "feedback once",
        "database upgrade",
    ],
)
@pytest.mark.parametrize("where", SETTINGS)
def test_k12_a_secret_is_never_printed(spamd: Spamd, command: str, where: str) -> None:
    Path("secrets.toml").write_text(f"{SETTINGS[where]}\n")

    ran = spamd("--config", "secrets.toml", *command.split())

    assert MARK not in ran.out + ran.err


@pytest.mark.parametrize("name", ["password", "token_command"])
def test_i10_what_is_hidden_is_shown_to_be_set(spamd: Spamd, name: str) -> None:
    value = json.dumps(["get", MARK] if name == "token_command" else MARK)
    account = f'{{"host": "imap.test", "user": "me", "{name}": {value}}}'

    ran = spamd("--set", f"feedback.accounts=[{account}]", "config", "show", "--json")

    (shown,) = ran.json["settings"]["feedback.accounts"]["value"]
    assert shown[name] == "********"
    assert MARK not in ran.out
