"""What /metrics costs the agent: to take a tick, its first page, the same again; and what prometheus_client takes."""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric as ClientMetric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from benchmarks import recorded
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
# Of what a real node under load has: shares that change from one tick to the next.
CHANGED = {True: 3, False: 6}
MOST_MS, MOST_AGAIN_MS = 10.0, 0.5
IDENTITY = Identity("production", "dc1", "rack1", "10.20.30.40")


def run() -> Iterator[Figure]:
    """Measure pages of 5,000 series: the series of a real node, and those of its tables again for many tables."""
    ticks = _ticks(recorded.under_load())
    clock = [0.0]
    page = Page(Options(), CollectorRegistry(), lambda: AgentHealth("0"), print, lambda: clock[0])
    took: dict[str, list[float]] = {"take": [], "first": [], "packed": [], "plain": [], "again": []}

    def measured(what: str, work: Callable[[], object]) -> None:
        began_s = time.process_time()
        work()
        took[what].append(1000 * (time.process_time() - began_s))

    for tick in ticks:
        clock[0] = tick.scrapes[0].at_s
        measured("take", lambda tick=tick: page.add(tick, IDENTITY))  # type: ignore[misc]
        measured("plain", lambda: page.get(openmetrics=True, compressed=False))
        measured("packed", lambda: page.get(openmetrics=True, compressed=True))
        measured("again", lambda: page.get(openmetrics=True, compressed=True))
    text = page.get(openmetrics=False, compressed=False).decode()
    registry = CollectorRegistry()
    registry.register(_Families(text))
    theirs = [_cpu_ms(lambda: generate_latest(registry)) for _ in range(10)]
    plain, packed = median(took["plain"][1:]), median(took["packed"][1:])
    series = sum(not line.startswith("#") for line in text.split("\n")[:-1])
    yield Figure("series", series, "series")
    yield Figure("values read in a tick", len(ticks[0].scrapes[0].values), "values")
    yield Figure("size", len(text) / 1024, "KiB")
    yield Figure("size, gzipped", len(page.get(openmetrics=False, compressed=True)) / 1024, "KiB")
    yield Figure("taking a tick", median(took["take"][1:]), "ms CPU")
    yield Figure("the first page of all", took["plain"][0], "ms CPU")
    yield Figure("the first page of a tick", plain, "ms CPU", MOST_MS)
    yield Figure("to gzip it", packed, "ms CPU")
    yield Figure("the first page of a tick, gzipped", plain + packed, "ms CPU", MOST_MS)
    yield Figure("a second page in the same tick", median(took["again"]), "ms CPU", MOST_AGAIN_MS)
    yield Figure("prometheus_client on the same series", median(theirs), "ms CPU")
    yield Figure("prometheus_client's time over ours", median(theirs) / plain, "times")


def _cpu_ms(work: Callable[[], object]) -> float:
    began_s = time.process_time()
    work()
    return 1000 * (time.process_time() - began_s)


def _ticks(recording: Path) -> list[Snapshot]:
    """Return ticks of a node with many tables, in which as much changes as at a real one."""
    values = _many(_last(recording))
    ticks = []
    for number in range(TICKS):
        values = {series: _later(value, place + number) for place, (series, value) in enumerate(values.items())}
        scrape = Scrape("node", 1000.0 + number, values, "1", wall_s=0.01, cpu_s=0.01)
        ticks.append(Snapshot(IDENTITY.node, Tick(1_700_000_000.0 + number), (scrape,)))
    return ticks


def _last(recording: Path) -> dict[Series, Value]:
    """Return every series that a recording ever had, with its last value."""
    found: dict[Series, Value] = {}
    for entry in entries(each for file in journal_files(recording) for each in read(file)):
        for scrape in entry.snapshot.scrapes:
            found.update(scrape.values)
    return found


def _many(values: Mapping[Series, Value]) -> dict[Series, Value]:
    """Return the series, and those of one table again under other names until there are enough of them."""
    table = next(series[2] for series in values if series[0] == "cassandra_table_operations_total")
    of_table = {series: value for series, value in values.items() if "table" in _labels(series) and series[2] == table}
    found = dict(values)
    number = 0
    while (missing := SERIES - sum(map(_lines, found.values()))) > 0:
        for series, value in of_table.items():
            if missing >= _lines(value):
                other: Series = (*series[:2], f"table{number:04d}", *series[3:])
                found[other] = value
                missing -= _lines(value)
        number += 1
    return found


def _labels(series: Series) -> tuple[str, ...]:
    return CATALOGUE[series[0]].labels if series[0] in CATALOGUE else ()


def _lines(value: Value) -> int:
    return 21 if isinstance(value, tuple) else 1


def _later(value: Value, turn: int) -> Value:
    """Return what a value is a tick later, when it is its turn to change."""
    if isinstance(value, str) or turn % CHANGED[isinstance(value, tuple)]:
        return value
    if isinstance(value, tuple):
        return tuple(count + place % 2 for place, count in enumerate(value))
    return value + 1


class _Families(Collector):
    """The same series as prometheus_client has them."""

    def __init__(self, text: str) -> None:
        self._found = list(text_string_to_metric_families(text))

    def collect(self) -> Iterator[ClientMetric]:
        """Yield the families; making them, as a collector would have to, is not counted."""
        yield from self._found
