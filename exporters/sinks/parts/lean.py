"""influxdb_client without what is never called: of its 25 MB casstat needs two.

It brings a class for everything that InfluxDB's management knows, loads numpy and pandas where they are there, and
libraries for batches and for dates as texts. Of all that only writing lines is used here; stand-ins take the place of
the rest. They are for this process: nobody else in it may use the client for more.
"""

import importlib
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

PACKAGES = ("numpy", "pandas")
# What only the client uses, and not for writing lines at once.
UNUSED = ("reactivex", "dateutil")
# Folders of the client's, and what writing needs of them.
FOLDERS = re.compile(r"influxdb_client\.(domain|service)\b")
NEEDED = re.compile(r"influxdb_client\.(domain\.(dialect|write_precision)|service\.(_base|write)_service)")


def client() -> ModuleType:
    """Return `influxdb_client`, as much of it as it takes to write; a version that needs more is loaded whole."""
    with _without(PACKAGES):
        try:
            with _stand_ins():
                return importlib.import_module("influxdb_client")
        except (AttributeError, ImportError, TypeError):
            for name in [name for name in sys.modules if name.partition(".")[0] == "influxdb_client"]:
                del sys.modules[name]
            return importlib.import_module("influxdb_client")


class _StandIn:
    """Made of anything, and good for nothing."""

    def __init__(self, *_: object, **__: object) -> None:
        pass


class _StandIns(MetaPathFinder, Loader):
    """Makes modules that have every name, each of them the class that does nothing."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        del target
        if not (FOLDERS.match(name) or name.partition(".")[0] in UNUSED) or NEEDED.fullmatch(name):
            return None
        spec = ModuleSpec(name, self, is_package=name.partition(".")[0] in UNUSED)
        if folder := FOLDERS.fullmatch(name):
            # What is needed is found where it is.
            spec.submodule_search_locations = [f"{each}/{folder[1]}" for each in path or ()]
        return spec

    def exec_module(self, module: ModuleType) -> None:
        def named(name: str) -> type:
            if name.startswith("__"):
                raise AttributeError(name)
            return _StandIn

        module.__dict__["__getattr__"] = named


@contextmanager
def _stand_ins() -> Iterator[None]:
    finder = _StandIns()
    sys.meta_path.insert(0, finder)
    before = set(sys.modules)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        # Whoever wants these libraries gets them.
        for name in [name for name in sys.modules.keys() - before if name.partition(".")[0] in UNUSED]:
            del sys.modules[name]


@contextmanager
def _without(packages: Sequence[str]) -> Iterator[None]:
    """Let what is imported in the block do without packages that it would load if they are there."""
    hidden = [name for name in packages if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
