"""No text of a mail makes a token of another kind."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spamd.message import unicode
from spamd.message.features import extract
from spamd.message.limits import Limits
from spamd.message.mime.parser import parse
from spamd.message.reading import read
from spamd.message.tokens import headers, shape
from spamd.message.tokens.kinds import prefix_of
from spamd.sample import Kind

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tokens.md").read_text(encoding="utf-8")
PREFIXES = {
    "skip": Kind.WORD,
    "from": Kind.LINK,
    "to": Kind.LINK,
    "cc": Kind.LINK,
    "reply-to": Kind.LINK,
    "sender": Kind.LINK,
    "received": Kind.LINK,
    "url": Kind.LINK,
    "domain": Kind.LINK,
    "path": Kind.LINK,
    "port": Kind.LINK,
    "link": Kind.LINK,
    "scheme": Kind.LINK,
    "mail": Kind.LINK,
    "header": Kind.SHAPE,
    "missing": Kind.SHAPE,
    "zone": Kind.SHAPE,
    "count": Kind.SHAPE,
    "mailer": Kind.SHAPE,
    "type": Kind.SHAPE,
    "parts": Kind.SHAPE,
    "boundary": Kind.SHAPE,
    "charset": Kind.SHAPE,
    "attachment": Kind.SHAPE,
    "ending": Kind.SHAPE,
    "file": Kind.SHAPE,
    "defect": Kind.SHAPE,
    "trick": Kind.TRICK,
    "hidden": Kind.HIDDEN,
    "title": Kind.HIDDEN,
    "auth": Kind.SHAPE,
}
"""The prefix of every token but words and words of header fields, and the kind of the token."""

WORDS = Kind.WORD | Kind.TWIN | Kind.TRICK
"""Sources of plain words: the text, header fields without their names, and what tricks hide."""

TEXTS = st.one_of(
    st.sampled_from(sorted(PREFIXES)),
    st.sampled_from([f"{prefix}{sign}user" for prefix in PREFIXES for sign in ":="]),
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\n"), max_size=12),
    st.sampled_from(["user", "address", "hidden", "date", "none", "count:2", "skip:x:6", "x" * 50]),
)
NAMES = st.one_of(
    st.sampled_from(sorted(PREFIXES)),
    st.sampled_from(
        [f"{name}=" for name in PREFIXES] + ["=", "subject", "from", "x-mailer", "date"]
    ),
    st.text(
        st.sampled_from([chr(code) for code in range(33, 127) if chr(code) != ":"]), min_size=1
    ),
)
LINKS = st.builds("http://{}{}{}/{}".format, TEXTS, st.sampled_from(["", "@", ":"]), TEXTS, TEXTS)
MAILS = st.builds(
    lambda fields, texts, links: (
        "".join(f"{name}: {value}\n" for name, value in fields)
        + "\n"
        + " ".join([*texts, *links])
        + "<b style='display:none'>"
        + " ".join(texts)
        + "</b>"
    ).encode(),
    st.lists(
        st.tuples(NAMES, st.one_of(TEXTS, LINKS))
        | st.tuples(
            st.just("Content-Type"),
            st.builds("text/html; charset={0}; name={0}.{0}; boundary={0}".format, TEXTS),
        ),
        max_size=6,
    ),
    st.lists(TEXTS, max_size=6),
    st.lists(LINKS, max_size=3),
)


def by_maker(raw: bytes) -> dict[str, set[str]]:
    """Return what each source makes of a message, one by one."""
    limits = Limits()
    message = parse(raw, limits)
    reading = read(message, limits)
    found = headers.header_tokens(message, limits, None)
    links = shape.links(reading)
    subject = unicode.counted(unicode.words(reading.subject), limits.word_chars)
    return {
        "field": {text for each in found.fields for text in each.named}
        | {f"subject={word}" for word in subject},
        "links of fields": {text for each in found.fields for text in each.links},
        "shape of fields": set(found.shape),
        "links": set(shape.link_tokens(links)),
        "addresses": set(shape.address_tokens(reading.text)),
        "shape": set(shape.shape_tokens(message, reading)),
        "tricks": {f"trick:{name}" for name in (*reading.tricks, *shape.host_tricks(links))},
        "words": set(unicode.counted(unicode.words(reading.text), limits.word_chars)),
    }


@settings(deadline=None)
@given(MAILS)
def test_g10_no_two_sources_ever_make_the_same_token(raw: bytes) -> None:
    made = by_maker(raw)
    for one, texts in made.items():
        for other in made:
            assert one == other or not texts & made[other]


@settings(deadline=None)
@given(MAILS)
def test_g10_the_spelling_of_a_token_tells_its_kind(raw: bytes) -> None:
    found = extract(raw)
    kinds = found.sample.kinds.tolist()
    for text, kind in zip(found.texts, kinds, strict=True):
        match prefix_of(text):
            case _ if " " in text:
                assert kind == Kind.PAIR, text
            case "word" | "skip":
                assert not kind & ~WORDS, text
            case "field":
                assert kind == Kind.FIELD, text
            case prefix:
                assert kind == PREFIXES[prefix], text


@pytest.mark.parametrize("prefix", sorted(PREFIXES))
def test_g10_a_field_called_like_a_prefix_makes_no_such_token(prefix: str) -> None:
    """A real field of that name makes what it always made; one that isn't, nothing of its own."""
    made = {"from", "to", "cc", "reply-to", "sender", "received"}
    plain = b"Subject: a\n\nb\n"
    for value in ("user", "date", "hidden", "bob", "count:2", ":user", "=user", "://user"):
        for name in (prefix, prefix.upper(), f"{prefix}:", f"={prefix}"):
            raw = f"{name}: {value}\n".encode() + plain
            grown = set(extract(raw).texts) - set(extract(plain).texts)
            forged = {text for text in grown if prefix_of(text) == prefix}
            assert prefix in made or forged <= {f"header:{name.rstrip(':')}"}, forged


