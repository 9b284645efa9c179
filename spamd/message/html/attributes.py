"""The attributes of a tag, and what of them decides how the element is shown."""

_LOOKS = (
    "style", "hidden", "color", "bgcolor", "background", "text", "link", "size", "open"
)  # fmt: skip


Said = tuple[str | None, ...]
NO_SAID: Said = (None,) * 10


class Values(dict[str, str]):
    """The attributes of a tag.

    look   what of them, without class and id, decides how the element is shown
    tells  they hold a link or something to read
    """

    tells = False
    look: Said | None = None

    @classmethod
    def of(cls, values: dict[str, str]) -> "Values":
        """Return a copy of attributes."""
        found = cls()
        found.update(values)
        found.note_look()
        return found

    def note_look(self, *, tells: bool = False) -> None:
        """Work out `look` once the attributes are complete."""
        self.tells = tells
        if not _LOOKING.isdisjoint(self):
            self.look = (*map(self.get, _LOOKS), "" if "href" in self else None)


_LOOKING = frozenset({*_LOOKS, "href"})
