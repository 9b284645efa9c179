"""What an admin can set about the people whose mail is judged."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

PARAMETER = re.compile(r"(?<![:\w\\]):(\w+)(?!:)")
"""A parameter of a query, as SQLAlchemy's text() finds it."""

PARAMETERS = frozenset({"address", "local", "domain"})


@dataclass(frozen=True, slots=True, kw_only=True)
class UsersOptions:
    """Each person's own filter: whose mail it is, and what holds for them. See docs/users.md.

    enabled       judge mail for the person it is for; off: everybody gets the site's verdict
    separators    characters that begin a tag in a local part, as in "anna+shop@example.org"
                  (Postfix: recipient_delimiter); empty: there are no tags
    domain        what a name without a domain gets ("anna" becomes "anna@example.org"); empty:
                  nothing
    aliases       address → address that gets its mail, as in a virtual alias table of Postfix;
                  several are separated by commas
    aliases_file  such a table as a text file: what virtual_alias_maps names, without hash: or lmdb:
    users_file    file with the names of all users, one a line; who is not there has what their
                  domain has, else the site's. Empty: whoever was found is a user
    query         SQL that returns the user behind :address (also :local, :domain); no row: nobody.
                  SELECT destination FROM aliases WHERE source = :address
                  UNION SELECT email FROM mailboxes WHERE email = :address
    query_url     database of the query: postgresql://user:password@host:port/name or
                  sqlite:////absolute/path; it is only read
    command       instead of a query, program and arguments that print the user behind the name that
                  follows them: ["doveadm", "user", "-f", "user"]
    cache_s       seconds that an answer of query or command holds, "nobody" too
    timeout_s     seconds that a mail waits for what is known of those it is for; what is not there
                  by then is left out, and said in the reason
    """

    enabled: bool = False
    separators: str = "+"
    domain: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict)
    aliases_file: str = ""
    users_file: str = ""
    query: str = ""
    query_url: str = ""
    command: tuple[str, ...] = ()
    cache_s: float = 300.0
    timeout_s: float = 0.3

    def __post_init__(self) -> None:
        if any(character.isalnum() or character in '@." ' for character in self.separators):
            raise ValueError("users.separators holds characters such as +, no letters, no digits")
        if "@" in self.domain or self.domain != self.domain.strip():
            raise ValueError(f'users.domain is a domain such as "example.org", not {self.domain!r}')
        for address, target in self.aliases.items():
            if not address.strip() or not target.strip(" ,"):
                raise ValueError(f"users.aliases: {address!r} must lead to an address")
        self._check_query()
        if not 0 <= self.cache_s <= 86_400:
            raise ValueError("users.cache_s must lie between 0 and 86400 s")
        if not 0 < self.timeout_s <= 10:
            raise ValueError("users.timeout_s must lie above 0 and be at most 10 s")

    def _check_query(self) -> None:
        if self.query and self.command:
            raise ValueError("users.query and users.command can't both be set")
        if bool(self.query) != bool(self.query_url):
            raise ValueError("users.query and users.query_url need each other")
        if not self.query:
            return
        used = set(PARAMETER.findall(self.query))
        if unknown := sorted(used - PARAMETERS):
            raise ValueError(
                f"users.query knows :address, :local and :domain, but no :{unknown[0]}"
            )
        if not used & {"address", "local"}:
            raise ValueError("users.query must ask for :address, or for :local and :domain")
        url = self.query_url
        if url.startswith("sqlite:///"):
            if not Path(url.removeprefix("sqlite:///")).name:
                raise ValueError("users.query_url must name a file after sqlite:///")
        elif not url.startswith("postgresql://"):
            raise ValueError(
                "users.query_url must begin with sqlite:/// or postgresql://; for other databases"
                " give users.command a program that asks them"
            )
        elif not urlsplit(url).path.strip("/"):
            raise ValueError("users.query_url must end in the name of the database")
