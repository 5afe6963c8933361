"""Bounded labels: no store gets compaction ids as labels; all compactions of a table are one series."""

import json
from pathlib import Path

from prometheus_client import CollectorRegistry

from collector.model.metric import Kind, Values
from collector.model.snapshot import Identity, Snapshot, Tick
from collector.node.catalogue import CATALOGUE
from collector.recording.header import Header
from collector.recording.writer import Journal, Limits
from exporters.bounded_labels import UNBOUNDED, BoundedLabels
from exporters.metrics_page.page import Page
from exporters.metrics_page.rendering import Options
from exporters.metrics_page.self_metrics import AgentHealth
from exporters.sinks.parts.all_sinks import sink_of
from exporters.sinks.shipping.shipper import Plan, Runtime, Shipper, journal_opener
from tests.collector.snapshots import scrape, snapshot
from tests.exporters.metrics_page.parsed import parsed
from tests.exporters.sinks.shipping.shipped import Store, drain

DONE, SIZE = CATALOGUE["cassandra_compaction_progress"], CATALOGUE["cassandra_compaction_size"]
PENDING = ("cassandra_compaction_pending",)
TICKS = 100


def compactions(number: int) -> Values:
    """Return the values at tick `number` of a node that starts two compactions of the same table in every tick."""
    ids = f"{number}-a", f"{number}-b"
    done: Values = {(DONE.name, compaction_id, "ks", "t", "Compaction"): 100 + number for compaction_id in ids}
    return {PENDING: number, **done, **{(SIZE.name, *series[1:]): 1000 for series in done}}


def ticks() -> list[Snapshot]:
    return [
        Snapshot("n", Tick(1_795_000_000.0 + number), snapshot(scrape(5.0 + number, compactions(number))).scrapes)
        for number in range(TICKS)
    ]


def test_no_metric_has_an_unbounded_label() -> None:
    bounded = BoundedLabels(CATALOGUE).catalogue
    assert bounded.keys() == CATALOGUE.keys()
    for name, metric in bounded.items():
        assert UNBOUNDED.isdisjoint(metric.labels)
        # Labels are removed only from gauges: a counter would decrease whenever one of the summed series disappears.
        assert metric.labels == CATALOGUE[name].labels or metric.kind is Kind.GAUGE


def test_values_are_summed_over_the_other_labels() -> None:
    assert BoundedLabels(CATALOGUE).values(compactions(7)) == {
        PENDING: 7,
        (DONE.name, "ks", "t", "Compaction"): 214,
        (SIZE.name, "ks", "t", "Compaction"): 2000,
    }
    plain: Values = {PENDING: 7}
    assert BoundedLabels(CATALOGUE).values(plain) is plain
    assert (
        BoundedLabels(CATALOGUE).values({(SIZE.name, "too", "few"): 1, (DONE.name, "1", "k", "t", "c"): "text"}) == {}
    )


def test_a_page_has_one_series_for_all_compactions_of_a_table() -> None:
    page = Page(Options(), CollectorRegistry(), lambda: AgentHealth("1"), print, lambda: 5.0 + TICKS)
    for tick in ticks():
        page.add(tick, Identity())
    exposition = parsed(page.get(openmetrics=False, compressed=False).decode())
    of_table = {"keyspace": "ks", "table": "t", "type": "Compaction"}
    series = {name: dict(labels) for name, labels in exposition.values if name.startswith("cassandra_compaction_")}
    assert series == {PENDING[0]: {}, DONE.name: of_table, SIZE.name: of_table}
    # The sums include only the compactions that are still running.
    assert exposition.of(SIZE.name, **of_table) == 2000
    assert exposition.of(DONE.name, **of_table) == 2 * (100 + TICKS - 1)


def test_sinks_get_one_series_for_all_compactions_of_a_table(tmp_path: Path) -> None:
    metrics = tuple(CATALOGUE.values())
    journal = Journal(tmp_path, lambda: Header("1", 1.0, "s", sources=("node",), metrics=metrics), Limits(), print)
    for tick in ticks():
        journal.append(tick)
    journal.close()
    for url in ("influxdb+http://h/b", "graphite://h/p", "graphite://h/p?tags=1", "blueflood+http://h/t"):
        store, sink = Store(), sink_of(url)
        store.encode = sink.encode  # type: ignore[method-assign]
        drain(shipping := Shipper(store, Plan(journal_opener(tmp_path)), Runtime(lambda _: False), print))
        shipping.close()
        sink.close()
        points = [point for point in store.taken if b"compaction_" in point and b"pending" not in point]
        assert len(points) == 2 * (TICKS - 1)
        assert len({name_of(point) for point in points}) == 2, url


def name_of(point: bytes) -> bytes:
    """Return a point without its value or time."""
    if point.startswith(b"{"):
        names = {name: value for name, value in json.loads(point).items() if not isinstance(value, int | float)}
        return json.dumps(names).encode()
    return b" ".join(point.split(b" ")[:-2]) or point
