"""OTLP carries the series of /metrics: translated to Prometheus, they have the names and values of a scrape."""

import math
from collections.abc import Sequence
from itertools import accumulate

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.model.metric import Series, Value
from collector.node.catalogue import CATALOGUE
from exporters.metrics_page.rendering import Options
from exporters.sinks.parts.otlp import CONVENTIONS, OtlpFormat, otlp_name, request
from exporters.sinks.parts.tick_encoder import TickEncoder
from tests.every import every
from tests.examples import examples
from tests.exporters.metrics_page.parsed import any_values, one_of_each
from tests.exporters.sinks.otlp.otlp_messages import DataPoint, decode
from tests.exporters.sinks.page_ticks import EXTERNAL, IDENTITY, node_tick, pages_of

# The units that a translation to Prometheus appends to the name.
SUFFIXES = {"s": "_seconds", "By": "_bytes"}
# Counters of node_exporter whose names lack the suffix that a translation appends.
WITHOUT_TOTAL = "node_netstat_Tcp_RetransSegs"


def encoder() -> TickEncoder:
    return TickEncoder(OtlpFormat(), Options(), EXTERNAL)


def translated(points: Sequence[DataPoint]) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return the series as Prometheus stores them, without those that have names of the semantic conventions."""
    series: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for point in points:
        if point.name.startswith("system.") or point.name == "up":
            continue
        unit = SUFFIXES.get(point.unit, "_ratio" if point.unit == "1" and point.kind == "gauge" else "")
        name = point.name.replace(".", "_").removesuffix(unit) + unit
        labels = frozenset((key, value) for key, value in point.attributes if key not in EXTERNAL)
        if point.kind == "histogram":
            bounds, counts, total = point.value
            ends = [*map(repr, bounds), "+Inf"]
            for end, count in zip(ends, accumulate(counts), strict=True):
                series[f"{name}_bucket", labels | {("le", end)}] = count
            series[f"{name}_count", labels] = sum(counts)
            if total is not None:
                series[f"{name}_sum", labels] = total
        else:
            total_name = "_total" if point.kind == "sum" and name != WITHOUT_TOTAL else ""
            series[name.removesuffix(total_name) + total_name, labels] = point.value
    return {key: value for key, value in series.items() if not key[0].startswith("casstat_series")}


@given(st.lists(any_values(), min_size=1, max_size=3))
@settings(max_examples=examples(40), deadline=None)
def test_every_tick_has_the_series_of_the_page(readings: list[dict[Series, Value]]) -> None:
    otlp = encoder()
    ticks = [node_tick(number, values) for number, values in enumerate(readings)]
    for tick, page in zip(ticks, pages_of(ticks), strict=True):
        points = decode(request(otlp.encode(tick)))
        expected = {series: value for series, value in page.items() if series[0] not in CONVENTIONS}
        assert translated([point for point in points if point.value is not None]) == expected


def test_series_of_the_conventions_keep_their_values() -> None:
    tick = node_tick(0, one_of_each())
    points = decode(request(encoder().encode(tick)))
    (page,) = pages_of([tick])
    expected = sorted(value for (name, _), value in page.items() if name in CONVENTIONS)
    assert sorted(point.value for point in points if point.name.startswith("system.")) == expected
    (free,) = [point for point in points if ("system.memory.state", "free") in point.attributes]
    assert (free.name, free.kind, free.unit) == ("system.memory.usage", "gauge", "By")


def test_names_are_unique() -> None:
    names = [otlp_name(metric.name, metric.unit) for metric in CATALOGUE.values()]
    assert len({(name.name, frozenset(name.fixed.items())) for name in names}) == len(CATALOGUE)
    assert all(name in CATALOGUE for name in CONVENTIONS)


def test_counters_of_cassandra_start_with_its_jvm() -> None:
    start: dict[Series, Value] = {("cassandra_jvm_start_time_seconds",): 1_794_000_000_123}
    points = decode(request(encoder().encode(node_tick(0, {**one_of_each(), **start}))))
    for point in points:
        is_counter = point.kind != "gauge" and point.name.startswith("cassandra.")
        assert point.start_ms == (1_794_000_000_123 if is_counter else 0)
    assert {point.resource for point in points} == {
        frozenset(
            {
                ("service.name", "casstat"),
                ("service.instance.id", IDENTITY.node),
                ("db.system.name", "cassandra"),
            }
        )
    }


@every("start", [0, -1, 1 << 63, 18_446_744_073_710_000_000, math.inf, math.nan])
def test_an_impossible_start_of_the_jvm_is_left_out(start: float) -> None:
    values: dict[Series, Value] = {**one_of_each(), ("cassandra_jvm_start_time_seconds",): start}
    points = decode(request(encoder().encode(node_tick(0, values))))
    assert {point.start_ms for point in points} == {0}


def test_a_series_that_ends_has_no_recorded_value() -> None:
    otlp = encoder()
    latency: Series = ("cassandra_client_request_duration_seconds", "Read")
    otlp.encode(node_tick(0, {("cassandra_exceptions_total",): 1, latency: (1,) * 128}))
    points = decode(request(otlp.encode(node_tick(1, {}, "two"))))
    ended = {(point.name, point.kind) for point in points if point.value is None}
    assert ended == {("cassandra.exceptions", "sum"), ("cassandra.client_request_duration", "histogram")}
