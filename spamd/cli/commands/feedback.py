"""`spamd feedback …`: learn from the folders people keep, once or all the time."""

from typing import TYPE_CHECKING

import typer

from spamd import resources
from spamd.cli.arguments import JsonOption
from spamd.cli.help import Grouped, Plain
from spamd.cli.output import QuietObserver, json_line, line
from spamd.cli.run_summary import print_summary, summary_exit, summary_json
from spamd.cli.session import Session, awaited, session
from spamd.errors import ConfigError
from spamd.wording import printable

if TYPE_CHECKING:
    from spamd.feedback.ports import Parked

app = typer.Typer(help="Learn from the mail folders of users.", rich_markup_mode=None, cls=Grouped)


@app.command(cls=Plain)
def once(context: typer.Context, *, as_json: JsonOption = False) -> int:
    """Poll all accounts once, and learn.

    At the first poll of an account, messages that spamd never judged teach nothing, as nobody knows
    who filed them. Use spamd bootstrap to learn from them.
    """
    here = session(context)
    _need_accounts(here)
    return awaited(_once(here, as_json=as_json))


@app.command(cls=Plain)
def watch(context: typer.Context) -> None:
    """Watch all accounts until stopped.

    spamd serve does the same besides taking mail. While another process watches with the same
    database, this one waits until that process ends.
    """
    here = session(context)
    _need_accounts(here)
    awaited(_watch(here))


def _need_accounts(here: Session) -> None:
    if not here.settings.feedback.accounts:
        raise ConfigError(
            "feedback.accounts is empty: say where people keep their mail, with"
            " [[feedback.accounts]] in the settings file"
        )


@app.command(cls=Plain)
def parked(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """List messages that could not be read or learned."""
    awaited(_parked(session(context), as_json=as_json))


async def _once(here: Session, *, as_json: bool) -> int:

    async with resources.open_store(here.settings) as store:
        before = await store.totals()
        async with resources.names(here.settings, QuietObserver()) as names:
            summary = await resources.feedback(
                store, here.settings, QuietObserver(), lambda: names
            ).once()
        after = await store.totals()
        shown = store.database.shown
    if as_json:
        json_line(
            {
                **summary_json(summary),
                "database": shown,
                "before": {"spam": before.spam, "ham": before.ham},
                "corpus": {"spam": after.spam, "ham": after.ham},
            }
        )
    else:
        print_summary(summary)
        line(f"database       {shown}")
        line(
            f"               {before.spam:,} spam and {before.ham:,} ham before,"
            f" {after.spam:,} spam and {after.ham:,} ham now"
        )
    return summary_exit(summary)


async def _watch(here: Session) -> None:

    async with resources.open_store(here.settings) as store:
        observer = resources.log_observer(here.settings)
        async with resources.names(here.settings, observer) as names:
            await resources.feedback(store, here.settings, observer, lambda: names).run()


async def _parked(here: Session, *, as_json: bool) -> None:

    async with resources.open_store(here.settings) as store:
        rows = await store.mailboxes.parked()
    if as_json:
        json_line({"parked": [_parked_json(row) for row in rows]})
        return
    limit = here.settings.feedback.attempts
    for row in rows:
        again = "no longer tried" if row.attempts >= limit else "will be tried again"
        line(
            f"{printable(row.account)}  {printable(row.folder)}  {printable(row.uid)}"
            f"  tried {row.attempts}, {again}: {printable(row.reason)}"
        )
    if not rows:
        line("no message is parked")


def _parked_json(row: "Parked") -> dict[str, object]:
    return {
        "account": row.account,
        "folder": row.folder,
        "uid": row.uid,
        "attempts": row.attempts,
        "reason": row.reason,
        "time": row.time.isoformat(),
    }
