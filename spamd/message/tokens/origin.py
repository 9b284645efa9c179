"""From which list or address a mail comes, as a number: what its sender's mails have in common.

A list by its List-Id, else the address in From. Anybody can write either, so an origin proves
nothing: it says which mails a person would call "the same newsletter".
"""

from collections.abc import Iterable

from spamd.message.tokens.hashing import token_id
from spamd.message.tokens.kinds import OF_FIELD

NO_ORIGIN = 0

_LIST = f"list-id{OF_FIELD}"
_FROM = "from:"


def origin(words: Iterable[str]) -> int:
    """Return the origin of a mail by the words of its tokens, `NO_ORIGIN` without one."""
    lists, senders = [], []
    for word in words:
        if " " in word:  # a pair of words
            continue
        if word.startswith(_LIST):
            lists.append(word)
        elif word.startswith(_FROM) and word[len(_FROM) :].find("@") > 0:
            senders.append(word)
    if lists:
        return token_id("list:" + "+".join(sorted(set(lists))))
    return token_id(min(senders)) if senders else NO_ORIGIN
