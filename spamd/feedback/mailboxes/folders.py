"""Which folder is Junk, which is the inbox, which says nothing.

The server is asked first (SPECIAL-USE, RFC 6154). A folder without a special use is told by its
name, as the last part of its path, without case. Sub-folders of Junk are Junk too, if the admin
doesn't want it otherwise; sub-folders of Trash and the like always go with their parent. A folder
that only sounds like Junk ("Old spam", "not-spam") teaches nothing: a wrong guess would teach the
opposite. And where nobody says which folder is the Trash, any ordinary one may be it.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from spamd.feedback.mailboxes.mailbox import Folder, Place, Role
from spamd.feedback.options import (
    EXCLUDED_FOLDERS,
    TRASH_FOLDERS,
    AccountOptions,
    FeedbackOptions,
)
from spamd.lists.entry import Effect

VIEWS = {"\\all", "\\flagged", "\\important"}
"""RFC 6154 §2, 8457: views of mail that lies elsewhere. Not all that are views say so."""

EXCLUDED_USES = {"\\trash", "\\drafts", "\\sent", *VIEWS}
"""RFC 6154 §2: thrown away, unfinished, own mail; and views."""

UNREADABLE = {"\\noselect", "\\nonexistent"}

ARCHIVE_FOLDERS = ("Archive", "Archives", "Archiv", "Archivo", "Archivio", "Архив", "アーカイブ")
"""What people put here they wanted to keep. Only asked by `bootstrap`."""

MOST_LISTED = 20_000
"""Ordinary folders that are sorted: nothing else of the process runs while a hundred thousand are
put in order, and `feedback.max_folders` of them are watched."""

COMPOSED_CHARACTERS = 300
"""Longer names are compared as they stand: none that means something is as long."""

SOUNDS_LIKE_JUNK = re.compile(r"spam|junk", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A folder as the server lists it; attributes in lower case; delimiter "" for a flat name."""

    name: str
    raw: str
    attributes: frozenset[str]
    delimiter: str


def watched(
    listed: Sequence[Listed], account: AccountOptions, options: FeedbackOptions
) -> list[Folder]:
    """Return the folders to watch with their places: Junk first, then the inbox, then the rest."""
    places = _places(listed, account, options)
    chosen, archive = _plain_names(account.folders), _plain_names(ARCHIVE_FOLDERS)
    lists = {
        folder.raw: _list(folder, options) if place is Place.OTHER else None
        for folder, place in places
    }
    trash = _trash_names(account, options)
    known = any(place is None and _is(folder, "\\trash", trash) for folder, place in places)
    found = [
        Folder(
            name=folder.name,
            raw=folder.raw,
            place=place,
            kept=known
            or place is not Place.OTHER
            or lists[folder.raw] is not None
            or _plain(folder.name) in chosen
            or _is(folder, "\\archive", archive),
            list=lists[folder.raw],
        )
        for folder, place in places
        if place is not None
        and not folder.attributes & UNREADABLE
        and (
            place is not Place.OTHER
            or not chosen
            or _plain(folder.name) in chosen
            or lists[folder.raw] is not None
        )
    ]
    order = [Place.JUNK, Place.INBOX, Place.OTHER]
    return sorted(found, key=lambda folder: (order.index(folder.place), folder.name))


def excluded(
    listed: Sequence[Listed], account: AccountOptions, options: FeedbackOptions
) -> list[str]:
    """Return the folders that hold mail and teach nothing, as the server calls them."""
    return [
        folder.raw
        for folder, place in _places(listed, account, options)
        if place is None and not folder.attributes & (UNREADABLE | VIEWS)
    ]


def sent_folders(
    listed: Sequence[Listed], account: AccountOptions, options: FeedbackOptions
) -> list[Folder]:
    """Return the folders of the mail that the owner of an account wrote."""
    sent = _plain_names(options.sent_folders)
    return [
        Folder(name=folder.name, raw=folder.raw, place=Place.OTHER)
        for folder, place in _places(listed, account, options)
        if place is None and _is(folder, "\\sent", sent) and not folder.attributes & UNREADABLE
    ]


def bootstrap_folders(
    listed: Sequence[Listed], account: AccountOptions, options: FeedbackOptions
) -> list[tuple[Folder, Role]]:
    """Return the folders that old mail may be learned from, and what people keep in each."""
    sent, archive = _plain_names(options.sent_folders), _plain_names(ARCHIVE_FOLDERS)
    found = []
    for folder, place in _places(listed, account, options):
        if folder.attributes & UNREADABLE:
            continue
        if place is Place.JUNK:
            kept = Role.JUNK
        elif place is None and _is(folder, "\\sent", sent):
            kept = Role.SENT
        elif place is None:
            continue
        elif _is(folder, "\\archive", archive):
            kept = Role.ARCHIVE
        else:
            kept = Role.MAIL
        found.append((Folder(name=folder.name, raw=folder.raw, place=place or Place.OTHER), kept))
    return found


