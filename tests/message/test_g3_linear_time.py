"""Whatever a stranger writes, reading it takes time in proportion: every pattern, every function.

The patterns are those of all modules that meet the bytes of a mail; the texts are made from each
pattern, see `linear`. No clock of the wall: CPU time, the best of several, n against 4n.
"""

import inspect
import re
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import pytest

from spamd.message import (
    facts,
    features,
    header_top,
    identity,
    reading,
    spam_fields,
    subject,
    trace,
    unicode,
    url,
)
from spamd.message.authentication import results, route, sender
from spamd.message.authentication.proof import AuthOptions
from spamd.message.css import colour, declarations, selector, stylesheet
from spamd.message.html import page, tag
from spamd.message.limits import Limits
from spamd.message.mime import calendar, charset, content_type, form, parser, transfer
from spamd.message.tokens import grams, hashing, headers, kinds, origin, shape
from spamd.relay.content import newlines, received_field
from spamd.relay.content.data import stuffed, unstuffed
from spamd.relay.smtp.commands import parse_path, without_unsupported

from . import linear
from .helpers import mail

MODULES = linear.modules(
    "spamd.message",
    "spamd.relay",
    "spamd.feedback",
    "spamd.cli.mail.files",
    "spamd.cli.targets",
    "spamd.evaluation.index",
)
PATTERNS = {
    f"{module.__name__.removeprefix('spamd.')}.{name}": (module.__name__, name, pattern)
    for module in MODULES
    for name, pattern in linear.patterns(module).items()
}


def attempts(module: str, name: str, pattern: linear.Pattern) -> dict[str, Callable[[Any], object]]:
    """Return the ways in which the program applies a pattern."""
    used = linear.methods_used(module, name)
    found: dict[str, Callable[[Any], object]] = {}
    if used & {"match", "fullmatch"}:
        found |= {"match": pattern.match, "fullmatch": pattern.fullmatch}
    if used - {"match", "fullmatch"}:
        nothing: Any = b"" if isinstance(pattern.pattern, bytes) else ""
        found["search"] = lambda text: pattern.sub(nothing, text)
    return found


def worst(
    pattern: linear.Pattern, attempt: Callable[[Any], object]
) -> tuple[float, str, float, str]:
    """Return the worst growth and the longest short attempt, each with its text."""

    def as_subject(text: str) -> Any:
        return text.encode("utf-8", "replace") if isinstance(pattern.pattern, bytes) else text

    longest, long = 0.0, ""
    for short in linear.distinct(linear.short_texts(pattern)):
        subject = as_subject(short)
        seconds = linear.cpu_s(attempt, subject)
        if seconds > linear.SHORT_S:
            seconds = linear.cpu_s(attempt, subject, 5)
        if seconds > longest:
            longest, long = seconds, short
        if longest > linear.SHORT_S:
            return 0.0, "", longest, long  # a longer text may take for ever
    growth, grown = 0.0, ""
    sizes = linear.texts(pattern, linear.SIZE), linear.texts(pattern, 4 * linear.SIZE)
    for small, large in zip(*map(linear.distinct, sizes), strict=False):
        ratio = linear.growth(attempt, as_subject(small), as_subject(large))
        if ratio > growth:
            growth, grown = ratio, large[:60]
        if growth > linear.GROWTH:
            break
    return growth, grown, longest, long


@pytest.mark.parametrize("place", sorted(PATTERNS))
def test_g3_a_pattern_takes_time_in_proportion_to_the_text(place: str) -> None:
    module, name, pattern = PATTERNS[place]
    for how, attempt in attempts(module, name, pattern).items():
        growth, grown, longest, long = worst(pattern, attempt)
        assert growth <= linear.GROWTH, (how, grown)
        assert longest <= linear.SHORT_S, (how, long)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a+)+$",
        r"(?:a|a)*b",
        r"\s*\s*x",
        r"(?=.{4,20}$)[A-Za-z]+[0-9]+(?:[A-Za-z]+[0-9]*)+$",
        r"<[^>]*>",
        rb"From .*\d\d:\d\d.*\d{4}z",
    ],
)
def test_g3_a_pattern_that_is_not_linear_is_found(pattern: str | bytes) -> None:
    compiled: re.Pattern[Any] = re.compile(pattern)
    ways = (compiled.match, compiled.search, compiled.findall)
    found = (worst(compiled, attempt) for attempt in ways)
    assert any(
        growth > linear.GROWTH or longest > linear.SHORT_S for growth, _, longest, _ in found
    )


