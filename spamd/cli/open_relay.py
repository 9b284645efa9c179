"""The result of the open relay check in words, for `doctor` and `status`."""

from typing import TYPE_CHECKING, assert_never

if TYPE_CHECKING:
    from spamd.relay.outbound.open_relay import ProbeResult

PROBE_TIMEOUT_S = 5.0
"""A command does not wait longer for a next hop that does not answer."""


CURE_OPEN = (
    "set next_hop.xclient and let the next hop take XCLIENT from us, or take our address out of"
    " what it trusts (Postfix: mynetworks)"
)
CURE_NOT_IDENTIFIED = (
    "let the next hop take it from us (Postfix: smtpd_authorized_xclient_hosts,"
    " smtpd_upstream_proxy_protocol), or unset next_hop.xclient and next_hop.proxy_protocol and"
    " take our address out of what it trusts"
)


def relaying_in_words(result: "ProbeResult") -> tuple[str, str]:
    """Return what was found, and the cure, which is empty when there is nothing to cure."""
    from spamd.relay.outbound.open_relay import Relaying

    where, code = result.next_hop, result.reply
    match result.relaying:
        case Relaying.CLOSED:
            return f"{where} refuses to relay mail of unknown clients ({code})", ""
        case Relaying.OPEN:
            return (
                f"OPEN RELAY: {where} relays mail of unknown clients ({code})",
                CURE_OPEN,
            )
        case Relaying.NOT_IDENTIFIED:
            return (
                f"the next hop does not accept the client's address, so it gets no mail: {code}",
                CURE_NOT_IDENTIFIED,
            )
        case Relaying.UNKNOWN:
            asked = f"{where} did not answer the test whether it relays mail of unknown clients"
            return f"{asked} ({code})", "run spamd doctor again when the next hop answers"
        case _:
            assert_never(result.relaying)
