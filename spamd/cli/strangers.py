"""What a next hop does with strangers' mail for elsewhere, in words; for `doctor` and `status`."""

from typing import TYPE_CHECKING, assert_never

if TYPE_CHECKING:
    from spamd.relay.outbound.open_relay import Seen

NEXT_HOP_S = 5.0
"""A command does not wait longer for a next hop that does not answer."""


CLOSE = (
    "set next_hop.xclient and let the next hop take XCLIENT from us, or take our address out of"
    " what it trusts (Postfix: mynetworks)"
)
TELL = (
    "let the next hop take it from us (Postfix: smtpd_authorized_xclient_hosts,"
    " smtpd_upstream_proxy_protocol), or unset next_hop.xclient and next_hop.proxy_protocol and"
    " take our address out of what it trusts"
)


def stranger_words(seen: "Seen") -> tuple[str, str]:
    """Return what was seen, and the cure, which is empty when there is nothing to cure."""
    from spamd.relay.outbound.open_relay import Door

    where = seen.next_hop
    match seen.door:
        case Door.CLOSED:
            return f"{where} refuses strangers' mail for elsewhere ({seen.reply})", ""
        case Door.OPEN:
            return f"OPEN RELAY: {where} takes strangers' mail for elsewhere ({seen.reply})", CLOSE
        case Door.UNTOLD:
            return f"no mail is taken: {seen.reply}", TELL
        case Door.UNKNOWN:
            asked = f"{where} could not be asked what it does with strangers' mail for elsewhere"
            return f"{asked} ({seen.reply})", "ask again when it answers"
        case _:
            assert_never(seen.door)
