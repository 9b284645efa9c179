"""What a start tag ends, opens or is ignored for (WHATWG HTML §13.2.6.4, "in body" and tables).

Each rule gets the tree before the element is opened, and tells whether it is to be opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spamd.message.html import elements

if TYPE_CHECKING:
    from collections.abc import Callable

    from spamd.message.html.tag import Tag
    from spamd.message.html.tree import Tree


def _block(tree: Tree, _tag: Tag) -> bool:
    if tree.counts.get("p"):
        tree.close("p", elements.BUTTON_SHIELDS)
    return True


def _heading(tree: Tree, _tag: Tag) -> bool:
    tree.close("p", elements.BUTTON_SHIELDS)
    if tree.stack[-1].name in elements.HEADINGS:
        tree.pop()
    return True


def _item(tree: Tree, tag: Tag) -> bool:
    ended = ("li",) if tag.name == "li" else ("dd", "dt")
    for place in range(len(tree.stack) - 1, 1, -1):
        tree.work -= 1
        name = tree.stack[place].name
        if name in ended:
            tree.pop_through(place)
            break
        if (name in elements.SPECIAL and name not in ("address", "div", "p")) or tree.work <= 0:
            break
    tree.close("p", elements.BUTTON_SHIELDS)
    return True


def _form(tree: Tree, _tag: Tag) -> bool:
    if tree.find("form", elements.NONE):
        return False  # a form holds no form
    tree.close("p", elements.BUTTON_SHIELDS)
    return True


def _button(tree: Tree, _tag: Tag) -> bool:
    tree.close("button", elements.SHIELDS)
    tree.reconstruct()
    return True


def _link(tree: Tree, _tag: Tag) -> bool:
    for node in reversed(tree.formatting):
        if node is None:
            break
        if node.tag == "a":
            tree.end_formatting("a")
            if node in tree.formatting:
                tree.formatting.remove(node)
            break
    tree.reconstruct()
    return True


def _nobr(tree: Tree, _tag: Tag) -> bool:
    tree.reconstruct()
    if tree.find("nobr", elements.SHIELDS):
        tree.end_formatting("nobr")
        tree.reconstruct()
    return True


def _option(tree: Tree, tag: Tag) -> bool:
    if tree.find("select", elements.SHIELDS):
        while (name := tree.stack[-1].name) in elements.IMPLIED_END and (
            name != "optgroup" or tag.name == "optgroup"
        ):
            tree.pop()
    elif tree.stack[-1].name == "option":
        tree.pop()
    tree.reconstruct()
    return True


def _select(tree: Tree, _tag: Tag) -> bool:
    if tree.close("select", elements.SHIELDS) is not None:
        return False  # a second one only ends the first
    tree.reconstruct()
    return True


def _input(tree: Tree, _tag: Tag) -> bool:
    tree.close("select", elements.SHIELDS)
    tree.reconstruct()
    return True


def _rule(tree: Tree, _tag: Tag) -> bool:
    tree.close("p", elements.BUTTON_SHIELDS)
    return True


def _ruby(tree: Tree, tag: Tag) -> bool:
    if tree.find("ruby", elements.SHIELDS):
        while (name := tree.stack[-1].name) in elements.IMPLIED_END and (
            name != "rtc" or tag.name in ("rb", "rtc")
        ):
            tree.pop()
    return True


def _table(tree: Tree, _tag: Tag) -> bool:
    if tree.stack[-1].name in elements.TABLE_INSIDE:
        tree.close("table", elements.TABLE_SHIELDS)
    elif not tree.quirks:
        tree.close("p", elements.BUTTON_SHIELDS)
    return True


_TABLE = elements.names("table")
_ROW_GROUPS = elements.names("tbody tfoot thead")
_ROW_GROUP_PLACES = _ROW_GROUPS | _TABLE
_ROW_PLACES = _ROW_GROUP_PLACES | {"tr"}


def _back_to(tree: Tree, wanted: frozenset[str]) -> bool:
    """End everything up to a table or one of its parts; False when there is no table."""
    if tree.stack[-1].name in wanted:
        return True
    if not tree.find("table", elements.TABLE_SHIELDS):
        return False
    while tree.stack[-1].name not in wanted:
        tree.pop()
    return True


def _cell(tree: Tree, _tag: Tag) -> bool:
    if not _back_to(tree, _ROW_PLACES):
        return False
    if tree.stack[-1].name != "tr":
        tree.imply("tr")
    return True


def _row(tree: Tree, _tag: Tag) -> bool:
    if not _back_to(tree, _ROW_GROUP_PLACES):
        return False
    if tree.stack[-1].name == "table":
        tree.imply("tbody")
    return True


def _table_part(tree: Tree, _tag: Tag) -> bool:
    return _back_to(tree, _TABLE)


def _column(tree: Tree, _tag: Tag) -> bool:
    if tree.stack[-1].name == "colgroup":
        return True
    return _back_to(tree, _TABLE)


def _page(tree: Tree, tag: Tag) -> bool:
    tree.merge(tag.name, tag.values)
    return False


def _ignored(_tree: Tree, _tag: Tag) -> bool:
    return False


def _as_is(_tree: Tree, _tag: Tag) -> bool:
    return True


STARTS: dict[str, Callable[[Tree, Tag], bool]] = {
    **dict.fromkeys(elements.ENDS_PARAGRAPH, _block),
    **dict.fromkeys(elements.HEADINGS, _heading),
    **dict.fromkeys(("li", "dd", "dt"), _item),
    **dict.fromkeys(("option", "optgroup"), _option),
    **dict.fromkeys(("td", "th"), _cell),
    **dict.fromkeys(_ROW_GROUPS | {"caption", "colgroup"}, _table_part),
    **dict.fromkeys(("rb", "rtc", "rp", "rt"), _ruby),
    **dict.fromkeys(elements.HEAD - elements.PAGE, _as_is),
    **dict.fromkeys(elements.PAGE, _page),
    **dict.fromkeys(("frame", "frameset"), _ignored),
    **dict.fromkeys(("param", "source", "track", "noembed"), _as_is),
    "form": _form,
    "button": _button,
    "a": _link,
    "nobr": _nobr,
    "select": _select,
    "input": _input,
    "hr": _rule,
    "table": _table,
    "tr": _row,
    "col": _column,
}  # fmt: skip
