"""`spamd serve`: relay, feedback watchers, metrics."""

import typer

from spamd.cli.session import session


def serve(context: typer.Context) -> int:
    """Take mail, classify it, deliver it, and learn from users.

    Runs until SIGTERM or Ctrl-C; messages in flight are finished first. SIGHUP reads certificates
    and settings again: the accounts and the log change at once, the log says what needs a restart;
    several workers are replaced one by one instead.
    """
    from spamd.daemon import serve as run

    here = session(context)
    found = here.configuration
    return run(found.settings, found.read_from, here.read_again)
