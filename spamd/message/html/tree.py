"""Which elements are open: a browser's tree construction, as far as it decides what is shown.

The rules are those of WHATWG HTML §13.2.6 for what stands in a body: implied end tags, elements in
scope, formatting elements that go on behind the block that they were left open in, tables and what
stands in them at the wrong place, foreign content. No tree is kept but each element's parents and
elder siblings, which selectors ask for.

The work that hostile nesting can cause (walks through the open elements, elements opened again)
is counted; once `work` is spent, what is left is read by its tags alone.
"""

from collections.abc import Callable

from spamd.message.html import elements
from spamd.message.html.attributes import Values
from spamd.message.html.implied import STARTS
from spamd.message.html.node import After, Node

_WORK = 400_000
_FORMATTING_MAX = 64
_NOTHING = Values()


_HEAD, _TABLE_OWN, _UNPUSHED, _ROOT, _FORMATTING, _MARKED = 1, 2, 4, 8, 16, 32
_LISTED = _FORMATTING | _MARKED
_SETS = {
    _HEAD: elements.HEAD,
    _TABLE_OWN: elements.TABLE_OWN,
    _UNPUSHED: elements.UNPUSHED,
    _ROOT: elements.names("svg math"),
    _FORMATTING: elements.FORMATTING,
    _MARKED: elements.MARKED,
}
_FLAGS: dict[str, int] = {}  # one look-up for all of these sets
for _flag, _names in _SETS.items():
    for _name in _names:
        _FLAGS[_name] = _FLAGS.get(_name, 0) | _flag


_END_SHIELDS = {
    **dict.fromkeys(
        elements.PAIRED | elements.names("dd dt object applet marquee"), elements.SHIELDS
    ),
    **dict.fromkeys(elements.TABLE_PARTS | {"table"}, elements.TABLE_SHIELDS),
    "p": elements.BUTTON_SHIELDS,
    "li": elements.LIST_SHIELDS,
    "template": elements.NONE,
}


def _ordinary(tree: "Tree", _tag: str) -> bool:
    if tree.formatting:
        tree.reconstruct()
    return True


