"""Every metric there is, from the sources and nodetool's reports. Adding one adds a file there, nothing here."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType

import collector.reports
import collector.sources
from collector.beans import Bean
from collector.host import Host
from collector.model import Metric, Values


@dataclass(frozen=True)
class HostPart:
    """One source of the machine's own figures; `origin` tells what its counters count from."""

    name: str
    metrics: tuple[Metric, ...]
    read: Callable[[Host], Values]
    origin: Callable[[Host], str]


def _modules(package: ModuleType = collector.sources) -> list[ModuleType]:
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


def _by_name(metrics: Iterable[Metric]) -> dict[str, Metric]:
    """Return the metrics by name. Raises ValueError when two different ones have the same."""
    found: dict[str, Metric] = {}
    for metric in metrics:
        if found.setdefault(metric.name, metric) != metric:
            raise ValueError(f"two metrics are called {metric.name}")
    return found


BEANS: tuple[Bean, ...] = tuple(bean for module in _modules() for bean in getattr(module, "BEANS", ()))
HOST: tuple[HostPart, ...] = tuple(
    HostPart(
        module.__name__.rpartition(".")[2],
        module.METRICS,
        module.read,
        getattr(module, "origin", lambda _: "boot"),
    )
    for module in _modules()
    if hasattr(module, "read")
)
REPORTS: tuple[ModuleType, ...] = tuple(module for module in _modules(collector.reports) if hasattr(module, "parse"))
"""nodetool's reports; what they tell is for the most part what the beans tell too."""
CATALOGUE: dict[str, Metric] = _by_name(
    [
        *(bean.metric for bean in BEANS),
        *(metric for part in HOST for metric in part.metrics),
        *(metric for module in _modules(collector.reports) for metric in getattr(module, "METRICS", ())),
    ]
)
