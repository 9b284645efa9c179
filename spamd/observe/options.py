"""Settings of the log."""

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
