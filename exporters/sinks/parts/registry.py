"""Which sinks there are: the files beside this one. Adding a sink adds a file there, nothing here."""

import importlib
import pkgutil
from types import ModuleType

import exporters.sinks
from exporters.sinks.parts.sink_url import target_of
from exporters.sinks.sink import Sink


def sink_of(url: str) -> Sink:
    """Return the sink that a URL means; nothing is connected yet. Raises SinkUrlError."""
    found = {scheme: module for module in _sinks() for scheme in module.SCHEMES}
    target = target_of(url, sorted(found))
    sink: Sink = found[target.scheme].connect(target)
    return sink


def _sinks() -> list[ModuleType]:
    names = sorted(each.name for each in pkgutil.iter_modules(exporters.sinks.__path__) if not each.ispkg)
    modules = [importlib.import_module(f"{exporters.sinks.__name__}.{name}") for name in names]
    return [module for module in modules if hasattr(module, "SCHEMES")]
