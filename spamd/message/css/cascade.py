"""Style sheets of one page: which declarations apply to an element, in their order (CSS Cascade 4).

Matching is bounded: rules × elements × steps of selectors come out of one budget for a page. Once
it is spent, no more rules match, and the page counts as cut.
"""

from collections.abc import Iterator
from operator import attrgetter

from spamd.message.css import stylesheet
from spamd.message.css.declarations import Declaration, Value, parse
from spamd.message.css.matching import Budget, Element, matches
from spamd.message.css.selector import Selector

_STEPS = 300_000
_SHEETS_CHARS = 262_144
_Weight = tuple[int, int, int, int]


_weight = attrgetter("weight")


class Matched:
    """One selector of a rule with its weight among the others of the page.

    Its identity tells it from others, which makes it a cheap key.
    """

    __slots__ = ("declarations", "selector", "weight")

    def __init__(
        self, weight: _Weight, each: Selector, declarations: tuple[Declaration, ...]
    ) -> None:
        self.weight = weight
        self.selector = each
        self.declarations = declarations


_Listed = list[Matched]


class Sheets:
    """The rules of all style sheets of a page, found by what their last compound asks for."""

    def __init__(self, *, quirks: bool) -> None:
        self.budget = Budget(_STEPS)
        self.later = False  # some selector asks for what comes behind an element
        self.any = False
        self.closed = False  # all of them are read
        self._quirks = quirks
        self._chars = _SHEETS_CHARS
        self._order = 0
        self._by_key: dict[str, _Listed] = {}
        self._candidates: dict[object, tuple[_Listed, tuple[Matched, ...]]] = {}

    def add(self, text: str) -> None:
        """Read one more style sheet."""
        text = text[: self._chars]
        self._chars -= len(text)
        for rule in stylesheet.rules(text, folded=self._quirks):
            self._order += 1
            for each in rule.selectors:
                if each.never:
                    continue
                self.any = True
                self.later = self.later or each.later
                weight = (*each.specificity, self._order)
                key = _key(each)
                self._candidates.clear()
                self._by_key.setdefault(key, []).append(Matched(weight, each, rule.declarations))

    def close(self) -> None:
        """Take no more, and start matching anew."""
        self.closed = True
        self.budget.left = _STEPS

    @property
    def spent(self) -> bool:
        """Whether there was more to match than may be."""
        return self.budget.left < 0

    def matching(self, element: Element) -> tuple[Matched, ...]:
        """Return the rules that match an element, the weakest first."""
        values = element.values
        names = (element.tag, values.get("class"), values.get("id"))
        candidates = self._candidates.get(names)
        if candidates is None:
            candidates = self._candidates[names] = self._listed(element)
        listed, certain = candidates
        budget = self.budget
        budget.left -= len(listed) + len(certain)
        if budget.left < 0:
            return ()
        if not listed:
            return certain
        found = [each for each in listed if matches(each.selector, element, budget)]
        if not found:
            return certain
        return tuple(sorted((*certain, *found), key=_weight))

    def _listed(self, element: Element) -> tuple[_Listed, tuple[Matched, ...]]:
        """Return the rules that may match elements of these names, and those that certainly do."""
        if self.budget.left < 0:
            return [], ()
        every = [each for key in _keys(element) for each in self._by_key.get(key, ())]
        self.budget.left -= len(every)
        certain = [
            each
            for each in every
            if each.selector.simple and matches(each.selector, element, self.budget)
        ]
        return [each for each in every if not each.selector.simple], tuple(
            sorted(certain, key=_weight)
        )


def declared(
    inline: str, hints: dict[str, Value], matched: tuple[Matched, ...]
) -> dict[str, Value]:
    """Return what hints, rules and the style attribute say of an element, the last word each."""
    said = hints
    urgent: list[Declaration] = []
    for declarations in (*(each.declarations for each in matched), parse(inline)):
        for each in declarations:
            if each.important:
                urgent.append(each)
            else:
                said[each.name] = each.value
    for each in urgent:
        said[each.name] = each.value
    return said


def _key(each: Selector) -> str:
    _, last = each.compounds[0]
    if last.ids:
        return f"#{last.ids[-1]}"
    if last.classes:
        return f".{last.classes[-1]}"
    return last.tag or "*"


def _keys(element: Element) -> Iterator[str]:
    yield "*"
    yield element.tag
    values = element.values
    if "class" in values:
        for name in dict.fromkeys(values["class"].split()):
            yield f".{name}"
    if "id" in values:
        yield f"#{values['id']}"