@pytest.mark.parametrize("place", sorted(PATTERNS))
def test_a_pattern_matches_the_same_in_every_python_that_is_supported(place: str) -> None:
    pattern = PATTERNS[place][2]
    assert not isinstance(pattern, re.Pattern) or linear.repeated_groups(pattern) == []


def test_a_group_repeated_possessively_is_found() -> None:
    assert linear.repeated_groups(re.compile("a(?:bd|c)*+")) != []
    assert linear.repeated_groups(re.compile("a[bc]*+(?>(?:bd|c)*)")) == []


@pytest.mark.parametrize("name", sorted(linear.sources(MODULES)))
def test_g3_no_pattern_hides_from_the_walk(name: str) -> None:
    assert linear.hidden_patterns(linear.sources(MODULES)[name]) == []


def test_g3_a_hidden_pattern_is_found() -> None:
    source = "def f(x):\n    re.compile(x)\n    return re.sub('a', 'b', x)\n"
    assert len(linear.hidden_patterns(source)) == 2


# Functions

UNITS = (
    "a", " ", "\t", "\n", "\r", "\0", "-", "'", "=", "?", ";", ":", ",", ".", "@", "<", ">", "&",
    "\"", "\\", "(", "[", "{", "*", "%", "#", "/", "1", "e1", "a ", "a-", "-a", "1.", "a@", "@a.",
    "a b c d ", "http://", "www.a", "www.a.example ", "http://a.example/b?c=d ", "://",
    "mailto:a@b ", "xn--a.", "a.", "a.b.example,", "x1abcdefghijklmno-q ", "V1agr4 ", "Vі",
    "a\u200bb", "\u200b", "е1 ", "é", "éa ", "a\u0301\u0323", "\u0301\u0323", "\u0345\u0301",
    "\u0f73\u0344", "\U0001d165\u0323", "\u1100\u1161\u11a8", "\u1161", "\ufdfa", "\ufdfb ",
    "\ufdf2", "\u3300", "ﾞ\u0323", "發", "發a", "🔥", "ﬁ", "&#x301;&#x323;", "&#769;&#803;", "&#9",
    "&amp", "&lt;", "&nbsp;", "&aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "<p>", "<a>", "</a>",
    "<b>a</b>", "<div>", "<!--", "-->", "<!", "<?", "<td>", "<a href=", "<a b='", "<style>",
    "<style>a{", "<title>", "<textarea>", "<script>", "<xmp>", "<svg>", "<p style=color:red>",
    "<p class=a id=b>", ".a{display:none}", "a{", "}", "/*", "*/", "@media{", "a,", "a b>c~d+e ",
    "a:not(", "rgb(", "url(", "0.", "font:", ";;", "=?x?q?", "=?x?q?a?= ", "=?x?b?",
    "=?utf-8?B?4p=?= ", "=?x?q?=E4=F6?= ", "=?a?q?=E4?= =?b?q?=E4?= ", "=C3", "=\n", "=3D",
    "; a=\"", ";a*1=b", ";a*0*=x''%e4", "\\\"; ", "x*", "\n--b\n", "\n--", "\n b", "\na: b",
    "\nX-Spam-A: b", "\n\n", "\r\n.", "\r\n.\n", "From a 1:01 2020\n", ">From ", "begin 644 a\n",
    "\nend\n", "\n`", "M" * 60 + "\n", "-----BEGIN PGP ", "-----BEGIN PGP SIGNED MESSAGE-----\n",
    "A" * 70 + "1+\n", "\n" + "_" * 40 + "\nlist@ unsubscribe\n", "\n" + "=" * 60 + "\n",
    "[SPAM] ", "{spam?} ", "***spam*** ", "Re: ", "for ", "id a ", " by a.example; ", "\x1b$B",
    "+2AA-", "~{", "\ufeff", "ä" * 40 + " ", "a" * 50 + " ", "- -", "--", "'-", "$!", "1,1", "A",
    "%e4", "。", "[.]", "(dot)", "hxxp://a[.]b ",
)  # fmt: skip
"""What long texts are made of."""

N = 3_000
"""Characters of the smaller text."""


