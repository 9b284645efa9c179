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
from spamd.relay.inbound.groups import final_replies
from spamd.relay.smtp.replies import (
    OK,
    SYNTAX,
    TABLE,
    TRANSACTION_OPEN,
    BadCommandError,
    FramingError,
    Reply,
    needs_logging,
    reply,
    reply_to,
)


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


LATER = "please try again later"
WORDS = {
    "SpamdError": ("451 4.3.0", "421 4.3.0", f"Temporary error, {LATER}"),
    "ConfigError": ("451 4.3.0", "421 4.3.0", f"Temporary error, {LATER}"),
    "TemporaryError": ("451 4.3.0", "421 4.3.0", f"Temporary error, {LATER}"),
    "StorageUnavailable": ("451 4.3.0", "421 4.3.0", f"Temporary error, {LATER}"),
    "LocalProtocolError": ("451 4.3.0", "421 4.3.0", f"Temporary error, {LATER}"),
    "ProtocolError": ("451 4.3.0", "421 4.3.0", f"Temporary error, {LATER}"),
    "RemoteProtocolError": ("451 4.3.0", "421 4.3.0", f"Temporary error, {LATER}"),
    "PermanentError": ("451 4.3.0", "421 4.3.0", f"Temporary error, {LATER}"),
    "DeadlineExceeded": ("451 4.3.0", "421 4.3.0", f"Busy, {LATER}"),
    "NextHopUnavailable": ("451 4.4.1", "421 4.4.1", f"Mail can't be accepted now, {LATER}"),
    "LoopsBack": ("451 4.4.6", "421 4.4.6", "Mail loops back to this server"),
    "NextHopLost": ("451 4.4.2", "421 4.4.2", f"Connection lost, {LATER}"),
    "NextHopTlsFailed": ("451 4.7.5", "421 4.7.5", f"No secure connection, {LATER}"),
    "ClientNotIdentified": ("451 4.3.5", "421 4.3.5", f"Mail can't be accepted now, {LATER}"),
    "Overloaded": ("451 4.3.2", "421 4.3.2", f"Busy, {LATER}"),
    "SpoolFull": ("452 4.3.1", "452 4.3.1", f"Insufficient storage, {LATER}"),
    "TooManyConnections": ("421 4.7.0", "421 4.7.0", "Too many connections"),
    "ShuttingDown": ("421 4.3.2", "421 4.3.2", f"Shutting down, {LATER}"),
    "TooManyCommands": ("421 4.7.0", "421 4.7.0", "Too many commands without a message"),
    "ClientTimeoutError": ("421 4.4.2", "421 4.4.2", "Timeout, closing the connection"),
    "BadCommandError": ("500 5.5.2", "500 5.5.2", "Syntax error: not an SMTP command line"),
    "FramingError": ("501 5.5.4", "501 5.5.4", "Size expected after BDAT, closing the connection"),
    "MessageTooLarge": ("552 5.3.4", "552 5.3.4", "Message too large"),
    "RoutingLoop": ("554 5.4.6", "554 5.4.6", "Routing loop: too many Received fields"),
    "BareNewline": (
        "550 5.5.2",
        "550 5.5.2",
        "Bare CR or LF in the message: lines end in CRLF",
    ),
    "MessageRejected": ("550 5.7.1", "550 5.7.1", "Rejected as spam"),
}
"""What a client reads of each fault: with a message in hand, between commands, and the words."""


@pytest.mark.parametrize("kind", list(TABLE))
def test_every_reply_is_word_for_word_what_senders_and_their_logs_know(
    kind: type[SpamdError],
) -> None:
    in_hand, at_command, text = WORDS[kind.__name__]

    assert reply_to(kind("x"), in_hand=True).raw == f"{in_hand} {text}\r\n".encode()
    assert reply_to(kind("x"), in_hand=False).raw == f"{at_command} {text}\r\n".encode()
    assert reply_to(kind("x"), in_hand=True).code == int(in_hand[:3])


def test_the_log_tells_of_what_is_ours_or_the_next_hops_and_not_of_what_clients_do() -> None:
    told = {kind.__name__ for kind in TABLE if needs_logging(kind("x"))}

    assert told == {
        *("NextHopUnavailable", "NextHopLost", "NextHopTlsFailed", "ClientNotIdentified"),
        *("LoopsBack", "ProtocolError", "LocalProtocolError", "RemoteProtocolError"),
        *("BadCommandError", "FramingError", "StorageUnavailable", "SpoolFull"),
    }
    assert needs_logging(NextHopRefused(b"550 no\r\n"))
    assert needs_logging(ZeroDivisionError("a bug"))


@pytest.mark.parametrize(
    ("code", "accepted", "permanent"),
    [
        (199, False, False),
        (200, True, False),
        (250, True, False),
        (299, True, False),
        (300, False, False),
        (354, False, False),
        (451, False, False),
        (499, False, False),
        (500, False, True),
        (554, False, True),
    ],
)
def test_the_first_digit_of_a_reply_says_what_it_means(
    code: int,
    accepted: bool,  # noqa: FBT001 - columns of the table
    permanent: bool,  # noqa: FBT001
) -> None:
    answer = reply(code, "words")

    assert (answer.accepted, answer.permanent) == (accepted, permanent)
    assert (answer.code, answer.raw) == (code, b"%d words\r\n" % code)


def test_a_reply_that_ends_the_session_keeps_its_words_in_every_line() -> None:
    ended = Reply(550, b"550-5.7.1 one 550\r\n550 5.7.1 two\r\n").as_421

    assert ended == Reply(421, b"421-5.7.1 one 550\r\n421 5.7.1 two\r\n")


def test_the_replies_to_commands_are_those_of_the_rfcs() -> None:
    assert OK.raw == b"250 2.0.0 OK\r\n"
    assert SYNTAX.raw == b"501 5.5.4 Syntax error in parameters\r\n"
    assert TRANSACTION_OPEN.raw == b"503 5.5.1 Transaction already begun\r\n"
