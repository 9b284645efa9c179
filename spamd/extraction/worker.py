"""The process that reads large messages, so that no other waits for the interpreter lock.

Started by `extractor` as `python -m spamd.extraction.worker`. It reads frames from standard input:
first the options of the tokenizer, then message after message; for each it writes the features to
standard output. It ends with its input, so it never outlives the daemon; signals that end the
daemon are left to the daemon. Small messages, read elsewhere, go first where
processors are few.

A frame is four bytes of length, the greatest first, and as many bytes of content. The content is
pickled, which is safe between a process and the child it has made.
"""

import os
import pickle
import signal
import sys
from dataclasses import replace
from enum import IntFlag
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from spamd.message.features import Features, Texts, extract

if TYPE_CHECKING:
    from spamd.message.tokens.tokenizer import TokenizerOptions

START_BYTES = 16 * 1024
"""So much of the header, and of what follows, is read where only the start is asked for."""


class How(IntFlag):
    """How a message is to be read: the byte in front of it."""

    WHOLE = 0
    BARE = 1  # as a stranger wrote it
    START = 2  # only its start


NICE = 5
"""Enough that small messages go first, and little enough that large ones get on."""


def framed(size_bytes: int) -> bytes:
    """Return the length that begins a frame of that many bytes."""
    return size_bytes.to_bytes(4, "big")


def hurried(options: "TokenizerOptions") -> "TokenizerOptions":
    """Return the options with which only the start of a message is read."""
    limits = options.limits
    return replace(
        options,
        limits=replace(
            limits,
            message_bytes=min(START_BYTES, limits.message_bytes),
            header_bytes=min(START_BYTES, limits.header_bytes),
        ),
    )


def compact(features: Features) -> Features:
    """Return the same features with no more words than their tokens need.

    Of a long text all words are kept for as long as its features; few of them are tokens.
    """
    texts = features.texts
    used = np.unique(np.concatenate([texts.first, texts.second[texts.second >= 0]]))
    place = np.full(len(texts.words) + 1, -1, np.int32)  # the last one stands for no word at all
    place[used] = np.arange(len(used), dtype=np.int32)
    words = tuple([texts.words[at] for at in used.tolist()])
    return replace(features, texts=Texts(words, place[texts.first], place[texts.second]))


def work(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer until there is no more input."""
    options: TokenizerOptions = pickle.loads(_frame(source))  # noqa: S301 - from our parent
    of_start = hurried(options)
    while content := _frame(source):
        how = How(content[0])
        chosen = of_start if How.START in how else options
        features = compact(extract(content[1:], chosen, arriving=True, bare=How.BARE in how))
        answer = pickle.dumps(features, pickle.HIGHEST_PROTOCOL)
        sink.write(framed(len(answer)))
        sink.write(answer)
        sink.flush()


def _frame(source: BinaryIO) -> bytes:
    """Return the next content, nothing at the end of the input."""
    return source.read(int.from_bytes(source.read(4), "big"))


def main() -> None:
    """Work for the process that started us."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICE)
    try:
        work(sys.stdin.buffer, sys.stdout.buffer)
    except BrokenPipeError:  # nobody waits for the answer any more
        os._exit(0)


if __name__ == "__main__":
    main()
