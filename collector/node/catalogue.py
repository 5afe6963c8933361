"""The catalogue: all metrics defined in the modules of `metrics`, `host` and `nodetool.reports`."""

import importlib
import pkgutil
from collections.abc import Iterable
from types import ModuleType

import collector.node.host
import collector.node.metrics
import collector.node.nodetool.reports
from collector.model.mbean import MBean
from collector.model.metric import Metric
from collector.node.host.host_source import HostSubject


def _modules(package: ModuleType) -> list[ModuleType]:
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


def _by_name(metrics: Iterable[Metric]) -> dict[str, Metric]:
    """Return the metrics by name. Raises ValueError if two different metrics share a name."""
    by_name: dict[str, Metric] = {}
    for metric in metrics:
        if by_name.setdefault(metric.name, metric) != metric:
            raise ValueError(f"different metrics named {metric.name}")
    return by_name


BEANS: tuple[MBean, ...] = tuple(
    bean for module in _modules(collector.node.metrics) for bean in getattr(module, "BEANS", ())
)
HOST: tuple[HostSubject, ...] = tuple(
    HostSubject(
        module.__name__.rpartition(".")[2],
        module.METRICS,
        module.read,
        getattr(module, "origin", lambda _: "boot"),
        getattr(module, "reader", None),
    )
    for module in _modules(collector.node.host)
    if hasattr(module, "METRICS") and hasattr(module, "read")
)
REPORTS: tuple[ModuleType, ...] = tuple(
    module for module in _modules(collector.node.nodetool.reports) if hasattr(module, "parse")
)
"""The modules that parse nodetool's reports. Most of their metrics also occur in BEANS."""
CATALOGUE: dict[str, Metric] = _by_name(
    [
        *(bean.metric for bean in BEANS),
        *(metric for module in _modules(collector.node.host) for metric in getattr(module, "METRICS", ())),
        *(metric for module in _modules(collector.node.nodetool.reports) for metric in getattr(module, "METRICS", ())),
    ]
)
