"""Faults of other products in tokenising and obfuscation, one test per case."""

import numpy as np
import pytest

from spamd.message.features import extract
from spamd.message.html.page import render
from spamd.message.limits import Limits
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.message.url import take_apart
from spamd.sample import Kind

from .helpers import count, mail, of_kind, page, tokens, words


def test_b1_a_32_kilobyte_word_of_invisible_filler_is_nothing() -> None:
    raw = mail("before " + "\u3164" * 12_000 + " after")
    assert words(raw) == {"before", "after"}


def test_b2_no_token_is_longer_than_an_index_takes() -> None:
    raw = mail("x" * 3000 + " " + "я" * 3000, "Subject: " + "y" * 3000, "X-" + "Z" * 3000 + ": a")
    found = tokens(raw)
    assert max(map(len, found)) <= Limits().token_chars * 2 + 1  # a pair has two words
    assert max(len(token.encode()) for token in found) <= 513
    assert {"skip:x:12", "skip:я:12", "subject=skip:y:12"} <= found


def test_b3_nul_is_stripped_from_words() -> None:
    raw = mail("he\0llo", "Subject: of\0fer")
    assert "hello" in words(raw)
    assert "subject=offer" in tokens(raw)
    assert not any("\0" in token for token in tokens(raw))


def test_b3_nul_is_stripped_from_file_names_and_boundaries_too() -> None:
    raw = mail("x", "Content-Type: multipart/mixed; boundary=b\n \0; name=a\0b.e\0xe")
    assert not any("\0" in token for token in tokens(raw))


def test_b4_no_token_is_empty() -> None:
    found = tokens(mail("\"\" '' --- ... '-' - '", "Subject: ---", "X-Odd: ''", "To: ..."))
    assert "" not in found
    assert not any(token.endswith(":") and token.count(":") == 1 for token in found)


def test_b5_words_of_other_alphabets_are_whole() -> None:
    raw = mail("Привет мир, Příliš žluťoučký kůň, Καλημέρα κόσμε, e\u0301te\u0301")
    assert {"Привет", "мир", "Příliš", "žluťoučký", "kůň", "Καλημέρα", "κόσμε", "été"} == words(raw)


def test_b6_text_without_spaces_gives_character_pairs() -> None:
    assert {"祝你", "你们", "们新", "新年", "年快", "快乐"} <= words(mail("祝你们新年快乐"))
    assert "祝" in words(mail("祝 ok"))


def test_b7_a_long_word_is_measured_in_characters() -> None:
    word = "достопримечательностями"
    assert word in words(mail(word))
    assert "skip:п:6" in words(mail("п" * 41))


