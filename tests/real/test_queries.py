"""Dashboard queries return values from stores filled by real agents, and the values match the merge."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from math import isclose, isnan, nan
from statistics import fmean
from typing import Any

import pytest

from dashboards import influxql, promql
from dashboards.expression import Expression, metrics_of
from dashboards.grafana import dashboard_files
from dashboards.signals.all_signals import SIGNALS
from tests.dashboards import queries
from tests.dashboards.queries import Choice, Json, Query
from tests.real.conftest import StartNodes
from tests.real.filled import SPAN_S, Cells, FilledStores, filled_stores, query_at, query_range
from tests.real.prometheus import Prometheus
from tests.real.stores import InfluxDB, VictoriaMetrics

STEP_S = 5
# The share of queries that must return values on a healthy cluster under load, with any choice of variables.
SHARE = 0.8
CHOICES = ("all", "one", "several")
BOARDS = {(store, board["uid"]): board for store in dashboard_files.STORES for board in queries.dashboards(store)}
Labels = frozenset[tuple[str, str]]
Merged = Callable[[int], Mapping[tuple[str, float], Cells]]
MS, MB, KBIT, PCT = 1000.0, 1e-6, 8 / 1000, 100.0


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory, start_cluster: StartNodes) -> Iterator[FilledStores]:
    with filled_stores(tmp_path_factory.mktemp("filled"), start_cluster()) as filled:
        yield filled


@pytest.fixture(scope="module")
def merged(stores: FilledStores, tmp_path_factory: pytest.TempPathFactory) -> Merged:
    """Return a function that returns the rows of a merge with a given interval."""
    return cache(lambda interval_s: stores.merged(tmp_path_factory.mktemp("merged"), interval_s))


def choice(name: str, of: FilledStores) -> Choice:
    """Return the values of the dashboard variables for a choice in `CHOICES`."""
    by = {"all": "node", "one": "node", "several": "cluster"}[name]
    everything = Choice(by=by, from_s=of.shown_from_s, to_s=of.to_s, interval_s=STEP_S, rate_interval_s=15)
    if name == "all":
        return everything
    nodes = of.addresses[:1] if name == "one" else of.addresses[:2]
    tables = ("t000",) if name == "one" else ("t000", "t001")
    return replace(everything, node=nodes, dc=("datacenter1",), rack=("rack1",), keyspace=("demo",), table=tables)


def query_values(store: Any, query: Query, text: str, of: FilledStores) -> list[float]:
    """Return all numbers in the result of a query except NaN."""
    if isinstance(store, InfluxDB):
        answer = store.query(text)
        assert "error" not in answer, answer
        rows = [row for series in answer.get("series", ()) for row in series["values"]]
        return [value for row in rows for value in row[1:] if isinstance(value, int | float)]
    if query.form == "table":
        pairs = [series["value"] for series in query_at(store, text, of.to_s)]
    else:
        pairs = [pair for series in query_range(store, text, of, STEP_S) for pair in series["values"]]
    return [value for _, number_text in pairs if not isnan(value := float(number_text))]


def absences(board: Json) -> dict[str, str]:
    """Return the descriptions of the panels that may be empty, keyed by panel title."""
    descriptions = {panel["title"]: panel["description"] for panel in queries.panels(board)}
    return {title: text for title, text in descriptions.items() if "Absent" in text}


@pytest.mark.parametrize("chosen", CHOICES)
@pytest.mark.parametrize(("store", "uid"), BOARDS, ids=[uid for _, uid in BOARDS])
def test_queries_return_values_except_in_panels_that_may_be_empty(
    stores: FilledStores, store: str, uid: str, chosen: str
) -> None:
    board = BOARDS[store, uid]
    asked: list[Any] = [stores.influxdb]
    if store != "influxdb":
        asked = [stores.prometheus, stores.victoria, *stores.written]
    questions = list(queries.influxdb(board) if store == "influxdb" else queries.prometheus(board))
    may_be_empty = absences(board)
    for queried in asked:
        empty = [
            query
            for query in questions
            # The load generator is scraped; it does not write.
            if queried not in stores.written or "casstat_load" not in str(query)
            if not query_values(queried, query, queries.interpolated(query, choice(chosen, stores)), stores)
        ]
        unsaid = [(query.panel, queries.interpolated(query, choice(chosen, stores))) for query in empty]
        assert [item for item in unsaid if item[0] not in may_be_empty] == [], type(queried).__name__
        assert len(empty) <= (1 - SHARE) * len(questions), unsaid


@pytest.mark.parametrize(("store", "uid"), BOARDS, ids=[uid for _, uid in BOARDS])
def test_annotation_queries_are_accepted(stores: FilledStores, store: str, uid: str) -> None:
    for query in queries.annotations(BOARDS[store, uid]):
        text = queries.interpolated(query, choice("all", stores))
        scraped: list[Any] = [stores.prometheus, stores.victoria, *stores.written]
        for queried in [stores.influxdb] if store == "influxdb" else scraped:
            query_values(queried, query, text, stores)


# These rules have no results, because the agents read their nodes through Jolokia.
ONLY_THROUGH_NODETOOL = {
    "cluster:cassandra_gcstats_interval_seconds:sum",
    "cluster:cassandra_gcstats_total_seconds:sum",
}


def test_every_rule_is_evaluated_and_records_a_value(stores: FilledStores) -> None:
    groups = stores.prometheus.rules()
    assert {group["name"] for group in groups} >= {"casstat-recording"}
    rules = [rule for group in groups for rule in group["rules"]]
    assert [rule for rule in rules if rule["health"] != "ok"] == []
    recorded = {rule["name"] for rule in rules if rule["type"] == "recording"}
    empty = {name for name in recorded if not query_at(stores.prometheus, name, stores.to_s)}
    assert empty == ONLY_THROUGH_NODETOOL


# A counter that is read in every tick.
EVERY_TICK = "cassandra_client_request_duration_seconds_count"

# The signal, the level at which it is compared (node or cluster), the merge's column, and the factor that converts the
# signal's unit to the column's.
EQUAL: tuple[tuple[str, str, str, float], ...] = (
    ("reads", "cluster", "reads_per_s", 1),
    ("writes", "cluster", "writes_per_s", 1),
    ("reads", "node", "reads_per_s", 1),
    ("read_mean", "cluster", "read_mean_ms", MS),
    ("write_mean", "cluster", "write_mean_ms", MS),
    ("jvm_cpu", "node", "jvm_cpu_pct", PCT),
    ("cpu_user", "node", "cpu_user_pct", PCT),
    ("cpu_system", "node", "cpu_system_pct", PCT),
    ("connections", "node", "native_connections", 1),
    ("net_sent", "node", "net_tx_kbit_per_s", KBIT),
    ("net_received", "node", "net_rx_kbit_per_s", KBIT),
    # The nodes share one machine, which is counted once.
    ("cpu_user", "cluster", "cpu_user_pct", PCT),
    ("net_sent", "cluster", "net_tx_kbit_per_s", KBIT),
)


@pytest.mark.parametrize(("name", "by", "column", "scale"), EQUAL, ids=[f"{row[0]}-{row[1]}" for row in EQUAL])
def test_query_results_match_the_merge(
    stores: FilledStores, merged: Merged, name: str, by: str, column: str, scale: float
) -> None:
    rows = merged(SPAN_S)
    signal = SIGNALS[name]
    wanted = {
        node: float(rows[node, stores.to_s][column]) for node in (stores.addresses if by == "node" else ("cluster",))
    }
    rows_of_seconds = merged(1)
    answers: dict[Any, dict[str, float]] = {
        store: prometheus_values(store, signal.expression, by, stores)
        for store in (stores.prometheus, stores.victoria, *stores.written)
    }
    # InfluxQL has no arithmetic across measurements.
    if len(set(metrics_of(signal.expression))) == 1:
        answers[stores.influxdb] = influxdb_values(stores.influxdb, signal.expression, by, stores)
    for store, values in answers.items():
        expected = wanted
        if isinstance(store, InfluxDB):
            expected = per_tick(wanted, rows, rows_of_seconds, column, stores)
        # The samples in InfluxDB have the times of the ticks, like those of remote write.
        sampled = stores.written[0] if isinstance(store, InfluxDB) else store
        moved_by_node = {node: moved(sampled, node, rows_of_seconds, stores) for node in stores.addresses}
        moved_s = {node: moved_by_node.get(node, sum(moved_by_node.values())) for node in wanted}
        for node, value in expected.items():
            # A mean changes by at most the share of the seconds that are in only one of the two windows.
            stray = moved_s[node] / SPAN_S * max(column_of(rows_of_seconds, node, column).values())
            assert scale * values[node] == pytest.approx(value, abs=0.01 * value + stray), (type(store).__name__, node)
        assert values.keys() == wanted.keys()


def moved(store: Prometheus | VictoriaMetrics, node: str, rows_of_seconds: Any, of: FilledStores) -> float:
    """Return how many seconds of a node's window in a store are not in the merge's window, or have no sample.

    A store has samples with the times at which the node was read, which may be after the window's end. A busy agent
    misses ticks, and a busy store misses scrapes.
    """
    ticks: list[float] = sorted(at_s for of_node, at_s in rows_of_seconds if of_node == node)
    (series,) = query_at(store, f'{EVERY_TICK}{{node="{node}",operation="Read"}}[{2 * SPAN_S}s]', of.to_s + SPAN_S / 2)
    times_s = [float(time_s) for time_s, _ in series["values"]]
    counts = [sum(of.from_s + 0.5 < at_s <= of.to_s + 0.5 for at_s in times) for times in (ticks, times_s)]

    def tick_of(time_s: float) -> float:
        return ticks[bisect_right(ticks, time_s) - 1]

    before, last = (tick_of(max(at_s for at_s in times_s if at_s <= end_s + 0.5)) for end_s in (of.from_s, of.to_s))
    # Prometheus does not use the last value before the window.
    first = tick_of(min(at_s for at_s in times_s if at_s > of.from_s - 0.5))
    moved_s = max(of.from_s - before, first - of.from_s) + of.to_s - last
    missing = sum(max(0, SPAN_S - count) for count in counts)
    # A scrape may return a tick a second after it.
    return moved_s + missing + (store not in of.written)


def per_tick(
    wanted: dict[str, float], rows: Any, rows_of_seconds: Any, column: str, of: FilledStores
) -> dict[str, float]:
    """Return the values wanted from InfluxDB, whose means weight all ticks equally.

    A tick after missed ticks covers several seconds, so the merge gives it a greater weight.
    """
    means = {node: fmean(in_window(column_of(rows_of_seconds, node, column), of).values()) for node in of.addresses}
    ratio = sum(means.values()) / sum(float(rows[node, of.to_s][column]) for node in of.addresses)
    return {node: means[node] if node in means else ratio * value for node, value in wanted.items()}


def prometheus_values(
    store: Prometheus | VictoriaMetrics, expression: Expression, by: str, of: FilledStores
) -> dict[str, float]:
    # The window ends between two ticks. Unlike VictoriaMetrics, Prometheus does not use the last value before the
    # window, so its window must be longer by one tick.
    window_s = SPAN_S + 1 if isinstance(store, Prometheus) else SPAN_S
    text = promql.render(expression, promql.Scope('node=~".+"', (by,), f"{window_s}s"))
    series_list = query_at(store, text, of.to_s + 0.5)
    return {
        series["metric"]["node"] if by == "node" else "cluster": float(series["value"][1]) for series in series_list
    }


def influxdb_values(store: InfluxDB, expression: Expression, by: str, of: FilledStores) -> dict[str, float]:
    # The window excludes its start, because a tick at that time belongs to the previous window.
    time = f"time > {round(MS * of.from_s)}ms and time <= {round(MS * of.to_s)}ms"
    text = influxql.render(expression, influxql.Scope("", (by,), time, "1000d"))
    series_list = store.query(text)["series"]
    return {series["tags"]["node"] if by == "node" else "cluster": series["values"][0][1] for series in series_list}


def test_a_nodes_percentiles_match_the_merge(stores: FilledStores, merged: Merged) -> None:
    """InfluxDB stores percentiles for every tick, so they are compared tick by tick."""
    rows = merged(1)
    node = stores.addresses[0]
    for name, column in (("read_p50", "read_p50_ms"), ("read_p95", "read_p95_ms"), ("write_p99", "write_p99_ms")):
        wanted = in_window(column_of(rows, node, column), stores)
        time = f"time > {round(MS * stores.from_s)}ms and time <= {round(MS * stores.to_s)}ms"
        scope = influxql.Scope(f"\"node\" = '{node}'", ("node",), time, "1s")
        (series,) = stores.influxdb.query(influxql.render(SIGNALS[name].expression, scope))["series"]
        percentiles = {at_ms / MS: MS * value for at_ms, value in series["values"]}
        # The merge writes four decimals.
        assert percentiles == pytest.approx(wanted, rel=1e-3, abs=1e-4)


def column_of(rows: Any, node: str, column: str) -> dict[float, float]:
    """Return a node's values, keyed by the time at which their intervals end."""
    cells: dict[tuple[str, float], Cells] = rows
    return {at_s: float(row[column]) for (of_node, at_s), row in cells.items() if of_node == node and row[column]}


