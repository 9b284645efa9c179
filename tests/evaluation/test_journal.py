"""Lessons judged by what the others taught."""

import io
import json
import pickle
import subprocess
import sys

import pytest

from spamd.bayes.model import BayesOptions
from spamd.evaluation.journal import WISHES, Given, assess
from spamd.message.features import extract
from spamd.sample import Label, Sample

BAYES = BayesOptions()


def mail(label: Label, number: int) -> Sample:
    words = "cheap pills buy" if label is Label.SPAM else "lunch meeting notes"
    return extract(f"Subject: n{number}\n\n{words} w{number % 7} v{number % 5}\n".encode()).sample


def given(each: int) -> Given:
    labels = [label for number in range(each) for label in Label]
    samples = [mail(label, number) for number, label in enumerate(labels)]
    return Given(samples=samples, labels=labels, bayes=BAYES)


def test_what_is_told_apart_easily_has_no_error_and_points_for_every_curve() -> None:
    found = assess(given(20))
    assert (found["messages"], found["ham"], found["spam"]) == (40, 20, 20)
    assert found["fused"]["roca"] == 0.0  # type: ignore[index]  # it is JSON
    assert len(found["thresholds"]) == len(WISHES)  # type: ignore[arg-type]
    assert found["roc"][-1] == [100.0, 0.0]  # type: ignore[index]
    assert sum(part["messages"] for part in found["reliability"]) == 40  # type: ignore[attr-defined]


def test_the_process_reads_lessons_and_writes_json() -> None:
    same = given(12)
    done = subprocess.run(
        [sys.executable, "-m", "spamd.evaluation.journal"],
        input=pickle.dumps(same), capture_output=True, check=True,
    )  # fmt: skip
    assert json.load(io.BytesIO(done.stdout)) == json.loads(json.dumps(assess(same)))
    assert done.stderr == b""


@pytest.mark.parametrize("label", list(Label))
def test_lessons_of_one_label_alone_are_no_fault(label: Label) -> None:
    alone = Given(samples=[mail(label, n) for n in range(6)], labels=[label] * 6, bayes=BAYES)
    assert assess(alone)["roc"] == []
