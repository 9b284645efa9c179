"""`spamd allow` and `spamd deny`: whose mail is let in or kept out, whatever its words say."""

import re
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from spamd import resources
from spamd.cli.arguments import JsonOption
from spamd.cli.exits import Exit, UsageProblem
from spamd.cli.help import Grouped, Plain
from spamd.cli.mail.owners import owner_named
from spamd.cli.output import fault, json_line, line
from spamd.cli.session import Session, awaited, session
from spamd.lists.entry import Effect, EntryError
from spamd.wording import counted, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spamd.lists.entry import Entry

allow = typer.Typer(
    help="Let in mail of senders that prove who they are.", rich_markup_mode=None, cls=Grouped
)
deny = typer.Typer(help="Keep out mail of senders.", rich_markup_mode=None, cls=Grouped)

NamesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME",
        help="An address, a domain (with all below), a network, list:LIST-ID, to:RECIPIENT.",
    ),
]
UserOption = Annotated[str, typer.Option("--user", metavar="USER", help="For this user only.")]
DomainOption = Annotated[
    str, typer.Option("--domain", metavar="DOMAIN", help="For the users of this domain only.")
]
ExpiresOption = Annotated[
    str,
    typer.Option("--expires", metavar="WHEN", help="Until then: 12h, 30d, 2027-01-31."),
]
UnprovenOption = Annotated[
    bool,
    typer.Option(
        "--unproven", help="Also mail that nothing proves to be from there: anybody can write that."
    ),
]

_SPAN = re.compile(r"(\d{1,5})([hd])")


@allow.command("add", cls=Plain)
def allow_add(
    context: typer.Context,
    names: NamesArgument,
    user: UserOption = "",
    domain: DomainOption = "",
    expires: ExpiresOption = "",
    *,
    unproven: UnprovenOption = False,
    as_json: JsonOption = False,
) -> int:
    """Let in mail of a sender that is proven.

    By DMARC, DKIM or SPF, or by the client's network. auth.trusted must name the server whose word
    counts. An entry takes the place of one for the same name. See docs/lists.md.
    """
    here, owner = session(context), owner_named(context, user, domain)
    until = _until(context, expires)
    with _usage(context):
        return awaited(
            _add(here, Effect.ALLOW, names, owner, until, unproven=unproven, as_json=as_json)
        )


@deny.command("add", cls=Plain)
def deny_add(
    context: typer.Context,
    names: NamesArgument,
    user: UserOption = "",
    domain: DomainOption = "",
    expires: ExpiresOption = "",
    *,
    as_json: JsonOption = False,
) -> int:
    """Mark mail of a sender as spam.

    It is refused where the surest spam is refused. An entry takes the place of one for the same
    name. See docs/lists.md.
    """
    here, owner = session(context), owner_named(context, user, domain)
    until = _until(context, expires)
    with _usage(context):
        return awaited(
            _add(here, Effect.DENY, names, owner, until, unproven=False, as_json=as_json)
        )


@allow.command("remove", cls=Plain)
def allow_remove(
    context: typer.Context,
    names: NamesArgument,
    user: UserOption = "",
    domain: DomainOption = "",
    *,
    as_json: JsonOption = False,
) -> int:
    """Remove entries that let in."""
    owner = owner_named(context, user, domain)
    with _usage(context):
        return awaited(_remove(session(context), Effect.ALLOW, names, owner, as_json=as_json))


@deny.command("remove", cls=Plain)
def deny_remove(
    context: typer.Context,
    names: NamesArgument,
    user: UserOption = "",
    domain: DomainOption = "",
    *,
    as_json: JsonOption = False,
) -> int:
    """Remove entries that keep out."""
    owner = owner_named(context, user, domain)
    with _usage(context):
        return awaited(_remove(session(context), Effect.DENY, names, owner, as_json=as_json))


@allow.command("list", cls=Plain)
def allow_list(
    context: typer.Context,
    user: UserOption = "",
    domain: DomainOption = "",
    *,
    as_json: JsonOption = False,
) -> None:
    """List the entries that let in.

    Of all; or of a user, or a domain.
    """
    owner = owner_named(context, user, domain)
    awaited(_list(session(context), Effect.ALLOW, owner or None, as_json=as_json))


