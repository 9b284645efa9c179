"""`spamd user`: who people are, what they wish, and what is known of them."""

from typing import TYPE_CHECKING, Annotated

import typer

from spamd import resources
from spamd.cli.arguments import JsonOption
from spamd.cli.exits import Exit, UsageProblem
from spamd.cli.help import Grouped, Plain
from spamd.cli.mail.owners import named, owner_named
from spamd.cli.output import fault, json_line, line
from spamd.cli.session import Session, awaited, session
from spamd.errors import TemporaryError
from spamd.wording import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from spamd.bayes.wishes import Wishes
    from spamd.storage.store import Store
    from spamd.training.user_ports import Traces
    from spamd.users.ports import Named

app = typer.Typer(
    help="Who people are, what they wish, and what is known of them.",
    rich_markup_mode=None,
    cls=Grouped,
)

OwnerArgument = Annotated[
    str,
    typer.Argument(metavar="USER", help='An address, a login name; "@example.org" for a domain.'),
]


@app.command(cls=Plain)
def find(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Recipients or login names.")],
    *,
    as_json: JsonOption = False,
) -> int:
    """Tell which user is behind an address or a login name.

    By the section "users" of the settings, as it is for mail. See docs/users.md.
    """
    people, why = awaited(named(session(context).settings, names))
    if as_json:
        json_line({"users": [_found_json(name, each) for name, each in people.items()]})
    else:
        for name, each in people.items():
            line(f"{printable(name, limit=120)}  {_found(each)}")
    if why:
        fault(why)
    return Exit.LATER if why else Exit.DONE


def _found(found: "Named") -> str:
    owner = printable(found.user, limit=120)
    who = f"{owner}, no user" if owner.startswith("@") else owner or "nobody"
    return f"{who}  by {'the rules' if found.how == 'rules' else f'users.{found.how}'}"


def _found_json(name: str, found: "Named") -> dict[str, object]:
    is_domain = found.user.startswith("@")
    return {
        "name": name,
        "user": "" if is_domain else found.user,
        "domain": found.user.rpartition("@")[2] if "@" in found.user else "",
        "by": found.how,
        "missing": found.missing,
    }


