"""What there is to be asked for: the series of a real page of /metrics, and points as the sinks write them."""

from functools import cache

from collector.catalogue import CATALOGUE
from tests.exporters.prometheus.parsed import parsed
from tests.exporters.prometheus.test_names import whole

# What comes from elsewhere, by agreement: the loads' clients, and the agent's runs and events.
_NODE = frozenset({"cluster", "dc", "rack", "node"})
_CLIENT = frozenset({"cluster", "client", "operation"})
AGREED = {
    "casstat_load_operations_total": ("counter", _CLIENT),
    "casstat_load_errors_total": ("counter", _CLIENT),
    "casstat_load_operation_duration_seconds": ("histogram", _CLIENT),
    "casstat_events_total": ("counter", _NODE | {"kind"}),
    "casstat_run_begin_time_seconds": ("gauge", _NODE | {"run", "id"}),
    "casstat_run_end_time_seconds": ("gauge", _NODE | {"run", "id"}),
    "casstat_run_mark_time_seconds": ("gauge", _NODE | {"run", "id", "mark"}),
}


@cache
def families() -> dict[str, tuple[str, frozenset[str]]]:
    """Return the kind and the labels of every metric that an agent serves, by its name."""
    page = parsed(whole(openmetrics=False))
    labels: dict[str, set[str]] = {}
    for name, pairs in page.values:
        labels.setdefault(_family(name, page.kinds), set()).update(label for label, _ in pairs)
    return {
        **{name: (kind, frozenset(labels.get(name, ())) - {"le"}) for name, kind in page.kinds.items()},
        **AGREED,
    }


@cache
def series() -> frozenset[str]:
    """Return the names of all series that Prometheus has of them."""
    found = set()
    for name, (kind, _) in families().items():
        found |= {f"{name}_bucket", f"{name}_count", f"{name}_sum"} if kind == "histogram" else {name}
    return frozenset(found)


def measurements() -> frozenset[str]:
    """Return the names of all measurements that InfluxDB has."""
    return frozenset({*CATALOGUE, "casstat_events"})


def _family(name: str, kinds: dict[str, str]) -> str:
    stem = name.removesuffix("_bucket").removesuffix("_count").removesuffix("_sum")
    return name if name in kinds else stem
