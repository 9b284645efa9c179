"""Message → what a person gets to read of it: subject, visible text, hidden text, links.

Every text part is read, wherever it stands (two HTML parts, text behind an attachment, messages
inside the message). What is data and not words is blanked: base64-looking runs, PGP armour,
uuencoded blocks. Built once per message; tokens, facts, grams and identity are all taken from it.
"""

import re
from dataclasses import dataclass, replace

from spamd.message import unicode, url
from spamd.message.html.page import render
from spamd.message.limits import Limits
from spamd.message.mime import calendar
from spamd.message.mime.charset import decode, header_text
from spamd.message.mime.form import Form, form_of, is_binary, is_markup
from spamd.message.mime.parser import Message, Part
from spamd.message.subject import without_marks

_ARMOUR = re.compile(
    r"-----BEGIN (PGP|CERT)[A-Z ]*-----.*?(?:-----END [A-Z ]{3,40}-----|\Z)", re.DOTALL
)
_SIGNED = re.compile(r"-----BEGIN PGP SIGNED MESSAGE-----(?:\n[A-Za-z]+: .*)*")
_UUENCODED = re.compile(
    r"^begin [0-7]{3,4} (.{1,200})\n(?:[ -\x60]{1,80}\n)*?(?:\x60?\n)?end$", re.MULTILINE
)
_DATA_LINES = re.compile(
    r"^[>|]?(?=[^\n]*[0-9+/])(?=[^\n]*[A-Z])[A-Za-z0-9+/]{58,}={0,2}$", re.MULTILINE
)
_DATA_SIGNS = bytes(
    97 if code < 128 and (chr(code).isalnum() or chr(code) in "+/") else 32 for code in range(256)
)
_RUN = b"a" * 58  # a line of base64 has 60 to 76 signs, the last one excepted
_ENRICHED = ("text/enriched", "text/richtext")
_PARAM = re.compile(r"<param>[^<]*</param>", re.IGNORECASE)  # RFC 1896: a colour or a font
_FOOTER = re.compile(
    r"(?:\A|\n)(?:_{30,}|-{50,}|={50,})[ \t]*\n"
    r"(?=(?:.*\n){0,6}?.*(?:[Mm]ailing list|listinfo|[Uu]nsubscribe|lists?@))"
    r"(?:.*(?:\n|$)){1,12}\s*\Z"
)
_RULES = ("_" * 30, "-" * 50, "=" * 50)  # one of them begins a footer


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """One part that is not shown as text: its file name ("" when it has none), type, size class."""

    name: str
    type: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a person reads, and what was done to keep a filter from reading it.

    subject   decoded, normalised, without another filter's mark in front
    text      visible, normalised, URLs blanked        hidden  what the reader is not shown
    title     of HTML pages, which no reader shows     links   URLs as written, distinct, in order
    charsets  label or codec of each text part         tricks  names of the tricks found, distinct
    plain, pages  how many plain and HTML texts
    """

    subject: str
    text: str
    hidden: str
    title: str
    links: tuple[str, ...]
    charsets: tuple[str, ...]
    attachments: tuple[Attachment, ...]
    tricks: tuple[str, ...]
    defects: tuple[str, ...]
    plain: int
    pages: int


def read(message: Message, limits: Limits = Limits()) -> Reading:  # noqa: B008 - frozen value
    """Return what a person reads of the message; total."""
    reader = _Reader(limits)
    subject = reader.normalized(
        header_text((message.first("subject") or b"")[: limits.field_bytes])
    )
    for lines in message.strays:
        reader.nested(lines)
    for part in message.parts:
        reader.part(part)
    for field in message.nested:
        if field.name in ("subject", "from", "to"):
            reader.nested(field.value)
    text = reader.text()
    hidden = reader.normalized(reader.bounded("".join(reader.hidden)))
    found, text = url.cut_out(text)
    return Reading(
        subject=without_marks(subject),
        text=text,
        hidden=hidden if not hidden.isspace() else "",
        title=reader.normalized(reader.bounded("".join(reader.titles))),
        links=tuple(dict.fromkeys([*reader.links, *found]))[: limits.links],
        charsets=tuple(reader.charsets),
        attachments=tuple(reader.attachments),
        tricks=tuple(reader.tricks),
        defects=tuple(reader.defects),
        plain=reader.plain,
        pages=reader.pages,
    )


class _Reader:
    """Collects while the parts pass by."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.texts: list[str] = []
        self.hidden: list[str] = []
        self.titles: list[str] = []
        self.links: dict[str, None] = {}
        self.charsets: list[str] = []
        self.attachments: list[Attachment] = []
        self.tricks: dict[str, None] = {}
        self.defects: dict[str, None] = {}
        self.bytes_left = limits.text_bytes
        self.nodes_left = limits.html_nodes
        self.guesses_left = limits.guesses
        self.field_chars_left = limits.text_chars
        self.plain = self.pages = 0

    def normalized(self, text: str) -> str:
        """Return the text in NFKC without invisible signs, and note when these split words."""
        if text.isascii():
            return text
        text, split = unicode.normalize(text)
        if split:
            self.tricks["invisible"] = None
        return self.bounded(text)  # NFKC makes several signs of one

    def nested(self, value: bytes) -> None:
        """Read a field of a message inside the message."""
        value = value[: min(self.limits.field_bytes, self.field_chars_left)]
        self.field_chars_left -= len(value)
        text = header_text(value, guess=self.guesses_left > 0)
        self.guesses_left -= not text.isascii()
        self.texts.append(text)

    def text(self) -> str:
        """Return the visible text of all parts, of a long one its first and its last half.

        It is cut before the work: what is left out is not normalised.
        """
        return self.bounded("\n".join([self._clean(text) for text in self._kept()]))

    def _kept(self) -> list[str]:
        """Return the texts, so many signs of the first and of the last ones as may be read."""
        texts, half = self.texts, self.limits.text_chars // 2
        if sum(map(len, texts)) <= 2 * half:
            return texts
        self.defects["text cut"] = None
        first: list[str] = []
        last: list[str] = []
        left = max(1, half)
        while left:
            first.append(texts[len(first)][:left])
            left -= len(first[-1])
        cut = len(first) - 1
        texts = [texts[cut][len(first[cut]) :], *texts[cut + 1 :]]
        left = half
        while left and texts:
            last.append(texts.pop()[-left:])
            left -= len(last[-1])
        return first + last[::-1]

    def _clean(self, text: str) -> str:
        return self._without_data(self.normalized(text))

    def bounded(self, text: str) -> str:
        """Return the first and the last half of what may be read of a text that is too long."""
        limit = self.limits.text_chars
        if len(text) <= limit:
            return text
        self.defects["text cut"] = None
        return f"{text[: limit // 2]}\n{text[-(limit // 2) :]}"

    def part(self, part: Part) -> None:
        """Read one part as text, or note it as an attachment."""
        name = part.name
        form = form_of(part)
        if form is not None:
            self._text(part, form)
            if not name:
                return
        self.attachments.append(
            Attachment(name=name[:255], type=part.content_type.type, size_bytes=len(part.body))
        )

    def _text(self, part: Part, form: Form) -> None:
        limit = min(self.bytes_left, self.limits.part_bytes)
        self.bytes_left -= min(limit, len(part.body))
        if len(part.body) > limit:
            self.defects["text cut"] = None
        data = part.payload(limit)
        label = part.content_type.parameters.get("charset", "")[:64]
        if form is Form.CARD and calendar.is_card(data):
            self._card(data, label)
            return
        decoded = decode(data, label, guess=self.guesses_left > 0)
        self.guesses_left -= decoded.mislabelled
        text = decoded.text
        self._charset(label, decoded.codec)
        if decoded.mislabelled:
            self.defects["bad charset"] = None
        if (not text.isascii() or "\x01" <= text[:1] < "\t") and is_binary(text):
            self.defects["binary text"] = None
            return
        if form is Form.PAGE or is_markup(text):
            if part.content_type.type in _ENRICHED:
                text = _PARAM.sub("", text)
            self._html(text)
        else:
            self._plain(text)

    def _charset(self, label: str, codec: str) -> None:
        self.charsets.append(label.strip().lower()[:40] or codec)

    def _plain(self, text: str) -> None:
        self.plain += 1
        self.texts.append(text)

    def _card(self, data: bytes, label: str) -> None:
        card = calendar.read(data, label, guess=self.guesses_left > 0)
        self.guesses_left -= card.codec not in ("ascii", "utf_8")
        self._charset(label, card.codec)
        self._plain(card.text)
        for page in card.pages:
            self._html(page)

    def _html(self, text: str) -> None:
        self.pages += 1
        limits = self.limits
        if self.nodes_left < limits.html_nodes:  # making limits takes longer than a small page
            limits = replace(limits, html_nodes=max(1, self.nodes_left))
        page = render(text, limits)
        self.nodes_left -= text.count("<")
        self.texts.append(page.text)
        self.links |= dict.fromkeys(map(self.normalized, page.links))
        if page.title:
            self.titles.append(page.title)
        if page.hidden and not page.hidden.isspace():
            self.hidden.append(page.hidden)
        if page.split:
            self.tricks["split"] = None
        if page.cut:
            self.defects["html cut"] = None

    def _without_data(self, text: str) -> str:
        """Return the text without armour, uuencoded blocks, runs of base64 and list footer."""
        if "-----BEGIN " in text:
            text = _ARMOUR.sub("\n", _SIGNED.sub("", text))
        if "\nend" in text and "begin " in text:
            for name in _UUENCODED.findall(text):
                self.attachments.append(Attachment(name=name, type="x-uuencode", size_bytes=0))
            text = _UUENCODED.sub("", text)
        if _RUN in text.encode("ascii", "replace").translate(_DATA_SIGNS):
            text = _DATA_LINES.sub("", text)
        return without_footer(text)


def without_footer(text: str) -> str:
    """Return the text without the footer that a mailing list put under it, if recognisable."""
    tail = text[-2000:]
    if not any(rule in tail for rule in _RULES):
        return text
    footer = _FOOTER.search(tail)
    return text if footer is None else text[: len(text) - len(tail) + footer.start()]
