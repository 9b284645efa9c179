"""The one way bytes become features; scan, train, evaluate and feedback all come through `extract`.

    bytes → parse → Message → read → Reading → tokenize, facts, grams, digest → Features

Total: no content raises. The texts of the tokens are kept as words and places only; the text of a
pair is put together when somebody asks for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
from numpy.typing import NDArray

from spamd.message import facts
from spamd.message.authentication.proof import NO_PROOF, NOTHING_TRUSTED, AuthOptions, Proof, prove
from spamd.message.identity import CUT, digest, rest_of, with_rest
from spamd.message.mime.charset import header_text
from spamd.message.mime.parser import Message, parse
from spamd.message.reading import read
from spamd.message.tokens import grams
from spamd.message.tokens.tokenizer import TokenizerOptions, Tokens, tokenize
from spamd.message.url import canonical_host
from spamd.sample import Sample


class Texts(Sequence[str]):
    """The texts of the tokens of a sample, in its order; each is built when it is asked for."""

    __slots__ = ("first", "second", "words")

    def __init__(
        self, words: tuple[str, ...], first: NDArray[np.int32], second: NDArray[np.int32]
    ) -> None:
        self.words = words
        self.first = first
        self.second = second

    def __len__(self) -> int:
        return len(self.first)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        word = self.words[self.first[index]]
        second = self.second[index]
        return word if second < 0 else f"{word} {self.words[second]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What one message is to the rest of the program.

    sample   what the mathematics sees            texts    texts[i] is the text of sample.ids[i]
    digest   identity of the stable part          id       the id it claims to have, unverified
    defects  names of what was wrong with it      sender_domain  of its From field, "" without one
    proof    who it is from, and what proves it
    """

    sample: Sample
    texts: Texts
    digest: bytes
    id: str | None
    sender_domain: str
    defects: tuple[str, ...]
    size_bytes: int
    proof: Proof = NO_PROOF


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions(TokenizerOptions):
    """All that steers how bytes become features: the tokenizer's options, and whom is believed."""

    auth: AuthOptions = NOTHING_TRUSTED


def believed(options: TokenizerOptions) -> AuthOptions:
    """Return whom options believe about the sender of a mail: nobody, where they don't say."""
    return options.auth if isinstance(options, ReadingOptions) else NOTHING_TRUSTED


_DEFAULTS = ReadingOptions()


def extract(
    raw: bytes, options: TokenizerOptions = _DEFAULTS, *, arriving: bool = False, bare: bool = False
) -> Features:
    """Return the features of a message given as bytes, in whatever state they are.

    `arriving` says that it stands at our door: no field of it that looks like ours is ours, and of
    a mail that is larger than what is read this may be the start: the digest lacks the body.
    `bare`: it comes from a stranger as he wrote it, no server of ours has put a field on top.
    """
    limits = options.limits
    message = parse(raw, limits)
    if arriving and "x-spam-id" in message.topmost:
        message = _without_id(message)
    reading = read(message, limits)
    proof = prove(message, believed(options), bare=bare)
    tokens: Tokens = tokenize(message, reading, options, proof.tokens())
    source = grams.gram_source(message, reading, limits, route="route" not in options.without)
    identity = digest(message, reading)
    if CUT in message.defects and not arriving:
        identity = with_rest(identity, rest_of([raw]))
    return Features(
        sample=Sample(
            ids=tokens.ids,
            occurrences=tokens.occurrences,
            kinds=tokens.kinds,
            discrete=facts.discrete(message, reading, proof.fact),
            continuous=facts.continuous(message, reading, len(tokens.ids)),
            grams=grams.grams(source),
        ),
        texts=Texts(tokens.words, tokens.first, tokens.second),
        digest=identity,
        id=_claimed_id(message),
        sender_domain=_sender_domain(message),
        defects=message.defects + reading.defects,
        size_bytes=len(raw),
        proof=proof,
    )


def _without_id(message: Message) -> Message:
    """Return the message without the fields that claim an id of ours."""
    return replace(
        message,
        fields=tuple(field for field in message.fields if field.name != "x-spam-id"),
        topmost={name: value for name, value in message.topmost.items() if name != "x-spam-id"},
    )


def _claimed_id(message: Message) -> str | None:
    value = message.first("x-spam-id")
    return None if value is None else header_text(value[:256])


def _sender_domain(message: Message) -> str:
    value = header_text((message.first("from") or b"")[:1024])
    _, at, host = value.rpartition("@")
    return canonical_host(host.strip('> \t)"').split(">")[0].strip())[:255] if at else ""
