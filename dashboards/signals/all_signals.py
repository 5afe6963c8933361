"""All signals by name."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from dashboards.signals import agent, caches, cluster, jvm, load, machine, overload, requests, storage, tables
from dashboards.signals.signal import Signal

PARTS = (requests, overload, storage, tables, caches, jvm, machine, cluster, agent, load)


def by_name(signals: Iterable[Signal]) -> Mapping[str, Signal]:
    """Return signals by name. Raises ValueError when two are called the same."""
    found: dict[str, Signal] = {}
    for signal in signals:
        if found.setdefault(signal.name, signal) is not signal:
            raise ValueError(f"two signals are called {signal.name}")
    return MappingProxyType(found)


SIGNALS = by_name(signal for part in PARTS for signal in part.SIGNALS)
