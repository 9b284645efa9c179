"""What the API answers, as JSON: plain ASCII, so that nothing in a mail can steer who shows it.

Values are those of `admin` as they are. A `Place` is left out: `newer` and `older` carry it.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from functools import lru_cache
from typing import Any

from spamd.admin.ports import Place


def encoded(value: object) -> bytes:
    """Return a value as JSON."""
    text = json.dumps(plain(value), separators=(",", ":"), allow_nan=False)
    return text.replace("\x7f", "\\u007f").encode("ascii")


def plain(value: object) -> Any:
    """Return a value as JSON knows them; numbers that are none become null."""
    if isinstance(value, str):
        return _storable(str(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, date):  # and datetime
        return value.isoformat()
    if isinstance(value, Mapping):
        return {_storable(str(key)): plain(each) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(getattr(value, name)) for name in _names(type(value))}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    raise TypeError(f"there is no JSON for {type(value).__name__}")


@lru_cache(256)
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if each.type is not Place)


def _storable(text: str) -> str:
    """Return a text without half characters: no reader of JSON has to know them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
