"""What is wished for whom, and how it is said.

Owners are users ("anna@example.org") and domains ("@example.org"): a user's wish counts before that
of their domain, wish by wish, and the settings (`decision`) where neither says anything.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from spamd.bayes.wishes import NO_WISHES, Wishes
from spamd.users.names import domain_of

NAMES = tuple(each.name for each in fields(Wishes))
"""What can be wished: tag_from, reject_from, tag, reject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wished:
    """What the owner wishes; never nothing."""

    owner: str
    wishes: Wishes


def for_user(user: str, wished: Mapping[str, Wishes]) -> Wishes:
    """Return what holds for a user, or for somebody at "@example.org" who is none."""
    own, domains = wished.get(user), wished.get(f"@{domain_of(user)}")
    if own is None or own is domains:
        return domains or NO_WISHES
    return own if domains is None else own.over(domains)


def words(wishes: Wishes) -> Iterator[str]:
    """Yield each wish in words."""
    if wishes.tag is False:
        yield "never tag"
    elif wishes.tag:
        yield "tag"
    if wishes.tag_from is not None:
        yield f"tag from {wishes.tag_from:g}"
    if wishes.reject is False:
        yield "never reject"
    elif wishes.reject:
        yield "reject"
    if wishes.reject_from is not None:
        yield f"reject from {wishes.reject_from:g}"


def to_json(wishes: Wishes) -> dict[str, float | bool | None]:
    """Return the wishes as JSON has them; null is what is not wished."""
    return {name: getattr(wishes, name) for name in NAMES}
