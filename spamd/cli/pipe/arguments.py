"""The command lines that need no parser."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GLOBAL = {"-c": "--config", "--config": "--config", "--set": "--set"}
"""Options with a value that every command has, and their long names."""


class Arguments:
    """What a command line says.

    command      its words that are no options: the command first
    config       the settings file, if one is named
    given        "section.key=value" of each --set
    flags        options without a value
    user         of --user, if one is named
    """

    __slots__ = ("_all", "command", "config", "flags", "given", "user")

    def __init__(self, arguments: "Sequence[str]") -> None:
        self._all = arguments
        self.command: list[str] = []
        self.config: str | None = None
        self.given: list[str] = []
        self.flags: set[str] = set()
        self.user: str | None = None
        remaining = iter(arguments)
        for argument in remaining:
            self._take(argument, remaining)

    def _take(self, argument: str, remaining: "Iterator[str]") -> None:
        name, equals, value = argument.partition("=")
        if name in GLOBAL and (not equals or name != "-c"):
            value = value if equals else next(remaining, "")
            if GLOBAL[name] == "--set":
                self.given.append(value)
            else:
                self.config = value
        elif name == "--user":
            self.user = value if equals else next(remaining, "")
        elif argument.startswith("-") and argument != "-":
            self.flags.add(argument)
        else:
            self.command.append(argument)

    def without(self, flag: str) -> list[str]:
        """Return the command line without a flag."""
        return [argument for argument in self._all if argument != flag]
