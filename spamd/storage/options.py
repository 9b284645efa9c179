"""What an admin can set about the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

SCHEMA = "0013"
"""The newest revision of the schema, as the migrations call it (a test compares). It stands here
because looking at it must load nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ages:
    """How long what is written down stays; see the settings of these names.

    attempts   tries after which a mail is given up (`feedback.attempts`)
    """

    scans_days: int
    changes_hours: int
    seen_days: int
    parked_days: int
    held_days: int
    attempts: int
    known_days: int = 730


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneOptions:
    """Which words `prune` lets go of.

    unseen_days   a word must not have been taught for this long; half a year holds the seasons
    seen_in       and stand in this many lessons at most; 1: the bulk of a table says nothing more
    floor         words that stay at least, whatever the other two say
    """

    unseen_days: int = 180
    seen_in: int = 1
    floor: int = 100_000

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.unseen_days < 1 or self.seen_in < 1 or self.floor < 0:
            raise ValueError(
                "unseen_days and seen_in must be at least 1, floor must not be below 0"
            )


SQLITE = "sqlite://"
POSTGRESQL = "postgresql://"
WHICH = "target_session_attrs"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseOptions:
    """Where counts and lessons are kept.

    One SQLite file serves a machine; PostgreSQL several machines.

    url                 sqlite:///relative/path, sqlite:////absolute/path or
                        postgresql://user:password@host:port/name; of several servers,
                        @host:port,host:port/name, the one is used that takes writes
    pool                connections to PostgreSQL a process keeps; a worker needs two at a time
    connect_timeout_s   seconds to wait for a connection, a person at a terminal waits no longer
    busy_timeout_s      seconds to wait for another writer; a batch of `train` takes about one
    synchronous         SQLite only. "normal": a power cut may cost the last lessons, never the
                        file; "full": not even these, each lesson waits for the disk
    cache_mb            SQLite only: MiB of pages kept in memory while training
    refresh_s           seconds between two queries for the lessons of other processes
    scans_days          days a scan is kept, so that one moved later is taught as it was scored
    changes_hours       hours that a process may be stopped and still catch up without reloading
    prune_days          days that a token must not have been learned, counted back from the newest
                        lesson, to be deleted if it is rare; 0: tokens are deleted only by the
                        command
    prune_seen_in       lessons that a token is in at most to be rare
    prune_floor         tokens that stay at least, however old and rare
    local               folder on this machine for lessons that wait while the database is away,
                        and for the counts of a large corpus, which all workers share; made when it
                        is needed, for the daemon's user only
    waiting_mb          MiB of such lessons, some thousands of them; more are refused
    """

    url: str = "sqlite:///var/spamd.db"
    pool: int = 4
    connect_timeout_s: float = 5.0
    busy_timeout_s: float = 15.0
    synchronous: Literal["normal", "full"] = "normal"
    cache_mb: int = 64
    refresh_s: float = 1.0
    scans_days: int = 14
    changes_hours: int = 24
    prune_days: int = 180
    prune_seen_in: int = 1
    prune_floor: int = 100_000
    local: str = "var"
    waiting_mb: int = 64

    def __post_init__(self) -> None:
        """Check the ranges and the form of the URL."""
        _check_url(self.url)
        for name in ("pool", "cache_mb", "scans_days", "changes_hours", "waiting_mb"):
            if getattr(self, name) < 1:
                raise ValueError(f"database.{name} must be at least 1")
        if self.prune_days < 0 or self.prune_seen_in < 1 or self.prune_floor < 0:
            raise ValueError(
                "database.prune_days and prune_floor must not be below 0, prune_seen_in not below 1"
            )
        for name in ("connect_timeout_s", "busy_timeout_s"):
            if not 0 < getattr(self, name) <= 3600:
                raise ValueError(f"database.{name} must lie between 0 and 3600 seconds")
        if not 0 < self.refresh_s <= 2:
            raise ValueError("database.refresh_s must be above 0 and at most 2 seconds")
        if not self.local:
            raise ValueError("database.local must name a folder")
        if self.synchronous not in ("normal", "full"):
            raise ValueError('database.synchronous must be "normal" or "full"')

    @property
    def path(self) -> Path | None:
        """The file of a SQLite database, None for PostgreSQL."""
        return sqlite_path(self.url) if self.url.startswith(SQLITE) else None

    @property
    def prune(self) -> PruneOptions | None:
        """Which tokens go by themselves, None where none do."""
        if not self.prune_days:
            return None
        return PruneOptions(
            unseen_days=self.prune_days, seen_in=self.prune_seen_in, floor=self.prune_floor
        )

    @property
    def place(self) -> str:
        """What two URLs of one database have in common, whoever logs in and however."""
        if self.path:
            return str(self.path.resolve())
        parts = urlsplit(self.url)
        hosts = [urlsplit(each) for each in server_urls(self.url)]
        return f"{','.join(f'{one.hostname}:{one.port or 5432}' for one in hosts)}{parts.path}"


def sqlite_path(url: str) -> Path:
    """Return the file that a sqlite URL names: three slashes are relative, four absolute."""
    return Path(url.removeprefix(SQLITE).removeprefix("/"))


def server_urls(url: str) -> Sequence[str]:
    """Return the URLs of the servers that a postgresql URL names, each alone.

    Raises:
        ValueError: it names none that can be.
    """
    parts = urlsplit(url)
    login, at, hosts = parts.netloc.rpartition("@")
    # Libpq's way to say what goes without saying: of several servers we use the one that writes.
    said = [each for each in parts.query.split("&") if not each.startswith(f"{WHICH}=")]
    parts = parts._replace(query="&".join(said), fragment="")
    found = [parts._replace(netloc=f"{login}{at}{host}") for host in hosts.split(",")]
    for each in found:
        if len(found) > 1 and not each.hostname:
            raise ValueError("database.url must name a host before and after each comma")
        _ = each.port
    end = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return [f"{POSTGRESQL}{each.netloc}{end}" for each in found]


def _check_url(url: str) -> None:
    if url.startswith(SQLITE):
        if not sqlite_path(url).name:
            raise ValueError("database.url must name a file after sqlite:///")
    elif url.startswith(POSTGRESQL):
        if not urlsplit(url).path.strip("/"):
            raise ValueError("database.url must end in the name of the database")
        server_urls(url)
    else:
        raise ValueError("database.url must begin with sqlite:/// or postgresql://")
