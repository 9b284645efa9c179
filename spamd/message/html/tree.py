"""Which elements are open: a browser's tree construction, as far as it decides what is shown.

The rules are those of WHATWG HTML §13.2.6 for what stands in a body: implied end tags, elements in
scope, formatting elements that go on behind the block that they were left open in, tables and what
stands in them at the wrong place, foreign content. No tree is kept but each element's parents and
elder siblings, which selectors ask for.

The work that hostile nesting can cause (walks through the open elements, elements opened again)
is counted; once `work` is spent, what is left is read by its tags alone.
"""

from collections.abc import Container

from spamd.message.html import elements
from spamd.message.html.foreign import end_foreign, start_foreign
from spamd.message.html.node import Node, following
from spamd.message.html.style import ROOT
from spamd.message.html.styler import Styler
from spamd.message.html.tag import (
    FORMATTING,
    HEAD,
    LISTED,
    NO_VALUES,
    TABLE_OWN,
    UNPUSHED,
    Tag,
    look_of,
)
from spamd.message.html.tag import ROOT as FOREIGN_ROOT

_WORK = 400_000
_FORMATTING_MAX = 64
_IMPLIED = {name: Tag(name, NO_VALUES) for name in ("tbody", "tr")}


_END_SHIELDS = {
    **dict.fromkeys(
        elements.PAIRED | elements.names("dd dt object applet marquee"), elements.SHIELDS
    ),
    **dict.fromkeys(elements.TABLE_PARTS | {"table"}, elements.TABLE_SHIELDS),
    "p": elements.BUTTON_SHIELDS,
    "li": elements.LIST_SHIELDS,
    "template": elements.NONE,
}


