"""Every question of every board is asked of stores that real agents filled, and the answers are the merge's."""

from collections.abc import Iterator
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any

import pytest

from dashboards import influxql, promql
from dashboards.expression import Expression, metrics_of
from dashboards.grafana import dashboard_files
from dashboards.signals.all_signals import SIGNALS
from tests.dashboards import queries
from tests.dashboards.queries import Choice, Json, Query
from tests.real.conftest import StartNodes
from tests.real.filled import SPAN_S, Cells, Filled, asked_at, asked_over, filled
from tests.real.prometheus import Prometheus
from tests.real.stores import InfluxDB, VictoriaMetrics

STEP_S, SCRAPE_S = 5, 1
# Panels that must have something to show on a healthy cluster under load, whatever is chosen.
SHARE = 0.8
CHOICES = ("all", "one", "several")
BOARDS = {(store, board["uid"]): board for store in dashboard_files.STORES for board in queries.dashboards(store)}
MS, MB, KBIT, PCT = 1000.0, 1e-6, 8 / 1000, 100.0


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory, start_cluster: StartNodes) -> Iterator[Filled]:
    with filled(tmp_path_factory.mktemp("filled"), start_cluster()) as found:
        yield found


def choice(name: str, of: Filled) -> Choice:
    """Return what is chosen in the variables: nothing is All."""
    by = {"all": "node", "one": "node", "several": "cluster"}[name]
    everything = Choice(by=by, from_s=of.from_s, to_s=of.to_s, interval_s=STEP_S, rate_interval_s=15)
    if name == "all":
        return everything
    nodes = of.addresses[:1] if name == "one" else of.addresses[:2]
    tables = ("t000",) if name == "one" else ("t000", "t001")
    return replace(everything, node=nodes, dc=("datacenter1",), rack=("rack1",), keyspace=("demo",), table=tables)


def asked_of(store: Any, query: Query, text: str, of: Filled) -> list[float]:
    """Return all numbers that a store answers; NaN is none."""
    if isinstance(store, InfluxDB):
        answer = store.query(text)
        assert "error" not in answer, answer
        rows = [row for series in answer.get("series", ()) for row in series["values"]]
        return [value for row in rows for value in row[1:] if isinstance(value, int | float)]
    if query.form == "table":
        pairs = [each["value"] for each in asked_at(store, text, of.to_s)]
    else:
        pairs = [pair for each in asked_over(store, text, of, STEP_S) for pair in each["values"]]
    return [value for _, text_ in pairs if not isnan(value := float(text_))]


def absences(board: Json) -> dict[str, str]:
    """Return why a panel may have nothing to show, by its title; only those that say so."""
    found = {panel["title"]: panel["description"] for panel in queries.panels(board)}
    return {title: text for title, text in found.items() if "Absent" in text}


@pytest.mark.parametrize("chosen", CHOICES)
@pytest.mark.parametrize(("store", "uid"), BOARDS, ids=[uid for _, uid in BOARDS])
def test_every_question_is_answered(stores: Filled, store: str, uid: str, chosen: str) -> None:
    board = BOARDS[store, uid]
    asked: list[Any] = [stores.influxdb] if store == "influxdb" else [stores.prometheus, stores.victoria]
    questions = list(queries.influxdb(board) if store == "influxdb" else queries.prometheus(board))
    said = absences(board)
    for each in asked:
        empty = [
            query
            for query in questions
            if not asked_of(each, query, queries.interpolated(query, choice(chosen, stores)), stores)
        ]
        unsaid = [(query.panel, queries.interpolated(query, choice(chosen, stores))) for query in empty]
        assert [found for found in unsaid if found[0] not in said] == [], type(each).__name__
        assert len(empty) <= (1 - SHARE) * len(questions), unsaid


@pytest.mark.parametrize(("store", "uid"), BOARDS, ids=[uid for _, uid in BOARDS])
def test_annotations_can_be_asked(stores: Filled, store: str, uid: str) -> None:
    for query in queries.annotations(BOARDS[store, uid]):
        text = queries.interpolated(query, choice("all", stores))
        for each in [stores.influxdb] if store == "influxdb" else [stores.prometheus, stores.victoria]:
            asked_of(each, query, text, stores)


# The agents read their nodes through Jolokia.
ONLY_THROUGH_NODETOOL = {
    "cluster:cassandra_gcstats_interval_seconds:sum",
    "cluster:cassandra_gcstats_total_seconds:sum",
}