def unaware(name: str) -> Callable[[Any], object]:
    """Return `extract` for a text in that place of a mail."""

    def work(text: Any) -> object:
        data = text.encode("utf-8", "replace")
        one_line = data.replace(b"\n", b" ").replace(b"\r", b" ")
        match name:
            case "plain" | "html":
                return features.extract(mail(text, f"Content-Type: text/{name}; charset=utf-8"))
            case "latin":
                return features.extract(b"Content-Type: text/plain; charset=koi8-r\n\n" + data)
            case "raw":
                return features.extract(data)
            case "part":
                head = b"Content-Type: multipart/mixed; boundary=b\n\n--b\n"
                return features.extract(head + data)
            case "parameters":
                return features.extract(b"Content-Type: text/plain; " + one_line + b"\n\nb")
            case _:
                believed = features.ReadingOptions(auth=AuthOptions(trusted=("mx",)))
                return features.extract(name.encode() + b": " + one_line + b"\n\nb", believed)

    return work


def _encoded(work: Callable[[bytes], object]) -> Callable[[Any], object]:
    return lambda text: work(text.encode("utf-8", "replace"))


def _empty(text: str = "", *links: str) -> reading.Reading:
    return reading.Reading(
        subject=text, text=text, hidden=text, title=text, links=links, charsets=(text[:40],),
        attachments=(), tricks=(), defects=(), plain=1, pages=0,
    )  # fmt: skip


def _link_pieces(text: str) -> object:
    links = shape.links(_empty("", *(text[at : at + 300] for at in range(0, len(text), 300))))
    return shape.link_tokens(links), shape.host_tricks(links), [link.is_address for link in links]


def _said(text: str) -> object:
    names = ("background", "clip-path", "font", "margin", "transform", "filter", "overflow")
    return [declarations.said(name, each + text) for name in names for each in ("", "scale(")]


def _style_sheet(text: str) -> object:
    return page.render(f"<style>{text}</style><p class=a id=b style='{text[:4000]}'>b")


def _digest(data: bytes) -> bytes:
    message = parser.parse(data)
    return identity.digest(message, reading.read(message, Limits()))


@cache
def _scratch() -> parser.Message:
    return parser.parse(b"Subject: a\n\nb")


