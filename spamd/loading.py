"""Loading modules without looking for garbage among what they bring.

    with loading():
        from spamd.app import build

A module brings thousands of objects that stay. Looking through them for some that don't, again and
again meanwhile and once more before the process ends, takes a tenth of the time of a command.
"""

import gc
import sys
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


@contextmanager
def without(name: str) -> Iterator[None]:
    """Have a module be absent meanwhile, unless it is loaded already.

    What uses it only where it is there does without: a package that we need for another part.
    """
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment] # as Python's manual has it: not to be found
    try:
        yield
    finally:
        del sys.modules[name]
