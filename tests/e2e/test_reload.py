"""SIGHUP: the settings are read again, and what can't be changed is said."""

import os
import signal
import socket
import urllib.request
from pathlib import Path

import pytest

from tests.e2e.relay_daemon import Spamd
from tests.servers.base import free_port
from tests.test_metrics import Samples, samples
from tests.waiting import wait_until

NOWHERE = "smtp://127.0.0.1:1"


def reload(daemon: Spamd) -> None:
    """Reload once both workers are there."""
    happens(daemon, "worker.started")
    os.kill(daemon.pid, signal.SIGHUP)


def metrics(url: str) -> tuple[Samples, Samples]:
    """Return what only rises, and what is true of a moment."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        return samples(answer.read().decode())


def happens(daemon: Spamd, event: str) -> None:
    """Wait until an event has happened in both workers."""
    wait_until(lambda: len(daemon.events(event)) >= 2, what=event, deadline_s=60)


def test_workers_that_answer_http_are_replaced_too() -> None:
    port = free_port()
    web = f'web.listen = "127.0.0.1:{port}"'
    with Spamd(NOWHERE, f"relay.workers = 2\n{web}") as daemon:
        before = set(daemon.workers())
        url = f"http://127.0.0.1:{port}/metrics"
        wait_until(lambda: sum(metrics(url)[0].values()) > 0, what="something is counted")
        counted, _ = metrics(url)
        reload(daemon)
        wait_until(lambda: not before & set(daemon.workers()), what="both replaced", deadline_s=60)
        assert daemon.events("worker.kept") == []
        wait_until(lambda: metrics(url)[1]["spamd_workers", ()] == 2, what="two are left")
        counts, _ = metrics(url)
        assert {key for key, number in counted.items() if counts[key] < number} == set()
        assert counts["spamd_workers_lost_total", ()] == 0
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10) as answer:
            assert answer.read() == b"ok\n"


@pytest.mark.parametrize(
    "addresses", ['["127.0.0.1:{old}", "127.0.0.1:{new}"]', '"127.0.0.1:{new}"']
)
def test_other_addresses_to_listen_on_need_a_restart(addresses: str) -> None:
    with Spamd(NOWHERE, "relay.workers = 2") as daemon:
        before = set(daemon.workers())
        old = f'"127.0.0.1:{daemon.port}"'
        new = addresses.format(old=daemon.port, new=free_port())
        daemon.config.write_text(daemon.config.read_text().replace(old, new))
        reload(daemon)
        happens(daemon, "worker.kept")
        said = daemon.log.read_text()
        assert "the settings name other addresses to listen on than at the start" in said
        assert "Traceback" not in said
        assert before == set(daemon.workers())


@pytest.mark.parametrize("workers", [1, 2])
def test_a_port_of_http_that_is_taken_stops_the_start(workers: int) -> None:
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as other:
        taken = other.getsockname()[1]
        settings = f'relay.workers = {workers}\nweb.listen = "127.0.0.1:{taken}"'
        done = Spamd(NOWHERE, settings).refusal()
    assert done.returncode == 78
    assert f"web.listen: 127.0.0.1:{taken}: Address already in use" in done.stderr
    assert done.stdout == ""


def test_j10_one_worker_reads_its_settings_again_and_says_what_needs_a_restart(
    tmp_path: Path,
) -> None:
    box = tmp_path / "Maildir"
    for name in ("cur", "new", "tmp"):
        (box / name).mkdir(parents=True)
    with Spamd(NOWHERE, "relay.workers = 1") as daemon:
        wait_until(lambda: daemon.events("worker.started"), what="start", deadline_s=60)
        account = f'feedback.accounts = [{{ maildir = "{box}", user = "anna" }}]'
        daemon.config.write_text(f"{daemon.config.read_text()}{account}\nrelay.drain_s = 20\n")
        os.kill(daemon.pid, signal.SIGHUP)
        wait_until(lambda: daemon.events("account.opened"), what="account")
        [told] = daemon.events("settings.reloaded")
        assert (told["changed"], told["restart_for"]) == ("feedback", "relay")
        daemon.config.write_text("nothing = 1\n")
        os.kill(daemon.pid, signal.SIGHUP)
        wait_until(lambda: daemon.events("reload.failed"), what="a fault")
        daemon.config.write_text("")
        os.kill(daemon.pid, signal.SIGHUP)
        wait_until(lambda: len(daemon.events("settings.reloaded")) == 2, what="second")
        assert daemon.events("settings.reloaded")[1]["changed"] == "feedback"
