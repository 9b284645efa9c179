"""Mail in many languages gives words or character pairs, never bytes."""

import pytest
import regex

from spamd.message import unicode
from spamd.message.mime.charset import decode
from spamd.message.tokens.tokenizer import TokenizerOptions

from .helpers import mail, tokens, words

CHINESE = "尊敬的客户：本公司可代开各类发票，税点优惠，欢迎来电咨询。联系人：李小姐"
JAPANESE = "お客様各位 無料でお試しいただけます。今すぐクリックしてください。"
KOREAN = "안녕하세요 고객님, 무료 체험 기회를 놓치지 마세요"
RUSSIAN = "Уважаемый клиент! Предлагаем вам выгодный кредит без поручителей."
GERMAN = "Sehr geehrte Damen und Herren, wir gewähren Ihnen günstige Kredite für Ihr Geschäft."
ARABIC = "عزيزي العميل، نقدم لك قرضا سريعا بدون ضمانات"
HEBREW = "לקוח יקר, אנו מציעים לך הלוואה מהירה"
THAI = "สวัสดีครับ รับสมัครงานด่วน"
HINDI = "प्रिय ग्राहक, हम आपको ऋण प्रदान करते हैं"


@pytest.mark.parametrize(
    ("text", "codec", "expected"),
    [
        (CHINESE, "utf-8", {"发票", "优惠", "公司", "李小", "小姐"}),
        (CHINESE, "gb18030", {"发票", "优惠", "公司"}),
        (CHINESE, "gb2312", {"发票", "优惠", "公司"}),
        ("歡迎來電諮詢，本公司提供優惠", "big5", {"歡迎", "公司", "優惠"}),
        (JAPANESE, "utf-8", {"無料", "クリ", "リッ", "お試"}),
        (JAPANESE, "iso-2022-jp", {"無料", "クリ", "お試"}),
        (JAPANESE, "shift_jis", {"無料", "クリ", "お試"}),
        (JAPANESE, "euc-jp", {"無料", "クリ", "お試"}),
        (KOREAN, "utf-8", {"안녕하세요", "무료", "체험"}),
        (KOREAN, "euc-kr", {"안녕하세요", "무료", "체험"}),
        (RUSSIAN, "utf-8", {"Уважаемый", "клиент!", "кредит"}),
        (RUSSIAN, "koi8-r", {"Уважаемый", "клиент!", "кредит"}),
        (RUSSIAN, "windows-1251", {"Уважаемый", "клиент!", "кредит"}),
        (GERMAN, "iso-8859-1", {"gewähren", "günstige", "für", "Geschäft"}),
        (GERMAN, "utf-8", {"gewähren", "günstige", "für", "Geschäft"}),
        (ARABIC, "utf-8", {"عزيزي", "العميل", "قرضا", "ضمانات"}),
        (ARABIC, "windows-1256", {"عزيزي", "العميل", "قرضا", "ضمانات"}),
        (HEBREW, "iso-8859-8-i", {"לקוח", "יקר", "הלוואה"}),
        (THAI, "utf-8", {"งา", "าน"}),
        (THAI, "tis-620", {"งา", "าน"}),
        (HINDI, "utf-8", {"प्रिय", "ग्राहक", "ऋण"}),
    ],
)
def test_each_language_gives_its_words(text: str, codec: str, expected: set[str]) -> None:
    python = {"iso-8859-8-i": "iso-8859-8"}.get(codec, codec)
    raw = mail("BODY", f"Content-Type: text/plain; charset={codec}").replace(
        b"BODY", text.encode(python)
    )
    assert expected <= words(raw)


@pytest.mark.parametrize(
    ("text", "codec", "label"),
    [
        ("l’été", "cp1252", "ISO8859-1"),
        ("l’été", "cp1252", "ANSI_X3.4-1968"),
        ("l’été", "cp1254", "ISO8859-9"),
        ("朱镕基", "gb18030", "EUC-CN"),
        ("朱镕基", "gb18030", "CP936"),
        ("뷁뷁", "cp949", "EUCKR"),
        ("①②", "cp932", "Shift-JIS"),
        ("①②", "cp932", "ShiftJIS"),
        ("①②", "cp932", "Windows-31J"),
    ],
)
def test_every_name_of_a_charset_is_read_as_mail_readers_read_it(
    text: str, codec: str, label: str
) -> None:
    assert decode(text.encode(codec), label).text == text


