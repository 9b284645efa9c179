"""Whether CSS selectors match an element, within a budget of steps."""

from typing import Protocol

from spamd.message.css.selector import Attribute, Compound, Nth, Selector


class Element(Protocol):
    """What selectors ask an element for."""

    @property
    def tag(self) -> str:
        """Its name in lower case."""

    @property
    def values(self) -> dict[str, str]:
        """Its attributes."""

    @property
    def parent(self) -> "Element | None":
        """What it stands in."""

    @property
    def previous(self) -> "Element | None":
        """The element before it in its parent."""

    @property
    def index(self) -> int:
        """Its place in its parent, from 1."""

    @property
    def after(self) -> tuple[int, int, bool]:
        """How many siblings follow it, how many of its kind, whether it holds nothing."""


class Budget:
    """How many steps may still be taken; what is beyond doesn't match."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps


def matches(selector: Selector, element: Element, budget: Budget) -> bool:
    """Tell whether a selector matches an element, as far as the budget goes."""
    return not selector.never and _from(selector.compounds, 0, element, budget)


def _from(
    compounds: tuple[tuple[str, Compound], ...], at: int, element: Element, budget: Budget
) -> bool:
    """Match the compounds from `at` on, the first of them at `element`."""
    budget.left -= 1
    if budget.left < 0 or not _holds(compounds[at][1], element, budget):
        return False
    if at + 1 == len(compounds):
        return True
    # the combinator between two compounds is kept with the right one
    combinator = compounds[at][0]
    other: Element | None
    other = element.parent if combinator in (">", " ") else element.previous
    while other is not None and budget.left > 0:
        if _from(compounds, at + 1, other, budget):
            return True
        if combinator in (">", "+"):
            return False
        other = other.parent if combinator == " " else other.previous
    return False


def _holds(compound: Compound, element: Element, budget: Budget) -> bool:
    if compound.tag and compound.tag != element.tag:
        return False
    values = element.values
    if compound.ids and any(each != values.get("id") for each in compound.ids):
        return False
    if compound.classes:
        classes = values.get("class", "").split()
        for each in compound.classes:
            if each not in classes:
                return False
    return (
        all(_has(each, values) for each in compound.attributes)
        and all(_counts(each, element, budget) for each in compound.nths)
        and all(_is(each, element) for each in compound.flags)
        and all(
            any(matches(each, element, budget) for each in listed) is wanted
            for wanted, listed in compound.lists
        )
    )


def _has(attribute: Attribute, values: dict[str, str]) -> bool:
    value = values.get(attribute.name)
    if value is None:
        return False
    if attribute.folded:
        value = value.lower()
    wanted = attribute.value
    match attribute.operator:
        case "":
            return True
        case "=":
            return value == wanted
        case "~=":
            return wanted in value.split()
        case "|=":
            return value == wanted or value.startswith(f"{wanted}-")
        case "^=":
            return wanted != "" and value.startswith(wanted)
        case "$=":
            return wanted != "" and value.endswith(wanted)
        case _:
            return wanted != "" and wanted in value


def _counts(nth: Nth, element: Element, budget: Budget) -> bool:
    if nth.from_end:
        place = element.after[1 if nth.of_type else 0] + 1
    elif nth.of_type:
        place, other = 1, element.previous
        while other is not None and budget.left > 0:
            budget.left -= 1
            place += other.tag == element.tag
            other = other.previous
    else:
        place = element.index
    rest = place - nth.offset
    return rest == 0 if nth.step == 0 else rest % nth.step == 0 and rest // nth.step >= 0


def _is(flag: str, element: Element) -> bool:
    match flag:
        case "root":
            return element.parent is None
        case "link":
            return element.tag in ("a", "area") and "href" in element.values
        case _:
            return element.after[2]