class Tree:
    """The stack of open elements and the list of formatting elements (WHATWG §13.2.4)."""

    def __init__(
        self, styled: Callable[[Node], None], *, quirks: bool, first: "Tree | None" = None
    ) -> None:
        self._styled = styled
        self.quirks = quirks
        self._after = [] if first is None else first.following()
        given = {} if first is None else first.merged
        self._nodes: list[Node] = []
        self.work = _WORK
        self.broken = False  # an end tag has ended blocks inside its element
        self.solid = False  # something of a body was met that is no page of frames
        self.begun = False  # something of the body was met
        self.merged: dict[str, Values] = {}  # attributes of `html` and `body` tags that came late
        root = self._node("html", "html", given.get("html", _NOTHING), None)
        self._head = self._node("head", "head", _NOTHING, root)
        body = self._node("body", "body", given.get("body", _NOTHING), root)
        self.stack = [root, body]
        self.counts = {"html": 1, "body": 1}
        self.formatting: list[Node | None] = []

    def text(self, *, blank: bool) -> Node:
        """Return the element that text belongs to which comes now."""
        top = self.stack[-1]
        if not blank:
            self.begun = self.solid = True
            formatting = self.formatting
            if formatting and (last := formatting[-1]) is not None and not last.open:
                self.reconstruct()
                top = self.stack[-1]
            if top.name in elements.TABLE_INSIDE:
                top = self._in_front_of_table()
        top.filled = True
        return top

    def start(self, tag: str, values: Values, *, empty: bool) -> Node | None:
        """Take a start tag; return its element, None for a tag that makes none."""
        top = self.stack[-1]
        if top.foreign and (foreign := self._start_foreign(tag, values, empty=empty)):
            return foreign
        if tag in elements.PAGE:
            self.merge(tag, values)
            return None
        if not STARTS.get(tag, _ordinary)(self, tag):
            return None
        flags = _FLAGS.get(tag, 0)
        if not (self.solid and self.begun):
            self._note_beginning(tag)
            if flags & _HEAD and not self.begun:
                return self._in_head(tag, values)
        top = self.stack[-1]
        if top.name in elements.TABLE_INSIDE and not flags & _TABLE_OWN:
            top = self._in_front_of_table()
        if flags & _UNPUSHED:
            return self._node(tag, tag, values, top)
        node = self._node(tag, f"{tag}\0{tag}" if flags & _ROOT else tag, values, top)
        if not (empty and node.foreign):
            self._push(node, flags)
        return node

    def _note_beginning(self, tag: str) -> None:
        if tag not in elements.HEAD:
            self.begun = True
            self.solid = self.solid or tag in elements.SOLID

    def _in_head(self, tag: str, values: Values) -> Node:
        node = self._node(tag, tag, values, self._head)
        if tag == "template":
            self._push(node, _MARKED)
        return node

    def end(self, tag: str) -> Node | None:
        """Take an end tag; return the element that it ends."""
        top = self.stack[-1]
        if top.name == tag and tag != "body":
            formatting = self.formatting
            if tag not in elements.FORMATTING:
                return self.pop()
            if formatting and formatting[-1] is top:
                formatting.pop()
                return self.pop()
        if top.foreign and tag not in ("p", "br"):
            found, ended = self._end_foreign(tag)
            if found:
                return ended
        return self._end_html(tag)

    def _end_html(self, tag: str) -> Node | None:
        if tag in elements.FORMATTING:
            return self.end_formatting(tag)
        if tag in elements.HEADINGS:
            return self._end_heading()
        if not self.counts.get(tag) or tag in elements.PAGE:
            return None
        if tag == "form":
            return self._end_form()
        shields = _END_SHIELDS.get(tag)
        return self._end_other(tag) if shields is None else self.close(tag, shields)

    def merge(self, tag: str, values: Values) -> None:
        """Give the attributes of one more `html` or `body` tag to the element."""
        if tag == "head":
            return
        node = self.stack[0 if tag == "html" else 1]
        if values:
            node.values = Values.of(values | node.values)
            if self.begun and node.values.look is not None:
                self.merged[tag] = node.values
            self.restyle()
        if tag == "body":
            self.begun = self.solid = True

    def restyle(self) -> None:
        """Work out anew how all open elements are shown."""
        self._styled(self.stack[0])
        self._restyle(1)

    def _node(self, tag: str, name: str, values: Values, parent: Node | None) -> Node:
        """Make an element and work out how it is shown."""
        node = Node(tag, name, values, parent)
        nodes, after = self._nodes, self._after
        if after and len(nodes) < len(after):
            node.after = after[len(nodes)]
        nodes.append(node)
        if tag != name:
            node.foreign = True
        self._styled(node)
        return node

    def following(self) -> list[After]:
        """Return what follows each element, in the order they were opened."""
        siblings: dict[tuple[Node, str], int] = {}
        found: list[After] = []
        for node in reversed(self._nodes):
            if node.parent is None:
                found.append((0, 0, False))
                continue
            every, kind = (node.parent, ""), (node.parent, node.tag)
            found.append(
                (
                    siblings.get(every, 0),
                    siblings.get(kind, 0),
                    not node.filled and node.last is None,
                )
            )
            siblings[every] = siblings.get(every, 0) + 1
            siblings[kind] = siblings.get(kind, 0) + 1
        found.reverse()
        return found

    def _push(self, node: Node, flags: int) -> None:
        name, counts = node.name, self.counts
        self.stack.append(node)
        counts[name] = counts.get(name, 0) + 1
        if not flags & _LISTED:
            return
        if flags & _FORMATTING:
            formatting = self.formatting
            formatting.append(node)
            if len(formatting) > _FORMATTING_MAX:
                del formatting[0]
        else:
            self.formatting.append(None)

    def pop(self) -> Node:
        """Take the innermost element off."""
        node = self.stack.pop()
        node.open = False
        self.counts[node.name] -= 1
        if node.name in elements.MARKED:
            while self.formatting and self.formatting.pop() is not None:
                pass
        return node

    def _here(self) -> Node:
        top = self.stack[-1]
        return self._in_front_of_table() if top.name in elements.TABLE_INSIDE else top

    def _in_front_of_table(self) -> Node:
        at = self.find("table", elements.NONE)
        return self.stack[at - 1] if at else self.stack[-1]

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
            node = self._node(old.tag, old.tag, old.values, self._here())
            self.stack.append(node)
            self.counts[node.name] = self.counts.get(node.name, 0) + 1
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
            self._styled(self.stack[place])

    def _end_other(self, tag: str) -> Node | None:
        stack = self.stack
        if not self.counts.get(tag):
            return None
        for place in range(len(stack) - 1, 1, -1):
            self.work -= 1
            name = stack[place].name
            if name == tag:
                return self.pop_through(place)
            if name in elements.SPECIAL or self.work <= 0:
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

    def _end_heading(self) -> Node | None:
        for place in range(len(self.stack) - 1, 1, -1):
            self.work -= 1
            name = self.stack[place].name
            if name in elements.HEADINGS:
                return self.pop_through(place)
            if name in elements.SHIELDS or self.work <= 0:
                return None
        return None

    def imply_ends(self) -> None:
        """End what an end tag may be left out of."""
        while self.stack[-1].name in elements.IMPLIED_END:
            self.pop()

    def _start_foreign(self, tag: str, values: Values, *, empty: bool) -> Node | None:
        """Take a start tag inside `svg` or `math`; None when it is one of HTML all the same."""
        top = self.stack[-1]
        kind = top.name.partition("\0")[0]
        if top.name in elements.HTML_INSIDE and not (
            kind == "math" and top.tag not in ("desc", "title") and tag in ("mglyph", "malignmark")
        ):
            return None
        if top.name == "math\0annotation-xml" and (
            tag == "svg" or "html" in values.get("encoding", "") or _is_html(top)
        ):
            return None
        if tag in elements.BREAKOUT or (
            tag == "font" and not {"color", "face", "size"}.isdisjoint(values)
        ):
            while "\0" in (name := self.stack[-1].name) and name not in elements.HTML_INSIDE:
                self.pop()
            return None
        node = self._node(tag, f"{kind}\0{tag}", values, top)
        if not empty:
            self._push(node, 0)
        return node

    def _end_foreign(self, tag: str) -> tuple[bool, Node | None]:
        """Take an end tag inside `svg` or `math`; tell whether it is no matter of HTML."""
        for place in range(len(self.stack) - 1, 1, -1):
            self.work -= 1
            node = self.stack[place]
            if not node.foreign:
                return False, None
            if node.tag == tag:
                return True, self.pop_through(place)
        return False, None


def _is_html(node: Node) -> bool:
    return node.values.get("encoding", "").lower() in ("text/html", "application/xhtml+xml")
