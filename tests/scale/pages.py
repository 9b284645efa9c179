"""The page over a large database: how long each view takes, and what mail feels of who looks.

    make scale PART=pages        1,000,000 scans, 200,000 lessons; TIMES requests a view, in turn

The relay is measured in rounds, one alone and one with ten sessions that open a view each second:
the machine is shared, so only what is measured side by side may be compared.
"""

import asyncio
import http.client
import re
import smtplib
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

from tests.benchmarks.measure import Spread, cpu_s, tree
from tests.e2e.relay_daemon import Spamd
from tests.scale.large import grow
from tests.scale.site import lesson
from tests.servers.base import free_port
from tests.servers.postfix import SmtpSink
from tests.servers.postgresql import Postgresql

TIMES = 20
SESSIONS, EACH_S = 10, 1.0
ROUNDS, MAILS = 4, 500
MOST_S = 0.3

SETTINGS = """
[web]
listen = ["127.0.0.1:{port}"]
[log]
privacy = "full"
"""


class Looked(Spamd):
    """A daemon with its page, on a database that is there."""

    def __init__(self, next_hop: str, database: str) -> None:
        super().__init__(next_hop)
        self._database = database
        self.web_port = free_port()
        self._settings = SETTINGS.format(port=self.web_port)

    @property
    def database(self) -> str:
        return self._database


class Browser:
    """Opens views, one after the other, over one connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("localhost", port, timeout=120)

    def open(self, path: str) -> str:
        """Return a view."""
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        if answer.status != http.HTTPStatus.OK:
            raise SystemExit(f"{path}: {answer.status} {text[:500]}")
        return text


def views(browser: Browser) -> dict[str, str]:
    """Return where each view is; rare conditions are the hard ones, for all is looked through."""
    history = browser.open("/history")
    names = re.findall(r'href="(/mail/[^"/?]+)"', history)
    older = re.findall(r'rel="next" href="([^"]+)"', history)
    lessons = browser.open("/lessons")
    behind = re.findall(r'rel="next" href="([^"]+)"', lessons)
    return {
        "overview": "/",
        "overview, month": "/?span=month",
        "history": "/history",
        "history, next part": older[0].replace("&amp;", "&"),
        "history, verdict": "/history?verdict=spam",
        "history, rare verdict": "/history?verdict=unsure",
        "history, listener": "/history?listener=milter",
        "history, rare listener": "/history?listener=lmtp",
        "history, action": "/history?action=reject",
        "history, id": f"/history?id={names[0].rpartition('/')[2][:6]}",
        "history, queue id": "/history?queue_id=4bNone",
        "history, old": "/history?until=2020-01-01T00:00",
        "mail": names[0],
        "mail, its lessons": f"{names[0]}/basis",
        "words": "/words?word=cheaping0",
        "words, unknown": "/words?word=nobodysaidthis",
        "lessons": "/lessons",
        "lessons, next part": behind[0].replace("&amp;", "&"),
        "lessons, label": "/lessons?label=ham",
        "lessons, source": "/lessons?source=cli",
        "lessons, rare source": "/lessons?source=maildir",
        "lessons, actor": "/lessons?actor=user5@office.example",
        "lessons, sender": "/lessons?sender_domain=nobody.example",
        "rollback, source": "/lessons/rollback?source=imap",
        "rollback, label": "/lessons/rollback?label=spam",
        "rollback, actor": "/lessons/rollback?actor=user5@office.example",
        "accounts": "/accounts",
        "account": "/account?name=user5@office.example",
        "settings": "/settings",
        "evaluation": "/evaluation",
    }


def timed(
    browser: Browser, paths: dict[str, str], times: int, pids: Sequence[int]
) -> dict[str, tuple[list[float], float]]:
    """Return the seconds that each view took, and the daemon's CPU; the first request apart."""
    found = {}
    for name, path in paths.items():
        browser.open(path)
        took, before = [], cpu_s(pids)
        for _ in range(times):
            began = time.perf_counter()
            browser.open(path)
            took.append(time.perf_counter() - began)
        found[name] = (took, (cpu_s(pids) - before) / times)
    return found


@contextmanager
def browsing(port: int, paths: Sequence[str]) -> Iterator[list[float]]:
    """Have ten sessions browse meanwhile; give the seconds that their views took."""
    ended = threading.Event()
    took: list[float] = []

    def session(place: int) -> None:
        browser, own = Browser(port), cycle([*paths[place:], *paths[:place]])
        while not ended.wait(EACH_S):
            began = time.perf_counter()
            browser.open(next(own))
            took.append(time.perf_counter() - began)

    with ThreadPoolExecutor(SESSIONS) as threads:
        running = [threads.submit(session, 3 * place) for place in range(SESSIONS)]
        try:
            yield took
        finally:
            ended.set()
        for each in running:
            each.result()


def relayed(port: int, mails: int) -> list[float]:
    """Return the seconds that the relay took for each mail, sent one after the other."""
    took = []
    with smtplib.SMTP("127.0.0.1", port, timeout=120) as client:
        for number in range(mails):
            content = lesson(50_000 + number)[1]
            began = time.perf_counter()
            client.sendmail("a@x.test", ["b@y.test"], content)
            took.append(time.perf_counter() - began)
    return took


def measure(database: str, *, times: int = TIMES, rounds: int = ROUNDS) -> bool:
    """Measure on a database; tell whether every view was quick enough."""
    with_s: list[float] = []
    alone_s: list[float] = []
    sink = SmtpSink()
    sink.start()
    daemon = Looked(f"smtp://127.0.0.1:{sink.port}", database)
    try:
        daemon.start()
        browser = Browser(daemon.web_port)
        paths = views(browser)
        found = timed(browser, paths, times, tree(daemon.pid))
        print(f"{'view':26}{'median ms':>10}{'worst ms':>10}{'CPU ms':>10}")
        for name, (took, cpu) in found.items():
            median, worst = 1e3 * statistics.median(took), 1e3 * max(took)
            print(f"{name:26}{median:10.0f}{worst:10.0f}{1e3 * cpu:10.0f}")
        for _ in range(rounds):
            alone_s += relayed(daemon.port, MAILS)
            with browsing(daemon.web_port, list(paths.values())) as looked:
                with_s += relayed(daemon.port, MAILS)
            print(f"{len(looked)} views opened meanwhile, median {_ms(Spread.of(looked).p50)}")
    finally:
        daemon.close()
        sink.close()
    for name, took in (("alone", alone_s), ("with ten sessions", with_s)) if rounds else ():
        spread = Spread.of(took)
        print(f"relay {name}: p50 {_ms(spread.p50)}, p99 {_ms(spread.p99)}, {len(took)} mails")
    slow = [name for name, (took, _) in found.items() if statistics.median(took) > MOST_S]
    print(f"over {_ms(MOST_S)}: {slow or 'none'}")
    return not slow


def at_size(scans: int = 1_000_000, words: int = 1_000_000) -> None:
    """Time each view of the page on SQLite and on PostgreSQL, and the relay while people browse."""
    quick = True
    with Postgresql() as server, tempfile.TemporaryDirectory() as folder:
        server.do("CREATE DATABASE pages TEMPLATE template0")
        for url in ("", server.url("pages")):
            work = Path(folder, "postgresql" if url else "sqlite")
            work.mkdir()
            asyncio.run(grow(work, scans=scans, lessons=scans // 5, words=words, url=url))
            print(f"-- {work.name}, {scans:,} scans, {scans // 5:,} lessons", flush=True)
            quick &= measure(url or f"sqlite:///{work}/spamd.db")
    if not quick:
        raise SystemExit(1)


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.1f} ms"
