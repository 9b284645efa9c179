"""Lessons on the disk of this machine that wait for the database (the port `WaitingLessons`).

    FOLDER/lessons.waiting    one record after the other, for our user only (0600)
    FOLDER/lessons.lock       held by the process that is learning them

The folder is `database.local`. All processes of the machine share the journal: who writes holds a
lock on it, and returns once the record lies on the disk (fsync). It is emptied once all of it was
learned. A record begins with `MAGIC`, its length and its checksum, so one that a crash or a full
disk cut off, or that the disk spoilt, costs itself and no other. One that is dropped, since who
gave it is forgotten, is overwritten with spaces where it lies: who appends is not disturbed.

A record holds what a lesson in the database holds: words, never the mail.
"""

import asyncio
import fcntl
import json
import mmap
import os
import struct
import zlib
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Generator,
    Iterator,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Self

from spamd.errors import StorageUnavailable
from spamd.sample import Label
from spamd.storage.corpus.codec import BlobError, decode_features, encode_features
from spamd.storage.options import DatabaseOptions
from spamd.training.ports import WaitingLesson
from spamd.wording import reason

MAGIC = b"\x00\xffspamd lesson\xff\x00"
END = b"\n"
"""No byte of `MAGIC`: the start of the next record never makes up for a lost end."""

HEAD = struct.Struct("<II")
"""Length of the payload and its CRC."""

FRAME_BYTES = len(MAGIC) + HEAD.size

ABOUT = struct.Struct("<I")
"""Length of what stands before the features."""

DROPPED = b" "
"""All that the payload of a dropped record holds."""

TURN_S, AGAIN_S = 30.0, 0.05
"""So long a process waits until another has learned what waits, and so often it looks."""

Learn = Callable[[WaitingLesson], Awaitable[None]]


class JournalOnDisk:
    """The journal of this machine."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder = folder
        self._path = folder / "lessons.waiting"
        self._most_bytes = most_bytes

    @classmethod
    def of(cls, options: DatabaseOptions) -> Self:
        """Return the journal that the settings name; nothing is made before it is needed."""
        return cls(Path(options.local), options.waiting_mb * 1024 * 1024)

    @property
    def any(self) -> bool:
        """Whether lessons wait."""
        return self.size_bytes > 0

    @property
    def size_bytes(self) -> int:
        """How much waits."""
        try:
            return self._path.stat().st_size
        except OSError:
            return 0

    def count(self) -> int:
        """Return how many lessons wait; it reads all of them."""
        if not self.any:
            return 0
        with self._mapped() as content:
            return sum(each is not None for _, each in _records(content, 0))

    def names(self) -> set[str]:
        """Return who has given lessons that wait, and for whom; it reads all of them."""
        if not self.any:
            return set()
        with self._mapped() as content:
            lessons = [each for _, each in _records(content, 0) if each is not None]
            return {name for each in lessons for name in _names(each)}

    async def keep(self, lessons: Sequence[WaitingLesson]) -> None:
        records = b"".join(_record(each) for each in lessons)
        writing = asyncio.ensure_future(asyncio.to_thread(self._append, records))
        # Who gave the lessons may have gone; they are whole on the disk or not there at all.
        await asyncio.shield(writing)

    async def take(self, learn: Learn) -> tuple[int, int]:
        done = lost = start = 0
        with self._alone() as mine:
            while mine and not await asyncio.to_thread(self._emptied, start):
                with self._mapped() as content:
                    for _, lesson in _records(content, start):
                        if lesson is None:
                            lost += 1
                        else:
                            await learn(lesson)
                            done += 1
                    start = len(content)
        return done, lost

    async def drop(self, names: Collection[str]) -> int:
        """Have lessons that these have given, or others for them, never been; return how many.

        Raises:
            StorageUnavailable: they can't be dropped, or another process has been learning what
                waits for half a minute.
        """
        if not self.any:
            return 0
        try:
            async with self._in_turn():
                return await asyncio.to_thread(self._overwrite, frozenset(names))
        except OSError as error:
            raise StorageUnavailable(
                f"lessons in {self._path} can't be dropped: {reason(error)}"
            ) from error

    def _overwrite(self, names: Collection[str]) -> int:
        with self._mapped() as content:
            gone = [
                place
                for place, each in _records(content, 0)
                if each is not None and not _names(each).isdisjoint(names)
            ]
        with self._path.open("r+b") as file:
            for place in gone:
                record = _framed(DROPPED * (place.stop - place.start))
                os.pwrite(file.fileno(), record, place.start - FRAME_BYTES)
            os.fsync(file.fileno())
        return len(gone)

    def _append(self, records: bytes) -> None:
        """Write records at the end, all or none.

        Raises:
            StorageUnavailable: they could not be written.
        """
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self._path, flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                before = os.fstat(descriptor).st_size
                if before + len(records) > self._most_bytes:
                    raise StorageUnavailable(
                        f"the database does not answer, and {self._path} is full of lessons that"
                        " wait for it (database.waiting_mb)"
                    )
                try:
                    _write(descriptor, records)
                    os.fsync(descriptor)
                except OSError:
                    os.ftruncate(descriptor, before)
                    raise
                if before == 0:
                    _sync_folder(self._folder)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StorageUnavailable(
                "the database does not answer, and the lesson can't be written to"
                f" {self._path}: {reason(error)}"
            ) from error

    @contextmanager
    def _mapped(self) -> Generator[mmap.mmap | bytes]:
        """Give what was written so far: whole records, but for what a crash has left."""
        with self._path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            size = os.fstat(file.fileno()).st_size
            if not size:
                yield b""
                return
            content = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
            fcntl.flock(file, fcntl.LOCK_UN)
            with content:
                yield content

    def _emptied(self, end: int) -> bool:
        """Forget all when nothing was added after `end`; return whether that is so."""
        with self._path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file.fileno()).st_size > end:
                return False
            os.ftruncate(file.fileno(), 0)
            os.fsync(file.fileno())
            return True

    @asynccontextmanager
    async def _in_turn(self) -> AsyncGenerator[None]:
        """Be the one process that learns or drops."""
        loop = asyncio.get_running_loop()
        end = loop.time() + TURN_S
        while loop.time() < end:
            with self._alone() as mine:
                if mine:
                    yield
                    return
            await asyncio.sleep(AGAIN_S)
        raise TimeoutError("another process learns them")

    @contextmanager
    def _alone(self) -> Generator[bool]:
        """Say whether this process is the one that learns; it is while the context lasts."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._folder / "lessons.lock", flags, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(descriptor)


