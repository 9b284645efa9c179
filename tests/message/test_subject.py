"""The marks that other filters put in front of a subject are no words of the sender."""

import time

import pytest

from spamd.message.features import extract
from spamd.message.subject import without_marks

from .helpers import mail

MARKS = [
    "Spam:", "SPAM:", "Junk:", "[***SPAM***]", "{Definitely Spam?}", "{Spam?}", "{Spam 12.5}",
    "[SUSPECTED SPAM]", "***Junk***", "*****SPAM*****", "*** SPAM ***", "***SPAM(12.3)***",
    "[SPAM: 7.3/5.0]", "[spam score 8.2]", "<SPAM>", "(SPAM)", "!!SPAM!!", "##SPAM##", "_SPAM_",
    "*SPAM*", "--SPAM--", "==SPAM==", ">>SPAM<<", "[-SPAM-]", "[SPAM-LOW]", "SPAM-MED:",
    "Suspected Spam:", "**Possible Spam**", "[Probable Spam]:", "[SPAM DETECTED BY GATEWAY]",
    "[BULK]", "[PHISHING]", "{Fraud?}", "{Disarmed}", "{Dangerous Content?}", "***UNCHECKED***",
    "[EXTERNAL]", "[External Email]", "[Junk E-Mail]", "[垃圾邮件]", "[SPAM-Verdacht]",
    "[Correo no deseado]", "(SPAM? 08.00)", "[SPAM?]", "[ SPAM ]", "$$SPAM$$", "spam,", "unsure,",
    "[SPAM] [SPAM]", "[SPAM] ***SPAM*** Spam:", "[External] {Spam?}",
]  # fmt: skip


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("encoded", [False, True])
def test_g12_a_mark_of_another_filter_is_no_word(mark: str, *, encoded: bool) -> None:
    blank = "" if mark.endswith(",") else " "
    text = f"{mark}{blank}Cheap offer"
    if encoded:
        octets = "".join(f"={octet:02X}" for octet in f"{mark}{blank}".encode())
        text = f"=?utf-8?Q?{octets}?=\n =?utf-8?Q?Cheap_offer?="
    plain = extract(mail("Hello", "Subject: Cheap offer"))
    marked = extract(mail("Hello", f"Subject: {text}"))
    assert list(marked.texts) == list(plain.texts)
    assert marked.digest == plain.digest
    assert marked.sample.grams.tolist() == plain.sample.grams.tolist()
    assert marked.sample.discrete.tolist() == plain.sample.discrete.tolist()


@pytest.mark.parametrize(
    ("subject", "left"),
    [
        ("Re: [SPAM] hello", "Re: hello"),
        ("[list] ***SPAM*** hello", "[list] hello"),
        ("[list] Re: {Spam?} hello", "[list] Re: hello"),
        ("[SPAM]", ""),
        ("Fwd: Spam: hello", "Fwd: hello"),
    ],
)
def test_g12_a_mark_behind_a_tag_or_a_reply_is_taken_out(subject: str, left: str) -> None:
    assert without_marks(subject) == left


@pytest.mark.parametrize(
    "subject",
    [
        "[Spambayes] hello", "[spam-l] digest", "Question: spam and ham", "No spam: hello", "Spam",
        "SPAM is no food", "[hello] Spam", "*Great* spam", "http://spam.example/x: y", "10:30 call",
        "$$$ Make money $$$", "How to stop spam: a guide", "[SAtalk] Re: spam", "hello [SPAM]",
        "Internal: external audit", "",
    ],
)  # fmt: skip
def test_g12_words_about_spam_stay(subject: str) -> None:
    assert without_marks(subject) == subject


@pytest.mark.parametrize("piece", ["[", "[a", "*a* ", "[SPAM]", "(", "a:", " ", "-a-", "{a}(("])
def test_g12_hostile_subjects_cost_time_in_step(piece: str) -> None:
    def seconds(count: int) -> float:
        subject, best = piece * count, 1e9
        for _ in range(3):
            started = time.thread_time()
            without_marks(subject)
            best = min(best, time.thread_time() - started)
        return best

    assert seconds(40_000) < 12 * max(seconds(10_000), 0.001)