def test_every_rule_is_evaluated_and_records_a_value(stores: Filled) -> None:
    groups = stores.prometheus.rules()
    assert {group["name"] for group in groups} >= {"casstat-recording"}
    rules = [rule for group in groups for rule in group["rules"]]
    assert [rule for rule in rules if rule["health"] != "ok"] == []
    recorded = {rule["name"] for rule in rules if rule["type"] == "recording"}
    empty = {name for name in recorded if not asked_at(stores.prometheus, name, stores.to_s)}
    assert empty == ONLY_THROUGH_NODETOOL


# A signal, of the nodes by themselves or all together, and the column of the merge that says the same, in its unit.
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
    # The nodes share one machine, which counts once.
    ("cpu_user", "cluster", "cpu_user_pct", PCT),
    ("net_sent", "cluster", "net_tx_kbit_per_s", KBIT),
)


@pytest.mark.parametrize(("name", "by", "column", "scale"), EQUAL, ids=[f"{row[0]}-{row[1]}" for row in EQUAL])
def test_answers_are_what_the_merge_says(
    stores: Filled, tmp_path: Path, name: str, by: str, column: str, scale: float
) -> None:
    rows = stores.merged(tmp_path / "merged")
    signal = SIGNALS[name]
    wanted = {
        node: float(rows[node, stores.to_s][column]) for node in (stores.addresses if by == "node" else ("cluster",))
    }
    rows_of_seconds = stores.merged(tmp_path / "seconds", 1)
    seconds = {node: list(column_of(rows_of_seconds, node, column, stores).values()) for node in wanted}
    answers: dict[Any, dict[str, float]] = {
        store: prometheus_says(store, signal.expression, by, stores) for store in (stores.prometheus, stores.victoria)
    }
    # InfluxQL does not calculate across measurements.
    if len(set(metrics_of(signal.expression))) == 1:
        answers[stores.influxdb] = influxdb_says(stores.influxdb, signal.expression, by, stores)
    for store, found in answers.items():
        scaled = {node: scale * value for node, value in found.items()}
        for node, value in wanted.items():
            # Points in InfluxDB have the time of their tick. A scrape next to a tick may see the one before it: either
            # end of the window then moves by a tick, and the mean by at most the highest value of a second.
            stray = 0.0 if isinstance(store, InfluxDB) else max(seconds[node]) / SPAN_S
            assert scaled[node] == pytest.approx(value, rel=0.01, abs=0.01 * value + stray), (
                type(store).__name__,
                node,
            )
        assert scaled.keys() == wanted.keys()


def prometheus_says(
    store: Prometheus | VictoriaMetrics, expression: Expression, by: str, of: Filled
) -> dict[str, float]:
    # A tick is seen by the scrape after it, up to a second late. Prometheus wants the first one within the window too.
    window_s = SPAN_S + SCRAPE_S if isinstance(store, Prometheus) else SPAN_S
    text = promql.render(expression, promql.Scope('node=~".+"', (by,), f"{window_s}s"))
    found = asked_at(store, text, of.to_s + SCRAPE_S)
    return {each["metric"]["node"] if by == "node" else "cluster": float(each["value"][1]) for each in found}


def influxdb_says(store: InfluxDB, expression: Expression, by: str, of: Filled) -> dict[str, float]:
    # The points of its ticks: the first ends a second after it has begun.
    time = f"time > {round(MS * of.from_s)}ms and time <= {round(MS * of.to_s)}ms"
    text = influxql.render(expression, influxql.Scope("", (by,), time, "1000d"))
    found = store.query(text)["series"]
    return {each["tags"]["node"] if by == "node" else "cluster": each["values"][0][1] for each in found}


def test_percentiles_of_a_node_are_the_merges(stores: Filled, tmp_path: Path) -> None:
    """InfluxDB has those of single ticks."""
    rows = stores.merged(tmp_path / "merged", 1)
    node = stores.addresses[0]
    for name, column in (("read_p50", "read_p50_ms"), ("read_p95", "read_p95_ms"), ("write_p99", "write_p99_ms")):
        wanted = column_of(rows, node, column, stores)
        time = f"time > {round(MS * stores.from_s)}ms and time <= {round(MS * stores.to_s)}ms"
        scope = influxql.Scope(f"\"node\" = '{node}'", ("node",), time, "1s")
        (series,) = stores.influxdb.query(influxql.render(SIGNALS[name].expression, scope))["series"]
        found = {at_ms / MS: MS * value for at_ms, value in series["values"]}
        # The merge writes four digits.
        assert found == pytest.approx(wanted, rel=1e-3, abs=1e-4)


def column_of(rows: Any, node: str, column: str, of: Filled) -> dict[float, float]:
    found: dict[tuple[str, float], Cells] = rows
    return {
        at_s: float(row[column])
        for (of_node, at_s), row in found.items()
        if of_node == node and of.from_s < at_s <= of.to_s and row[column]
    }
