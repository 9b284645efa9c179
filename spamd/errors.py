"""The exception tree of spamd.

    SpamdError
    ├─ ConfigError              start-up only: one sentence with file and key, exit 78
    ├─ TemporaryError           StorageUnavailable │ NextHopUnavailable │ DeadlineExceeded
    │                           │ Overloaded ─ SpoolFull
    ├─ PermanentError           MessageTooLarge │ RoutingLoop │ BareNewline │ MessageRejected
    ├─ NextHopRefused(reply)    passed on word for word
    └─ ProtocolError            LocalProtocolError (our bug)
                                │ RemoteProtocolError (the peer broke the rules)

Beside it stands AccountError, of the accounts that are watched.

The content of a mail is never an error: a broken field, charset or boundary becomes a defect of the
parsed message. What an SMTP client sees for each of these stands in one table,
`relay/smtp/replies.py`.
"""


class SpamdError(Exception):
    """The root of everything spamd raises on purpose."""


class AccountError(Exception):
    """A place where people keep mail can't be used; the text says in words what to do about it.

    Not a `SpamdError`: it never meets an SMTP client. `shown` is whether the text names nobody's
    folders or mail, only account and server.
    """

    shown = True


class ConfigError(SpamdError):
    """A setting, file or argument stops the start; the text names file and key in one sentence."""


class TemporaryError(SpamdError):
    """It may work later; a mail in hand is answered with 4yz and stays with the client."""


class StorageUnavailable(TemporaryError):
    """The database did not answer, or refused for now."""


class NextHopUnavailable(TemporaryError):
    """The next hop can't be reached, went silent or lost the connection."""


class DeadlineExceeded(TemporaryError):
    """The time set aside for one message is used up."""


class Overloaded(TemporaryError):
    """A limit on connections or memory pushes back."""


class SpoolFull(Overloaded):
    """No room on disk or in the budget for this message."""


class PermanentError(SpamdError):
    """Trying again won't help; the client gets 5yz."""


class MessageTooLarge(PermanentError):
    """The message is larger than `relay.max_message_bytes` or the next hop's SIZE."""


class RoutingLoop(PermanentError):
    """The message has passed too many hops."""


class BareNewline(PermanentError):
    """A bare CR or LF in DATA while `relay.bare_newline` is "reject"."""


class MessageRejected(PermanentError):
    """The decision says reject."""


class NextHopRefused(SpamdError):
    """The next hop answered with 4yz or 5yz; `reply` is passed on word for word."""

    def __init__(self, reply: bytes) -> None:
        super().__init__(reply.decode("ascii", "replace").strip())
        self.reply = reply


class ProtocolError(SpamdError):
    """Somebody broke the rules of SMTP or LMTP."""


class LocalProtocolError(ProtocolError):
    """We did: a bug of ours."""


class RemoteProtocolError(ProtocolError):
    """The peer did."""
