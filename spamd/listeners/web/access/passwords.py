"""Passwords as they are kept: one line, from which nobody learns the password.

    $scrypt$ln=15,r=8,p=3$SALT$HASH

It is the form that Passlib and the PHC contest gave scrypt (RFC 7914); `spamd password` writes it.
"""

import hashlib
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hmac import compare_digest
from pathlib import Path

from spamd.admin.roles import Role
from spamd.errors import ConfigError
from spamd.files import first_line
from spamd.listeners.web.options import WebOptions
from spamd.wording import reason

_LINE = re.compile(
    r"\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{16,88})\$([A-Za-z0-9+/]{43})"
)
_MOST_BYTES = 256 * 1024 * 1024
"""Memory that one try may take; what an admin chooses for himself is below this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordHash:
    """What is kept of a password: 2**log_n rounds, of blocks of r·128 octets, p times."""

    salt: bytes
    digest: bytes
    log_n: int = 15  # OWASP's choice of 2**15, 8, 3: 32 MiB and a sixth of a second a try
    r: int = 8
    p: int = 3

    @classmethod
    def of(cls, password: bytes, salt: bytes, *, log_n: int = 15, p: int = 3) -> "PasswordHash":
        """Return what is kept of a password."""
        empty = cls(salt=salt, digest=b"", log_n=log_n, p=p)
        return replace(empty, digest=empty._digest(password))

    @classmethod
    def read(cls, line: str) -> "PasswordHash":
        """Return what a line keeps.

        Raises:
            ValueError: it is no such line.
        """
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise ValueError('holds no line that "spamd password" wrote')
        log_n, r, p = (int(number) for number in match.groups()[:3])
        if not (log_n >= 10 and r and p and (r << (log_n + 7)) <= _MOST_BYTES):
            raise ValueError("asks for too little or too much work; 2**15 rounds are usual")
        return cls(salt=_bytes(match[4]), digest=_bytes(match[5]), log_n=log_n, r=r, p=p)

    @classmethod
    def from_file(cls, path: Path) -> "PasswordHash":
        """Return what the first line of a file keeps.

        Raises:
            ValueError: it is no such line.
            OSError: the file can't be read.
        """
        return cls.read(first_line(path))

    def __str__(self) -> str:
        """Return the line."""
        work = f"ln={self.log_n},r={self.r},p={self.p}"
        return f"$scrypt${work}${_text(self.salt)}${_text(self.digest)}"

    def matches(self, password: bytes) -> bool:
        """Tell whether this is the password; it takes a while, on purpose."""
        return compare_digest(self._digest(password), self.digest)

    def _digest(self, password: bytes) -> bytes:
        return hashlib.scrypt(
            password,
            salt=self.salt,
            n=1 << self.log_n,
            r=self.r,
            p=self.p,
            maxmem=2 * _MOST_BYTES,
            dklen=32,
        )


def passwords_of(options: WebOptions) -> Mapping[Role, PasswordHash]:
    """Return what is kept of the passwords, by whose they are.

    Raises:
        ConfigError: a file can't be used.
    """
    files = (
        (Role.TEACHER, "password_file", options.password_file),
        (Role.READER, "reader_password_file", options.reader_password_file),
    )
    return {role: _of_file(key, path) for role, key, path in files if path}


def _of_file(key: str, path: str) -> PasswordHash:
    try:
        return PasswordHash.from_file(Path(path))
    except ValueError as error:
        text = reason(error) if isinstance(error, UnicodeError) else str(error)
    except OSError as error:
        text = reason(error)
    raise ConfigError(f"web.{key}: {path}: {text}")


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii").rstrip("=")


def _bytes(text: str) -> bytes:
    return b64decode(text + "=" * (-len(text) % 4))