@app.command("set", cls=Plain)
def set_(
    context: typer.Context,
    user: OwnerArgument,
    *,
    tag_from: Annotated[
        float | None, typer.Option(metavar="P", help="Tag from this probability of spam.")
    ] = None,
    reject_from: Annotated[
        float | None, typer.Option(metavar="P", help="Reject from this probability.")
    ] = None,
    tag: Annotated[
        bool | None, typer.Option("--tag/--never-tag", help="Never tag: unsure at most.")
    ] = None,
    reject: Annotated[
        bool | None, typer.Option("--reject/--never-reject", help="Never reject: tag instead.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Wish what is to be done with spam.

    What is not given stays as it was. A user's wish counts before their domain's, and that before
    the settings. Mail is rejected only where decision.reject is on. See docs/users.md.
    """
    from spamd.bayes.wishes import NO_WISHES, Wishes  # it loads numpy

    try:
        changes = Wishes(tag_from=tag_from, reject_from=reject_from, tag=tag, reject=reject)
    except ValueError as error:
        raise UsageProblem(str(error), context) from error
    if changes == NO_WISHES:
        raise UsageProblem("give what is wished, as --tag-from 0.8 or --never-tag", context)
    return _change(context, user, changes, (), as_json=as_json)


@app.command(cls=Plain)
def unset(
    context: typer.Context,
    user: OwnerArgument,
    wishes: Annotated[
        list[str] | None,
        typer.Argument(metavar="WISH", help="tag_from, reject_from, tag, reject; else all."),
    ] = None,
    *,
    as_json: JsonOption = False,
) -> int:
    """Take wishes back."""
    from spamd.bayes.wishes import NO_WISHES
    from spamd.users.wishes import NAMES

    if unknown := [name for name in wishes or () if name not in NAMES]:
        raise UsageProblem(f"{unknown[0]!r} is none of {', '.join(NAMES)}", context)
    return _change(context, user, NO_WISHES, wishes or NAMES, as_json=as_json)


def _change(
    context: typer.Context,
    user: str,
    changes: "Wishes",
    without: "Sequence[str]",
    *,
    as_json: bool,
) -> int:
    from spamd.users.wishes import to_json, words

    here, owner = session(context), owner_named(context, user)
    try:
        now = awaited(_changed(here, owner, changes, without))
    except ValueError as error:
        raise UsageProblem(str(error), context) from error
    if as_json:
        json_line({"owner": owner, "wishes": to_json(now)})
    else:
        line(f"{printable(owner, limit=120)}  {', '.join(words(now)) or 'no wishes'}")
    if not here.settings.users.enabled:
        fault("users.enabled is off: all mail gets the site's verdict (docs/users.md)")
    if changes.reject_from is not None and not here.settings.decision.reject:
        fault("decision.reject is off: nothing is rejected")
    return Exit.DONE


async def _changed(
    here: Session, owner: str, changes: "Wishes", without: "Sequence[str]"
) -> "Wishes":
    async with resources.open_store(here.settings) as store:
        return await store.wishes.change(owner, changes, without=without)


@app.command("list", cls=Plain)
def list_(context: typer.Context, *, as_json: JsonOption = False) -> int:
    """List the users of whom something is known, and how much."""
    people = awaited(_counted(session(context), None))
    if as_json:
        json_line({"users": [{"user": user, **counts} for user, counts in people.items()]})
    else:
        for user, counts in people.items():
            line(f"{printable(user, limit=120)}  {_shown(counts)}")
    return Exit.DONE


@app.command(cls=Plain)
def show(context: typer.Context, user: OwnerArgument, *, as_json: JsonOption = False) -> int:
    """Tell how much is known of a user."""
    owner = owner_named(context, user)
    counts = awaited(_counted(session(context), owner)).get(owner, {})
    if as_json:
        json_line({"user": owner, **counts})
    else:
        line(f"{printable(owner, limit=120)}  {_shown(counts)}")
    return Exit.DONE


@app.command(cls=Plain)
def copy(
    context: typer.Context,
    user: Annotated[str, typer.Argument(metavar="FROM", help="Whose.")],
    to: Annotated[str, typer.Argument(metavar="TO", help="For whom.")],
    *,
    as_json: JsonOption = False,
) -> int:
    """Copy lessons, wishes and list entries to another name.

    As when a name changes. What TO has already stays. The addresses that people have written to
    are not copied: only hashes of them are kept, which hold for one user.
    """
    here, source, target = session(context), owner_named(context, user), owner_named(context, to)
    if source == target:
        raise UsageProblem(f"{printable(user)} and {printable(to)} are one user", context)
    done = awaited(_copied(here, source, target))
    if as_json:
        json_line({"from": source, "to": target, "copied": done})
    else:
        line(f"copied: {_shown(done)}")
    return Exit.DONE


@app.command(cls=Plain)
def forget(
    context: typer.Context,
    user: OwnerArgument,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Forget all that is known of a user, for good.

    Their lessons are taken back, and all that the site learned by them; list entries, wishes, known
    addresses, scans, what was noted of their mailboxes, and lessons that wait on the disk of this
    machine go. It can't be undone.
    """
    here, owner = session(context), owner_named(context, user)
    if not yes:
        typer.confirm(f"Forget all that is known of {printable(owner)}?", abort=True)
    gone = awaited(_forgotten(here, owner))
    if as_json:
        json_line({"user": owner, "forgotten": gone})
    else:
        line(f"forgotten: {_shown(gone)}")
    return Exit.DONE


def _shown(counts: "Mapping[str, int]") -> str:
    found = [f"{number:,} {name.replace('_', ' ')}" for name, number in counts.items() if number]
    return ", ".join(found) or "nothing"


async def _counted(here: Session, user: str | None) -> "Mapping[str, Mapping[str, int]]":
    from spamd.storage.maintenance.people_known import counted

    async with resources.open_store(here.settings) as store, store.database.reading() as connection:
        return await counted(connection, user)


async def _copied(here: Session, user: str, to: str) -> "Mapping[str, int]":
    from dataclasses import replace

    from spamd.bayes.wishes import NO_WISHES

    async with resources.open_store(here.settings) as store:
        lessons = await resources.user_trainer(store, here.settings).copy(user, to)
        entries = [replace(each, owner=to, number=0) for each in await store.entries.all(user)]
        wishes = await store.wishes.of(user)
        wished = wishes != NO_WISHES and await store.wishes.of(to) == NO_WISHES
        if wished:
            await store.wishes.change(to, wishes)
        return {
            "lessons": lessons,
            "list_entries": await store.entries.add_missing(entries),
            "wishes": int(wished),
        }


async def _forgotten(here: Session, user: str) -> "Mapping[str, int]":
    from spamd.storage.local.waiting_lessons import JournalOnDisk

    waiting = JournalOnDisk.of(here.settings.database)
    async with resources.open_store(here.settings) as store:
        traces = await _traces(here, store, user, waiting.names())
        dropped = await waiting.drop({user, *traces.actors})  # before they come to be learned
        gone = await resources.user_trainer(store, here.settings).forget_user(user, traces)
    return {**gone, "lessons_that_waited": dropped}


async def _traces(here: Session, store: "Store", user: str, waiting: "Set[str]") -> "Traces":
    """Return where something of a user lies besides under their name.

    waiting  names of those whose lessons wait on the disk
    """
    from spamd.storage.layers.forgetting import accounts, actors, login_of, scans_naming
    from spamd.training.user_ports import AGREED, Traces

    async with store.database.reading() as connection:
        keys, logins = await accounts(connection), await actors(connection)
        scans = await scans_naming(connection, user)
    names = {*map(login_of, keys), *logins, *waiting} - {"", AGREED}
    people, why = await named(here.settings, sorted(names))
    if why:
        raise TemporaryError(f"whose the mailboxes are could not be asked: {why}")
    theirs = [name for name in sorted(names) if people[name].user == user]
    return Traces(
        actors=theirs,
        accounts=[key for key in keys if login_of(key) in theirs],
        scans=scans,
    )
