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
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from spamd.message.features import Features, Texts, extract

if TYPE_CHECKING:
    from spamd.message.tokens.tokenizer import TokenizerOptions

BARE = b"b"
"""Stands in front of a mail as a stranger wrote it; `HANDED_ON` in front of others."""

HANDED_ON = b"h"

NICE = 5
"""Enough that small messages go first, and little enough that large ones get on."""


def framed(size_bytes: int) -> bytes:
    """Return the length that begins a frame of that many bytes."""
    return size_bytes.to_bytes(4, "big")


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
    while content := _frame(source):
        bare = content[:1] == BARE
        features = compact(extract(content[1:], options, arriving=True, bare=bare))
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
