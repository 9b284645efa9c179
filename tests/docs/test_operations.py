"""What an operator sees is documented: commands, exit codes, fields, events, metrics, settings."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from spamd.bayes.decision import Action, DecisionOptions, Verdict, thresholds
from spamd.cli.exits import Exit
from spamd.feedback.options import AccountOptions
from spamd.observe.metrics import Metrics
from spamd.report import ScanReport, log_odds
from spamd.settings import Settings
from tests.docs.generated import COMMANDS

ROOT = Path(__file__).parent.parent.parent
OPERATIONS = (ROOT / "docs/operations.md").read_text("utf-8")
TRAINING = (ROOT / "docs/training.md").read_text("utf-8")

WITHOUT_JSON = {"serve", "filter", "feedback watch", "password"}
"""They write a log, a line for a file, or the mail: no result."""


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_documented(name: str) -> None:
    assert re.search(rf"`spamd {name}\b", OPERATIONS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_in_one_line_what_it_does(name: str) -> None:
    first = (COMMANDS[name].help or "").split("\n")[0]

    assert first.endswith(".")
    assert len(first) <= 62


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_speaks_json(name: str) -> None:
    options = {option for param in COMMANDS[name].params for option in param.opts}

    assert ("--json" in options) != (name in WITHOUT_JSON)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_and_argument_is_explained(name: str) -> None:
    silent = [p.name for p in COMMANDS[name].params if not getattr(p, "help", "")]

    assert silent == []


@pytest.mark.parametrize("code", Exit)
def test_an_exit_code_is_documented(code: Exit) -> None:
    assert f"\n| {code.value} | " in OPERATIONS


@pytest.mark.parametrize("section", list(Settings.model_fields))
def test_a_section_of_the_settings_is_documented(section: str) -> None:
    assert f"`{section}`" in OPERATIONS


@pytest.mark.parametrize("key", [field.name for field in fields(AccountOptions)])
def test_a_key_of_an_account_is_documented(key: str) -> None:
    assert f"`{key}`" in TRAINING


def test_the_header_fields_are_documented() -> None:
    report = ScanReport(
        id="x",
        verdict=Verdict.SPAM,
        action=Action.TAG,
        reason="",
        probability=1.0,
        required=0.5,
        scores={},
        size_bytes=0,
        tokens=0,
        known=0,
        duration_s=0.0,
        features=None,
    )

    assert [name for name, _ in report.fields() if f"| `{name}` |" not in OPERATIONS] == []


def test_the_verdicts_are_documented() -> None:
    assert [verdict for verdict in Verdict if f"`{verdict}`" not in OPERATIONS] == []


def test_the_metrics_are_documented() -> None:
    names = set()
    for family in Metrics().registry.collect():
        names.add(f"{family.name}_total" if family.type == "counter" else family.name)

    assert {name for name in names if f"| `{name}` |" not in OPERATIONS} == set()


def test_the_events_of_the_log_are_documented() -> None:
    told = re.compile(r'(?:happened|failed|\.info|\.warning)\(\s*"([a-z]+\.[a-z_]+)"')
    events = {
        event
        for file in (ROOT / "spamd").rglob("*.py")
        for event in told.findall(file.read_text("utf-8"))
    }

    assert "message.scanned" in events
    assert {event for event in events if f"`{event}`" not in OPERATIONS} == set()


@pytest.mark.parametrize("page", ["README.md", "docs/operations.md", "docs/training.md"])
def test_the_thresholds_that_examples_show_are_those_of_the_defaults(page: str) -> None:
    tag_from = thresholds(DecisionOptions())[Action.TAG]
    text = (ROOT / page).read_text("utf-8")
    probabilities = re.findall(r"tag from (0\.\d+)", text)
    log_odds_shown = re.findall(r"required=(\d+\.\d)", text)

    assert probabilities or log_odds_shown
    assert set(probabilities) <= {f"{tag_from:.4f}"}
    assert set(log_odds_shown) <= {f"{log_odds(tag_from):.1f}"}


@pytest.mark.parametrize(
    "limit",
    [
        "mail_max_userip_connections",
        "default_process_limit",
        "fs.inotify.max_user_instances",
        "fs.inotify.max_user_watches",
        "LimitNOFILE",
    ],
)
def test_j3_the_limits_of_others_for_many_accounts_are_named(limit: str) -> None:
    growth = OPERATIONS.partition("\n## Growth\n")[2].partition("\n## ")[0]

    assert limit in growth
    assert "IDLE is silent" in growth


@pytest.mark.parametrize(
    "setting",
    [
        "database.scans_days",
        "database.changes_hours",
        "feedback.held_days",
        "feedback.parked_days",
        "feedback.seen_days",
    ],
)
def test_i4_what_goes_by_itself_is_documented(setting: str) -> None:
    assert f"`{setting}`" in OPERATIONS.partition("\n## Growth\n")[2]


def test_no_document_holds_the_leftovers_of_a_merge() -> None:
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "config/spamd.toml"]
    marker = re.compile(r"^(<{7} |={7}$|>{7} )", re.MULTILINE)
    assert [path.name for path in documents if marker.search(path.read_text("utf-8"))] == []