Work = Callable[[Any], object]
FUNCTIONS: dict[str, Work] = {
    "charset.decode": _encoded(lambda data: [charset.decode(data, x) for x in ("", "x", "utf-7")]),
    "calendar.is_card": _encoded(calendar.is_card),
    "calendar.read": _encoded(lambda data: calendar.read(b"BEGIN:VCARD\nNOTE:" + data, "")),
    "charset.codec_of": charset.codec_of,
    "charset.header_text": _encoded(charset.header_text),
    "facts.continuous": lambda text: facts.continuous(_scratch(), _empty(text), 1),
    "facts.discrete": lambda text: facts.discrete(parser.parse(f"To: {text}".encode()), _empty()),
    "grams.grams": _encoded(grams.grams),
    "grams.gram_source": lambda text: grams.gram_source(_scratch(), _empty(text), Limits()),
    "headers.is_foreign": lambda text: headers.is_foreign(text[:64]),
    "page.render": page.render,
    "page.render, style": _style_sheet,
    "identity.genuine": lambda text: identity.genuine(text, b"k"),
    "identity.digest": _encoded(_digest),
    "identity.rest_of": _encoded(lambda data: identity.rest_of([data[:100], data[100:]])),
    "identity.with_rest": _encoded(lambda data: identity.with_rest(data, b"rest")),
    "kinds.prefix_of": kinds.prefix_of,
    "spam_fields.holds_fields": _encoded(spam_fields.holds_fields),
    "parser.attached": _encoded(
        lambda data: parser.attached(b"Content-Type: multipart/mixed; boundary=b\n\n--b\n" + data)
    ),
    "spam_fields.fields_start": _encoded(spam_fields.fields_start),
    "spam_fields.strip_and_prepend": _encoded(
        lambda data: spam_fields.strip_and_prepend(data, b"A: b\r\n")
    ),
    "spam_fields.forged_names": _encoded(spam_fields.forged_names),
    "header_top.header_end": _encoded(header_top.header_end),
    "header_top.newline_of": _encoded(header_top.newline_of),
    "header_top.mbox_line_end": _encoded(lambda data: header_top.mbox_line_end(data, len(data))),
    "header_top.begins_field": _encoded(lambda data: header_top.begins_field(data, 0)),
    "header_top.may_be_forged": _encoded(header_top.may_be_forged),
    "header_top.prepended": _encoded(lambda data: header_top.prepended(data, b"A: b\r\n")),
    "spam_fields.render": lambda text: spam_fields.render([("A", text)], b"\r\n"),
    "form.is_binary": form.is_binary,
    "form.is_markup": form.is_markup,
    "content_type.disposition_parameters": _encoded(content_type.disposition_parameters),
    "content_type.content_type": _encoded(content_type.content_type),
    "content_type.parameters": content_type.parameters,
    "subject.without_marks": subject.without_marks,
    "transfer.base64": _encoded(transfer.base64),
    "transfer.encoding_of": transfer.encoding_of,
    "transfer.quoted_printable": _encoded(transfer.quoted_printable),
    "transfer.uuencoded": _encoded(transfer.uuencoded),
    "parser.parse": _encoded(parser.parse),
    "reading.without_footer": reading.without_footer,
    "unicode.counted": lambda text: unicode.counted([text, *text.split()], 40),
    "unicode.latin": unicode.latin,
    "unicode.leet": lambda text: unicode.leet(text.split()),
    "unicode.normalize": unicode.normalize,
    "unicode.spaced_out": lambda text: unicode.spaced_out(
        text.split(), dict.fromkeys(text.split()), text.split()
    ),
    "unicode.unmasked": lambda text: [unicode.unmasked(word) for word in (text, *text.split())],
    "unicode.words": unicode.words,
    "shape.address_tokens": shape.address_tokens,
    "shape.links": _link_pieces,
    "colour.css_colour": lambda text: [
        colour.css_colour(each + text) for each in ("", "#", "rgb(")
    ],
    "colour.html_colour": colour.html_colour,
    "stylesheet.rules": lambda text: [
        stylesheet.rules(each + text) for each in ("", "a{", "@media ")
    ],
    "stylesheet.screen_matches": lambda text: [
        stylesheet.screen_matches(each + text) for each in ("", "(")
    ],
    "declarations.length": lambda text: [
        declarations.length(each + text) for each in ("", "calc(")
    ],
    "declarations.parse": lambda text: [declarations.parse(each + text) for each in ("", "color:")],
    "declarations.said": _said,
    "declarations.unescaped": declarations.unescaped,
    "declarations.without_comments": declarations.without_comments,
    "selector.parse_list": lambda text: [selector.parse_list(each + text) for each in ("", ":is(")],
    "hashing.word_ids": lambda text: hashing.word_ids(text.split()),
    "tag.end_of_tag": lambda text: [tag.end_of_tag(each + text, 0) for each in ("<a ", "<")],
    "tag.long_tag": lambda text: [
        tag.long_tag(each + text, 0, folded=True) for each in ("<a ", "<", "<a b='")
    ],
    "tag.short_tag": lambda text: [tag.short_tag(each + text, True) for each in ("<a ", "<")],  # noqa: FBT003
    "origin.origin": lambda text: origin.origin([f"from:{text}", *text.split()]),
    "tag.unescaped": tag.unescaped,
    "trace.lasting": _encoded(trace.lasting),
    "trace.host_tokens": trace.host_tokens,
    "url.cut_out": url.cut_out,
    "url.take_apart": url.take_apart,
    "url.canonical_host": url.canonical_host,
    "url.host_label": lambda text: url.host_label("xn--" + text),
    "url.registrable_domain": lambda text: url.registrable_domain(url.canonical_host(text)),
    "relay.received_count": _encoded(received_field.received_count),
    "relay.normalized": _encoded(lambda data: list(newlines.normalized([data]))),
    "relay.stuffed": _encoded(lambda data: unstuffed(stuffed(data))),
    "relay.parse_path": _encoded(lambda data: [parse_path(b"FROM:<" + data), parse_path(data)]),
    "relay.without_unsupported": _encoded(
        lambda data: without_unsupported(b"FROM:<a> " + data, ())
    ),
}
AUTHENTICATION: dict[str, Work] = {
    "sender.domain_name": sender.domain_name,
    "sender.address_name": lambda text: [sender.address_name(each + text) for each in ("", "a@")],
    "sender.addresses_of": sender.addresses_of,
    "sender.sender_of": lambda text: sender.sender_of(parser.parse(f"From: {text}".encode())),
    "sender.same_organisation": lambda text: sender.same_organisation(text, f"a.{text}"),
    "results.results_of": lambda text: [
        results.results_of(f"{each}{text}".encode())
        for each in ("", "mx; dkim=pass ", "mx;(", 'mx;"')
    ],
    "route.hop_of": lambda text: [
        route.hop_of(f"{each}{text}".encode()) for each in ("", "from ", "from a (")
    ],
    "route.plain_address": route.plain_address,
}
FUNCTIONS |= AUTHENTICATION
FUNCTIONS |= {
    f"features.extract, {place}": unaware(place)
    for place in (
        "plain", "html", "latin", "raw", "part", "parameters", "Subject", "From", "To", "Received",
        "Content-Disposition", "Message-ID", "X-Any", "Date", "List-Id",
        "Authentication-Results", "ARC-Seal",
    )
}  # fmt: skip

