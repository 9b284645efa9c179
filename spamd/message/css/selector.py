"""CSS selectors, read: `matching` asks whether they match an element (Selectors 4).

Elements are seen as they are opened, so that what comes behind an element (`:last-child`, `:empty`)
isn't known at first: `later` says that a selector asks for it. `:has()` isn't understood, nor are
rules that hold it.
"""

import re
from operator import add
from typing import NamedTuple

from spamd.message.css.declarations import unescaped
from spamd.message.html.elements import names


class Attribute(NamedTuple):
    """`[name operator value]`, operator "" for a mere presence."""

    name: str
    operator: str
    value: str
    folded: bool


class Nth(NamedTuple):
    """`an + b` counted from the start or the end, over all siblings or those of the same kind."""

    step: int
    offset: int
    from_end: bool
    of_type: bool


class Compound(NamedTuple):
    """A selector for one element: all of these hold. `lists` are `:is()` and `:not()`."""

    tag: str
    ids: tuple[str, ...]
    classes: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    nths: tuple[Nth, ...]
    flags: frozenset[str]
    lists: tuple[tuple[bool, tuple["Selector", ...]], ...]


class Selector(NamedTuple):
    """Compounds from right to left, each with the combinator that joins it to the one before."""

    compounds: tuple[tuple[str, Compound], ...]
    specificity: tuple[int, int, int]
    later: bool
    never: bool

    @property
    def simple(self) -> bool:
        """Whether tag, class and id of the element alone decide."""
        _, last = self.compounds[0]
        return len(self.compounds) == 1 and not (
            last.attributes or last.nths or last.flags or last.lists
        )


_MAX_CHARS = 2_000
_MAX_LISTED = 60
_IDENT = r"(?>(?:[-\w\u0080-\U0010ffff]|\\[0-9a-fA-F]{1,6}[ \t\n]?|\\[^\n])+)"
_PART = re.compile(
    rf"(?P<combinator>\s*+[>+~]\s*+|\s++)|(?P<tag>\*|{_IDENT})|\.(?P<class>{_IDENT})|\#(?P<id>{_IDENT})"
    rf"|\[\s*+(?P<attribute>{_IDENT})\s*+(?:(?P<operator>[~|^$*]?=)\s*+"
    rf"(?P<value>\"[^\"]*\"|'[^']*'|{_IDENT})\s*+(?P<fold>[iIsS]?)\s*+)?\]"
    rf"|(?P<pseudo>::?{_IDENT})(?P<open>\()?"
)
_NTH = re.compile(r"([+-]?\d{0,6})n\s*(?:([+-])\s*(\d{1,6}))?|([+-]?\d{1,6})")
_NEVER = names(
    "hover active focus focus-visible focus-within visited target checked disabled "
    "enabled indeterminate invalid valid required optional read-only read-write default "
    "in-range out-of-range fullscreen playing paused autofill placeholder-shown open "
    "current past future host defined scope modal popover-open user-valid user-invalid "
    "target-within lang dir state before after first-line first-letter"
)
_FUTURE = names(
    "last-child only-child last-of-type only-of-type nth-last-child nth-last-of-type empty"
)
_LISTS = {
    "not": False, "is": True, "where": True, "matches": True, "any": True, "-webkit-any": True,
}  # fmt: skip
_NTH_OF = {
    "first-child": (0, 1, False, False),
    "first-of-type": (0, 1, False, True),
    "last-child": (0, 1, True, False),
    "last-of-type": (0, 1, True, True),
}
_LEGACY_ELEMENTS = frozenset({"before", "after", "first-line", "first-letter"})


def parse_list(text: str, *, folded: bool = False) -> tuple[Selector, ...]:
    """Return the selectors of a list; none when a browser understands one of them not."""
    if len(text) > _MAX_CHARS:
        return ()
    reader = _Reader(text, folded=folded)
    found = reader.selectors(top=True)
    return tuple(found) if reader.valid and reader.at >= len(text) else ()


class _Reader:
    def __init__(self, text: str, *, folded: bool) -> None:
        self.text = text
        self.folded = folded  # case of classes and ids means nothing
        self.at = 0
        self.valid = True
        self.depth = 0

    def selectors(self, *, top: bool) -> list[Selector]:
        """Read a list up to its end or a closing bracket."""
        found: list[Selector] = []
        self.depth += 1
        while self.valid and len(found) < _MAX_LISTED:
            self._blanks()
            found.append(self._selector())
            if not self.text.startswith(",", self.at):
                break
            self.at += 1
        self.valid = self.valid and self.depth <= 5 and (top or self.text.startswith(")", self.at))
        self.depth -= 1
        return found

    def _blanks(self) -> None:
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1

    def _selector(self) -> Selector:
        compounds: list[tuple[str, Compound]] = []
        weight, later, never = (0, 0, 0), False, False
        combinator = ""
        while self.valid:
            one = _Parts(self)
            one.read()
            if not one.any:
                self.valid = False
                break
            compounds.insert(0, (combinator, one.compound()))  # joined to the one on its left
            weight = (
                weight[0] + one.weight[0],
                weight[1] + one.weight[1],
                weight[2] + one.weight[2],
            )
            later, never = later or one.later, never or one.never
            if one.combinator is None:
                break
            combinator = one.combinator
        if not self.valid:
            return Selector((), (0, 0, 0), later=False, never=True)
        return Selector(tuple(compounds), weight, later=later, never=never)


