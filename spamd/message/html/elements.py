"""The elements of HTML, sorted by how a browser treats their tags (WHATWG HTML §13.2, §15.3)."""


def names(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


NONE = names("")

VOID = names(
    "area base basefont bgsound br col embed frame hr image img input keygen link meta param"
    " source track wbr"
)
"""No content, no end tag."""

ESCAPABLE = names("textarea title")
"""Content is text with character references."""

LITERAL = names("xmp plaintext")
"""Content is text as it stands, and is shown."""

UNSHOWN = names("script style iframe noembed noframes")
"""Content is text as it stands, and isn't shown."""

RAW = ESCAPABLE | LITERAL | UNSHOWN

BREAKING = names(
    "address article aside blockquote body br button caption center col colgroup dd details dialog"
    " dir div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html"
    " input legend li listing main menu nav ol optgroup option p plaintext pre search section"
    " select summary table tbody td textarea tfoot th thead tr ul xmp"
)
"""Text before and text behind such a tag don't stand in one word."""

INLINE = names(
    "a abbr acronym b bdi bdo big cite code del dfn em font i img ins kbd label mark nobr q s samp"
    " small span strike strong sub sup time tt u var wbr"
)
"""Elements that stand inside words for honest reasons."""

FORMATTING = names("a b big code em font i nobr s small strike strong tt u")
"""Those that go on behind the end of a block that they were left open in."""

MARKED = names("applet caption marquee object td template th")
"""Those out of which no formatting element goes on."""

PAGE = names("body head html")

HEADINGS = names("h1 h2 h3 h4 h5 h6")

ENDS_PARAGRAPH = (
    names(
        "address article aside blockquote center details dialog dir div dl fieldset figcaption"
        " figure footer form header hgroup hr li listing main menu nav ol p plaintext pre search"
        " section summary ul xmp dd dt"
    )
    | HEADINGS
)

PAIRED = names(
    "address article aside blockquote button center details dialog dir div dl fieldset figcaption"
    " figure footer header hgroup listing main menu nav ol pre search section select summary ul"
)
"""Blocks whose end tag counts only if nothing shields them."""

UNPUSHED = VOID | RAW
"""Nothing is ever open in these."""

SPECIAL = names(
    "address applet area article aside base basefont bgsound blockquote body br button caption"
    " center col colgroup dd details dir div dl dt embed fieldset figcaption figure footer form"
    " frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe img input keygen li link"
    " listing main marquee menu meta nav noembed noframes noscript object ol p param plaintext pre"
    " script section select source style summary table tbody td template textarea tfoot th thead"
    " title tr track ul wbr xmp svg\0desc svg\0title svg\0foreignobject math\0mi math\0mo math\0mn"
    " math\0ms math\0mtext math\0annotation-xml"
)
"""An end tag of no particular element doesn't reach through these."""

HTML_INSIDE = names(
    "svg\0desc svg\0title svg\0foreignobject math\0mi math\0mo math\0mn math\0ms math\0mtext"
)
"""Foreign elements whose content is HTML again."""

SHIELDS = MARKED | names("html select table") | HTML_INSIDE | names("math\0annotation-xml")
BUTTON_SHIELDS = SHIELDS | names("button")
LIST_SHIELDS = SHIELDS | names("ol ul")
TABLE_SHIELDS = names("html table template")

TABLE_INSIDE = names("table tbody tfoot thead tr")
"""Text right inside these stands in front of the table."""

TABLE_PARTS = names("caption col colgroup tbody td tfoot th thead tr")
TABLE_OWN = TABLE_PARTS | names("style script template")
IMPLIED_END = names("dd dt li optgroup option p rb rp rt rtc")

BREAKOUT = names(
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li"
    " listing menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var"
)
"""HTML elements that end foreign content they stand in."""

SOLID = VOID - names("base basefont bgsound frame link meta param source track") | names(
    "applet body button dd dt iframe li listing marquee object pre select table textarea xmp"
)
"""Behind these, as behind text, a page is no page of frames any more."""

HEAD = names(
    "base basefont bgsound head html link meta noframes noscript script style template title"
)
"""What may stand in front of the body."""

NOT_RENDERED = names("audio datalist dialog rp template")
"""Without a box."""

REPLACED = names("datalist meter progress video")
"""They show something else than what stands inside."""

SVG_GROUPS = names("svg\0svg svg\0g svg\0a svg\0switch")
SVG_SHOWN = names("svg\0text svg\0foreignobject") | SVG_GROUPS
SVG_IN_TEXT = names("svg\0tspan svg\0textpath svg\0a")
MATH_TEXT = names("math\0mi math\0mo math\0mn math\0ms math\0mtext")
MATH_UNSHOWN = names("math\0annotation math\0annotation-xml")

PAINTED = names("body table td th thead tbody tfoot tr")
"""They may have a picture behind them, or a colour."""

CONTROLS = names("button input select textarea")
RESIZED = {
    "h1": 2.0, "h2": 1.5, "h3": 1.17, "h5": 0.83, "h6": 0.67,
    "small": 5 / 6, "big": 1.2, "sub": 5 / 6, "sup": 5 / 6,
}  # fmt: skip
"""The size of their font in that of what is around them."""

OWN_LOOK = (
    CONTROLS
    | NOT_RENDERED
    | REPLACED
    | names("body html table details summary option optgroup mark svg math")
    | frozenset(RESIZED)
)
"""Elements that a browser shows in a way of their own, without any attribute."""