COVERED = {
    "box.display_of", "box.is_gone", "cascade.declared", "colour.distance", "colour.over",
    "elements.names", "foreign.end_foreign", "foreign.start_foreign", "matching.matches",
    "node.following", "tag.look_of", "style.changed", "style.styled",
    "variables.says_variables", "variables.with_variables",
    "features.believed", "features.extract", "form.form_of", "headers.header_tokens",
    "identity.new_id",
    "part.came_with", "part.ends_blank", "part.file_name", "part.is_named_message",
    "part.kind_of", "part.strays_at", "part.transfer_encoding_of", "reading.read",
    "shape.host_tricks", "shape.link_tokens", "shape.shape_tokens", "tokenizer.tokenize",
    "proof.prove", "route.networks_of", "route.route_of", "route.within",
    "hashing.pair_ids", "hashing.token_id", "trace.handed_on", "transfer.transfer_decode",
}  # fmt: skip
"""Reached through `features.extract`, or given no text of a mail."""


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_g3_a_function_takes_time_in_proportion_to_the_text(name: str) -> None:
    work = FUNCTIONS[name]
    size, tails = (N // 2, ("",)) if name.startswith("features") else (N, ("", "!"))
    for unit, tail in product(UNITS, tails):
        count = size // len(unit)
        growth = linear.growth(work, unit * count + tail, unit * (4 * count) + tail)
        assert growth <= linear.GROWTH, (unit, tail)


def test_g3_every_public_function_of_a_mail_is_measured() -> None:
    public = {
        f"{module.__name__.rpartition('.')[2]}.{name}"
        for module in MODULES
        if module.__name__.startswith("spamd.message.")
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", "") == module.__name__
        and (inspect.isfunction(value) or hasattr(value, "__wrapped__"))
    }
    assert public - {name.partition(",")[0] for name in FUNCTIONS} - COVERED == set()


@pytest.mark.parametrize("place", ["Subject", "From", "X-Any", "List-Id", "raw", "plain", "html"])
def test_g3_forty_kilobytes_of_words_with_digits_cost_little(place: str) -> None:
    text = " ".join(f"x1abcdefghijklmno-q{number}" for number in range(2_000))
    assert linear.cpu_s(unaware(place), text, 3) < 0.3


def bad_charsets(count: int) -> dict[str, bytes]:
    """Return mails that ask for many guesses of a charset."""
    high = [bytes((i * 7 + k * 31) % 96 + 160 for k in range(40)) for i in range(count)]
    word = [b"=?x%d?q?=E4=F6=FC=DF=C4=%02X?= " % (i % 2, i % 90 + 160) for i in range(count)]
    part = b"--b\nContent-Type: text/plain; charset=x\n\n"
    multipart = b"Content-Type: multipart/mixed; boundary=b\n\n"
    parameter = b"".join(b";a%d=%s" % (i % 80, each[:8]) for i, each in enumerate(high[:80]))
    nested = b"--b\nContent-Type: message/rfc822\n\nSubject: %s\nFrom: %s\n\n"
    return {
        "words": b"Subject: " + b"".join(word) + b"\n\nb",
        "fields": b"".join(b"X-A%d: %s\n" % pair for pair in enumerate(high)) + b"\nb",
        "senders": b"".join(b"From: %s\n" % each for each in high) + b"\nb",
        "parts": multipart + b"".join(part + each + b"\n" for each in high),
        "parameters": multipart
        + (b"--b\nContent-Type: text/plain%s\n\n\n" % parameter) * (count // 20),
        "messages": multipart + b"".join(nested % (each, each) for each in high),
    }


@pytest.mark.parametrize("name", sorted(bad_charsets(1)))
def test_g3_a_mail_makes_us_guess_its_charset_a_few_times_only(name: str) -> None:
    assert linear.cpu_s(features.extract, bad_charsets(300)[name], 3) < 0.1
