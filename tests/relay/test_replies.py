"""THE table: every fault has a row, and no row harms mail or tells how we are built."""

from collections.abc import Iterator

import pytest

import spamd.relay.listener  # noqa: F401 - so that every error of the relay is known
from spamd.errors import (
    NextHopRefused,
    NextHopUnavailable,
    PermanentError,
    SpamdError,
    TemporaryError,
)
from spamd.relay.inbound.delivery import final_replies
from spamd.relay.smtp.replies import TABLE, BadCommandError, FramingError, Reply, reply_to


def family(kind: type[SpamdError]) -> Iterator[type[SpamdError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from family(child)


KINDS = [kind for kind in family(SpamdError) if kind.__module__.startswith("spamd.")]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not NextHopRefused])
def test_every_error_has_a_row_of_its_own(kind: type[SpamdError]) -> None:
    assert kind in TABLE


@pytest.mark.parametrize("kind", list(TABLE))
@pytest.mark.parametrize("in_hand", ["message", "command"])
def test_a_row_is_a_reply_with_an_enhanced_code_of_its_class(
    kind: type[SpamdError], in_hand: str
) -> None:
    answer = reply_to(kind("secret /etc/path"), in_hand=in_hand == "message")
    assert answer.raw.startswith(b"%d %d." % (answer.code, answer.code // 100))
    assert answer.raw.endswith(b"\r\n")
    assert b"secret" not in answer.raw
    assert len(answer.raw) < 512


@pytest.mark.parametrize("kind", list(TABLE))
def test_only_what_the_client_or_the_message_did_wrong_is_permanent(kind: type[SpamdError]) -> None:
    its_fault = issubclass(kind, PermanentError | BadCommandError | FramingError)
    permanent = TABLE[kind].code >= 500
    assert permanent is its_fault or kind is PermanentError


def test_an_error_without_a_row_is_answered_like_its_kind() -> None:
    kind = type("Unheard", (NextHopUnavailable,), {"__module__": "elsewhere"})
    assert reply_to(kind(), in_hand=True).raw.startswith(b"451 4.4.1 ")


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), MemoryError(), TemporaryError("x")])
def test_a_bug_of_ours_is_temporary(error: Exception) -> None:
    assert reply_to(error, in_hand=True).raw.startswith(b"451 4.3.0 ")
    assert reply_to(error, in_hand=False).raw.startswith(b"421 4.3.0 ")


def test_a_refusal_of_the_next_hop_is_passed_on() -> None:
    raw = b"550-5.7.1 one\r\n550 5.7.1 two\r\n"
    assert reply_to(NextHopRefused(raw), in_hand=False) == Reply(550, raw)


def test_one_reply_is_repeated_for_lmtp() -> None:
    one = Reply(250, b"250 ok\r\n")
    assert final_replies([one], 3, lmtp=True) == [one] * 3
    assert final_replies([one], 3, lmtp=False) == [one]
