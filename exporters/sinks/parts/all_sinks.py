"""Finds the sinks, which are the modules in `exporters.sinks`, and creates the one for a URL."""

import importlib
import pkgutil
from types import ModuleType
from typing import Any

import exporters.sinks
from exporters.metrics_page.rendering import Options
from exporters.sinks.parts.sink_url import parse_sink_url
from exporters.sinks.sink import Sink


def sink_of(url: str, options: Options | None = None) -> Sink[Any]:
    """Create the sink for a URL, without connecting. Raises SinkUrlError.

    `options` are those of /metrics, for a sink that sends the same series.
    """
    modules = {scheme: module for module in sink_modules() for scheme in module.SCHEMES}
    target = parse_sink_url(url, sorted(modules))
    sink: Sink[Any] = modules[target.scheme].connect(target, options or Options())
    return sink


def sink_urls() -> list[tuple[str, str]]:
    """Return the forms of all sinks' URLs, each with a remark or ""."""
    return [form for module in sink_modules() for form in module.URLS]


def sink_modules() -> list[ModuleType]:
    names = sorted(module.name for module in pkgutil.iter_modules(exporters.sinks.__path__) if not module.ispkg)
    modules = [importlib.import_module(f"{exporters.sinks.__name__}.{name}") for name in names]
    return [module for module in modules if hasattr(module, "SCHEMES")]