def _records(content: mmap.mmap | bytes, at: int) -> Iterator[tuple[slice, WaitingLesson | None]]:
    """Yield lessons from a place on, each with that of its payload; None for no whole record."""
    while at < len(content):
        start = content.find(MAGIC, at)
        if start == at:
            first = start + FRAME_BYTES
            length, checksum = HEAD.unpack(content[first - HEAD.size : first].ljust(HEAD.size))
            at = first + length
            payload = content[first:at]
            if len(payload) == length and zlib.crc32(payload) == checksum:
                if payload.strip(DROPPED):
                    yield slice(first, at), _lesson(payload)
                continue
            start = content.find(MAGIC, start + 1)
        yield slice(at, at), None
        if start < 0:
            return
        at = start


def _record(lesson: WaitingLesson) -> bytes:
    about = json.dumps(
        {
            "label": None if lesson.label is None else lesson.label.value,
            "source": lesson.source,
            "actor": lesson.actor,
            "given": lesson.given.isoformat(),
            "user": lesson.user,
        }
    ).encode()
    return _framed(ABOUT.pack(len(about)) + about + encode_features(lesson.features) + END)


def _framed(payload: bytes) -> bytes:
    return MAGIC + HEAD.pack(len(payload), zlib.crc32(payload)) + payload


def _lesson(payload: bytes) -> WaitingLesson | None:
    """Return the lesson of a payload, None when this version does not understand it."""
    try:
        end = ABOUT.size + ABOUT.unpack_from(payload)[0]
        about = json.loads(payload[ABOUT.size : end])
        return WaitingLesson(
            features=decode_features(payload[end : -len(END)]),
            label=None if about["label"] is None else Label(about["label"]),
            source=about["source"],
            actor=about["actor"],
            given=datetime.fromisoformat(about["given"]),
            user=about.get("user", ""),  # none in records of an older version
        )
    except (BlobError, ValueError, KeyError, TypeError, struct.error):
        return None


def _names(lesson: WaitingLesson) -> set[str]:
    return {lesson.actor, lesson.user} - {""}


def _write(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
