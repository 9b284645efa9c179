"""Alert rules and dashboard: they ask for what there is, and tell of what they are meant to."""

import re
import subprocess
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from spamd.bayes.decision import Action, Verdict
from spamd.observe.metrics import ACCOUNT_STATES, CorpusNow, Metrics
from spamd.sample import Label
from tests.docs.blocks import ROOT, block
from tests.docs.dashboard import queries
from tests.docs.generated import metrics_of
from tests.servers.base import require

RULES = ROOT / "config/prometheus/spamd.rules.yml"
CASES = ROOT / "tests/alerts.yml"
SCRAPED = block("docs/operations.md", "scrape_configs:")

VALUES: Mapping[str, Collection[str]] = {
    "verdict": set(Verdict),
    "action": set(Action),
    "label": set(Label),
    "state": set(ACCOUNT_STATES),
    "check": {"model", "database", "next_hop"},
    "error": {"spam_passed", "ham_lost"},
    "value": {"low", "estimate", "high"},
    "outcome": {"held"},
}
"""What can stand in a label."""

TARGET = {"job", "instance", "le"}
"""Labels that Prometheus adds, and that of a histogram."""


def known() -> dict[str, set[str]]:
    """Return the labels of each series, by its name."""
    found: dict[str, set[str]] = {"up": set()}
    histograms = {each.name for each in Metrics().collect() if each.type == "histogram"}
    for name, labels, _ in metrics_of():
        endings = ("_bucket", "_sum", "_count") if name in histograms else ("",)
        found |= {name + ending: set(labels) for ending in endings}
    return found


KNOWN = known()


def rules() -> list[dict[str, Any]]:
    (group,) = YAML(typ="safe").load(RULES.read_text("utf-8"))["groups"]
    return list(group["rules"])


EXPRESSIONS = [*(rule["expr"] for rule in rules()), *queries()]


def faults(expression: str) -> Iterator[str]:
    """Yield what an expression asks for that there is not."""
    names = set(re.findall(r"\b(?:spamd_\w+|up)\b", expression))
    yield from sorted(names - set(KNOWN))
    labels = set.union(TARGET, *(KNOWN.get(name, set()) for name in names))
    grouped = re.findall(r"\bby \(([^)]*)\)", expression)
    yield from sorted({each for text in grouped for each in re.split(r",\s*", text)} - labels)
    for label, value in re.findall(r'(\w+)=~?"([^"]*)"', expression):
        if label not in labels:
            yield label
        elif label not in TARGET and value not in VALUES[label]:
            yield f"{label}={value}"


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_rule_or_a_panel_asks_for_what_there_is(expression: str) -> None:
    assert list(faults(expression)) == []


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("spamd_scan_seconds > 1", "spamd_scan_seconds"),
        ("sum by (verdict) (spamd_ready)", "verdict"),
        ('spamd_accounts{status="lost"}', "status"),
        ('spamd_messages_total{verdict="bad"}', "verdict=bad"),
    ],
)
def test_what_there_is_not_is_noticed(expression: str, wrong: str) -> None:
    assert list(faults(expression)) == [wrong]


def test_the_values_that_are_always_there_are_those_we_know() -> None:
    metrics = Metrics()
    metrics.follow_corpus(lambda: CorpusNow(messages=dict.fromkeys(Label, 1.0)))
    for family in metrics.collect():
        for sample in family.samples:
            for label, value in sample.labels.items():
                assert label in TARGET | {"version"} or value in VALUES[label]


def test_every_metric_is_on_the_dashboard_and_what_asks_for_an_alert_has_one() -> None:
    panels, alerts = " ".join(queries()), " ".join(rule["expr"] for rule in rules())
    for name, _, text in metrics_of():
        assert name in panels
        if re.search(r"\balert\b", text, re.IGNORECASE):
            assert name in alerts


def test_what_an_alert_says_is_made_of_labels_that_it_has() -> None:
    for rule in rules():
        text = " ".join(rule["annotations"].values())
        grouped = re.findall(r"\bby \(([^)]*)\)", rule["expr"])
        there = {each for part in grouped for each in re.split(r",\s*", part)} - {"le"}
        there = there or set.union({"instance"}, *(KNOWN[n] for n in KNOWN if n in rule["expr"]))
        assert set(re.findall(r"\$labels\.(\w+)", text)) <= there, rule["alert"]


def promtool(*arguments: str) -> str:
    done = subprocess.run(
        ["promtool", *arguments], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_accepts_the_rules_and_the_queries_of_the_dashboard(tmp_path: Path) -> None:
    require("promtool")
    assert f"{len(rules())} rules found" in promtool("check", "rules", "--lint=all", str(RULES))
    panels = tmp_path / "panels.yml"
    asked = [each.replace("$__rate_interval", "5m") for each in queries()]
    records = [{"record": f"panel:{n}", "expr": each} for n, each in enumerate(asked)]
    with panels.open("w") as file:
        YAML().dump({"groups": [{"name": "panels", "rules": records}]}, file)
    assert f"{len(asked)} rules found" in promtool("check", "rules", str(panels))


def test_each_alert_fires_when_it_should_and_not_before(tmp_path: Path) -> None:
    require("promtool")
    yaml = YAML(typ="safe")
    cases = yaml.load(CASES.read_text("utf-8"))
    plain = tmp_path / "rules.yml"  # what an alert says is looked at elsewhere
    told = [{k: v for k, v in rule.items() if k != "annotations"} for rule in rules()]
    with plain.open("w") as file:
        yaml.dump({"groups": [{"name": "spamd", "rules": told}]}, file)
    cases["rule_files"] = [str(plain)]
    quiet, *others = cases["tests"]
    quiet["alert_rule_test"] = [
        {"eval_time": time, "alertname": rule["alert"]} for rule in told for time in ("20m", "3h")
    ]
    with (tmp_path / "cases.yml").open("w") as file:
        yaml.dump(cases, file)
    promtool("test", "rules", str(tmp_path / "cases.yml"))
    fired = {
        one["alertname"]
        for each in others
        for one in each["alert_rule_test"]
        if "exp_alerts" in one
    }
    assert fired == {rule["alert"] for rule in told}


def test_prometheus_is_told_of_spamd_as_printed(tmp_path: Path) -> None:
    require("promtool")
    (tmp_path / "spamd.rules.yml").write_text(RULES.read_text("utf-8"))
    printed = tmp_path / "prometheus.yml"
    printed.write_text(SCRAPED.replace("/etc/prometheus", str(tmp_path)))
    assert "14 rules found" in promtool("check", "config", str(printed))
