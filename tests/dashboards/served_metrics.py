"""What there is to be asked for: the series of a real page of /metrics, and points as the sinks write them."""

from functools import cache

from prometheus_client import generate_latest

from cli.demo.load_metrics import LoadMetrics
from collector.catalogue import CATALOGUE
from exporters.sinks.parts.points import EVENTS
from tests.exporters.prometheus.parsed import parsed
from tests.exporters.prometheus.test_names import whole


@cache
def families() -> dict[str, tuple[str, frozenset[str]]]:
    """Return the kind and the labels of every metric that an agent or the demo's load serves, by its name."""
    found: dict[str, tuple[str, frozenset[str]]] = {}
    for page in (parsed(whole(openmetrics=False)), parsed(generate_latest(LoadMetrics("c").registry).decode())):
        labels: dict[str, set[str]] = {}
        for name, pairs in page.values:
            labels.setdefault(_family(name, page.kinds), set()).update(label for label, _ in pairs)
        known = {name: kind for name, kind in page.kinds.items() if not name.endswith("_created")}
        found |= {name: (kind, frozenset(labels.get(name, ())) - {"le"}) for name, kind in known.items()}
    return found


@cache
def series() -> frozenset[str]:
    """Return the names of all series that Prometheus has of them."""
    found = set()
    for name, (kind, _) in families().items():
        found |= {f"{name}_bucket", f"{name}_count", f"{name}_sum"} if kind == "histogram" else {name}
    return frozenset(found)


def measurements() -> frozenset[str]:
    """Return the names of all measurements that InfluxDB has."""
    return frozenset({*CATALOGUE, EVENTS})


def _family(name: str, kinds: dict[str, str]) -> str:
    stem = name.removesuffix("_bucket").removesuffix("_count").removesuffix("_sum")
    return name if name in kinds else stem