class Tree:
    """The stack of open elements and the list of formatting elements (WHATWG §13.2.4)."""

    def __init__(
        self, styler: Styler, *, quirks: bool, kept: bool, first: "Tree | None" = None
    ) -> None:
        self._styler = styler
        self._sheets = styler.sheets
        self.quirks = quirks
        self._after = [] if first is None else following(first.nodes)
        given = {} if first is None else first.merged
        self._kept = kept  # neighbours are asked for
        self.nodes: list[Node] = []
        self.work = _WORK
        self.broken = False  # an end tag has ended blocks inside its element
        self.solid = False  # something of a body was met that is no page of frames
        self.begun = False  # something of the body was met
        # attributes of `html` and `body` tags that came late
        self.merged: dict[str, dict[str, str]] = {}
        root = self._page_node("html", given.get("html", NO_VALUES), None)
        self._head = self._page_node("head", NO_VALUES, root)
        body = self._page_node("body", given.get("body", NO_VALUES), root)
        self.stack = [root, body]
        self.counts = {"html": 1, "body": 1}
        self.formatting: list[Node | None] = []

    def text(self, piece: str) -> Node:
        """Return the element that text belongs to which comes now."""
        top = self.stack[-1]
        if not piece.isspace():
            if not self.solid:
                self.begun = self.solid = True
            if self.formatting:
                self.reconstruct()
                top = self.stack[-1]
            if top.name in elements.TABLE_INSIDE:
                top = self._in_front_of_table()
        top.filled = True
        return top

    def start(self, tag: Tag) -> Node | None:
        """Take a start tag; return its element, None for a tag that makes none."""
        stack = self.stack
        if stack[-1].foreign and (foreign := start_foreign(self, tag)):
            return foreign
        if tag.rule is None:
            if self.formatting:
                self.reconstruct()
        elif not tag.rule(self, tag):
            return None
        name, flags = tag.name, tag.flags
        if not self.solid and self._stands_in_head(tag):
            return self._in_head(tag)
        top = stack[-1]
        if top.name in elements.TABLE_INSIDE and not flags & TABLE_OWN:
            top = self._in_front_of_table()
        if flags & FOREIGN_ROOT:
            name = f"{name}\0{name}"
        node = self.made(tag, name, top)
        if flags & UNPUSHED or (tag.empty and node.foreign):
            return node
        stack.append(node)
        self.counts[name] = self.counts.get(name, 0) + 1
        if flags & LISTED:
            self._list(node if flags & FORMATTING else None)
        return node

    def imply(self, name: str) -> None:
        """Open an element whose tag was left out."""
        self.start(_IMPLIED[name])

    def _stands_in_head(self, tag: Tag) -> bool:
        """Tell whether a tag comes before the body, which all but those of the head begin."""
        if tag.flags & HEAD:
            return not self.begun
        self.begun = True
        self.solid = tag.name in elements.SOLID
        return False

    def _in_head(self, tag: Tag) -> Node:
        node = self.made(tag, tag.name, self._head)
        if tag.name == "template":
            self.push(node)
            self._list(None)
        return node

    def end(self, tag: Tag) -> Node | None:
        """Take an end tag; return the element that it ends."""
        stack, name = self.stack, tag.name
        top = stack[-1]
        if top.name == name and len(stack) > 2:
            if not tag.flags & FORMATTING:
                return self.pop()
            if self.formatting and self.formatting[-1] is top:
                self.formatting.pop()
                return self.pop()
        if top.foreign and name not in ("p", "br"):
            found, ended = end_foreign(self, name)
            if found:
                return ended
        return self._end_html(name)

    def _end_html(self, tag: str) -> Node | None:
        if tag in elements.FORMATTING:
            return self.end_formatting(tag)
        if tag in elements.HEADINGS:
            return self._end_innermost(elements.HEADINGS, elements.SHIELDS)
        if not self.counts.get(tag) or tag in elements.PAGE:
            return None
        if tag == "form":
            return self._end_form()
        shields = _END_SHIELDS.get(tag)
        return self._end_other(tag) if shields is None else self.close(tag, shields)

    def merge(self, tag: str, values: dict[str, str]) -> None:
        """Give the attributes of one more `html` or `body` tag to the element."""
        if tag == "head":
            return
        node = self.stack[0 if tag == "html" else 1]
        if values:
            node.values = values | node.values
            node.look = look_of(tag, node.values)
            if self.begun and node.look:
                self.merged[tag] = node.values
            self.restyle()
        if tag == "body":
            self.begun = self.solid = True

    def restyle(self) -> None:
        """Work out anew how all open elements are shown."""
        self._styler.style(self.stack[0])
        self._restyle(1)

    def _page_node(self, name: str, values: dict[str, str], parent: Node | None) -> Node:
        return self.made(Tag(name, values), name, parent)

    def made(self, tag: Tag, name: str, parent: Node | None) -> Node:
        """Make an element and work out how it is shown."""
        style = ROOT if parent is None else parent.style
        node = Node(tag.name, name, tag.values, tag.look, parent, style)
        if self._kept:
            self._place(node)
        if not tag.plain or node.foreign or self._sheets.any:
            self._styler.style(node)
        return node

    def _place(self, node: Node) -> None:
        """Note where an element stands among its neighbours."""
        if len(self.nodes) < len(self._after):
            node.after = self._after[len(self.nodes)]
        self.nodes.append(node)
        node.join()

    def push(self, node: Node) -> None:
        """Open an element."""
        self.stack.append(node)
        self.counts[node.name] = self.counts.get(node.name, 0) + 1

    def _list(self, node: Node | None) -> None:
        """Take a formatting element, or a mark that parts those before it, into the list."""
        self.formatting.append(node)
        if node is not None and len(self.formatting) > _FORMATTING_MAX:
            del self.formatting[0]

    def pop(self) -> Node:
        """Take the innermost element off."""
        node = self.stack.pop()
        node.open = False
        self.counts[node.name] -= 1
        if node.name in elements.MARKED:
            while self.formatting and self.formatting.pop() is not None:
                pass
        return node

    def _in_front_of_table(self) -> Node:
        return self.stack[self.find("table", elements.NONE) - 1]

    def find(self, name: str, shields: frozenset[str]) -> int:
        """Return the place of the innermost open element of that name, 0 if shielded or none."""
        stack = self.stack
        if not self.counts.get(name) or self.work <= 0:
            return 0
        top = len(stack) - 1
        for place in range(top, 1, -1):
            each = stack[place].name
            if each == name:
                self.work -= top - place
                return place
            if each in shields:
                break
        self.work -= top
        return 0

    def close(self, name: str, shields: frozenset[str]) -> Node | None:
        """End the innermost element of that name with all that is open in it."""
        at = self.find(name, shields)
        return self.pop_through(at) if at else None

    def pop_through(self, at: int) -> Node:
        """End the element at a place with all that is open in it."""
        while len(self.stack) > at + 1:
            self.broken = self.pop().name in elements.BREAKING or self.broken
        return self.pop()

    def reconstruct(self) -> None:
        """Open formatting elements again whose block has ended (WHATWG §13.2.4.3)."""
        formatting = self.formatting
        if not formatting or (last := formatting[-1]) is None or last.open:
            return
        first = len(formatting) - 1
        while first and (each := formatting[first - 1]) is not None and not each.open:
            first -= 1
        for place in range(first, len(formatting)):
            old = formatting[place]
            self.work -= 20
            if old is None or self.work <= 0:
                del formatting[place:]
                return
            top = self.stack[-1]
            parent = self._in_front_of_table() if top.name in elements.TABLE_INSIDE else top
            node = self.made(Tag(old.tag, old.values), old.tag, parent)
            self.push(node)
            formatting[place] = node

    def end_formatting(self, tag: str) -> Node | None:
        """End a formatting element (WHATWG §13.2.6.4.7, the adoption agency algorithm)."""
        found = None
        for place in range(len(self.formatting) - 1, -1, -1):
            each = self.formatting[place]
            if each is None:
                break
            if each.tag == tag:
                found = each
                break
        if found is None:
            return self._end_other(tag)
        if not found.open:
            self.formatting.remove(found)
            return None
        at = self.find(tag, elements.SHIELDS)
        while at > 1 and self.stack[at] is not found:  # one without its place in the list
            at -= 1
        if at <= 1:
            return None
        self.formatting.remove(found)
        stack = self.stack
        block = next((n for n in range(at + 1, len(stack)) if stack[n].name in elements.SPECIAL), 0)
        if not block:
            return self.pop_through(at)
        self.work -= len(stack) - at
        inner = [node for node in stack[at + 1 : block] if node not in self.formatting]
        for node in (found, *inner):
            node.open = False
            self.counts[node.name] -= 1
            stack.remove(node)
        self._restyle(at)
        return found

    def _restyle(self, at: int) -> None:
        """Work out anew how the open elements from a place on are shown."""
        for place in range(at, len(self.stack)):
            self.work -= 20
            if self.work <= 0:
                return
            self.stack[place].parent = self.stack[place - 1]
            self._styler.style(self.stack[place])

    def _end_other(self, tag: str) -> Node | None:
        if not self.counts.get(tag):
            return None
        return self._end_innermost((tag,), elements.SPECIAL)

    def _end_innermost(self, tags: Container[str], shields: frozenset[str]) -> Node | None:
        """End the innermost element of these names, unless one of `shields` is open in it."""
        for place in range(len(self.stack) - 1, 1, -1):
            self.work -= 1
            name = self.stack[place].name
            if name in tags:
                return self.pop_through(place)
            if name in shields or self.work <= 0:
                return None
        return None

    def _end_form(self) -> Node | None:
        at = self.find("form", elements.SHIELDS)
        if not at:
            return None
        node = self.stack[at]
        self.imply_ends()
        if at == len(self.stack) - 1:
            return self.pop()
        node.open = False
        self.counts["form"] -= 1
        del self.stack[at]
        return node

    def imply_ends(self) -> None:
        """End what an end tag may be left out of."""
        while self.stack[-1].name in elements.IMPLIED_END:
            self.pop()
