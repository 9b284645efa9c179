"""Tokens: what programs show instead of a password.

A file holds a line for each:

    NAME ROLE SHA256

`spamd password --token NAME` writes it. A token is 256 bits of chance: nobody guesses it, so a
plain hash is enough, and it is compared at once.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spamd.admin.roles import Role
from spamd.errors import ConfigError
from spamd.files import open_regular
from spamd.listeners.web.options import WebOptions
from spamd.wording import reason

MOST_BYTES = 1024 * 1024
"""Of the file: ten thousand tokens."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What is kept of a token."""

    name: str
    role: Role
    digest: bytes

    @classmethod
    def of(cls, secret: str, name: str, role: Role) -> "Token":
        """Return what is kept of a token."""
        return cls(name=name, role=role, digest=hashlib.sha256(secret.encode()).digest())

    @classmethod
    def read(cls, line: str) -> "Token":
        """Return what a line keeps.

        Raises:
            ValueError: it is no such line.
        """
        words = line.split()
        roles = {role.value: role for role in (Role.READER, Role.TEACHER)}
        if len(words) != 3 or words[1] not in roles or not NAME.fullmatch(words[0]):
            raise ValueError('holds a line that "spamd password --token" did not write')
        if not _SHA256.fullmatch(words[2]):
            raise ValueError("holds a line without the SHA-256 of a token")
        return cls(name=words[0], role=roles[words[1]], digest=bytes.fromhex(words[2]))

    def __str__(self) -> str:
        """Return the line."""
        return f"{self.name} {self.role} {self.digest.hex()}"


def tokens_of(options: WebOptions) -> Mapping[bytes, Token]:
    """Return the tokens of the file by their SHA-256; none where there is no file.

    Raises:
        ConfigError: the file can't be used.
    """
    if not options.token_file:
        return {}
    try:
        with open_regular(Path(options.token_file)) as file:
            text = file.read(MOST_BYTES + 1).decode("utf-8")
        if len(text) > MOST_BYTES:
            raise ValueError(f"is larger than {MOST_BYTES:,} octets")  # noqa: TRY301 - told below
        lines = [line.strip() for line in text.splitlines()]
        found = [Token.read(line) for line in lines if line and not line.startswith("#")]
    except ValueError as error:
        why = reason(error) if isinstance(error, UnicodeError) else str(error)
    except OSError as error:
        why = reason(error)
    else:
        return {token.digest: token for token in found}
    raise ConfigError(f"web.token_file: {options.token_file}: {why}")


def digest_of(secret: str) -> bytes:
    """Return what is kept of a token that somebody shows."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
