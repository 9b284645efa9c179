"""Compressed files of mail: gzip, bzip2, xz, and the members of a zip, told by their first bytes.

Read as a stream: what a message unpacks to is bounded where it is read, not here.
"""

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import PurePath
from typing import Any, BinaryIO, cast

FAULTS = (EOFError, lzma.LZMAError, zipfile.BadZipFile, zlib.error)
"""What a broken file raises besides OSError."""

Opener = Callable[[BinaryIO], AbstractContextManager[Any]]

STREAMS: Mapping[bytes, Opener] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}
ZIP = b"PK\x03\x04"


@contextmanager
def unpacked(file: BinaryIO, name: str) -> Iterator[Iterator[tuple[str, BinaryIO]]]:
    """Give (name, stream) of each file inside a file, or of itself where it is not compressed.

    A name loses the ending that the compression has given it: box.mbox.gz is a box.mbox.
    """
    start = file.read(8)
    file.seek(0)
    with ExitStack() as stack:
        if start.startswith(ZIP):
            yield _members(stack.enter_context(zipfile.ZipFile(file)), name)
            return
        for mark, opened in STREAMS.items():
            if start.startswith(mark):
                stream = cast("BinaryIO", stack.enter_context(opened(file)))
                inner = str(PurePath(name).with_suffix("")) if PurePath(name).suffix else name
                yield iter([(inner, stream)])
                return
        yield iter([(name, file)])


def _members(archive: zipfile.ZipFile, name: str) -> Iterator[tuple[str, BinaryIO]]:
    for member in archive.infolist():
        if member.is_dir():
            continue
        try:
            stream = archive.open(member)
        except RuntimeError as error:  # encrypted, or compressed in a way that is not known
            raise zipfile.BadZipFile(str(error)) from error
        with stream:
            yield f"{name}/{member.filename}", cast("BinaryIO", stream)