@pytest.mark.parametrize("sign", ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad"])
def test_b8_invisible_characters_do_not_split_words(sign: str) -> None:
    raw = mail(f"buy V{sign}iagra at http://exam{sign}ple.com/pi{sign}lls")
    assert "Viagra" in words(raw)
    assert {"url:example.com", "path:pills", "trick:invisible"} <= tokens(raw)


@pytest.mark.parametrize("body", ["V<!-- x -->ia<xyz>gra", "<b>V</b>ia<i></i>gra", "Via<b></b>gra"])
def test_b9_comments_and_bogus_tags_do_not_split_words(body: str) -> None:
    assert "Viagra" in words(page(f"<p>buy {body} now"))


def test_b9_splitting_a_word_by_nothing_is_a_trick_and_marking_it_up_is_none() -> None:
    assert "trick:split" in tokens(page("V<!-- x -->iagra"))
    assert "trick:split" in tokens(page("V<b></b>iagra"))
    assert "trick:split" in tokens(page("V<xyz>iagra"))
    assert "trick:split" not in tokens(page("<b>V</b>iagra <!-- x --> and <i>more</i>"))


@pytest.mark.parametrize("body", ["V I A G R A", "v.i.a.g.r.a", "V-I-A-G-R-A", "V  I  A  G  R  A"])
def test_b10_spaced_out_letters_give_the_word_as_well(body: str) -> None:
    raw = mail(f"now buy {body} here")
    assert {"viagra"} <= {word.lower() for word in words(raw)}
    assert "trick:spaced" in tokens(raw)


@pytest.mark.parametrize(
    ("subject", "trick"),
    [
        ("V I A G R A now", "spaced"),
        ("V1AGRA now", "leet"),
        ("V\u0406\u0410GRA now", "look-alike"),
    ],
)
def test_b10_tricks_in_the_subject_give_the_plain_word_as_well(subject: str, trick: str) -> None:
    raw = mail("See you.", f"Subject: {subject}")
    (plain,) = {text for text in words(raw) if text.lower() == "viagra"}
    assert count(extract(raw), plain) == 1
    assert f"trick:{trick}" in tokens(raw)


def test_b10_ordinary_single_letters_are_no_trick() -> None:
    assert "trick:spaced" not in tokens(mail("I have a plan B and a plan C, as I said in part D"))


@pytest.mark.parametrize(
    "hiding",
    [
        '<font color="#ffffff">{}</font>',
        "<font color=white>{}</font>",
        '<span style="font-size:0">{}</span>',
        '<span style="font-size: 1px">{}</span>',
        '<div style="display:none">{}</div>',
        '<div style="DISPLAY : NONE">{}</div>',
        '<div style="visibility:hidden"><p>{}</p></div>',
        '<div style="opacity:0">{}</div>',
        '<div style="position:absolute;left:-9999px">{}</div>',
        '<div style="max-height:0px;overflow:hidden">{}</div>',
        '<p style="color:#fefefe">{}</p>',
        '<table bgcolor="#000000"><tr><td><font color="#010101">{}</font></td></tr></table>',
        '<table><td style="background-color:rgb(10,20,30);color:rgb(11,21,31)">{}</table>',
        "<div hidden>{}</div>",
        '<style>.x1{{display:none}}</style><div class="x1">{}</div>',
        '<style><!-- .x1{{display:none}} --></style><div class="x1">{}</div>',
        '<span style="font:0 cigcxx">{}</span>',
        '<span style="font:bold 1px/2 Arial">{}</span>',
        '<a href="http://a.example/" style="color:#fff">{}</a>',
    ],
)
def test_b11_hidden_words_come_under_their_own_prefix(hiding: str) -> None:
    raw = page(f"<body>seen {hiding.format('poison garden')} rest</body>")
    assert not {"poison", "garden"} & words(raw)
    assert {"seen", "rest"} <= words(raw)
    assert {"hidden:poison", "hidden:garden", "trick:hidden"} <= tokens(raw)


@pytest.mark.parametrize(
    "shown",
    [
        '<font color="#ff0000">{}</font>',
        '<span style="font-size:10px">{}</span>',
        '<span style="font-size:0.9em">{}</span>',
        '<span style="font-size:1em">{}</span>',
        '<span style="font-size:1.2rem">{}</span>',
        '<span style="line-height:1;opacity:0.9">{}</span>',
        '<table><td bgcolor="#000000"><font color="white">{}</font></table>',
        '<div style="margin-left:-10px">{}</div>',
        '<table><td background="dark.png"><font color="#fff">{}</font></table>',
        '<div style="background:url(dark.png)"><font color="#fff">{}</font></div>',
        '<div style="display:none"></div>{}',
        '<p style="display:none">x<p>{}',
        '<style>@media (max-width:600px){{.m{{display:none}}}}</style><div class="m">{}</div>',
        '<td bgcolor="palegoldenrod"><font color="darkblue">{}</font></td>',
        '<a style="color:white;background-color:darkblue">{}</a>',
        '<div style="color:#fff;background:0% 50% rgb(0,120,212)">{}</div>',
        '<div style="color:#fff;background:none repeat scroll 0 0 #036">{}</div>',
        '<div style="color:#111;background-color:rgba(0,0,0,0.05)">{}</div>',
        '<div style="color:#fff"><p style="background:#fff;color:darkslategray">{}</p></div>',
        "<style>.t{{background:#036}}</style><table><td class=t><font color=white>{}</table>",
        "<style>body{{background:#036}}</style><body><font color=white>{}</font></body>",
        "<style>.t td{{background:#036}}</style><table class=t><td><font color=white>{}</table>",
        '<font color="#ffffff"><a href="http://a.example/">{}</a></font>',
        '<div style="position:absolute;left:50%;margin-left:-480px;width:960px">{}</div>',
        '<td style="font-size:0"><span style="font:12px Arial">{}</span></td>',
        '<td style="font-size:0"><span style="font-size:small">{}</span></td>',
    ],
)
def test_b11_words_that_are_shown_are_words(shown: str) -> None:
    assert {"good", "offer"} <= words(page(f"<body>{shown.format('good offer')}</body>"))


def test_b12_empty_hidden_containers_are_no_evidence() -> None:
    wrapper = (
        '<div style="font-size:0px;line-height:0"> <table><tr><td>&nbsp;</td></tr></table> </div>'
    )
    with_layout = page(f"<body>{wrapper * 20}<p>Newsletter text</p>{wrapper}</body>")
    assert of_kind(with_layout, Kind.HIDDEN) == set()
    assert "trick:hidden" not in tokens(with_layout)
    assert "Newsletter" in words(with_layout)


def test_b12_text_made_visible_again_inside_a_zero_size_wrapper_is_seen() -> None:
    raw = page('<div style="font-size:0px"><p style="font-size:14px">Newsletter text</p></div>')
    assert {"Newsletter", "text"} <= words(raw)


@pytest.mark.parametrize(
    ("written", "token"),
    [
        ("https://bad&#46;co/x", "url:bad.co"),
        ("http://example.com/%D0%B4%D0%BE%D0%BC", "path:дом"),
        ("hxxp://bad.example/offer", "path:offer"),
        ("http://example[.]com/offer", "url:example.com"),
        ("HTTP://BAD.EXAMPLE/", "url:bad.example"),
    ],
)
def test_b13_entities_and_escapes_in_links_are_decoded(written: str, token: str) -> None:
    assert token in tokens(page(f"<p>see {written} now"))


def test_b13_entities_in_words_are_decoded() -> None:
    assert {"Viagra", "Grüße"} <= words(page("&#86;iagra Gr&uuml;&szlig;e"))


@pytest.mark.parametrize(
    "href",
    [
        " http://bad.example/xy ",
        "http://bad.\nexample/xy",
        "http:////bad.example/xy",
        r"http:\\bad.example\xy",
    ],
)
def test_b14_white_space_and_slashes_in_href_are_put_right(href: str) -> None:
    link = take_apart(href)
    assert link is not None
    assert (link.host, link.pieces) == ("bad.example", ("xy",))


def test_b15_a_host_has_one_form_and_a_false_punycode_stays() -> None:
    assert "url:bücher.example" in tokens(mail("http://bücher.example/"))
    assert "url:bücher.example" in tokens(mail("http://xn--bcher-kva.example/"))
    assert "url:xn--ab-0000.example" in tokens(mail("http://xn--ab-0000.example/"))
    assert "trick:punycode" in tokens(mail("http://xn--ab-0000.example/"))


def test_b16_a_dictionary_mail_keeps_a_bounded_fair_choice_of_tokens() -> None:
    dictionary = " ".join(f"word{n}a" for n in range(400_000))
    found = extract(mail(f"first words stay\n{dictionary}", "Subject: offer"))
    texts = set(found.texts)
    assert len(found.sample.ids) <= Limits().tokens
    assert {"first", "words", "stay", "subject=offer"} <= texts
    assert sum(text.startswith("word3") for text in texts) > 100
    assert np.array_equal(found.sample.ids, np.unique(found.sample.ids))


def test_b16_padding_in_front_leaves_a_sample_of_what_follows() -> None:
    options = TokenizerOptions(limits=Limits(tokens=200))
    padding = " ".join(f"pad{n}a" for n in range(300))
    text = " ".join(f"real{n}b" for n in range(300))
    texts = set(extract(mail(f"{padding} {text}"), options).texts)
    assert len(texts) <= 200
    assert sum(word.startswith("real") and " " not in word for word in texts) > 10


@pytest.mark.parametrize(
    "raw", [page("<!DOCTYPE html>"), page("   "), b"Subject:    \n\n   ", page("<html></html>")]
)
def test_b17_near_empty_content_is_no_evidence_and_no_error(raw: bytes) -> None:
    assert words(raw) == set()


def test_b18_an_image_only_mail_has_tokens() -> None:
    raw = page('<html><body><img src="http://pics.bad.example/a1.png"></body></html>')
    assert {"url:pics.bad.example", "domain:bad.example", "type:text/html"} <= tokens(raw)


def test_b18_a_pdf_only_mail_has_tokens() -> None:
    raw = mail(
        "JVBERi0xLjQK" * 1000,
        'Content-Type: application/pdf; name="rechnung_2024.pdf"',
        "Content-Transfer-Encoding: base64",
    )
    assert words(raw) == set()
    assert {"type:application/pdf", "ending:pdf", "file:rechnung"} <= tokens(raw)


def test_b19_both_html_parts_are_read() -> None:
    html = "Content-Type: text/html\n\n<p>{}"
    raw = (
        'Content-Type: multipart/mixed; boundary="b"\n\n--b\n'
        + html.format("first")
        + "\n--b\n"
        + html.format("second http://bad.example/")
        + "\n--b--\n"
    ).encode()
    assert {"first", "second", "url:bad.example"} <= tokens(raw)


def test_b20_binary_data_labelled_text_is_no_words() -> None:
    data = bytes(range(256)) * 40
    raw = mail("x").replace(b"\n\nx", b"\n\nBM6" + data)
    assert len(words(raw)) == 0
    assert "defect:binary-text" in tokens(raw)


def test_b20_armour_and_base64_runs_in_text_are_no_words() -> None:
    line = "mQGiBDnKLQkRBACVlYh6HivoRjHzGedNpnYPISxImK3eFgt+qs/DD0aVhBwjhEwY"
    armour = "-----BEGIN PGP PUBLIC KEY BLOCK-----\nVersion: x\n\n" + f"{line}\n" * 20
    raw = mail(f"seen\n{armour}-----END PGP PUBLIC KEY BLOCK-----\nalso\n{line}\n{line}\nend")
    assert words(raw) == {"seen", "also", "end"}


def test_b20_a_signed_text_is_read_and_its_signature_is_not() -> None:
    raw = mail(
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA1\n\nsigned words\n"
        "-----BEGIN PGP SIGNATURE-----\niD8DBQE9ZQJQ\n-----END PGP SIGNATURE-----\nbye"
    )
    assert words(raw) == {"signed", "words", "bye"}


def test_b20_a_nameless_octet_stream_that_holds_text_is_read() -> None:
    raw = mail("plain words", "Content-Type: application/octet-stream")
    assert {"plain", "words"} <= words(raw)


def test_hidden_text_in_a_title_is_not_what_the_reader_sees() -> None:
    assert "secret" not in render("<title>secret</title>seen").text
    raw = page("<title>Newsletter 7b</title>seen")
    assert {"title:Newsletter", "title:7b"} <= tokens(raw)
    assert "trick:hidden" not in tokens(raw)
