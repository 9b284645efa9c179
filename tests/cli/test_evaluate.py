"""`spamd evaluate`: what it measures, prints, draws and refuses."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.cli.conftest import Spamd, made_up
from tests.evaluation.agreed import RATES


def index(home: Path) -> Path:
    file = home / "index"
    file.write_text(
        "".join(f"{label} {label}/{n:02}.eml\n" for n in range(12) for label in ("spam", "ham"))
    )
    return file


def test_evaluate_prints_the_rates_of_the_product_and_of_each_classifier(
    spamd: Spamd, home: Path
) -> None:
    ran = spamd("evaluate", index(home))

    assert ran.code == 0
    assert ran.out.startswith("24 messages: 12 ham, 12 spam; online, order of the index\n")
    for classifier in ("fused", "graham", "multinomial", "logistic"):
        assert f" {classifier} " in ran.out


def test_evaluate_as_json_has_the_agreed_shape(spamd: Spamd, home: Path) -> None:
    found = spamd("evaluate", index(home), "--seed", "1", "--json").json

    assert (found["messages"], found["ham"], found["spam"]) == (24, 12, 12)
    assert (found["protocol"], found["order"]) == ("online", "seed 1")
    assert list(found["fused"]) == RATES


def test_evaluate_takes_two_places_instead_of_an_index(spamd: Spamd) -> None:
    arguments = ("--spam", "spam", "--ham", "ham", "--protocol", "cross", "--folds", "2")

    assert spamd("evaluate", *arguments, "--json").json["messages"] == 24


def test_evaluate_lives_with_people_who_move_and_keep_mail(spamd: Spamd, home: Path) -> None:
    moves = ("evaluate", index(home), "--protocol", "moves", "--taught", "6", "--delay", "3")
    people = ("--corrects", "1", "--slips", "0", "--unsure-moved", "0.5")
    found = spamd(*moves, *people, "--json").json
    several = spamd(*moves, "--no-kept", "--seed", "1", "--seed", "2")

    assert (found["messages"], found["protocol"]) == (18, "moves")
    assert list(found["lessons"]) == ["told", "move", "kept"]
    told = found["lessons"]["told"]
    assert told["ham"] + told["spam"] == 6
    assert "\nlessons in force" in spamd(*moves).out
    assert "as set: lessons in force" in several.out


def test_evaluate_draws_the_curves(spamd: Spamd, home: Path) -> None:
    spamd("evaluate", index(home), "--plot", "curves.svg")

    assert (home / "curves.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), 64),
        (("--spam", "spam"), 64),
        (("index", "--spam", "spam", "--ham", "ham"), 64),
        (("missing",), 3),
        (("--spam", "spam", "--ham", "ham", "--folds", "1", "--protocol", "cross"), 64),
        (("index", "--attack", "--unseen", "index"), 64),
        (("index", "--attack", "--seed", "1", "--seed", "2"), 64),
        (("index", "--unseen", "index", "--compare", "graham.words=3"), 64),
        (("index", "--attack", "--plot", "curves.svg"), 64),
        (("index", "--plot", "curves.png"), 64),
        (("index", "--plot", "missing/curves.svg"), 3),
        (("index", "--seed", "first"), 64),
        (("index", "--without", "vowels"), 64),
        (("index", "--protocol", "moves", "--corrects", "1.5"), 64),
        (("index", "--protocol", "moves"), 3),
        (("index", "--compare", "graham.wrods=3"), 78),
        (("index", "--unseen", "missing"), 3),
    ],
)
def test_evaluate_says_what_it_needs(
    spamd: Spamd, home: Path, arguments: tuple[str, ...], code: int
) -> None:
    index(home)
    ran = spamd("evaluate", *arguments)

    assert ran.code == code
    assert ran.out == ""
    assert ran.err.startswith("spamd")


def test_several_orders_come_with_their_mean_and_spread(spamd: Spamd, home: Path) -> None:
    orders = ("--seed", "index", "--seed", "1", "--seed", "2")
    ran = spamd("evaluate", index(home), *orders)
    found = spamd("evaluate", index(home), *orders, "--json").json

    assert ran.out.startswith("24 messages: 12 ham, 12 spam; online, 3 orders\n")
    for row in ("index", "seed 1", "seed 2", "mean", "spread"):
        assert f" {row} " in ran.out
    (one,) = found["settings"]
    assert one["orders"] == ["index", "seed 1", "seed 2"]
    each = [rates["roca"] for rates in one["each"]]
    assert one["fused"]["roca"] == pytest.approx(sum(each) / 3)
    single = spamd("evaluate", index(home), "--seed", "2", "--json").json
    assert one["each"][2] == single["fused"]


def test_settings_are_tried_side_by_side(spamd: Spamd, home: Path) -> None:
    other = "fusion.classifiers=['graham'] tokenizer.without=['pairs']"
    arguments = ("--seed", "1", "--seed", "2", "--compare", other)
    ran = spamd("evaluate", index(home), *arguments)
    found = spamd("evaluate", index(home), *arguments, "--json").json

    assert f"{other}: 1-ROCA" in ran.out
    assert ran.out.rstrip().endswith("of 2 orders")
    assert [one["name"] for one in found["settings"]] == ["as set", other]
    assert list(found["settings"][1]["classifiers"]) == ["graham"]
    alone = spamd("evaluate", index(home), "--seed", "1", *set_by(other), "--json").json
    assert found["settings"][1]["each"][0] == alone["fused"]


def set_by(settings: str) -> list[str]:
    return [word for setting in settings.split() for word in ("--set", setting)]


def test_groups_of_tokens_are_left_out(spamd: Spamd, home: Path) -> None:
    """Only the way tells these two apart."""
    lines = []
    for number in range(40):
        label = ("ham", "spam")[number % 2]
        (home / f"{number}.eml").write_bytes(
            f"Message-ID: <{number}@{label}.example>\r\nX-List: {label}\r\n"
            f"Subject: note\r\n\r\nthe same {number}\r\n".encode()
        )
        lines.append(f"{label} {number}.eml\n")
    (home / "index").write_text("".join(lines))

    whole = spamd("evaluate", "index", "--json").json["fused"]
    without = spamd("evaluate", "index", "--without", "route", "--json").json["fused"]

    assert whole["roca"] < 10
    assert without["roca"] > 25
    assert spamd("evaluate", "index", "--without", "pairs", "--without", "twins").code == 0


def test_mail_is_judged_unseen_by_what_other_mail_taught(spamd: Spamd, home: Path) -> None:
    for label in ("spam", "ham"):
        (home / f"{label}-new.eml").write_bytes(made_up(label, 99))
    (home / "new").write_text("spam spam-new.eml\nham ham-new.eml\n")
    ran = spamd("evaluate", index(home), "--unseen", "new")
    found = spamd("evaluate", index(home), "--unseen", "new", "--json").json

    assert ran.out.startswith("2 messages: 1 ham, 1 spam; transfer")
    assert (found["messages"], found["protocol"]) == (2, "transfer")
    assert found["fused"]["roca"] == 0.0


def test_attacks_are_told_row_by_row(spamd: Spamd, home: Path) -> None:
    ran = spamd("evaluate", index(home), "--attack")
    found = spamd("evaluate", index(home), "--attack", "--json").json
    rows = found["attacks"]

    names = [row["attack"] for row in rows]
    assert names[0] == "none"
    assert {"30 random ham words", "30 best ham words", "100 best, hidden"} <= set(names)
    assert {"50 spammiest as lookalikes", "5 % wrong labels", "1 % poison"} <= set(names)
    assert all(name in ran.out for name in names)
    assert "spam caught by each classifier alone" in ran.out


def test_orders_and_settings_are_drawn_together(spamd: Spamd, home: Path) -> None:
    spamd("evaluate", index(home), "--seed", "1", "--seed", "2", "--plot", "curves.svg")

    texts = [element.text for element in ET.parse(home / "curves.svg").iter()]
    assert {"as set, seed 1", "as set, seed 2"} <= set(texts)
