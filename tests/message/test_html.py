import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spamd.message.html.page import render
from spamd.message.limits import Limits


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>one<p>two", "one two"),
        ("a<br>b<br/>c", "a b c"),
        ("<td>a</td><td>b</td>", "a b"),
        ("<b>bo</b>ld", "bold"),
        ("a<span></span>b", "ab"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("a<!-->b", "ab"),
        ("a<!--->b", "ab"),
        ("a<!--x--!>b-->c", "ab-->c"),
        ("a<?php x ?>b", "ab"),
        ("a</>b", "ab"),
        ("<a title='x>y'>b</a>", "x>y b"),
        ("<img alt='Buy now'>", "Buy now"),
        ("<script>no()</script>yes", "yes"),
        ("<style>p{}</style>yes", "yes"),
        ("<textarea>typed</textarea>", "typed"),
        ("&lt;b&gt; &amp;&nbsp;&euro;", "<b> & €"),
        ("<SCRIPT>x</ScRiPt >yes", "yes"),
        ("<a href=http://x.example/>y</a>", "y"),
        ("", ""),
        ("just text", "just text"),
        ("text <", "text <"),
        ("text <b", "text b"),
    ],
)
def test_the_visible_text_is_what_a_reader_sees(markup: str, text: str) -> None:
    assert " ".join(render(markup).text.split()) == text


def test_links_of_all_kinds_are_collected_in_order() -> None:
    page = render(
        "<base href=http://a.example/><a href='http://b.example/?x=1&amp;y=2'>x</a>"
        '<img src="http://c.example/i.gif"><form action=http://d.example/f>'
        "<body background=http://e.example/b><iframe src=http://f.example/></iframe>"
        "<a href=http://a.example/>again</a><a name=top></a>"
    )
    assert page.links == (
        "http://a.example/",
        "http://b.example/?x=1&y=2",
        "http://c.example/i.gif",
        "http://d.example/f",
        "http://e.example/b",
        "http://f.example/",
    )


def test_an_end_tag_without_a_start_ends_nothing() -> None:
    page = render("<div style='display:none'>a</span></p></b>b</div>c")
    assert page.text.split() == ["c"]
    assert page.hidden.split() == ["a", "b"]


def test_a_table_cell_ends_where_the_next_begins() -> None:
    page = render("<table><tr><td style='display:none'>a<td>b<tr><td>c</table>")
    assert page.text.split() == ["b", "c"]


def test_spoken_text_of_hidden_pictures_is_not_shown() -> None:
    assert render("<div style='display:none'><img alt='secret'></div>").text.split() == []
    assert render("<img alt='secret' style='display:none'>").text.split() == []


def test_more_tags_than_the_limit_are_stripped_in_one_sweep() -> None:
    page = render("<b>x</b> " * 100, Limits(html_nodes=10))
    assert page.cut
    assert page.text.split() == ["x"] * 100


def test_more_links_than_the_limit_are_not_kept() -> None:
    markup = "".join(f"<a href=http://{n}.example/>" for n in range(50))
    assert len(render(markup, Limits(links=7)).links) == 7


TAGS = st.sampled_from(
    ["<", ">", "</", "<!--", "-->", "<b>", "</b>", "<p>", "<td>", "<style>", "</style>", "<title>",
     "'", '"', "=", "<a href=", "<a x='", "<div style='display:none'>", "</div>", "&", "&#x",
     "word", " ", "<script>", "<!x", "/>"]
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(TAGS, max_size=80).map("".join))
def test_any_mixture_of_tags_is_rendered_and_loses_no_word(markup: str) -> None:
    page = render(markup)
    seen = page.text.count("word") + page.hidden.count("word")
    assert seen <= markup.count("word") * 2
    assert "\0" not in page.text


@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "<a",
        "<a ",
        "<a x='",
        '<a x="',
        "<!--",
        "<!-",
        "</",
        "<style>",
        "<title>",
        "&",
        "&#",
        "<a <",
        "<p></b>",
        "<a=",
        "<boundary=",
    ],
)
def test_repeated_fragments_cost_linear_time(unit: str) -> None:
    """No clock: a quadratic scan of a megabyte would run into the time-out of the test run."""
    page = render(unit * (1_000_000 // len(unit)))
    assert len(page.text) <= 1_100_000