def in_window(values: dict[float, float], of: FilledStores) -> dict[float, float]:
    return {at_s: value for at_s, value in values.items() if of.from_s < at_s <= of.to_s}


# These series describe the moment of a scrape or request.
MOMENTARY = ("scrape_", "process_", "casstat_sink_", "casstat_journal_bytes", "casstat_series", "up")


# Samples of these metrics have the time at which they were read.
CUMULATIVE = ("_total", "_bucket", "_count", "_sum", "node_netstat_Tcp_RetransSegs")

# The time of a reading is inexact if the agent is interrupted each time it reads its two clocks.
INEXACT_MS = 100
# A busy agent publishes a tick late, and a scrape of a busy agent may begin before a tick and return it.
BEFORE_MS, AFTER_MS = 10_000, 5_000


def test_remote_write_stores_what_a_scrape_stores(stores: FilledStores) -> None:
    """Counters equal those of the tick in which they were read, and all gauges of a scrape those of one recent tick."""
    pushed = by_labels(stores.written[1])
    scraped = by_labels(stores.victoria)
    # In a push, `up` also has the labels of the node.
    assert {labels for labels in scraped if not labels_of(labels)["__name__"].startswith(("scrape_", "up"))} <= set(
        pushed
    )
    ticks: dict[str, set[int]] = defaultdict(set)
    for labels, values in pushed.items():
        ticks[labels_of(labels)["node"]].update(values)
    scrapes: dict[tuple[str, int], dict[Labels, float]] = defaultdict(dict)
    counters = 0
    for labels, values in scraped.items():
        name = labels_of(labels)["__name__"]
        if name.startswith(MOMENTARY):
            continue
        node = labels_of(labels)["node"]
        in_range = {ms: value for ms, value in values.items() if MS * stores.from_s < ms <= MS * stores.to_s}
        if name.endswith(CUMULATIVE):
            sorted_ticks = sorted(ticks[node])
            for time_ms, value in in_range.items():
                near = {
                    sorted_ticks[bisect_right(sorted_ticks, at_ms) - 1] for at_ms in (time_ms, time_ms + INEXACT_MS)
                }
                assert any(isclose(value, pushed[labels].get(tick, nan), rel_tol=1e-15) for tick in near), (
                    labels,
                    (time_ms, value),
                    near,
                )
            counters += len(in_range)
        else:
            for time_ms, value in in_range.items():
                scrapes[node, time_ms][labels] = value
    for (node, time_ms), samples in scrapes.items():
        recent = [tick for tick in ticks[node] if time_ms - BEFORE_MS < tick <= time_ms + AFTER_MS]
        different = [
            {
                labels
                for labels, value in samples.items()
                # VictoriaMetrics stores decimal numbers, which may differ from the value in the last bit.
                if not isclose(value, pushed[labels].get(tick, nan), rel_tol=1e-15)
            }
            for tick in recent
        ]
        assert set() in different, (node, time_ms, min(different, key=len, default=None))
    assert sum(map(len, scrapes.values())) > 10_000
    assert counters > 100_000


def by_labels(store: VictoriaMetrics) -> dict[Labels, dict[int, float]]:
    """Return the series of the agents, without the label `instance`, which is the agent's address only in a scrape."""
    return {
        frozenset((name, value) for name, value in labels.items() if name != "instance"): values
        for labels, values in store.series('{job="casstat"}')
    }


def labels_of(labels: Labels) -> dict[str, str]:
    return dict(labels)
