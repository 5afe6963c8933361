"""The metrics that queries may use: the series served at /metrics, and the measurements that sinks receive."""

from functools import cache

from prometheus_client import generate_latest

from cli.setup.demo.load_generator import load_series
from collector.node.catalogue import CATALOGUE
from exporters.sinks.parts.points import EVENTS
from tests.exporters.metrics_page.complete_page import complete_page
from tests.exporters.metrics_page.parsed import parsed


@cache
def families() -> dict[str, tuple[str, frozenset[str]]]:
    """Return the kind and labels of every metric served by an agent or by the demo's load generator, by name."""
    labels_by_name: dict[str, tuple[str, frozenset[str]]] = {}
    for page in (parsed(complete_page(openmetrics=False)), parsed(generate_latest(load_series("c").registry).decode())):
        labels: dict[str, set[str]] = {}
        for name, pairs in page.values:
            labels.setdefault(_family(name, page.kinds), set()).update(label for label, _ in pairs)
        kinds = {name: kind for name, kind in page.kinds.items() if not name.endswith("_created")}
        labels_by_name |= {name: (kind, frozenset(labels.get(name, ())) - {"le"}) for name, kind in kinds.items()}
    return labels_by_name


@cache
def series() -> frozenset[str]:
    """Return the Prometheus names of all series of the metrics in `families()`."""
    names: set[str] = set()
    for name, (kind, _) in families().items():
        names |= {f"{name}_bucket", f"{name}_count", f"{name}_sum"} if kind == "histogram" else {name}
    return frozenset(names)


def measurements() -> frozenset[str]:
    """Return the names of all measurements in InfluxDB."""
    return frozenset({*CATALOGUE, EVENTS})


def _family(name: str, kinds: dict[str, str]) -> str:
    stem = name.removesuffix("_bucket").removesuffix("_count").removesuffix("_sum")
    return name if name in kinds else stem
