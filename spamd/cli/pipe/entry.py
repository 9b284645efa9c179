"""Which command lines go the short way, and what becomes of a mail when nothing else works."""

import os

from spamd.cli.pipe.arguments import Arguments
from spamd.cli.pipe.descriptors import STDIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FLAGS = {"--only-fields": "only_fields", "--exit-code": "exit_code", "--defer": "defer"}

TAUGHT = (
    ["train", "spam", "-"], ["train", "ham", "-"],
    ["retrain", "spam", "-"], ["retrain", "ham", "-"],
    ["forget", "-"],
)  # fmt: skip
"""Commands that the daemon can do."""

USAGE = 64


def filtered(arguments: list[str], run: "Callable[[list[str]], int]") -> int | None:
    """Filter the mail on standard input, if this is what a command line asks for; else None.

    What is not plainly said is left to `run`, the whole command line. If that finds it wrong, the
    mail goes out as it came: an agent that does not ask for our exit code must not lose it.
    """
    try:
        wanted = Arguments(arguments)
        if wanted.command[:1] != ["filter"]:
            return None
        plain = (
            wanted.command == ["filter"] and wanted.flags <= FLAGS.keys() and wanted.user is None
        )
        if plain and not os.isatty(STDIN):
            from spamd.cli.pipe.filtering import Options, filtered

            asked = {FLAGS[flag]: True for flag in wanted.flags}
            return filtered(Options(config=wanted.config, given=wanted.given, **asked))
        code = run(arguments)
    except BaseException:  # noqa: BLE001 - nothing may cost a mail
        from spamd.cli.pipe.filtering import last_resort

        return last_resort()
    if code == USAGE and not os.isatty(STDIN):
        from spamd.cli.pipe.filtering import last_resort

        last_resort()
    return code


def taught(arguments: list[str], run: "Callable[[list[str]], int]") -> int:
    """Have the daemon learn or forget a mail, if a command line plainly asks for it; else `run`."""
    wanted = Arguments(arguments)
    user = wanted.user
    named = user is None or (user and user.isascii() and user.isprintable())  # a header holds it
    plain = wanted.command in TAUGHT and named
    if not plain or wanted.flags != {"--daemon"} or os.isatty(STDIN):
        return run(arguments)
    from spamd.cli.pipe.learning import taught

    return taught(wanted, run)
