"""How a mutant gets into a running process: forked, limited, silent, and gone with it."""

import contextlib
import functools
import gc
import importlib.machinery
import importlib.util
import os
import resource
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest

from tests.mutation.operators import Mutant

CPU_S, MEMORY_BYTES = 60, 4 << 30
OPTIONS = (
    *("-qq", "--no-summary", "-p", "no:randomly", "-p", "no:cacheprovider"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # hypothesis is imported before pytest
)


def each(
    found: Iterable[Mutant], survives: Callable[[Mutant], bool], jobs: int
) -> Iterator[tuple[Mutant, bool]]:
    """Try every mutant in a process of its own, some at a time; say of each if it survived."""
    running: dict[int, Mutant] = {}
    for mutant in [*found, None]:
        while running and (mutant is None or len(running) >= jobs):
            pid, status = os.wait()
            yield running.pop(pid), status == 0
        if mutant is not None:
            running[forked(partial(survives, mutant))] = mutant


def forked(work: Callable[[], bool], cpu_s: int = CPU_S) -> int:
    """Do the work in a process of its own, whose exit code is 0 if the work returned true."""
    if pid := os.fork():
        return pid
    code = 1
    with contextlib.suppress(BaseException):
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        silence = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(silence, descriptor)
        with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
            os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
            code = 0 if work() else 1
    os._exit(code)


class Held:
    """The functions and caches of this process, looked up once."""

    def __init__(self) -> None:
        self._functions: dict[tuple[str, str], list[FunctionType]] = defaultdict(list)
        gc.unfreeze()  # else what was collected is not among them
        everything = gc.get_objects()
        for found in everything:
            if isinstance(found, FunctionType):
                code = found.__code__
                self._functions[code.co_filename, code.co_qualname].append(found)
        self._caches = [one for one in everything if isinstance(one, functools._lru_cache_wrapper)]

    def exchange(self, mutant: Mutant) -> None:
        """Give the function, wherever it is held, the mutant's code; forget what was cached."""
        path = str(mutant.path)
        new = _named(compile(mutant.source, path, "exec"), mutant.function)
        for function in self._functions[path, mutant.function]:
            function.__code__ = new
        self.forget()

    def forget(self) -> None:
        """Empty every cache of results."""
        for cache in self._caches:
            cache.cache_clear()


def _named(code: CodeType, name: str) -> CodeType:
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    for const in inner:
        if const.co_qualname == name:
            return const
    return next(_named(const, name) for const in inner if name.startswith(f"{const.co_qualname}."))


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, mutant: Mutant) -> None:
        super().__init__(mutant.module, str(mutant.path))
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        """Return the mutant instead of what the file holds."""
        return compile(self._mutant.source, self.path, "exec")


class _Finder:
    """An import hook for one module."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return where the mutated module comes from, nothing for others."""
        if name != self._mutant.module:
            return None
        loader = _Loader(self._mutant)
        package = [str(Path(loader.path).parent)] if loader.path.endswith("__init__.py") else None
        return importlib.util.spec_from_file_location(
            name, loader.path, loader=loader, submodule_search_locations=package
        )


def survives_anew(mutant: Mutant, tests: Sequence[str], plugin: object) -> bool:
    """Import everything anew, with the mutant, and run the tests."""
    for name in [name for name in sys.modules if name.partition(".")[0] in {"spamd", "tests"}]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Finder(mutant))
    return pytest.main([*OPTIONS, "-x", *tests], plugins=[plugin]) == pytest.ExitCode.OK
