"""What is read inside `svg` and `math`: foreign content (WHATWG HTML §13.2.6.5)."""

from typing import TYPE_CHECKING

from spamd.message.html import elements
from spamd.message.html.node import Node
from spamd.message.html.tag import Tag

if TYPE_CHECKING:
    from spamd.message.html.tree import Tree


def start_foreign(tree: "Tree", tag: Tag) -> Node | None:
    """Take a start tag inside `svg` or `math`; None when it is one of HTML all the same."""
    top, name, values = tree.stack[-1], tag.name, tag.values
    kind = top.name.partition("\0")[0]
    if top.name in elements.HTML_INSIDE and not (
        kind == "math" and top.tag not in ("desc", "title") and name in ("mglyph", "malignmark")
    ):
        return None
    if top.name == "math\0annotation-xml" and (
        name == "svg" or "html" in values.get("encoding", "") or _is_html(top)
    ):
        return None
    if name in elements.BREAKOUT or (
        name == "font" and not {"color", "face", "size"}.isdisjoint(values)
    ):
        while "\0" in (above := tree.stack[-1].name) and above not in elements.HTML_INSIDE:
            tree.pop()
        return None
    node = tree.made(tag, f"{kind}\0{name}", top)
    if not tag.empty:
        tree.push(node)
    return node


def end_foreign(tree: "Tree", tag: str) -> tuple[bool, Node | None]:
    """Take an end tag inside `svg` or `math`; tell whether it is no matter of HTML."""
    for place in range(len(tree.stack) - 1, 1, -1):
        tree.work -= 1
        node = tree.stack[place]
        if not node.foreign:
            return False, None
        if node.tag == tag:
            return True, tree.pop_through(place)
    return False, None


def _is_html(node: Node) -> bool:
    return node.values.get("encoding", "").lower() in ("text/html", "application/xhtml+xml")
