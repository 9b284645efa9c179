"""Templates become pages: always escaped, and nothing that is missing passes for empty."""

from collections.abc import Mapping

from jinja2 import Environment, PackageLoader, StrictUndefined

from spamd.listeners.web.pages import charts, figures, links
from spamd.listeners.web.pages.assets import Assets
from spamd.listeners.web.pages.texts import texts

FILTERS = {
    "number": figures.number,
    "percent": figures.percent,
    "rate": figures.rate,
    "probability": figures.probability,
    "octets": figures.octets,
    "signed": figures.signed,
    "moment": figures.moment,
    "shown": figures.shown,
    "filled": figures.filled,
    "plural": figures.plural,
}


class Renderer:
    """Makes pages of templates.

    Args:
        assets: the files that pages name.
        version: of spamd.
    """

    def __init__(self, assets: Assets, version: str) -> None:
        made = Environment(
            loader=PackageLoader("spamd.listeners.web.pages", "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        made.filters.update(FILTERS)
        made.globals.update(
            text=texts(),
            asset=assets.path,
            charts=charts,
            link=links,
            views=links.VIEWS,
            version=version,
        )
        self._environment = made

    def page(self, name: str, values: Mapping[str, object]) -> str:
        """Return the page of a template."""
        return self._environment.get_template(f"{name}.html").render(values)
