"""The SVG of an evaluation: well-formed, complete, and its ROC the true one."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from spamd.evaluation.plots import picture, roc_points
from spamd.evaluation.rates import Outcomes, reliability, roca

SVG = "{http://www.w3.org/2000/svg}"


def outcomes(seed: int = 1, size: int = 1000) -> Outcomes:
    random = np.random.default_rng(seed)
    spam = random.random(size) < 0.4
    return Outcomes(
        spam=spam,
        log_odds=np.round(random.normal(np.where(spam, 2.0, -2.0), 2.0), 1),
        called=np.zeros(size, dtype=np.int8),
    )


def test_the_area_over_the_roc_points_is_the_roca() -> None:
    run = outcomes()
    x, y = np.array(roc_points(run)).T
    over = float(((y[1:] + y[:-1]) / 2 * np.diff(x)).sum()) / 100.0
    assert over == pytest.approx(roca(run.spam, run.log_odds))


def test_the_picture_is_well_formed_and_names_every_run() -> None:
    root = ET.fromstring(picture({"default <1>": outcomes(), "other & more": outcomes(2)}))
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert {"ROC", "Reliability", "Learning", "default <1>", "other & more"} <= set(texts)
    lines = list(root.iter(f"{SVG}polyline"))
    assert len(lines) == 6
    assert all(line.get("points") for line in lines)


def test_every_point_lies_within_the_picture() -> None:
    root = ET.fromstring(picture({"run": outcomes()}))
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for line in root.iter(f"{SVG}polyline"):
        for point in line.get("points", "").split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= width
            assert 0 <= y <= height


def test_a_run_of_one_label_or_of_nothing_is_drawn_without_a_roc() -> None:
    only_ham = outcomes().part(~outcomes().spam)
    nothing = only_ham.part(slice(0, 0))
    assert roc_points(only_ham) == ()
    ET.fromstring(picture({"ham": only_ham, "nothing": nothing}))


def test_no_run_gives_empty_axes() -> None:
    ET.fromstring(picture({}))


def test_what_stands_beside_is_drawn_without_a_reliability() -> None:
    root = ET.fromstring(picture({"fused": outcomes()}, {"graham": outcomes(2)}))
    widths = [line.get("stroke-width") for line in root.iter(f"{SVG}polyline")]
    assert sorted(widths, key=str) == ["1.4", "1.4", "2.4", "2.4", "2.4"]


def test_more_messages_make_a_larger_dot() -> None:
    run = outcomes()
    root = ET.fromstring(picture({"run": run}))
    sizes = np.array([float(dot.get("r", 0)) for dot in root.iter(f"{SVG}circle")])
    _, _, number = reliability(run.spam, run.probabilities)
    by_number = sizes[np.argsort(number[number > 0])]
    assert (np.diff(by_number) >= 0).all()
    assert by_number[0] < by_number[-1]


def test_no_two_of_twenty_runs_look_alike_and_long_names_are_cut() -> None:
    names = [f"{number} {'x' * 80}" for number in range(20)]
    root = ET.fromstring(picture(dict.fromkeys(names, outcomes())))
    lines = root.findall(f"{SVG}polyline")
    styles = {(line.get("stroke"), line.get("stroke-dasharray")) for line in lines}
    assert len(styles) == 20
    assert all(len(text.text or "") <= 50 for text in root.iter(f"{SVG}text"))
