"""Which folder is Junk, which is the inbox, which says nothing.

The server is asked first (SPECIAL-USE, RFC 6154). A folder without a special use is told by its
name, as the last part of its path, without case. Sub-folders of Junk are Junk too, if the admin
doesn't want it otherwise; sub-folders of Trash and the like always go with their parent. A folder
that only sounds like Junk ("Old spam", "not-spam") teaches nothing: a wrong guess would teach the
opposite.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from spamd.feedback.mailbox import Folder, Role
from spamd.feedback.options import AccountOptions, FeedbackOptions
from spamd.ports import Place

EXCLUDED_USES = {"\\trash", "\\drafts", "\\sent", "\\all", "\\flagged", "\\important"}
"""RFC 6154 §2: thrown away, unfinished, own mail; and views of mail that lies elsewhere."""

UNREADABLE = {"\\noselect", "\\nonexistent"}

SENT_FOLDERS = (
    "Sent", "Sent Items", "Sent Messages", "Sent Mail", "Gesendet", "Gesendete Elemente",
    "Gesendete Objekte", "Envoyés", "Messages envoyés", "Éléments envoyés", "Enviados",
    "Elementos enviados", "Posta inviata", "Inviata", "Verzonden", "Skickat", "Отправленные",
    "送信済み", "已发送",
)  # fmt: skip
"""Whom a person writes to stands here; their mail is ham. Only asked by `bootstrap`."""

ARCHIVE_FOLDERS = ("Archive", "Archives", "Archiv", "Archivo", "Archivio", "Архив", "アーカイブ")
"""What people put here they wanted to keep. Only asked by `bootstrap`."""

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
    roles = {folder.raw: role(folder, listed, account, options) for folder in listed}
    chosen = {_plain(name) for name in account.folders}
    found = [
        Folder(name=folder.name, raw=folder.raw, place=place)
        for folder in listed
        if (place := roles[folder.raw]) is not None
        and not folder.attributes & UNREADABLE
        and (place is not Place.OTHER or not chosen or _plain(folder.name) in chosen)
    ]
    order = [Place.JUNK, Place.INBOX, Place.OTHER]
    return sorted(found, key=lambda folder: (order.index(folder.place), folder.name))


def surveyed(
    listed: Sequence[Listed], account: AccountOptions, options: FeedbackOptions
) -> list[tuple[Folder, Role]]:
    """Return the folders that old mail may be learned from, and what people keep in each."""
    found = []
    for folder in listed:
        place = role(folder, listed, account, options)
        if folder.attributes & UNREADABLE:
            continue
        if place is Place.JUNK:
            kept = Role.JUNK
        elif place is None and _is(folder, "\\sent", SENT_FOLDERS):
            kept = Role.SENT
        elif place is None:
            continue
        elif _is(folder, "\\archive", ARCHIVE_FOLDERS):
            kept = Role.ARCHIVE
        else:
            kept = Role.MAIL
        found.append((Folder(name=folder.name, raw=folder.raw, place=place or Place.OTHER), kept))
    return found


def _is(folder: Listed, use: str, names: Sequence[str]) -> bool:
    """Return whether a folder has this use, or one of these names, itself or above it."""
    parts = folder.name.split(folder.delimiter) if folder.delimiter else [folder.name]
    plain = {_plain(name) for name in names}
    return use in folder.attributes or any(_plain(part) in plain for part in parts)


def role(
    folder: Listed, listed: Sequence[Listed], account: AccountOptions, options: FeedbackOptions
) -> Place | None:
    """Return the place a folder is, None when it teaches nothing."""
    own = _own_role(folder, account, options)
    if own is not Place.OTHER or not folder.delimiter:
        return own
    ancestors = [
        other
        for other in listed
        if folder.name.startswith(other.name + folder.delimiter) and _plain(other.name) != "inbox"
    ]
    inherited = {_own_role(other, account, options) for other in ancestors}
    if None in inherited:
        return None
    if Place.JUNK in inherited and options.junk_children:
        return Place.JUNK
    return Place.OTHER


def _own_role(folder: Listed, account: AccountOptions, options: FeedbackOptions) -> Place | None:
    if _plain(folder.name) == "inbox":
        return Place.INBOX
    explicit = _explicit(folder, account)
    if explicit is not Place.OTHER:
        return explicit
    if "\\junk" in folder.attributes:
        return Place.JUNK
    if folder.attributes & EXCLUDED_USES:
        return None
    if "\\archive" in folder.attributes:
        return Place.OTHER
    return _by_name(folder, options.junk_folders, options.excluded_folders)


def _explicit(folder: Listed, account: AccountOptions) -> Place | None:
    """Return what the admin said of this very account, OTHER for nothing."""
    names = {_plain(folder.name), _plain(_last(folder))}
    if names & {_plain(name) for name in account.junk_folders}:
        return Place.JUNK
    if names & {_plain(name) for name in account.excluded_folders}:
        return None
    return Place.OTHER


def _by_name(folder: Listed, junk: Sequence[str], excluded: Sequence[str]) -> Place | None:
    names = {_plain(folder.name), _plain(_last(folder))}
    if names & {_plain(name) for name in junk}:
        return Place.JUNK
    if names & {_plain(name) for name in excluded} or SOUNDS_LIKE_JUNK.search(_last(folder)):
        return None
    return Place.OTHER


def _last(folder: Listed) -> str:
    return folder.name.rpartition(folder.delimiter)[2] if folder.delimiter else folder.name


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
