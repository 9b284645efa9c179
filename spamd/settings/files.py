"""What is wrong with the files and folders that settings name. It looks and changes nothing.

`spamd config check` says all of it at once; the daemon meets it one by one, when it opens them.
"""

import os
import shutil
import ssl
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from spamd.errors import ConfigError
from spamd.listeners.web.access.passwords import passwords_of
from spamd.listeners.web.access.tokens import tokens_of
from spamd.relay.inbound.context import server_tls_context
from spamd.relay.outbound.router import client_tls_context
from spamd.relay.urls import Scheme, parse_next_hop
from spamd.storage.engine import look_at_file
from spamd.storage.options import SQLITE, sqlite_path
from spamd.users.directory import Directory
from spamd.wording import reason

if TYPE_CHECKING:
    from spamd.feedback.options import AccountOptions
    from spamd.listeners.web.options import WebOptions
    from spamd.relay.options import NextHopOptions
    from spamd.settings import Settings
    from spamd.users.options import UsersOptions

NO_LISTENER = (
    "there is no address to listen on; set relay.listen, milter.listen, spamc.listen or web.listen"
)

Fault = tuple[str, str]
"""The key and what is wrong with what it names."""


def faults(settings: "Settings") -> Iterator[Fault]:
    """Yield each fault of a file or folder."""
    if not settings.listeners:
        yield "relay.listen", NO_LISTENER
    for make in (
        partial(server_tls_context, settings.tls),
        partial(client_tls_context, settings.next_hop),
    ):
        try:
            make()
        except ValueError as error:
            key, _, text = str(error).partition(": ")
            yield key, text
    if settings.relay.spool_directory:
        yield from _folder("relay.spool_directory", Path(settings.relay.spool_directory))
    yield from _maildirs(settings.next_hop)
    if settings.database.path:
        try:
            look_at_file(settings.database.path)
        except ConfigError as error:
            yield "database.url", str(error).removeprefix("database.url: ")
    yield from _web(settings.web)
    yield from _users(settings.users)
    for number, account in enumerate(settings.feedback.accounts):
        for name, text in _account(account):
            yield f"feedback.accounts.{number}.{name}", text


def _web(options: "WebOptions") -> Iterator[Fault]:
    for read in (passwords_of, tokens_of):
        try:
            read(options)
        except ConfigError as error:
            key, _, text = str(error).partition(": ")
            yield key, text


def _folder(key: str, path: Path) -> Iterator[Fault]:
    if not path.is_dir():
        yield key, f"there is no folder {path}; create it"
    elif not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield key, f"this user may not read and write the folder {path}"


def _maildirs(options: "NextHopOptions") -> Iterator[Fault]:
    """Yield what is wrong with the folders that mail is delivered to."""
    urls = [("next_hop.url", options.url)]
    urls += [("next_hop.fallback", url) for url in options.fallback]
    urls += [(f"next_hop.routes.{domain}", url) for domain, url in options.routes.items()]
    for key, url in urls:
        hop = parse_next_hop(url, key=key)
        if hop.scheme is not Scheme.MAILDIR:
            continue
        path = Path(hop.path)
        while "{" in str(path):
            path = path.parent
        while options.maildir_create and not path.exists() and path != path.parent:
            path = path.parent  # what is missing will be made below this
        yield from _folder(key, path)


def _users(options: "UsersOptions") -> Iterator[Fault]:
    """Yield what is wrong with the tables of users."""
    for name, alone in (
        ("aliases_file", replace(options, users_file="")),
        ("users_file", replace(options, aliases_file="")),
    ):
        try:
            Directory(alone)
        except ConfigError as error:
            yield f"users.{name}", str(error).removeprefix(f"users.{name}: ")
    path = sqlite_path(options.query_url) if options.query_url.startswith(SQLITE) else None
    if path is not None and not os.access(path, os.R_OK):
        yield "users.query_url", f"there is no file {path} that this user may read"
    if options.command and shutil.which(options.command[0]) is None:
        yield "users.command", "there is no such program, or it may not be run"


def _account(account: "AccountOptions") -> Iterator[Fault]:
    """Yield what is wrong with the files of a place where mail is watched."""
    if account.maildir and not (account.maildir / "cur").is_dir():
        yield "maildir", f"{account.maildir} is no Maildir: it has no folder cur"
    for name, what in (
        ("password_file", "a password"),
        ("token_file", "a token"),
        ("users_file", "a user"),
    ):
        file: Path | None = getattr(account, name)
        if file is not None and (fault := _text_fault(file, what)):
            yield name, fault
    if account.ca_file is not None:
        try:
            ssl.create_default_context(cafile=account.ca_file)
        except OSError as error:
            yield "ca_file", f"{account.ca_file}: {reason(error)}"
    if account.token_command and shutil.which(account.token_command[0]) is None:
        yield "token_command", "there is no such program, or it may not be run"


def _text_fault(file: Path, what: str) -> str | None:
    """Return what is wrong with a file that begins with `what`."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        return f"{file}: {reason(error)}"
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return None if lines else f"{file} holds no {what.removeprefix('a ')}"
