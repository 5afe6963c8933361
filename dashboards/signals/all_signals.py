"""All signals by name."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from dashboards.signals import agent, caches, cluster, jvm, load, machine, overload, requests, storage, tables
from dashboards.signals.signal import Signal

MODULES = (requests, overload, storage, tables, caches, jvm, machine, cluster, agent, load)


def by_name(signals: Iterable[Signal]) -> Mapping[str, Signal]:
    """Return signals by name. Raises ValueError for a duplicate name."""
    signals_by_name: dict[str, Signal] = {}
    for signal in signals:
        if signals_by_name.setdefault(signal.name, signal) is not signal:
            raise ValueError(f"duplicate signal name: {signal.name}")
    return MappingProxyType(signals_by_name)


SIGNALS = by_name(signal for module in MODULES for signal in module.SIGNALS)
