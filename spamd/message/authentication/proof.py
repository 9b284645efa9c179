"""What proves that a mail is from whom its From field names.

    proof = prove(message, AuthOptions(trusted=("mx.example.org",)), bare=False)
    proof.by        "dmarc", "dkim", "spf", "arc": how the From domain is proven; "": it is not

Only what our own servers say counts, and a stranger may write their name into a field of his own.
So it also counts where a field stands (`route`): above the Received field of our border, where no
stranger can write; right below it, where filters of many mail servers write (Postfix's milters,
Gmail), only if the settings say that our servers take out what others wrote under their name
(`auth.removes_forged`), as RFC 8601 §5 asks of them. We take out nothing ourselves: a field that
is not believed does no harm, and the mail stays as its sender signed it.

A method proves a domain that is aligned with the one of the From field, as DMARC's relaxed mode has
it: both were registered as one. A DMARC result of "fail" outweighs all else. ARC-Authentication-
Results count (RFC 8617) if a server of ours says that the chain is intact, and its last seal is
that of a named server: whoever sealed last vouches for the mail as it is.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from spamd.message.authentication.results import Result, Results, results_of
from spamd.message.authentication.route import Route, networks_of, route_of
from spamd.message.authentication.sender import (
    Sender,
    domain_name,
    same_organisation,
    sender_of,
)
from spamd.message.mime.parser import Message

_METHODS = ("spf", "dkim", "dmarc", "arc")
_BAD = ("fail", "softfail", "permerror", "policy")
_MOST_DOMAINS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthOptions:
    """What is believed about who a mail is from. Nothing, unless servers are named.

    trusted         names (authserv-id) of servers whose Authentication-Results are believed, as
                    these fields begin: "mx.example.org". Their fields count above the Received
                    field of the server that took the mail from outside
    removes_forged  the servers of `trusted` take out Authentication-Results that others wrote under
                    their name (RFC 8601 §5; OpenDKIM, OpenDMARC and rspamd do so for their own
                    name): then these fields also count right below that Received field, where
                    filters of Postfix and Sendmail put them, and to spamd as a milter
    networks        networks of own servers that hand mail on among themselves; this machine is one
    own_domains     domains of our own users: mail from there is never let in by a list without
                    proof, even where an entry asks for none
    """

    trusted: tuple[str, ...] = ()
    removes_forged: bool = False
    networks: tuple[str, ...] = ()
    own_domains: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.trusted:
            if not name.strip() or any(sign in name for sign in ' ;"'):
                raise ValueError(f"trusted: {name!r} is no name of a server")
        for domain in self.own_domains:
            if not domain_name(domain):
                raise ValueError(f"own_domains: {domain!r} is no domain")
        try:
            networks_of(self.networks)
        except ValueError as error:
            raise ValueError(f"networks: {error}") from error

    def owns(self, domain: str) -> bool:
        """Tell whether a domain is one of ours, or below one."""
        owned = map(domain_name, self.own_domains)
        return any(domain == own or domain.endswith(f".{own}") for own in owned)


NOTHING_TRUSTED = AuthOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Who a mail says it is from, and what is known of it.

    sender    whom its From fields name
    by        the method that proves the domain of the From field, "" when nothing does
    results   what our servers say of each method: ("dkim", "pass") …; empty: they say nothing
    domains   those proven, aligned or not
    client    the address of who handed the mail to our border, "" when it is not known
    name      the name that DNS has for it
    login     it had logged in
    list_id   of the mailing list that it says it comes by
    """

    sender: Sender = field(default_factory=Sender)
    by: str = ""
    results: tuple[tuple[str, str], ...] = ()
    domains: tuple[str, ...] = ()
    client: str = ""
    name: str = ""
    login: bool = False
    list_id: str = ""

    @property
    def disproved(self) -> bool:
        """Whether what our servers say speaks against the domain of the From field.

        Where one method passed for another domain only, as for mail by way of a list, that says
        nothing, unless the domain's own policy (DMARC) does.
        """
        return not self.by and (("dmarc", "fail") in self.results or self.fact == "fail")

    @property
    def fact(self) -> str:
        """Return the value of the fact `authentication`."""
        found = {result for _, result in self.results} - {"none", "temperror", "neutral"}
        if self.by:
            return "pass"
        if not found:
            return "none"
        return "mixed" if "pass" in found else "fail"

    def tokens(self) -> list[str]:
        """Return what classifiers count of it; nothing where no server of ours says something."""
        found = [f"auth:{method}={result}" for method, result in self.results]
        if self.results:
            found.append("auth:proven" if self.by else "auth:unproven")
        if self.by:
            found.append(f"auth:@{self.sender.domain[-56:]}")
        if self.login:
            found.append("auth:login")
        return found

    def words(self) -> str:
        """Return it as one clause for people."""
        if self.by:
            return f"{self.sender.address} is proven by {self.by}"
        if self.sender.trouble:
            return f"no sender that could be proven: {self.sender.trouble}"
        if not self.results:
            return f"nothing is known to prove {self.sender.address}"
        said = ", ".join(f"{method}={result}" for method, result in self.results)
        return f"{self.sender.address} is not proven: {said}"


