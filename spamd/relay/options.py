"""What an admin can set about the relay: where it listens, its limits, its next hop, its TLS.

Each class is one section of `config/spamd.toml`. A value that can't work raises ValueError with a
sentence that names the key.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from spamd.network.addresses import Listener, parse_listener
from spamd.network.judge import OnFault
from spamd.relay.urls import parse_next_hop

MIB = 1024 * 1024
ZERO_ALLOWED = {
    "workers",
    "max_connections_per_client",
    "max_connections_per_network",
    "command_delay_s",
}


class BareNewlines(StrEnum):
    """What happens to a bare CR or LF in DATA; it is never passed on as it came."""

    NORMALIZE = "normalize"  # LF becomes CRLF, CR a blank, as Postfix does it
    REJECT = "reject"  # 550 5.5.2 at the end of data


class OnOverload(StrEnum):
    """What happens to a large message that gets no worker in time, or takes too long."""

    START = "start"  # judged by its start
    DEFER = "defer"  # 451, the client tries again


class Received(StrEnum):
    """Whether our trace field is added."""

    AUTO = "auto"  # unless the next hop is told the real client by XCLIENT or PROXY
    ON = "on"
    OFF = "off"


class NextHopTls(StrEnum):
    """How the connection to an SMTP next hop is protected."""

    NONE = "none"
    OPPORTUNISTIC = "opportunistic"  # when the next hop offers it, whatever its certificate
    REQUIRED = "required"  # else nothing is sent


class Mixed(StrEnum):
    """How several final replies of an LMTP next hop become the one reply of an SMTP session."""

    DEFER = "defer"  # 451 when they differ: no loss, possibly a repeat
    SINGLE = "single"  # one recipient a transaction, the others get 452 4.5.3: exact, slower


class SeveralVerdicts(StrEnum):
    """What happens to a mail that comes by SMTP for people who judge it differently."""

    SPLIT = "split"  # a transaction at the next hop for each verdict; 451 until all have it
    SITE = "site"  # all get the site's verdict
    SINGLE = "single"  # one person a transaction, the others get 452 4.5.3: exact, slower


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayOptions:
    """Addresses where spamd listens, and limits against hostile clients.

    listen                        addresses for SMTP, "host:port" or "[v6]:port"; loopback so that a
                                  fresh installation is no open relay
    listen_tls                    addresses where TLS begins at once (RFC 8314, port 465)
    listen_lmtp                   addresses for LMTP, "host:port" or "unix:/path"
    workers                       equal processes on the same ports; 0 is one per core. One is
                                  enough for about 100 messages a second
    hostname                      name in greetings and Received; empty: the machine's name
    max_message_bytes             larger messages get 552; 50 MiB is what large providers accept
    max_recipients                accepted recipients of one message, then 452 4.5.3; RFC 5321
                                  §4.5.3.1.8 asks for at least 100
    memory_bytes                  mail held in memory by one worker; above it messages go to disk at
                                  once
    spool_above_bytes             a message larger than this goes to disk while it arrives
    spool_bytes                   mail on disk by one worker; above it 452 4.3.1
    client_share                  what the clients of one network (a /24, a /48 of IPv6) may hold of
                                  memory_bytes and spool_bytes, but always one message; then 452
                                  4.3.1; trusted networks excepted
    spool_directory               folder for mail on disk; empty takes the system's folder for
                                  temporary files
    max_connections               connections to one worker, then 421 4.7.0
    max_connections_per_client    connections from one address (one /64 of IPv6), then 421; trusted
                                  networks excepted; 0: no limit
    max_connections_per_network   connections from one network (a /24, a /48 of IPv6), then 421;
                                  trusted networks excepted; 0: no limit
    max_commands_without_mail     NOOP, RSET, EHLO and the like since the last mail, then 421 4.7.0
                                  (Postfix: 100 junk commands)
    command_delay_s               wait before each command from the 21st without a mail on, four
                                  times that after five wrong ones; a client that comes more often
                                  than 20 times a second without mail waits for its greeting, too.
                                  0: none
    max_bad_commands              wrong commands of a session, then 421 4.7.0 (Postfix: 20)
    command_timeout_s             wait for the next command; RFC 5321 §4.5.3.2.7: at least 5 minutes
    data_timeout_s                wait for the next block of a message; RFC 5321 §4.5.3.2.5: 3
                                  minutes
    data_grace_s                  after this time a message must have come at `data_rate` on average
    data_rate                     octets a second; a modem does 5,000
    session_timeout_s             a session that brings no mail ends after this time
    inspect_timeout_s             time for the verdict; Postfix gives a filter 100 s for everything
    content_timeout_s             time from the end of data to our final reply; RFC 5321 §4.5.3.2.6:
                                  the client waits 10 minutes
    tls_handshake_s               time for the TLS handshake
    proxy_header_s                time for the PROXY header; the client's proxy sends it at once
    drain_s                       a stopping worker finishes its messages within this time
    bare_newline                  bare CR or LF in DATA: "normalize" or "reject"
    on_fault                      a message that could not be judged: "accept" unscanned or "defer"
    on_overload                   a large message that is not read in time, or takes too long:
                                  "start" (judged by its start) or "defer"
    several_verdicts              a mail by SMTP for several people whose own verdicts differ
                                  (users.enabled): "split" delivers it in a transaction for each
                                  verdict, the client reads 451 unless all were taken, and a retry
                                  repeats only what is missing; "site" gives all the site's verdict;
                                  "single" takes one person a transaction (452 4.5.3 for the others,
                                  whom many servers try only minutes later)
    most_transactions             transactions into which one mail is split, at most; who is left
                                  gets the site's verdict in the last one
    trusted_networks              networks that may name another client by XCLIENT, XFORWARD or
                                  PROXY
    proxy_protocol                connections from trusted networks begin with a PROXY header
    report_networks               networks whose clients may report to feedback.spam_addresses and
                                  ham_addresses, besides those who logged in; the real client
                                  counts, as XCLIENT, XFORWARD or PROXY name it
    report_receipts               a report is answered with a short mail to its envelope sender, by
                                  the next hop; the SMTP reply says the same
    received                      our Received field: "auto", "on" or "off"
    """

    listen: tuple[str, ...] = ("127.0.0.1:8025",)
    listen_tls: tuple[str, ...] = ()
    listen_lmtp: tuple[str, ...] = ()
    workers: int = 1
    hostname: str = ""
    max_message_bytes: int = 50 * MIB
    max_recipients: int = 1000
    memory_bytes: int = 64 * MIB
    spool_above_bytes: int = 1 * MIB
    spool_bytes: int = 2048 * MIB
    client_share: float = 0.25
    spool_directory: str = ""
    max_connections: int = 1000
    max_connections_per_client: int = 100
    max_connections_per_network: int = 250
    max_commands_without_mail: int = 100
    command_delay_s: float = 0.05
    max_bad_commands: int = 20
    command_timeout_s: float = 300.0
    data_timeout_s: float = 180.0
    data_grace_s: float = 600.0
    data_rate: float = 500.0
    session_timeout_s: float = 3600.0
    inspect_timeout_s: float = 30.0
    content_timeout_s: float = 540.0
    tls_handshake_s: float = 30.0
    proxy_header_s: float = 5.0
    drain_s: float = 30.0
    bare_newline: BareNewlines = BareNewlines.NORMALIZE
    on_fault: OnFault = OnFault.ACCEPT
    on_overload: OnOverload = OnOverload.START
    several_verdicts: SeveralVerdicts = SeveralVerdicts.SPLIT
    most_transactions: int = 20
    trusted_networks: tuple[str, ...] = ()
    proxy_protocol: bool = False
    report_networks: tuple[str, ...] = ()
    report_receipts: bool = True
    received: Received = Received.AUTO

    def __post_init__(self) -> None:
        _use_enum(
            self,
            bare_newline=BareNewlines,
            on_fault=OnFault,
            on_overload=OnOverload,
            several_verdicts=SeveralVerdicts,
            received=Received,
        )
        _ = self.listeners  # each is an address
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            least = 0 if name in ZERO_ALLOWED else 1e-3
            if isinstance(value, int | float) and not isinstance(value, bool) and value < least:
                raise ValueError(f"relay.{name} must be above {int(least)}, not {value}")
        self._check_room()
        if self.proxy_protocol and not self.trusted_networks:
            raise ValueError("relay.proxy_protocol needs relay.trusted_networks: who may send it")
        for key in ("trusted_networks", "report_networks"):
            for network in getattr(self, key):
                try:
                    ipaddress.ip_network(network)
                except ValueError as error:
                    raise ValueError(f"relay.{key}: {error}") from None

    def _check_room(self) -> None:
        """Refuse limits that let no message in, or nobody be limited."""
        if self.max_message_bytes > self.spool_bytes:
            raise ValueError("relay.spool_bytes must be at least relay.max_message_bytes")
        if self.client_share > 1:
            raise ValueError(f"relay.client_share must be at most 1, not {self.client_share}")
        if self.spool_above_bytes > self.memory_bytes:
            raise ValueError("relay.memory_bytes must be at least relay.spool_above_bytes")

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Return every address to listen on, with what is spoken there."""
        return (
            *(parse_listener(text, key="relay.listen", unix=False) for text in self.listen),
            *(
                parse_listener(text, key="relay.listen_tls", tls=True, unix=False)
                for text in self.listen_tls
            ),
            *(
                parse_listener(text, key="relay.listen_lmtp", lmtp=True)
                for text in self.listen_lmtp
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NextHopOptions:
    """The next hop: where mail is delivered. With maildir:// no other server is needed.

    url                  where mail goes: smtp://host:port, lmtp://host:port, lmtp+unix:///path,
                         maildir:///path (with {address}, {local} or {domain} in it, one each)
    fallback             tried in this order when `url` can't be reached
    routes               recipient domain → URL, for mail that goes elsewhere; ".example.org" is
                         every name below example.org
    tls                  STARTTLS towards smtp:// next hops: "none", "opportunistic" or "required"
    tls_verify           with "required", the certificate must be valid for the host's name
    tls_ca_file          certificates to trust; empty takes the system's
    xclient              tell the next hop the real client by XCLIENT; if it refuses that, it
                         gets no mail
    xforward             tell it by XFORWARD, for its log only, when it offers that
    proxy_protocol       begin each connection with a PROXY v2 header that names the client; if it
                         is not understood, no mail
    own_helo             greet the next hop with spamd's own name instead of the client's
    mixed_replies        SMTP in, LMTP out, recipients answered differently: "defer" or "single"
    auth                 pass AUTH through, over TLS only, when the next hop offers it
    maildir_create       make missing Maildirs; of a URL with {address}, {local} or {domain} only in
                         folders of that name that there are: others get 550 5.1.1
    maildir_junk         folder for mail judged spam, a Maildir++ folder inside the Maildir
    connect_timeout_s    wait for the connection
    greeting_timeout_s   wait for its banner and its answer to EHLO
    command_timeout_s    wait for its answer to MAIL, RCPT, RSET; a client waits 5 minutes
    data_timeout_s       wait for its 354; the client has got one already
    block_timeout_s      wait until it takes a block of the message; RFC 5321 §4.5.3.2.5: 3 minutes
    keepalive_s          a NOOP this often while a message arrives or is judged; Postfix ends
                         sessions idle for 300 s
    """

    url: str = "maildir://./var/mail"
    fallback: tuple[str, ...] = ()
    routes: Mapping[str, str] = field(default_factory=dict)
    tls: NextHopTls = NextHopTls.OPPORTUNISTIC
    tls_verify: bool = True
    tls_ca_file: str = ""
    xclient: bool = False
    xforward: bool = True
    proxy_protocol: bool = False
    own_helo: bool = False
    mixed_replies: Mixed = Mixed.DEFER
    auth: bool = False
    maildir_create: bool = True
    maildir_junk: str = "Junk"
    connect_timeout_s: float = 30.0
    greeting_timeout_s: float = 60.0
    command_timeout_s: float = 240.0
    data_timeout_s: float = 110.0
    block_timeout_s: float = 170.0
    keepalive_s: float = 60.0

    def __post_init__(self) -> None:
        _use_enum(self, tls=NextHopTls, mixed_replies=Mixed)
        parse_next_hop(self.url, key="next_hop.url")
        for url in self.fallback:
            parse_next_hop(url, key="next_hop.fallback")
        for domain, url in self.routes.items():
            parse_next_hop(url, key=f"next_hop.routes.{domain}")
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if isinstance(value, int | float) and not isinstance(value, bool) and value <= 0:
                raise ValueError(f"next_hop.{name} must be above 0, not {value}")
        if self.xclient and self.proxy_protocol:
            raise ValueError("next_hop.xclient and next_hop.proxy_protocol can't both be set")
        for url in (self.url, *self.fallback, *self.routes.values()):
            if self.proxy_protocol and url.startswith("lmtp+unix:"):
                raise ValueError(
                    f"next_hop.proxy_protocol does not work with a UNIX socket ({url})"
                )
        if not self.maildir_junk.isprintable() or set(self.maildir_junk) & set("/\\"):
            raise ValueError("next_hop.maildir_junk is the name of a folder, without slashes")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsOptions:
    """The certificate of spamd, for STARTTLS and TLS from the start; read again on SIGHUP.

    certificate       PEM file with the certificate and its chain; empty: no TLS is offered
    key               PEM file with its key; empty when the certificate's file holds it
    minimum_version   "1.2" or "1.3"; 1.0 and 1.1 are dead (RFC 8996)
    required          refuse mail in clear with 530
    """

    certificate: str = ""
    key: str = ""
    minimum_version: str = "1.2"
    required: bool = False

    def __post_init__(self) -> None:
        if self.minimum_version not in {"1.2", "1.3"}:
            raise ValueError('tls.minimum_version is "1.2" or "1.3"')
        if (self.required or self.key) and not self.certificate:
            raise ValueError("tls.required and tls.key need tls.certificate")


def _use_enum(options: object, **kinds: type[StrEnum]) -> None:
    """Turn plain text into the members it names; options may come from code too."""
    for name, kind in kinds.items():
        object.__setattr__(options, name, kind(getattr(options, name)))
