"""One element of a page while it is gone through: where it stands, and how its text is shown."""

from spamd.message.html.style import Style
from spamd.message.html.tag import Said

After = tuple[int, int, bool]
UNKNOWN_AFTER: After = (-2, -2, False)  # no selector asks for the last element but one before it


class Node:
    r"""One element: where it stands, and how its text is shown.

    name    as tag, but that of a foreign element says so: svg\0title
    look    which of its attributes decide how it is shown      filled  text stands right inside
    last    its youngest child     previous, index  the child of its parent before it, its place
    outer   of an element that shows some of its children only: how it would be shown itself
    block   whether a style sheet says that it stands apart

    Where neighbours are not asked for, `last`, `previous`, `index` and `after` are not known.
    """

    __slots__ = (
        "after", "block", "filled", "foreign", "index", "last", "look", "name", "open", "outer",
        "parent", "previous", "style", "tag", "values",
    )  # fmt: skip

    def __init__(
        self, tag: str, name: str, values: dict[str, str], look: Said, parent: "Node | None",
        style: Style,
    ) -> None:  # fmt: skip
        self.tag = tag
        self.name = name
        self.values = values
        self.look = look
        self.parent = parent
        self.style = style
        self.outer: Style | None = None
        self.block: bool | None = None
        self.open = True
        self.foreign = tag != name
        self.filled = False
        self.last: Node | None = None
        self.previous: Node | None = None
        self.index = 1
        self.after = UNKNOWN_AFTER

    def join(self) -> None:
        """Become the youngest child of the parent."""
        if (parent := self.parent) is not None:
            if (elder := parent.last) is not None:
                self.previous = elder
                self.index = elder.index + 1
            parent.last = self


def following(nodes: list[Node]) -> list[After]:
    """Return what follows each of the elements of a page, in the order they were opened."""
    siblings: dict[tuple[Node, str], int] = {}
    found: list[After] = []
    for node in reversed(nodes):
        if node.parent is None:
            found.append((0, 0, False))
            continue
        every, kind = (node.parent, ""), (node.parent, node.tag)
        empty = not node.filled and node.last is None
        found.append((siblings.get(every, 0), siblings.get(kind, 0), empty))
        siblings[every] = siblings.get(every, 0) + 1
        siblings[kind] = siblings.get(kind, 0) + 1
    found.reverse()
    return found