NO_PROOF = Proof()


def prove(message: Message, options: AuthOptions = NOTHING_TRUSTED, *, bare: bool = False) -> Proof:
    """Return who a mail is from and what proves it; total.

    `bare`: a stranger handed it over, and no server of ours has written into it.
    """
    sender = sender_of(message)
    route = route_of(message.fields, options.networks, bare=bare)
    list_id = _list_id(message.first("list-id") or b"")
    if not options.trusted:
        return Proof(
            sender=sender,
            client=route.client.address,
            name=route.client.name,
            list_id=list_id,
        )
    believed = list(_believed(route, options))
    said = _said(believed)
    domains = tuple(dict.fromkeys(domain for _, domain in _proven(said)))[:_MOST_DOMAINS]
    by = _by(sender.domain, said) or _by_arc(sender.domain, said, message, options)
    return Proof(
        sender=sender,
        by=by,
        results=tuple((method, _summed(said[method])) for method in _METHODS if method in said),
        domains=domains,
        client=route.client.address,
        name=route.client.name,
        login=route.client.login,
        list_id=list_id,
    )


def _believed(route: Route, options: AuthOptions) -> Iterator[Results]:
    """Yield what our own servers say, topmost first."""
    trusted = {name.lower() for name in options.trusted}
    places = (route.above, route.below if options.removes_forged else ())
    for each in (each for fields in places for each in fields):
        if each.name == "authentication-results":
            results = results_of(each.value)
            if results is not None and results.server in trusted:
                yield results


Said = dict[str, Sequence[Result]]
"""The results of each method, as the topmost field says that speaks of it."""


def _said(believed: Iterable[Results]) -> Said:
    said: Said = {}
    for each in believed:
        of_field: dict[str, list[Result]] = {}
        for result in each.results:
            if result.method in _METHODS:
                of_field.setdefault(result.method, []).append(result)
        for method, results in of_field.items():
            said.setdefault(method, results)
    return said


def _summed(results: Sequence[Result]) -> str:
    """Return one word for several results: the best of several signatures."""
    words = [result.result for result in results]
    return next((word for word in ("pass", *_BAD) if word in words), words[0])[:12]


def _proven(said: Said) -> Iterator[tuple[str, str]]:
    """Yield each method that passed with the domain that it proves."""
    names = {
        "dmarc": ("header.from",),
        "dkim": ("header.d", "header.i"),
        "spf": ("smtp.mailfrom",),
    }
    for method, properties in names.items():
        for result in said.get(method, ()):
            if result.result == "pass":
                value = next(filter(None, map(result.of, properties)), "")
                if domain := domain_name(value.rpartition("@")[2]):
                    yield method, domain


def _by(domain: str, said: Said) -> str:
    """Return the method that proves a domain, "" when none does."""
    if not domain or "fail" in {result.result for result in said.get("dmarc", ())}:
        return ""
    for method, proven in _proven(said):
        aligned = domain == proven if method == "dmarc" else same_organisation(proven, domain)
        if aligned:
            return method
    return ""


def _by_arc(domain: str, said: Said, message: Message, options: AuthOptions) -> str:
    """Return "arc" if the server that sealed last is a named one, and proved the domain."""
    if "pass" not in {result.result for result in said.get("arc", ())}:
        return ""
    seals = {_tags(value).get("i", ""): _tags(value) for value in message.all("arc-seal")[:50]}
    last = max((int(number) for number in seals if number.isdecimal()), default=0)
    sealer = domain_name(seals.get(str(last), {}).get("d", ""))
    trusted = {name.lower() for name in options.trusted}
    for value in message.all("arc-authentication-results")[:50]:
        number, _, rest = value.partition(b";")
        if number.replace(b" ", b"").strip() != b"i=%d" % last:
            continue
        results = results_of(rest)
        if results is None or results.server not in trusted:
            return ""
        vouched = same_organisation(sealer, domain_name(results.server))
        return "arc" if vouched and _by(domain, _said([results])) else ""
    return ""


def _tags(value: bytes) -> dict[str, str]:
    """Return the tags of a seal (RFC 6376 §3.2)."""
    pairs = (each.partition(b"=") for each in value[:4_000].split(b";"))
    return {
        name.strip().decode("ascii", "replace"): text.strip().decode("ascii", "replace")
        for name, _, text in pairs
    }


def _list_id(value: bytes) -> str:
    """Return the id of a mailing list (RFC 2919) in its one spelling, "" without one."""
    text = value[:1_000].decode("utf-8", "replace")
    _, opened, rest = text.rpartition("<")
    return domain_name(rest.partition(">")[0].strip()) if opened else domain_name(text.strip())
