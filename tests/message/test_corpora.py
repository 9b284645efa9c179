"""Public mail, honest and hostile, goes through without an exception and within bounds.

The hostile is read whole by each run, and compared with itself in a share; so is honest mail read.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path

from spamd.message.features import Features, extract
from spamd.message.spam_fields import strip_and_prepend
from tests.memory import forget_peak, peak_bytes, settled_bytes
from tests.sizes import share

CPU_S = 1.0
"""Most CPU time of one mail, in seconds; the worst one takes about 0.2."""

BARE_CR = re.compile(rb"\r(?!\n)")
BLOCK = b"X-Spam-Status: No, score=0.1\n"


def mails(folder: Path, one_of: int = 1) -> Iterator[tuple[Path, bytes]]:
    """Yield the mails of a corpus, or one of so many of each of its folders."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "index")
    for path in share(files, one_of):
        yield path, path.read_bytes()


def timed(raw: bytes) -> tuple[Features, float]:
    """Read a mail; return what was found, and the CPU time."""
    started = time.process_time()
    found = extract(raw)
    return found, time.process_time() - started


def worst_second(folder: Path, one_of: int = 1) -> tuple[float, Path]:
    """Read the mails of the folder; return the highest CPU time of one, and which it was.

    What takes half of the limit is read three times: a busy machine is not the mail's fault.
    """
    worst = (0.0, folder)
    extract(b"Content-Type: text/plain\n\n" + "Привет".encode("koi8-r") * 20)  # loads what is lazy
    for path, raw in mails(folder, one_of):
        found, seconds = timed(raw)
        if seconds > CPU_S / 2:
            seconds = min(seconds, timed(raw)[1], timed(raw)[1])
        worst = max(worst, (seconds, path))
        assert len(found.texts) == len(found.sample.ids), path
    return worst


def test_hostile_mail_is_read_without_exception_and_in_time(hostile_corpus: Path) -> None:
    seconds, path = worst_second(hostile_corpus)
    assert seconds < CPU_S, path


def test_honest_mail_of_2002_is_read_in_time(spamassassin_corpus: Path) -> None:
    seconds, path = worst_second(spamassassin_corpus, one_of=12)
    assert seconds < CPU_S, path


def test_modern_mail_is_read_in_time(modern_corpus: Path) -> None:
    seconds, path = worst_second(modern_corpus, one_of=4)
    assert seconds < CPU_S, path


def test_hostile_mail_has_the_same_tokens_with_either_line_end(hostile_corpus: Path) -> None:
    for path, raw in mails(hostile_corpus, one_of=4):
        unix = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if len(unix) > 300_000:
            continue
        one, other = extract(unix), extract(unix.replace(b"\n", b"\r\n"))
        assert one.digest == other.digest, path
        assert one.sample.ids.tolist() == other.sample.ids.tolist(), path


def test_hostile_mail_tagged_by_us_keeps_its_bytes_and_its_tokens(hostile_corpus: Path) -> None:
    for path, raw in mails(hostile_corpus, one_of=4):
        if len(raw) > 300_000 or BARE_CR.search(raw) is not None:
            continue  # the relay mends or refuses a bare CR before the mail comes here
        tagged = strip_and_prepend(raw, BLOCK)
        rest = strip_and_prepend(raw, b"")
        between = (b"\n", b"X-Front:\n")  # in front of a text, and of indented lines
        assert tagged in [BLOCK + line + rest for line in between] or (
            tagged.replace(BLOCK, b"", 1) == rest
        ), path
        one, other = extract(raw), extract(tagged)
        assert one.digest == other.digest, path
        assert one.sample.ids.tolist() == other.sample.ids.tolist(), path


def test_memory_stays_bounded_on_hostile_mail(hostile_corpus: Path) -> None:
    rest = settled_bytes()
    for path, raw in mails(hostile_corpus, one_of=4):
        forget_peak()
        extract(raw)
        assert peak_bytes() - rest < 20 * len(raw) + 64 * 1_048_576, path