def _list(folder: Listed, options: FeedbackOptions) -> Effect | None:
    """Return what a mail that is moved to an ordinary folder says of its sender, by its name."""
    name = _plain(_last(folder))
    if name in _plain_names(options.allow_folders):
        return Effect.ALLOW
    return Effect.DENY if name in _plain_names(options.deny_folders) else None


def _is(folder: Listed, use: str, plain: frozenset[str]) -> bool:
    """Return whether a folder has this use, or one of these names, itself or above it."""
    parts = folder.name.split(folder.delimiter) if folder.delimiter else [folder.name]
    return use in folder.attributes or any(_plain(part) in plain for part in parts)


def _trash_names(account: AccountOptions, options: FeedbackOptions) -> frozenset[str]:
    """Return the names of the Trash: those everybody knows, and those that only the admin does."""
    excluded = _plain_names((*account.excluded_folders, *options.excluded_folders))
    return _plain_names(TRASH_FOLDERS) | (excluded - _plain_names(EXCLUDED_FOLDERS))


def _places(
    listed: Sequence[Listed], account: AccountOptions, options: FeedbackOptions
) -> list[tuple[Listed, Place | None]]:
    """Return all folders, each with the place it is, None when it teaches nothing.

    Linear in the bytes of the names: sorted so that a folder comes right before all that lies below
    it, each folder needs to know only the one above it.
    """
    names = _Names.of(account, options)
    own = {folder.raw: _own_place(folder, names) for folder in listed}
    listed = _fewer(listed, own)
    found = dict(own)
    above: list[tuple[str, frozenset[Place | None]]] = []  # names with delimiter, and what they are
    for folder in sorted(listed, key=_depth_first):
        if not folder.delimiter:
            continue
        while above and not folder.name.startswith(above[-1][0]):
            above.pop()
        inherited = above[-1][1] if above else frozenset()
        if own[folder.raw] is Place.OTHER and None in inherited:
            found[folder.raw] = None
        elif own[folder.raw] is Place.OTHER and options.junk_children and Place.JUNK in inherited:
            found[folder.raw] = Place.JUNK
        if _plain(folder.name) != "inbox":
            above.append((folder.name + folder.delimiter, inherited | {own[folder.raw]}))
    return [(folder, found[folder.raw]) for folder in listed]


def _fewer(listed: Sequence[Listed], own: Mapping[str, Place | None]) -> Sequence[Listed]:
    """Return `MOST_LISTED` of the ordinary folders at most, and all others."""
    if len(listed) <= MOST_LISTED:
        return listed
    ordinary = [folder for folder in listed if own[folder.raw] is Place.OTHER][:MOST_LISTED]
    kept = {folder.raw for folder in ordinary}
    return [f for f in listed if own[f.raw] is not Place.OTHER or f.raw in kept]


def _depth_first(folder: Listed) -> tuple[str, str]:
    return folder.delimiter, folder.name.replace(folder.delimiter or "/", "\0")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """The names of the settings, as they are compared."""

    own_junk: frozenset[str]
    own_excluded: frozenset[str]
    junk: frozenset[str]
    excluded: frozenset[str]

    @classmethod
    def of(cls, account: AccountOptions, options: FeedbackOptions) -> Self:
        return cls(
            own_junk=_plain_names(account.junk_folders),
            own_excluded=_plain_names(account.excluded_folders),
            junk=_plain_names(options.junk_folders),
            excluded=_plain_names((*options.excluded_folders, *options.sent_folders)),
        )


def _own_place(folder: Listed, names: _Names) -> Place | None:
    """Return the place a folder is by itself, whatever lies above it."""
    mine = {_plain(folder.name), _plain(_last(folder))}
    if _plain(folder.name) == "inbox":
        return Place.INBOX
    if mine & names.own_junk:  # what the admin said of this very account
        return Place.JUNK
    if mine & names.own_excluded:
        return None
    for use in ("\\junk", *EXCLUDED_USES, "\\archive"):
        if use in folder.attributes:
            return {"\\junk": Place.JUNK, "\\archive": Place.OTHER}.get(use)
    if mine & names.junk:
        return Place.JUNK
    if mine & names.excluded or SOUNDS_LIKE_JUNK.search(_last(folder)):
        return None
    return Place.OTHER


def _last(folder: Listed) -> str:
    return folder.name.rpartition(folder.delimiter)[2] if folder.delimiter else folder.name


@lru_cache(maxsize=256)  # the same few settings at each poll at each account
def _plain_names(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(_plain(name) for name in names)


def _plain(name: str) -> str:
    # Composing takes quadratic time on a long run of combining marks.
    composed = unicodedata.normalize("NFC", name) if len(name) <= COMPOSED_CHARACTERS else name
    return composed.casefold()
