"""The Grafana dashboard, config/grafana/spamd.json: written by `make docs` from these panels.

`tests/test_alerts.py` fails when a panel asks for a metric, a label or a value that there is not,
or when a metric is on no panel.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

WIDTH, HEIGHT = 8, 7
"""A panel's size; a row is 24 wide."""

ON = 'instance=~"$instance"'
EVERY = "$__rate_interval"


class Panel(NamedTuple):
    """One panel: queries with the names of their lines, and what the numbers are."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    text: str = ""
    kind: str = "timeseries"


def rate(metric: str, by: str, more: str = "", over: str = EVERY) -> str:
    """Return how often something is counted."""
    return f"sum by ({by}) (rate({metric}{{{ON}{more}}}[{over}]))"


def per(metric: str, other: str) -> str:
    """Return how much of one is counted for each of the other."""
    return f"{rate(metric, 'instance')} / {rate(other, 'instance')}"


def quantile(share: float, metric: str) -> str:
    """Return what so many are faster than."""
    return f"histogram_quantile({share}, {rate(f'{metric}_bucket', 'le')})"


def quantiles(metric: str) -> tuple[tuple[str, str], ...]:
    return tuple((quantile(share, metric), f"{share:.0%}") for share in (0.5, 0.95, 0.99))


ROWS: dict[str, tuple[Panel, ...]] = {
    "Does mail flow?": (
        Panel("Ready", "bool_yes_no", ((f"min by (check) (spamd_ready{{{ON}}})", "{{check}}"),),
              "What mail needs; /readyz says why something is missing.", "stat"),
        Panel("Messages", "mps", ((rate("spamd_messages_total", "verdict"), "{{verdict}}"),),
              "By verdict, a second. unscanned: without one."),
        Panel("Actions", "mps", ((rate("spamd_messages_total", "action"), "{{action}}"),)),
        Panel("Faults", "cps", ((rate("spamd_faults_total", "event"), "{{event}}"),),
              "By event of the log."),
        Panel("Workers", "none", (
            (f"spamd_workers{{{ON}}}", "{{instance}}"),
            (f"increase(spamd_workers_lost_total{{{ON}}}[1h])", "{{instance}} lost in an hour"))),
        Panel("Bytes", "Bps", ((rate("spamd_message_bytes_total", "instance"), "{{instance}}"),)),
    ),
    "How long does it take?": (
        Panel("Time to a verdict", "s", quantiles("spamd_scan_seconds")),
        Panel("Delay of the event loop", "s", quantiles("spamd_loop_lag_seconds"),
              "What every message waited; above 0.05 s something delays all mail."),
        Panel("Mean time to a verdict", "s", (
            (per("spamd_scan_seconds_sum", "spamd_scan_seconds_count"), "{{instance}}"),)),
    ),
    "Does it learn?": (
        Panel("Lessons an hour", "none", (
            (f"sum by (label, source) (increase(spamd_lessons_total{{{ON}}}[1h]))",
             "{{label}} by {{source}}"),)),
        Panel("Lessons that wait for a review", "none", (
            (f'sum by (source) (increase(spamd_lessons_total{{{ON}, outcome="held"}}[1h]))',
             "{{source}}"),), "In an hour; spamd lessons held shows them."),
        Panel("Corrections an hour", "none", (
            (f"sum by (label) (increase(spamd_corrections_total{{{ON}}}[1h]))", "{{label}}"),),
            "Lessons that contradicted the filter, by the true label."),
        Panel("Wrong verdicts", "percentunit", (
            (f"spamd_wrong_ratio{{{ON}}}", "{{error}} ({{value}})"),),
            "As estimated from what people corrected and kept, with its bounds."),
        Panel("Learned messages", "none", (
            (f"max by (label) (spamd_corpus_messages{{{ON}}})", "{{label}}"),)),
        Panel("Known tokens", "none", ((f"max(spamd_corpus_tokens{{{ON}}})", "tokens"),)),
    ),
    "Is all connected?": (
        Panel("Accounts", "none", (
            (f"sum by (state) (spamd_accounts{{{ON}}})", "{{state}}"),)),
        Panel("Age of what is known", "s", (
            (f"spamd_corpus_behind_seconds{{{ON}}}", "{{instance}}"),)),
        Panel("Lessons that wait for the database", "bytes", (
            (f"spamd_lessons_waiting_bytes{{{ON}}}", "{{instance}}"),)),
        Panel("Mail by lists", "mps", (
            (rate("spamd_listed_messages_total", "effect"), "{{effect}}"),)),
        Panel("Mail by people one knows", "mps", (
            (rate("spamd_known_senders_messages_total", "known"), "{{known}}"),)),
        Panel("Versions", "none", (
            (f"count by (version) (spamd_build_info{{{ON}}})", "{{version}}"),), kind="stat"),
    ),
}  # fmt: skip


def dashboard(_old: str) -> str:
    """Return the dashboard as Grafana imports it."""
    source = {"type": "prometheus", "uid": "${datasource}"}
    instances = "label_values(spamd_build_info, instance)"
    made: dict[str, Any] = {
        "title": "spamd",
        "uid": "spamd",
        "tags": ["mail", "spam"],
        "schemaVersion": 36,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus"},
                {
                    "name": "instance", "type": "query", "datasource": source, "query": instances,
                    "refresh": 2, "multi": True, "includeAll": True, "allValue": ".*",
                    "current": {"text": "All", "value": "$__all"},
                },
            ]
        },
        "panels": list(_panels(source)),
    }  # fmt: skip
    return json.dumps(made, indent=1) + "\n"


def queries() -> Iterator[str]:
    """Yield what all panels ask."""
    for panels in ROWS.values():
        for panel in panels:
            yield from (query for query, _ in panel.queries)


def _panels(source: dict[str, str]) -> Iterator[dict[str, Any]]:
    number, top = 0, 0
    for title, panels in ROWS.items():
        number += 1
        place = {"h": 1, "w": 24, "x": 0, "y": top}
        yield {"id": number, "type": "row", "title": title, "gridPos": place, "panels": []}
        top += 1
        for index, panel in enumerate(panels):
            number += 1
            row, column = divmod(index, 24 // WIDTH)
            x, y = column * WIDTH, top + row * HEIGHT
            yield {
                "id": number,
                "type": panel.kind,
                "title": panel.title,
                "description": panel.text,
                "datasource": source,
                "gridPos": {"h": HEIGHT, "w": WIDTH, "x": x, "y": y},
                "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
                "targets": [
                    {"refId": chr(ord("A") + place), "expr": query, "legendFormat": legend}
                    for place, (query, legend) in enumerate(panel.queries)
                ],
            }
        top += -(-len(panels) * WIDTH // 24) * HEIGHT
