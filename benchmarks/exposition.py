"""CPU time of /metrics: adding a tick, rendering its page and serving it again, compared with prometheus_client."""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric as ClientMetric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from benchmarks import node_recordings
from benchmarks.figures import Figure
from collector.catalogue import CATALOGUE
from collector.journal.reader import entries, read
from collector.journal.segments import journal_files
from collector.model.identity import Identity
from collector.model.metric import Series, Value
from collector.model.snapshot import Scrape, Snapshot, Tick
from exporters.prometheus.agent_health import AgentHealth
from exporters.prometheus.page import Page
from exporters.prometheus.rendering import Options

SERIES = 5000
TICKS = 60
# From one tick to the next, every n-th value changes, as on a real node under load; n differs between histograms (True)
# and scalars (False).
CHANGE_EVERY = {True: 3, False: 6}
MAX_MS, MAX_REPEATED_MS = 10.0, 0.5
IDENTITY = Identity("production", "dc1", "rack1", "10.20.30.40")


def run() -> Iterator[Figure]:
    """Measure pages of 5,000 series: a real node's series, with one table's series repeated for invented tables."""
    ticks = _ticks(node_recordings.under_load())
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
    yield Figure("series", series, "series")
    yield Figure("values per tick", len(ticks[0].scrapes[0].values), "values")
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


def _ticks(recording: Path) -> list[Snapshot]:
    """Return ticks of a node with many tables, in which values change as often as on a real node."""
    values = _with_many_tables(_last_values(recording))
    ticks = []
    for number in range(TICKS):
        values = {series: _next(value, index + number) for index, (series, value) in enumerate(values.items())}
        scrape = Scrape("node", 1000.0 + number, values, "1", wall_s=0.01, cpu_s=0.01)
        ticks.append(Snapshot(IDENTITY.node, Tick(1_700_000_000.0 + number), (scrape,)))
    return ticks


def _last_values(recording: Path) -> dict[Series, Value]:
    """Return every series in a recording with its last value."""
    values: dict[Series, Value] = {}
    for entry in entries(record for file in journal_files(recording) for record in read(file)):
        for scrape in entry.snapshot.scrapes:
            values.update(scrape.values)
    return values


def _with_many_tables(values: Mapping[Series, Value]) -> dict[Series, Value]:
    """Return the series, with one table's series repeated for invented tables until there are `SERIES` lines."""
    table = next(series[2] for series in values if series[0] == "cassandra_table_operations_total")
    of_table = {series: value for series, value in values.items() if "table" in _labels(series) and series[2] == table}
    repeated = dict(values)
    number = 0
    while (missing := SERIES - sum(map(_lines, repeated.values()))) > 0:
        for series, value in of_table.items():
            if missing >= _lines(value):
                renamed: Series = (*series[:2], f"table{number:04d}", *series[3:])
                repeated[renamed] = value
                missing -= _lines(value)
        number += 1
    return repeated


def _labels(series: Series) -> tuple[str, ...]:
    return CATALOGUE[series[0]].labels if series[0] in CATALOGUE else ()


def _lines(value: Value) -> int:
    return 21 if isinstance(value, tuple) else 1


def _next(value: Value, turn: int) -> Value:
    """Return the value for the next tick; numbers and histograms grow if `turn` is a multiple of `CHANGE_EVERY`."""
    if isinstance(value, str) or turn % CHANGE_EVERY[isinstance(value, tuple)]:
        return value
    if isinstance(value, tuple):
        return tuple(count + index % 2 for index, count in enumerate(value))
    return value + 1


class _Families(Collector):
    """A page's series as prometheus_client metric families."""

    def __init__(self, text: str) -> None:
        self._families = list(text_string_to_metric_families(text))

    def collect(self) -> Iterator[ClientMetric]:
        """Yield the families, which were created in advance so that only their rendering is measured."""
        yield from self._families
