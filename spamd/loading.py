"""Loading modules without looking for garbage among what they bring.

    with loading():
        from spamd.app import build

A module brings thousands of objects that stay. Looking through them for some that don't, again and
again meanwhile and once more before the process ends, takes a tenth of the time of a command.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Let the garbage collector rest meanwhile, and leave alone what is there at the end."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
