"""A part is read in the form in which a reader shows it, whatever its type says."""

from base64 import b64encode

import pytest

from spamd.message.mime.parser import parse
from spamd.message.reading import Reading, read
from spamd.sample import Kind

from .helpers import mail, of_kind, words
from .test_calendar import INVITATION
from .test_faults_mime import multipart

HTML = '<div class="zzclass">Cheap <b>pills</b><br><a href="http://pills.example/x">here</a></div>'


def reading(raw: bytes) -> Reading:
    return read(parse(raw))


@pytest.mark.parametrize(
    "source",
    [
        f"<html><body>{HTML}", f"<!DOCTYPE html><html>{HTML}", f"<p>x</p>{HTML}", HTML,
        f"\n  \t\n{HTML}", f"<!-- made by zz -->{HTML}", f"{' ' * 5000}{HTML}",
        f'<?xml version="1.0"?><html>{HTML}</html>', f"<BODY bgcolor=white>{HTML}",
        f"<center>{HTML}", f'<meta charset="utf-8">{HTML}', f"<table><tr><td>{HTML}",
        f"<style>.zzclass {{ color: red }}</style>{HTML}", f"\ufeff{HTML}", f"<font size=2>{HTML}",
        f"Dear friend,<br><br>{HTML * 4}",
    ],
)  # fmt: skip
def test_g13_plain_text_that_is_the_source_of_a_page_is_read_as_the_page(source: str) -> None:
    found = reading(mail(source))
    assert found.pages == 1
    assert {"Cheap", "pills", "here"} <= words(mail(source))
    assert not {"div", "class", "zzclass", "href", "br"} & words(mail(source))
    assert "http://pills.example/x" in found.links


@pytest.mark.parametrize(
    "text",
    [
        "Use <b> or <i> for this, and </b> at the end, as <http://a.example/b> says.",
        "<ann@example.org> wrote:\n> hello",
        "if a<b then c>d",
        "<a.b@example.org>, <b@example.org>",
        "Please put <br> into the page\n" + "and many words of an honest discussion\n" * 20,
    ],
)
def test_g13_text_that_speaks_of_markup_stays_text(text: str) -> None:
    assert (reading(mail(text)).plain, reading(mail(text)).pages) == (1, 0)


ENDINGS = ["a.html", "A.HTM", "a.xhtml", "a.shtml", "a.svg", "my a.html ", "a (1).html", "a.html."]
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><text>Cheap pills <a href="http://pills.example/x">here</a></text></svg>'


@pytest.mark.parametrize("name", ENDINGS)
@pytest.mark.parametrize(
    "head",
    [
        'Content-Type: application/octet-stream; name="{}"',
        'Content-Type: application/octet-stream\nContent-Disposition: attachment; filename="{}"',
        'Content-Disposition: attachment; filename="{}"',
        'Content-Type: application/x-unknown; name="{}"',
        "Content-Type: application/octet-stream; name={}",
        'Content-Type: application/force-download\nContent-Disposition: inline; filename="{}"',
    ],
)
def test_g13_a_page_told_by_its_file_name_only_is_read(name: str, head: str) -> None:
    source = SVG if "svg" in name else f"\nplain start {HTML}"
    data = b64encode(source.encode()).decode()
    raw = multipart(f"{head.format(name)}\nContent-Transfer-Encoding: base64\n\n{data}")
    assert {"Cheap", "pills", "here"} <= words(raw)
    assert not {"div", "class", "href", "xmlns"} & words(raw)
    assert "http://pills.example/x" in reading(raw).links
    assert reading(raw).attachments[0].name.strip() == name.strip()


@pytest.mark.parametrize("kind", ["image/svg+xml", "application/xhtml+xml", "text/xml"])
def test_g13_a_page_of_another_type_is_read(kind: str) -> None:
    raw = multipart(f'Content-Type: {kind}\n\n<?xml version="1.0"?>{SVG}')
    assert {"Cheap", "pills", "here"} <= words(raw)
    assert not {"svg", "xmlns", "href", "version"} & words(raw)


@pytest.mark.parametrize("label", ["utf-16", "utf-16-le", "utf-8-sig"])
def test_g13_a_page_with_a_byte_order_mark_is_read(label: str) -> None:
    source = HTML if label != "utf-16-le" else "\ufeff" + HTML
    data = b64encode(source.encode(label)).decode()
    head = 'Content-Type: application/octet-stream; name="a.html"'
    raw = multipart(f"{head}\nContent-Transfer-Encoding: base64\n\n{data}")
    assert {"Cheap", "pills", "here"} <= words(raw)


def test_g13_an_invitation_told_by_its_file_name_only_is_read() -> None:
    raw = multipart(f'Content-Type: application/octet-stream; name="a.ics"\n\n{INVITATION}')
    assert {"Cancel", "cheap", "Berlin"} <= words(raw)
    assert "SUMMARY" not in words(raw)
    nameless = multipart(f"Content-Type: application/octet-stream\n\n{INVITATION}")
    assert {"Cancel", "cheap", "Berlin"} <= words(nameless)


def test_g13_a_text_told_by_its_file_name_only_is_read() -> None:
    raw = multipart('Content-Type: application/octet-stream; name="a.txt"\n\ncheap pills')
    assert words(raw) == {"cheap", "pills"}


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize(
    "head",
    [
        'Content-Type: application/octet-stream; name="a.eml"',
        'Content-Disposition: attachment; filename="a.EML"',
    ],
)
def test_g13_a_message_told_by_its_file_name_only_is_opened(head: str, *, encoded: bool) -> None:
    inner = f"Subject: Offer\nContent-Type: text/html; charset=utf-8\n\n{HTML}"
    if encoded:
        inner = b64encode(inner.encode()).decode()
        head += "\nContent-Transfer-Encoding: base64"
    raw = multipart(f"{head}\n\n{inner}")
    assert {"Offer", "Cheap", "pills", "here"} <= words(raw)
    assert not {"div", "Content-Type", "href"} & words(raw)
    assert [each.name.lower() for each in reading(raw).attachments] == ["a.eml"]


@pytest.mark.parametrize("name", ["a.html", "a.txt", "a.ics", "a.svg", "a.exe", "a", "a.pdf"])
def test_g13_data_named_like_text_is_no_text(name: str) -> None:
    data = b64encode(bytes(range(256)) * 10).decode()
    head = f'Content-Type: application/octet-stream; name="{name}"'
    raw = multipart(f"{head}\nContent-Transfer-Encoding: base64\n\n{data}")
    assert words(raw) == set()


def test_g13_enriched_text_is_read_without_its_commands() -> None:
    raw = mail(
        "<bold>Cheap</bold> <color><param>red</param>pills</color>", "Content-Type: text/enriched"
    )
    assert of_kind(raw, Kind.WORD) == {"Cheap", "pills"}
