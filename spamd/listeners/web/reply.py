"""What a client of rspamd reads about a message: JSON, or the lines of the protocol before it.

    score, required_score   `listeners.score`: 5.0 is the border to spam
    action                  ham and unsure "no action", tag "add header", reject "reject"; "soft
                            reject" for what shall come again
    symbols                 one for each classifier: its log-odds of spam, and as a percentage in
                            `options`. They don't add up to the score: that is the fusion's
    milter                  our fields in the order in which they are to stand, and the fields of a
                            stranger that may pass for ours: 0 removes all of a name

Nothing is said of a mail but what its sender and the client said: its Message-ID.
"""

import json
from collections.abc import Sequence
from math import exp
from typing import TYPE_CHECKING

from spamd.bayes.decision import Action, Verdict
from spamd.listeners.score import REQUIRED, score

if TYPE_CHECKING:
    from spamd.report import ScanReport

ACTIONS = {
    Action.ACCEPT: "no action",
    Action.TAG: "add header",
    Action.REJECT: "reject",
    Action.QUARANTINE: "add header",
    Action.DEFER: "soft reject",
}

REJECTED = "Rejected as spam"
LATER = "Try again later"

DESCRIPTIONS = {
    "graham": "words one by one, after Graham",
    "multinomial": "words by multinomial Bayes",
    "fisher": "words combined by Fisher's method",
    "confidence": "words weighed by how sure each is",
    "logistic": "words by logistic regression",
    "grams": "pieces of words by logistic regression",
    "facts": "shape of the mail: sizes, types, shares",
    "dependence": "words that depend on each other",
}

_OF_RSPAMD = (*ACTIONS.values(), "greylist", "rewrite subject")

Json = dict[str, object]


def verdict(
    report: "ScanReport",
    message_id: str,
    forged: Sequence[str],
    reject_from: float | None,
    *,
    flat: bool = False,
) -> bytes:
    """Return the JSON about a message.

    message_id   what its field says, "" without one
    forged       names of fields that may pass for ours
    reject_from  the score from which mail is rejected
    flat         as rspamd answers to /check and /symbols, besides: all within "default"
    """
    points = score(report)
    symbols = {name: _symbol(name, value) for name, value in _scores(report)}
    thresholds = {"add header": REQUIRED}
    if reject_from is not None:
        thresholds["reject"] = reject_from
    body: Json = {
        "is_skipped": report.verdict is Verdict.UNSCANNED,
        "score": points,
        "required_score": REQUIRED,
        "action": ACTIONS[report.action],
        "thresholds": thresholds,
        "symbols": symbols,
        "messages": {"smtp_message": REJECTED} if report.action is Action.REJECT else {},
        "urls": [],
        "emails": [],
        "message-id": message_id or "undef",
        "time_real": round(report.duration_s, 6),
        "milter": {
            "add_headers": {
                name: {"value": value, "order": order}
                for order, (name, value) in enumerate(report.fields())
            },
            "remove_headers": dict.fromkeys(forged, 0),
        },
    }
    if flat:
        spam = report.verdict is Verdict.SPAM
        body["default"] = {"is_spam": spam, **_outline(body), **symbols}
    return _encoded(body)


def later(*, flat: bool = False) -> bytes:
    """Return the JSON about a message that shall come again."""
    body: Json = {
        "is_skipped": True,
        "score": 0.0,
        "required_score": REQUIRED,
        "action": ACTIONS[Action.DEFER],
        "symbols": {},
        "messages": {"smtp_message": LATER},
        "urls": [],
        "emails": [],
    }
    if flat:
        body["default"] = {"is_spam": False, **_outline(body)}
    return _encoded(body)


def rspamc(report: "ScanReport | None", message_id: str = "") -> bytes:
    """Return the lines that Exim reads; no report: the message shall come again."""
    points = 0.0 if report is None else score(report)
    spam = report is not None and report.verdict is Verdict.SPAM
    action = ACTIONS[Action.DEFER if report is None else report.action]
    lines = [
        "RSPAMD/1.3 0 EX_OK",
        f"Metric: default; {spam}; {points:.2f} / {REQUIRED:.2f} / 0.0",
        f"Action: {action}",
        *(f"Symbol: {name}({value:.2f})" for name, value in _scores(report)),
        f"Message-ID: {message_id or 'undef'}",
    ]
    return "\r\n".join([*lines, "", ""]).encode("ascii", "replace")


def learned(*, already: str = "") -> bytes:
    """Return the JSON about a lesson; `already` is the label it was taught with before."""
    if already:
        return _encoded({"error": f"already learned as {already}, ignored"})
    return _encoded({"success": True})


def statistics(
    *, version: str, uptime_s: int, actions: dict[str, int], ham: int, spam: int, connections: int
) -> bytes:
    """Return what `rspamc stat` and `rspamc uptime` print."""
    scanned = sum(actions.values())
    marked = actions.get("add header", 0) + actions.get("reject", 0)
    body: Json = {
        "version": version,
        "auth": "ok",
        "uptime": uptime_s,
        "read_only": False,
        "scanned": scanned,
        "learned": ham + spam,
        "actions": {name: actions.get(name, 0) for name in _OF_RSPAMD},
        "spam_count": marked,
        "ham_count": scanned - marked,
        "connections": connections,
        "control_connections": 0,
        "total_learns": ham + spam,
        "statfiles": [
            {"symbol": symbol, "type": "spamd", "revision": count, "used": count, "total": count,
             "size": 0, "languages": 0, "users": 1}
            for symbol, count in (("BAYES_SPAM", spam), ("BAYES_HAM", ham))
        ],
    }  # fmt: skip
    return _encoded(body)


def _scores(report: "ScanReport | None") -> list[tuple[str, float]]:
    if report is None:
        return []
    return [(f"SPAMD_{name.upper()}", round(value, 2)) for name, value in report.scores.items()]


def _symbol(name: str, value: float) -> Json:
    return {
        "name": name,
        "score": value,
        "metric_score": value,
        "description": DESCRIPTIONS.get(name.removeprefix("SPAMD_").lower(), ""),
        "options": [f"{100 / (1 + exp(-max(-700.0, min(value, 700.0)))):.2f}%"],
    }


def _outline(body: Json) -> Json:
    return {key: body[key] for key in ("is_skipped", "score", "required_score", "action")}


def _encoded(body: Json) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode("ascii")