class _Parts:
    """The parts of one compound while it is read."""

    def __init__(self, reader: _Reader) -> None:
        self.reader = reader
        self.tag = ""
        self.ids: list[str] = []
        self.classes: list[str] = []
        self.attributes: list[Attribute] = []
        self.nths: list[Nth] = []
        self.flags: set[str] = set()
        self.lists: list[tuple[bool, tuple[Selector, ...]]] = []
        self.weight = [0, 0, 0]
        self.later = self.never = self.any = False
        self.combinator: str | None = None

    def compound(self) -> Compound:
        return Compound(
            self.tag,
            tuple(self.ids),
            tuple(self.classes),
            tuple(self.attributes),
            tuple(self.nths),
            frozenset(self.flags),
            tuple(self.lists),
        )

    def read(self) -> None:
        reader = self.reader
        while reader.valid and (match := _PART.match(reader.text, reader.at)) is not None:
            if match["combinator"] is not None:
                if reader.text.startswith((",", ")"), match.end()) or match.end() == len(
                    reader.text
                ):
                    reader.valid = match["combinator"].isspace()
                else:
                    self.combinator = match["combinator"].strip() or " "
                reader.at = match.end()
                return
            if match["tag"] is not None and self.any:
                reader.valid = False
                return
            reader.at = match.end()
            self.any = True
            if match["tag"] is not None:
                if match["tag"] != "*":
                    self.tag = unescaped(match["tag"]).lower()
                    self.weight[2] += 1
            elif match["class"] is not None:
                self.classes.append(self._name(match["class"]))
                self.weight[1] += 1
            elif match["id"] is not None:
                self.ids.append(self._name(match["id"]))
                self.weight[0] += 1
            elif match["attribute"] is not None:
                self._attribute(match)
            else:
                self._pseudo(match)

    def _name(self, text: str) -> str:
        name = unescaped(text)
        return name.lower() if self.reader.folded else name

    def _attribute(self, match: re.Match[str]) -> None:
        value = match["value"] or ""
        value = unescaped(value[1:-1] if value[:1] in ('"', "'") else value)
        name = unescaped(match["attribute"]).lower()
        folded = (match["fold"] or "").lower() == "i" or name in _FOLDED
        self.attributes.append(
            Attribute(name, match["operator"] or "", value.lower() if folded else value, folded)
        )
        self.weight[1] += 1

    def _pseudo(self, match: re.Match[str]) -> None:
        name = unescaped(match["pseudo"]).lower()
        if name.startswith("::") or name[1:] in _LEGACY_ELEMENTS:
            self.never = True
            self._argument(match)
            return
        name = name[1:]
        if name in _LISTS and match["open"]:
            found = tuple(self.reader.selectors(top=False))
            self.reader.at += 1
            self.later = self.later or any(each.later for each in found)
            self.lists.append((_LISTS[name], found))
            if name != "where" and found:
                heaviest = max(each.specificity for each in found)
                self.weight = list(map(add, self.weight, heaviest))
            return
        self.weight[1] += 1
        argument = self._argument(match)
        self.later = self.later or name in _FUTURE
        if name in _NTH_OF:
            self.nths.append(Nth(*_NTH_OF[name]))
        elif name in ("only-child", "only-of-type"):
            of_type = name.endswith("type")
            self.nths += [Nth(0, 1, False, of_type), Nth(0, 1, True, of_type)]  # noqa: FBT003
        elif name.startswith("nth-"):
            self._nth(name, argument)
        elif name in ("root", "empty"):
            self.flags.add(name)
        elif name in ("link", "any-link"):
            self.flags.add("link")
        elif name in _NEVER or name.startswith("-"):
            self.never = True
        else:
            self.reader.valid = False

    def _argument(self, match: re.Match[str]) -> str:
        """Pass what stands in brackets."""
        if not match["open"]:
            return ""
        end = self.reader.text.find(")", self.reader.at)
        if end < 0:
            self.reader.valid = False
            return ""
        argument = self.reader.text[self.reader.at : end]
        self.reader.at = end + 1
        return argument.strip().lower()

    def _nth(self, name: str, argument: str) -> None:
        argument = {"odd": "2n+1", "even": "2n"}.get(argument, argument)
        match = _NTH.fullmatch(argument)
        if match is None or name not in (
            "nth-child", "nth-last-child", "nth-of-type", "nth-last-of-type",
        ):  # fmt: skip
            self.reader.valid = False
            return
        if match[4]:
            step, offset = 0, int(match[4])
        else:
            step = int(f"{match[1]}1") if match[1] in ("", "+", "-") else int(match[1])
            offset = int((match[2] or "") + (match[3] or "0"))
        self.nths.append(Nth(step, offset, "last" in name, name.endswith("type")))


_FOLDED = names(
    "align bgcolor color dir face hidden lang language media method nowrap rel rev rules "
    "scope shape type valign charset checked clear disabled http-equiv"
)