@deny.command("list", cls=Plain)
def deny_list(
    context: typer.Context,
    user: UserOption = "",
    domain: DomainOption = "",
    *,
    as_json: JsonOption = False,
) -> None:
    """List the entries that keep out.

    Of all; or of a user, or a domain.
    """
    owner = owner_named(context, user, domain)
    awaited(_list(session(context), Effect.DENY, owner or None, as_json=as_json))


@contextmanager
def _usage(context: typer.Context) -> "Iterator[None]":
    """Tell of an entry that can't be as of wrong arguments."""
    try:
        yield
    except EntryError as error:
        raise UsageProblem(str(error), context) from error


def _until(context: typer.Context, text: str) -> datetime | None:
    """Return when an entry expires.

    Raises:
        UsageProblem: the text says no time.
    """
    if not text:
        return None
    now = datetime.now(UTC)
    if span := _SPAN.fullmatch(text):
        return now + timedelta(**{{"h": "hours", "d": "days"}[span[2]]: int(span[1])})
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageProblem(f"--expires {text!r} is neither 12h, 30d nor a date", context) from None
    return time.astimezone(UTC)


async def _add(
    here: Session,
    effect: Effect,
    names: "Sequence[str]",
    owner: str,
    expires: datetime | None,
    *,
    unproven: bool,
    as_json: bool,
) -> int:
    async with resources.open_store(here.settings) as store:
        book = resources.list_book(here.settings, store)
        added = [
            await book.add(effect, name, owner=owner, unproven=unproven, expires=expires)
            for name in names
        ]
    if as_json:
        json_line({"entries": [entry_json(entry) for entry in added]})
    else:
        for entry in added:
            line(_shown(entry))
    if effect is Effect.ALLOW and not here.settings.auth.trusted and not unproven:
        fault("auth.trusted names no server yet: no sender can be proven (docs/lists.md)")
    return Exit.DONE


async def _remove(
    here: Session, effect: Effect, names: "Sequence[str]", owner: str, *, as_json: bool
) -> int:
    async with resources.open_store(here.settings) as store:
        book = resources.list_book(here.settings, store)
        removed = {name: await book.remove(effect, name, owner=owner) for name in names}
    done = sum(removed.values())
    if as_json:
        json_line({"removed": done})
    else:
        line(f"{counted(done, 'entry')} removed" if done == 1 else f"{done} entries removed")
    for name, gone in removed.items():
        if not gone:
            fault(f"{printable(name)} has no such entry; spamd {effect} list shows all")
    return Exit.DONE if done == len(removed) else Exit.PARTLY if done else Exit.TROUBLE


async def _list(here: Session, effect: Effect, owner: str | None, *, as_json: bool) -> None:
    async with resources.open_store(here.settings) as store:
        entries = await resources.list_book(here.settings, store).entries(effect, owner)
    if as_json:
        json_line({"entries": [entry_json(entry) for entry in entries]})
        return
    for entry in entries:
        line(_shown(entry))
    if not entries:
        line("no entries")


def entry_json(entry: "Entry") -> dict[str, object]:
    """Return an entry as JSON has it."""
    of_domain = entry.owner.startswith("@")
    return {
        "number": entry.number,
        "effect": str(entry.effect),
        "name": entry.text,
        "kind": str(entry.kind),
        "user": "" if of_domain else entry.owner,
        "domain": entry.owner[1:] if of_domain else "",
        "unproven": entry.unproven,
        "expires": None if entry.expires is None else entry.expires.isoformat(),
        "source": entry.source,
        "created": None if entry.created is None else entry.created.isoformat(),
    }


def _shown(entry: "Entry") -> str:
    owner = printable(entry.owner, limit=80) or "the site"
    text = f"{entry.number:>5}  {entry.effect:<5}  {printable(entry.text, limit=120)}  for {owner}"
    if entry.unproven:
        text += "  without proof"
    if entry.expires is not None:
        text += f"  until {entry.expires.astimezone():%Y-%m-%d %H:%M}"
    return text
