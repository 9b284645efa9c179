"""One element of a page while it is gone through: where it stands, and how its text is shown."""

from spamd.message.html.attributes import Values
from spamd.message.html.style import Style

After = tuple[int, int, bool]
_UNKNOWN_AFTER: After = (-2, -2, False)  # no selector asks for the last element but one before it


class Node:
    """One element: where it stands, and how its text is shown."""

    style: Style
    open = True
    foreign = False
    filled = False
    """Whether text stands right inside."""
    last: "Node | None" = None
    """Its youngest child."""
    outer: Style | None = None
    """Of an element that shows some of its children only: how it would be shown itself."""
    block: bool | None = None
    """Whether a style sheet says that it stands apart."""
    after = _UNKNOWN_AFTER

    def __init__(self, tag: str, name: str, values: Values, parent: "Node | None") -> None:
        self.tag = tag
        self.name = name  # that of a foreign element says so: svg\0title
        self.values = values
        self.parent = parent
        self.previous: Node | None = None
        self.index = 1
        if parent is not None:
            if (elder := parent.last) is not None:
                self.previous = elder
                self.index = elder.index + 1
            parent.last = self
