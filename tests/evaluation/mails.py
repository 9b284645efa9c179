"""Small made-up mail for evaluations: spam sells, ham talks about work, both share many words."""

import random
from pathlib import Path

from spamd.evaluation.index import LabelledMail
from spamd.sample import Label

SHARED = [
    "the",
    "and",
    "you",
    "have",
    "this",
    "with",
    "from",
    "our",
    "your",
    "please",
    "will",
    "there",
    "about",
    "when",
    "what",
    "time",
]
HAM = [
    "meeting",
    "agenda",
    "patch",
    "compile",
    "branch",
    "review",
    "minutes",
    "colleague",
    "deadline",
    "release",
]
SPAM = [
    "winner",
    "viagra",
    "casino",
    "prize",
    "lottery",
    "mortgage",
    "refinance",
    "pills",
    "jackpot",
    "bonus",
]


def mail(label: Label, seed: int, mixed: float = 0.15) -> bytes:
    """Return a mail whose words are its label's own, but for a share of the other's."""
    draw = random.Random(f"{label}{seed}")
    mine, other = (SPAM, HAM) if label is Label.SPAM else (HAM, SPAM)
    words = [
        draw.choice(other if draw.random() < mixed else mine) if draw.random() < 0.5 else word
        for word in draw.choices(SHARED, k=40)
    ]
    return (
        f"From: person{seed}@example.org\r\nTo: me@example.net\r\n"
        f"Received: from a.example by b.example; Mon, 1 Jan 2024 10:00:{seed % 60:02} +0000\r\n"
        f"Subject: {draw.choice(mine)} {seed}\r\nX-Route: {label}\r\n\r\n{' '.join(words)}\r\n"
    ).encode()


def mailbox(folder: Path, size: int, mixed: float = 0.15) -> tuple[LabelledMail, ...]:
    """Write mails, ham and spam by turns, and return their index."""
    found = []
    for number in range(size):
        label = Label.SPAM if number % 2 else Label.HAM
        path = folder / f"{number}.eml"
        path.write_bytes(mail(label, number, mixed))
        found.append(LabelledMail(label=label, path=path))
    return tuple(found)