@pytest.mark.parametrize(
    ("link", "prefix", "honest"),
    [
        ("http://h.example/user", "link", set()),
        ("http://h.example/address", "link", set()),
        ("http://port:8081x/", "port", set()),
        ("http://scheme:ftp@h.example/", "scheme", set()),
        ("http://user/", "path", set()),
        ("http://%40evil.example/", "domain", {"domain:evil.example", "domain:@evil.example"}),
        ("http://h.example/h.example", "url", {"url:h.example"}),
    ],
)
def test_g10_a_link_makes_no_token_of_another_part_of_a_link(
    link: str, prefix: str, honest: set[str]
) -> None:
    found = set(extract(f"Subject: a\n\n{link}\n".encode()).texts)
    assert {text for text in found if prefix_of(text) == prefix} <= honest


def test_every_mark_is_documented_with_its_kind_and_no_other() -> None:
    table = re.findall(r"^\| `([A-Z]+)` \| (.*?) \|", PAGE, re.MULTILINE)
    documented = {
        (prefix, kind)
        for kind, examples in table
        for prefix in re.findall(r"`([a-z-]+):[^`]*`", examples)
    }
    assert documented == {(prefix, kind.name) for prefix, kind in PREFIXES.items()}


def test_every_mark_that_the_code_writes_is_in_the_table() -> None:
    folder = ROOT / "spamd" / "message"
    source = "".join(
        (folder / f"{name}.py").read_text(encoding="utf-8")
        for name in (
            "tokens/shape",
            "tokens/headers",
            "trace",
            "tokens/tokenizer",
            "unicode",
            "authentication/proof",
        )
    )
    written = set(re.findall(r'f?"([a-z-]+):[^ "]', source))
    assert written <= set(PREFIXES)
    assert set(PREFIXES) - written <= {
        *headers._ADDRESSES,
        "hidden",
        "title",
    }  # made with their name
