"""The mail that a command line names: by path, by our id (X-Spam-Id), or by its digest."""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from getpass import getuser
from typing import TYPE_CHECKING

import typer

from spamd.cli.exits import UsageProblem
from spamd.cli.mail.files import STDIN, Unreadable

if TYPE_CHECKING:
    from spamd.cli.mail.extraction import Extracted
    from spamd.message.features import Features
    from spamd.storage.store import Store
    from spamd.training.ports import Lesson

OUR_ID = re.compile(r"[0-9a-f]{8,64}-[0-9a-f]{16}")
DIGEST = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """What a command line names: paths of mail, our ids (X-Spam-Id), digests in hex."""

    paths: list[str]
    ids: list[str]
    digests: list[str]


def targets(names: Sequence[str]) -> Targets:
    """Return what each name means; whatever exists as a file is a path."""
    found = Targets(paths=[], ids=[], digests=[])
    for name in names:
        if name != STDIN and not os.path.lexists(name):
            if OUR_ID.fullmatch(name):
                found.ids.append(name)
                continue
            if DIGEST.fullmatch(name):
                found.digests.append(name)
                continue
        found.paths.append(name)
    return found


def refuse_terminal(context: typer.Context, paths: Iterable[str]) -> None:
    """Refuse to read mail from a terminal: whoever forgot the path would wait for ever.

    Raises:
        UsageProblem: standard input is a terminal.
    """
    if STDIN in paths and sys.stdin.isatty():
        raise UsageProblem("- reads mail from standard input, but that is a terminal", context)


def actor() -> str:
    """Return who gives a lesson at the command line."""
    try:
        return os.environ.get("SUDO_USER") or getuser()
    except (KeyError, OSError):  # a container may run as a user who has no name
        return str(os.getuid())


def named(features: "Features", secret: bytes) -> str:
    """Return the name of a mail for `explain`, `retrain` and `forget`: our id, or its digest."""
    from spamd.message.identity import genuine

    if features.id is not None and genuine(features.id, secret):
        return features.id
    return features.digest.hex()


async def digests_of(store: "Store", found: Targets) -> tuple[dict[str, bytes], list[str]]:
    """Return the digest of each id that is known, and the ids that are not."""
    known = await store.scans.by_id(found.ids)
    digests = {name: each.digest for name, each in known.items()}
    digests |= {name: bytes.fromhex(name) for name in found.digests}
    return digests, [name for name in found.ids if name not in known]


async def remembered(store: "Store", found: Targets) -> "list[Extracted | Unreadable]":
    """Return the mails named by id: as they were scanned, else as they were taught."""
    digests, unknown = await digests_of(store, found)
    mails: list[Extracted | Unreadable] = [
        Unreadable(name=name, reason="no message with this id is known") for name in unknown
    ]
    for name, digest in digests.items():
        mail = await store.scans.kept(digest) or await _taught(store, digest)
        mails.append(
            (name, mail)
            if mail
            else Unreadable(
                name=name,
                reason="no scan or lesson with this id is kept; give the file of the message",
            )
        )
    return mails


async def _taught(store: "Store", digest: bytes) -> "Features | None":
    """Return the features that a lesson was learned from."""
    lesson = await store.lesson(digest)
    return _features(lesson) if lesson else None


def _features(lesson: "Lesson") -> "Features":
    from spamd.message.features import Features

    return Features(
        sample=lesson.sample,
        texts=lesson.texts,
        digest=lesson.digest,
        id=None,
        sender_domain=lesson.sender_domain,
        defects=(),
        size_bytes=len(lesson.texts),  # not kept; only its sign matters here
    )
