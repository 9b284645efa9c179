"""`spamd serve`: relay, feedback watchers, metrics."""

import typer

from spamd.cli.session import session


def serve(context: typer.Context) -> int:
    """Take mail, judge it, hand it on, and learn from people.

    Runs until SIGTERM or Ctrl-C; messages in flight are finished first. SIGHUP reads certificates
    again; with several workers they are replaced one by one, with the settings read again.
    """
    from spamd.daemon import serve as run

    found = session(context).configuration
    return run(found.settings, found.read_from)
