"""GET /metrics, /healthz, /readyz: for machines that watch."""

import json

import pytest

from spamd.ports import Check
from tests.fakes import FakeHealth
from tests.listeners.web.clients import running

MODEL = Check(name="model", ok=True, text="loaded")
AWAY_TEXT = "away since 2026-01-02T03:04:05Z; lessons wait"
AWAY = Check(name="database", ok=False, text=AWAY_TEXT)
BOTH = f"ok model: loaded\nFAULT database: {AWAY_TEXT}\nnot ready\n"


async def test_metrics_come_as_prometheus_reads_them() -> None:
    async with running() as here:
        answer = await here.get("/metrics")
    assert (answer.status, answer.body) == (200, b"spamd_workers 1.0\n")
    assert answer.fields["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.fields["cache-control"] == "no-store"


async def test_who_answers_is_alive_whatever_is_missing() -> None:
    async with running(health=FakeHealth(AWAY)) as here:
        answer = await here.get("/healthz")
    assert (answer.status, answer.body) == (200, b"ok\n")


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/readyz", 503, BOTH),
        ("/readyz?exclude=database", 200, "ok model: loaded\nready\n"),
        ("/readyz?exclude=model&exclude=database", 200, "ready\n"),
        (
            "/readyz?exclude=else",
            503,
            BOTH,
        ),
    ],
)
async def test_who_is_not_ready_says_why_and_a_check_can_be_left_out(
    path: str, status: int, text: str
) -> None:
    async with running(health=FakeHealth(MODEL, AWAY)) as here:
        answer = await here.get(path)
    assert (answer.status, answer.body.decode()) == (status, text)


async def test_who_accepts_json_gets_json() -> None:
    async with running(health=FakeHealth(MODEL, AWAY)) as here:
        answer = await here.get("/readyz", ["Accept: application/json"])
    assert answer.status == 503
    found = json.loads(answer.body)
    assert found == {
        "ready": False,
        "checks": {
            "model": {"ok": True, "text": "loaded"},
            "database": {"ok": False, "text": AWAY_TEXT},
        },
    }
