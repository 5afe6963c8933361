"""CPU time of /metrics: adding a tick, rendering its page and serving it again, compared with prometheus_client."""

import time
from collections.abc import Callable, Iterator
from statistics import median

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric as ClientMetric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from benchmarks import simulated_recordings
from benchmarks.figures import Figure
from collector.model.snapshot import Identity, Snapshot
from collector.simulation.simulated_cluster import CALM, simulated_cluster
from exporters.metrics_page.page import Page
from exporters.metrics_page.rendering import Options
from exporters.metrics_page.self_metrics import AgentHealth

TABLES = 25
TICKS = 60
MAX_MS, MAX_REPEATED_MS = 10.0, 0.5
MIN_SERIES = 3000
IDENTITY = Identity("production", "dc1", "rack1", "10.20.30.40")


def run() -> Iterator[Figure]:
    """Measure pages of about 5,000 series: those of a simulated node with many tables."""
    ticks = _ticks()
    clock = [0.0]
    page = Page(Options(), CollectorRegistry(), lambda: AgentHealth("0"), print, lambda: clock[0])
    cpu_ms: dict[str, list[float]] = {"add": [], "text": [], "gzip": [], "repeated": []}

    def measure(step: str, work: Callable[[], object]) -> None:
        began_s = time.process_time()
        work()
        cpu_ms[step].append(1000 * (time.process_time() - began_s))

    for tick in ticks:
        clock[0] = tick.scrapes[0].at_s
        measure("add", lambda tick=tick: page.add(tick, IDENTITY))  # type: ignore[misc]
        measure("text", lambda: page.get(openmetrics=True, compressed=False))
        measure("gzip", lambda: page.get(openmetrics=True, compressed=True))
        measure("repeated", lambda: page.get(openmetrics=True, compressed=True))
    text = page.get(openmetrics=False, compressed=False).decode()
    registry = CollectorRegistry()
    registry.register(_Families(text))
    client_ms = [_cpu_ms(lambda: generate_latest(registry)) for _ in range(10)]
    text_ms, gzip_ms = median(cpu_ms["text"][1:]), median(cpu_ms["gzip"][1:])
    series = sum(not line.startswith("#") for line in text.split("\n")[:-1])
    yield Figure("series", series, "series", MIN_SERIES, True)
    yield Figure("values per tick", sum(len(scrape.values) for scrape in ticks[-1].scrapes), "values")
    yield Figure("size", len(text) / 1024, "KiB")
    yield Figure("size, gzip", len(page.get(openmetrics=False, compressed=True)) / 1024, "KiB")
    yield Figure("adding a tick", median(cpu_ms["add"][1:]), "ms CPU")
    yield Figure("first page after the start", cpu_ms["text"][0], "ms CPU")
    yield Figure("first page of a tick", text_ms, "ms CPU", MAX_MS)
    yield Figure("gzip of the page", gzip_ms, "ms CPU")
    yield Figure("first page of a tick, gzip", text_ms + gzip_ms, "ms CPU", MAX_MS)
    yield Figure("second page of a tick", median(cpu_ms["repeated"]), "ms CPU", MAX_REPEATED_MS)
    yield Figure("prometheus_client, same series", median(client_ms), "ms CPU")
    yield Figure("prometheus_client / casstat", median(client_ms) / text_ms, "times")


def _cpu_ms(work: Callable[[], object]) -> float:
    began_s = time.process_time()
    work()
    return 1000 * (time.process_time() - began_s)


def _ticks() -> list[Snapshot]:
    """Return ticks of a simulated node with many tables."""
    (node,) = simulated_cluster(1, TABLES, disturbances=CALM)
    return list(simulated_recordings.snapshots(node, TICKS))


class _Families(Collector):
    """A page's series as prometheus_client metric families."""

    def __init__(self, text: str) -> None:
        self._families = list(text_string_to_metric_families(text))

    def collect(self) -> Iterator[ClientMetric]:
        """Yield the families, which were created in advance so that only their rendering is measured."""
        yield from self._families
