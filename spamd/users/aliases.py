"""Whose mail an alias gets: a table of Postfix's virtual(5), as text, and `users.aliases`.

    info@example.org      anna@example.org                 one address for another
    info                  anna                             both with users.domain
    @old.example          @example.org                     a whole domain, local parts kept
    @shop.example         bob@example.org                  everything there that has no line
    anna@example.org      anna@example.org, archive@x.test  a copy: it stays Anna's
    all@example.org       anna@example.org, bob@example.org  a group: nobody's own

A line that begins with a blank goes on with the line before; "#" begins a comment line. What a line
leads to is looked up again, as Postfix does. Tables that Postfix can't read as text (regexp, pcre,
SQL, LDAP) are not read here: `users.query` and `users.command` ask what answers those.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from spamd.errors import ConfigError
from spamd.files import open_regular
from spamd.users.names import domain_of
from spamd.wording import reason

FILE_BYTES = 64 * 1024 * 1024
"""The largest file that is read: about a million lines."""

MOST = 1000
"""Addresses that one may lead to, as in Postfix (virtual_alias_expansion_limit)."""

_BETWEEN = re.compile(r"[,\s]+")

Rule = Callable[[str], str]
"""From an address to a canonical name."""


class Aliases:
    """Who is behind an address, by the tables.

    Args:
        lines: addresses, and what each leads to; of two for one address the first counts.
        tagged: the name of an address, its tag left in place.
        plain: the name without the tag.
    """

    def __init__(
        self, lines: Iterable[tuple[str, tuple[str, ...]]], *, tagged: Rule, plain: Rule
    ) -> None:
        self._tagged, self._plain = tagged, plain
        self._lines: dict[str, tuple[str, ...]] = {}
        for address, targets in lines:
            name = _domain(address, plain) or tagged(address)
            found = tuple(_domain(target, plain) or tagged(target) for target in targets)
            self._lines.setdefault(name, found)

    def __len__(self) -> int:
        return len(self._lines)

    def of(self, address: str) -> frozenset[str]:
        """Return the names that an address leads to; its own where no line speaks of it."""
        if not self._lines:
            return frozenset((self._plain(address),))
        found: set[str] = set()
        seen: set[str] = set()
        left = [self._tagged(address)]
        while left and len(seen) < MOST:
            name = left.pop()
            if name in seen:
                continue
            seen.add(name)
            targets, plain = self._targets(name), self._plain(name)
            if targets is None or name in targets or plain in targets:
                found.add(plain)  # what goes elsewhere besides is a copy
            else:
                left += targets
        return frozenset(found) or frozenset((self._plain(address),))

    def _targets(self, name: str) -> tuple[str, ...] | None:
        for key in (name, self._plain(name)):
            if key in self._lines:
                return self._lines[key]
        domain = domain_of(name)
        targets = self._lines.get(f"@{domain}") if domain else None
        if targets is None:
            return None
        local = name.rpartition("@")[0]
        return tuple(f"{local}{each}" if each.startswith("@") else each for each in targets)


def lines_of(path: Path, key: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the lines of a table in a file.

    Raises:
        ConfigError: it can't be read; the text begins with the key.
    """
    for number, line in _logical(text_of(path, key)):
        address, _, rest = line.partition(" ")
        targets = tuple(filter(None, _BETWEEN.split(rest)))
        if address.startswith("/") or address in {"if", "endif"}:
            raise ConfigError(
                f"{key}: {path}: line {number} is of a table of patterns (regexp, pcre): only"
                " addresses are read; give users.command what answers for patterns"
            )
        if not targets:
            raise ConfigError(f"{key}: {path}: line {number}: {address} leads to no address")
        yield address, targets


def of_settings(aliases: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what `users.aliases` says."""
    for address, targets in aliases.items():
        yield address.strip(), tuple(filter(None, _BETWEEN.split(targets)))


def names_of(path: Path, key: str) -> Iterator[str]:
    """Yield the names in a file that holds one a line.

    Raises:
        ConfigError: it can't be read, or holds none; the text begins with the key.
    """
    lines = [line.strip() for line in text_of(path, key).splitlines()]
    names = [line for line in lines if line and not line.startswith("#")]
    if not names:
        raise ConfigError(f"{key}: {path} holds no user")
    yield from names


def text_of(path: Path, key: str) -> str:
    """Return what a file holds.

    Raises:
        ConfigError: it can't be read; the text begins with the key.
    """
    try:
        with open_regular(path) as file:
            return file.read(FILE_BYTES).decode()
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"{key}: {path}: {reason(error)}") from error


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each logical line, blanks made one."""
    begun, number = "", 0
    for at, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line[0].isspace() and begun:
            begun += f" {line}"
            continue
        if begun:
            yield number, " ".join(begun.split())
        begun, number = line, at
    if begun:
        yield number, " ".join(begun.split())


def _domain(address: str, plain: Rule) -> str:
    """Return "@domain" for such an address, else ""."""
    if not address.startswith("@"):
        return ""
    return f"@{domain_of(plain(f'x{address}'))}"
