"""Coverage-guided fuzzing of reading, tokenising and splicing, for a person who has time.

    make fuzz FUZZ=message SECONDS=3600

What reached new code is kept in the folder named, which starts with the golden mails. Atheris is no
dependency of the project: what the fuzzer found is kept as a test, by hand.
"""

import sys
from pathlib import Path

import atheris  # type: ignore[import-untyped]  # installed only by who runs this

GOLDEN = Path(__file__).parents[1] / "golden"
BLOCK = b"X-Spam-Flag: YES\r\n"

with atheris.instrument_imports(include=["spamd.message"]):
    from spamd.message.features import extract
    from spamd.message.limits import Limits
    from spamd.message.spam_fields import strip_and_prepend


def one_input(data: bytes) -> None:
    """Check what must hold for any bytes."""
    found = extract(data)
    assert len(found.sample.ids) == len(found.texts) <= Limits().tokens
    for text in found.texts:
        assert text
        assert text.count(" ") <= 1
        assert not set(text) & set("\0\n\r\t")
        text.encode()
    once = strip_and_prepend(data, BLOCK)
    assert strip_and_prepend(once, BLOCK) == once


def main() -> None:
    """Run the fuzzer with the options of libFuzzer given on the command line."""
    for folder in (Path(word) for word in sys.argv[1:] if not word.startswith("-")):
        folder.mkdir(exist_ok=True, parents=True)
        for mail in GOLDEN.glob("*.eml"):
            (folder / mail.name).write_bytes(mail.read_bytes())
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