@pytest.mark.parametrize(
    ("text", "codec", "label", "expected"),
    [
        (CHINESE * 3, "gb18030", "iso-8859-1x", {"发票", "公司"}),
        (CHINESE, "utf-8", "gb2312", {"发票", "公司"}),
        (RUSSIAN, "koi8-r", "", {"клиент!", "кредит"}),
        (RUSSIAN, "utf-8", "iso-8859-1", {"клиент!", "кредит"}),
        (GERMAN, "latin-1", "utf-8", {"gewähren", "für"}),
        (GERMAN, "latin-1", "us-ascii", {"gewähren", "für"}),
        (JAPANESE, "iso-2022-jp", "us-ascii", {"無料", "クリ"}),
    ],
)
def test_a_wrong_label_does_not_garble_the_text(
    text: str, codec: str, label: str, expected: set[str]
) -> None:
    raw = mail("BODY", f"Content-Type: text/plain; charset={label}").replace(
        b"BODY", text.encode(codec)
    )
    assert expected <= words(raw)


def test_a_subject_in_another_alphabet_is_read() -> None:
    assert "subject=кредит" in tokens(mail("x", "Subject: =?koi8-r?B?y9LFxMnU?="))
    assert "subject=发票" in tokens(mail("x", "Subject: =?gb2312?B?t6LGsQ==?="))


def test_full_width_letters_are_folded() -> None:
    assert "FREE" in words(mail("ＦＲＥＥ"))


def test_look_alike_letters_give_the_word_a_reader_sees() -> None:
    raw = mail("Buy Vіagrа and Ѕаlе today")  # і, а, Ѕ, а, е are Cyrillic
    assert {"Viagra", "Sale"} <= words(raw)
    assert "trick:look-alike" in tokens(raw)


def test_an_honest_word_of_another_alphabet_is_no_trick() -> None:
    found = tokens(mail("Привет, Δελτίο, IT-компания и iPhone-ы"))
    assert "trick:look-alike" not in found


def test_digits_for_letters_give_the_plain_word_as_well() -> None:
    raw = mail("Buy V1agra and pr0n, C1al1s pi11s")
    assert {"Viagra", "pron", "Cialis", "piiis"} <= words(raw)
    assert "trick:leet" in tokens(raw)
    assert "trick:leet" not in tokens(mail("the i386 kernel 2.4 and B2B on h264"))


def test_signs_that_stand_for_whole_phrases_are_no_bomb() -> None:
    assert words(mail("before \ufdfa ﬁne")) == {"before", "fine"}


def test_rare_control_characters_separate_words() -> None:
    assert words(mail("one\x01two\x02three")) == {"one", "two", "three"}


def test_a_mail_of_which_nothing_may_be_counted_has_no_tokens() -> None:
    options = TokenizerOptions(without=frozenset({"headers", "shape", "links"}))
    assert tokens(b"", options) == set()


def test_each_look_alike_is_a_letter_of_the_scripts_that_are_folded() -> None:
    """So a word without a look-alike needs no question about its script."""
    scripts = regex.compile(r"[\p{Cyrillic}\p{Greek}\p{Armenian}\p{Cherokee}ɑ]")

    assert [sign for sign in unicode._LOOK_ALIKES if not scripts.match(sign)] == []


def test_of_all_letters_between_latin_ones_only_look_alikes_are_folded() -> None:
    every = map(chr, [*range(0x80, 0xD800), *range(0xE000, 0x110000)])

    folded = {sign for sign in every if unicode.unmasked(f"x{sign}y") is not None}

    assert folded == set(unicode._LOOK_ALIKES)


@pytest.mark.parametrize("sign", ["\u00ad", "\u200b", "\u200c\u034f"])
def test_an_invisible_sign_splits_a_word_of_latin_cyrillic_or_greek_letters(sign: str) -> None:
    every = [chr(code) for code in [*range(0x80, 0xD800), *range(0xE000, 0x20000)]]
    shown = [letter for letter in every if not unicode.INVISIBLE.match(letter)]
    letters = regex.compile(r"[\p{Latin}\p{Cyrillic}\p{Greek}]")

    split = {letter for letter in shown if unicode.normalize(f"a{sign}{letter}")[1]}

    assert split == set(filter(letters.match, shown))
