"""Settings of the log and of the metrics endpoint."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """One line for each message and lesson, always to standard output.

    level     the least urgent lines that are written: "error" someone must act, "warning" someone
              should look, "info" one line for each message and lesson, "debug" for developers
    format    "json" one object a line, "console" for people, "auto" console on a terminal, else
              json
    privacy   "minimal": no addresses, domains, subjects, words, nor texts of foreign exceptions;
              "full": those as well, a deliberate choice for the time of an inquiry
    """

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "console"] = "auto"
    privacy: Literal["minimal", "full"] = "minimal"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsOptions:
    """The HTTP endpoint for Prometheus and health checks.

    listen   "host:port" of the HTTP endpoint, for example "127.0.0.1:9125"; "" (default) is off.
             With several workers each has its own counts: worker 0 listens on this port, worker 1
             on the next one, and so on
    """

    listen: str = ""

    def __post_init__(self) -> None:
        if self.listen:
            host_and_port(self.listen)


def host_and_port(listen: str) -> tuple[str, int]:
    """Return host and port of "host:port" or "[v6]:port".

    Raises:
        ValueError: it is neither.
    """
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f'listen must be "host:port", not "{listen}"')
    return host.strip("[]"), int(port)
