"""Sets of UIDs as short text, as in IMAP commands: "1:4,7"."""

from collections.abc import Iterable, Iterator


def pack(uids: Iterable[int]) -> str:
    """Return ascending UIDs as a sequence set; no UIDs give an empty text."""
    runs: list[list[int]] = []
    for uid in uids:
        if runs and uid == runs[-1][1] + 1:
            runs[-1][1] = uid
        else:
            runs.append([uid, uid])
    return ",".join(str(low) if low == high else f"{low}:{high}" for low, high in runs)


def unpack(text: str) -> Iterator[int]:
    """Yield the UIDs of a sequence set made by `pack`."""
    for run in filter(None, text.split(",")):
        low, _, high = run.partition(":")
        yield from range(int(low), int(high or low) + 1)
