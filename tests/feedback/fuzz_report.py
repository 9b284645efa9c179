"""Coverage-guided fuzzing of mail to the report addresses, for a person who has time.

    pip install atheris
    python -m tests.feedback.fuzz_report -max_total_time=600 -max_len=20000 FOLDER

FOLDER keeps the inputs that reached new code; it starts with the shapes of the tests. Atheris is no
dependency of the project: what the fuzzer found is kept as a test, by hand.
"""

import asyncio
import sys
import time
from pathlib import Path

import atheris  # type: ignore[import-untyped]  # installed only by who runs this

with atheris.instrument_imports(include=["spamd.message", "spamd.feedback"]):
    from spamd.feedback.options import FeedbackOptions
    from spamd.feedback.report_address import ReportAddress
    from spamd.feedback.teacher import Teacher
    from spamd.message.features import extract
    from spamd.message.mime.parser import attached
    from spamd.sample import Label

from tests.fakes import FakeClock, FakeObserver
from tests.feedback.fakes import FakeHeld, FakeJournal, durable
from tests.feedback.test_report_address import SHAPES, report
from tests.feedback.world import mail

SLOW_S = 5.0
"""Of CPU for an input of some kilobytes: more is not linear."""


def one_input(data: bytes) -> None:
    """Take a report as the relay threads it over."""
    started = time.thread_time()
    for found in attached(data):
        assert found.strip()
        assert len(found) <= 2 * len(data) + 2
    journal = FakeJournal(FakeClock())
    options = FeedbackOptions(spam_addresses=("spam@our.test",), report_mails=5)
    teacher = Teacher(journal, FakeHeld(journal), FakeClock(), options, FakeObserver())
    handler = ReportAddress(options, durable(journal, teacher), extract)
    receipt = asyncio.run(handler.take(data, Label.SPAM, "bob"))
    assert receipt.isascii()
    assert receipt.isprintable()
    assert len(journal.lessons) <= 5
    assert time.thread_time() - started < SLOW_S


def main() -> None:
    """Run the fuzzer with the options of libFuzzer given on the command line."""
    for folder in (Path(word) for word in sys.argv[1:] if not word.startswith("-")):
        folder.mkdir(exist_ok=True)
        for name, shape in SHAPES.items():
            (folder / name.replace(" ", "-")).write_bytes(shape(30))
        (folder / "report").write_bytes(report(mail("one"), mail("two")))
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
