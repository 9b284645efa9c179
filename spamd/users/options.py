"""What an admin can set about the people whose mail is judged."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UsersOptions:
    """Each person's own filter: whose mail it is, and what holds for them.

    enabled     judge mail for the person it is for; off: everybody gets the site's verdict
    separators  characters that begin a tag in a local part, as in "anna+shop@example.org"
                (Postfix: recipient_delimiter); empty: there are no tags
    domain      what a name without a domain gets ("anna" becomes "anna@example.org"); empty:
                nothing
    timeout_s   seconds that a mail waits for what is known of those it is for; what is not there
                by then is left out, and said in the reason
    """

    enabled: bool = False
    separators: str = "+"
    domain: str = ""
    timeout_s: float = 0.3

    def __post_init__(self) -> None:
        if any(character.isalnum() or character in '@." ' for character in self.separators):
            raise ValueError("users.separators holds characters such as +, no letters, no digits")
        if "@" in self.domain or self.domain != self.domain.strip():
            raise ValueError(f'users.domain is a domain such as "example.org", not {self.domain!r}')
        if not 0 < self.timeout_s <= 10:
            raise ValueError("users.timeout_s must lie above 0 and be at most 10 s")
