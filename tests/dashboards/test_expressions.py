"""Expressions: their translation to PromQL and InfluxQL, and the metrics that signals use."""

from functools import partial

import pytest

from collector.model.metric import Aggregation
from collector.node.catalogue import CATALOGUE
from dashboards import influxql, promql
from dashboards.expression import (
    Constant,
    Difference,
    Expression,
    Gauge,
    Quantile,
    Rate,
    Ratio,
    aggregation_of,
    metrics_of,
    parts_of,
    where,
)
from dashboards.signals.all_signals import SIGNALS, by_name
from dashboards.signals.signal import Signal
from tests.dashboards.served_metrics import families
from tests.every import every

PROM = promql.Scope('node=~"$node"', ("node",), "1m")
INFLUX = influxql.Scope('"node" =~ /^$node$/')
gauge = partial(Gauge, aggregation=Aggregation.MAX)
READS = Rate("a_total", where(operation="Read"))


@every(
    ("expression", "expected"),
    [
        (READS, 'sum by (node) (rate(a_total{node=~"$node",operation="Read"}[1m]))'),
        (Gauge("a", aggregation=Aggregation.MIN), 'min by (node) (a{node=~"$node"})'),
        (Quantile(0.99, "a"), 'histogram_quantile(0.99, sum by (le, node) (rate(a_bucket{node=~"$node"}[1m])))'),
        (
            # Percentiles of counts are whole numbers.
            Quantile(0.99, "cassandra_table_tombstones_per_read"),
            "ceil(histogram_quantile(0.99, sum by (le, node) "
            '(rate(cassandra_table_tombstones_per_read_bucket{node=~"$node"}[1m]))))',
        ),
        (Ratio(gauge("a"), gauge("b")), 'max by (node) (a{node=~"$node"}) / max by (node) (b{node=~"$node"})'),
        (
            Ratio(Difference(gauge("a"), gauge("b")), gauge("c")),
            '(max by (node) (a{node=~"$node"}) - max by (node) (b{node=~"$node"})) / max by (node) (c{node=~"$node"})',
        ),
        (Difference(Constant(1), gauge("a")), '1 - max by (node) (a{node=~"$node"})'),
        (gauge("a", where(b="x.*")), 'max by (node) (a{node=~"$node",b=~"x\\\\..*"})'),
        (gauge("a", where(b=("x", 'y"'))), 'max by (node) (a{node=~"$node",b=~"x|y\\""})'),
    ],
)
def test_expressions_are_translated_to_promql(expression: Expression, expected: str) -> None:
    assert promql.render(expression, PROM) == expected


GC = Rate("cassandra_jvm_gc_seconds_total")
GC_RATE = "rate(cassandra_jvm_gc_seconds_total[5m])"
SUMMED_PER_NODE = f"sum by (cluster, dc, rack, node) ({GC_RATE})"


@every(
    ("expression", "expected"),
    [
        (Gauge("cassandra_compaction_pending"), "sum by (cluster) (cassandra_compaction_pending)"),
        (Gauge("cassandra_pool_oldest_task_seconds"), "max by (cluster) (cassandra_pool_oldest_task_seconds)"),
        (Gauge("cassandra_endpoints_up"), "min by (cluster) (cassandra_endpoints_up)"),
        (Gauge("cassandra_table_compression_ratio"), "avg by (cluster) (cassandra_table_compression_ratio)"),
        (GC, f"avg by (cluster) ({SUMMED_PER_NODE})"),
        # A cluster's ratio is a quotient of sums, not the mean of its nodes' ratios.
        (
            Ratio(GC, Rate("cassandra_jvm_gc_total")),
            f"sum by (cluster) ({GC_RATE}) / sum by (cluster) (rate(cassandra_jvm_gc_total[5m]))",
        ),
    ],
)
def test_promql_aggregates_nodes_as_the_catalogue_defines(expression: Expression, expected: str) -> None:
    assert promql.render(expression, promql.Scope(by=("cluster",))) == expected


def test_a_nodes_series_are_summed_before_nodes_are_averaged() -> None:
    by = ("$by", "collector")
    assert promql.render(GC, promql.Scope()) == SUMMED_PER_NODE
    nodes = SUMMED_PER_NODE.replace("node)", "node, collector)")
    assert promql.render(GC, promql.Scope(by=by)) == f"avg by ($by, collector) ({nodes})"
    query = influxql.render(GC, influxql.Scope(by=("cluster",)))
    assert 'SELECT mean("v0") AS "value" FROM (SELECT sum("v0") AS "v0" FROM (' in query
    assert 'GROUP BY time($__interval), "cluster", "dc", "rack", "node" fill(none)' in query
    assert influxql.render(GC, influxql.Scope(by=promql.NODE_LABELS)).startswith('SELECT sum("v0") AS "value"')


PLACEMENT_JOIN = "* on (job, instance) group_left (machine) casstat_placement_info"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (
            Gauge("node_memory_Cached_bytes"),
            f"sum by (cluster) (max by (cluster, machine) (node_memory_Cached_bytes {PLACEMENT_JOIN}))",
        ),
        (
            Rate("node_disk_io_time_seconds_total", within_node="max"),
            f"avg by (cluster) (max by (cluster, machine) "
            f"(rate(node_disk_io_time_seconds_total[5m]) {PLACEMENT_JOIN}))",
        ),
        (
            Rate("node_network_receive_bytes_total"),
            "sum by (cluster) (max by (cluster, machine, network, device) (rate(node_network_receive_bytes_total[5m]) "
            "* on (job, instance) group_left (machine, network) casstat_placement_info))",
        ),
        (Gauge("casstat_clock_error_seconds"), "max by (cluster) (casstat_clock_error_seconds)"),
    ],
)
def test_promql_counts_series_shared_by_nodes_on_one_machine_once(expression: Expression, expected: str) -> None:
    assert promql.render(expression, promql.Scope(by=("cluster",))) == expected
    # A single node's series need no deduplication.
    assert "placement" not in promql.render(expression, promql.Scope())


# Each entry is a metric shared by the nodes on one machine, its aggregation across nodes, and the tags by which it is
# grouped so that only one copy per machine is counted.
SHARED = (
    (Gauge("node_memory_Cached_bytes"), "sum", '"cluster", "machine"'),
    (Rate("node_network_receive_bytes_total"), "sum", '"cluster", "machine", "network", "device"'),
    (Rate("node_disk_io_time_seconds_total", within_node="max"), "mean", '"cluster", "machine"'),
)


@every(("expression", "across_nodes", "groups"), SHARED)
def test_influxql_counts_series_shared_by_nodes_on_one_machine_once(
    expression: Gauge | Rate, across_nodes: str, groups: str
) -> None:
    query = influxql.render(expression, influxql.Scope(by=("cluster",)))
    assert query.startswith(f'SELECT {across_nodes}("v0") AS "value" FROM (SELECT max("v0") AS "v0" FROM (')  # noqa: S608
    assert f"GROUP BY time($__interval), {groups} fill(none)" in query
    # Points without the "machine" tag are from nodes on unknown machines, or from earlier versions of the agent.
    assert query.index("\"machine\" != ''") < query.index("\"machine\" = ''")
    assert "machine" not in influxql.render(expression, influxql.Scope(by=promql.NODE_LABELS))


def test_a_gauge_outside_the_catalogue_needs_an_aggregation() -> None:
    with pytest.raises(ValueError, match="casstat_x: not in the catalogue"):
        aggregation_of(Gauge("casstat_x"))


def test_the_title_names_an_aggregation_that_differs_from_the_catalogue() -> None:
    titles = [
        signal.title
        for signal in SIGNALS.values()
        for part in parts_of(signal.expression)
        if not isinstance(part, Quantile) and part.aggregation is not None and part.metric in CATALOGUE
    ]
    assert titles
    assert [title for title in titles if not title.endswith(", worst node")] == []


def test_a_selector_without_matchers_has_no_braces() -> None:
    assert promql.selector("a") == "a"


@every(
    ("expression", "selected", "inner"),
    [
        (READS, 'sum("v0")', ['mean("per_s") AS "v0" FROM "a_total"']),
        (
            Gauge("cassandra_compaction_pending"),
            'sum("v0")',
            ['mean("value") AS "v0" FROM "cassandra_compaction_pending"'],
        ),
        (gauge("a"), 'max("v0")', ['max("value") AS "v0" FROM "a"']),
        (Gauge("a", aggregation=Aggregation.MEAN), 'mean("v0")', ['mean("value") AS "v0" FROM "a"']),
        (Quantile(0.999, "a"), 'max("v0")', ['max("p999") AS "v0" FROM "a"']),
        (Difference(Constant(1), gauge("a")), '(1 - max("v0"))', ['max("value") AS "v0" FROM "a"']),
    ],
)
def test_expressions_are_translated_to_influxql(expression: Expression, selected: str, inner: list[str]) -> None:
    query = influxql.render(expression, INFLUX)
    assert query.startswith(f'SELECT {selected} AS "value" FROM (')  # noqa: S608
    assert query.endswith('WHERE $timeFilter GROUP BY time($__interval), "node" fill(none)')
    assert all(text in query for text in inner)
    assert query.count("$timeFilter") == query.count("FROM")
    assert query.count("$node") == len(inner)


def test_a_ratio_with_denominator_0_is_absent_in_influxql() -> None:
    # InfluxQL would return 0 for a division by 0.
    query = influxql.render(Ratio(Difference(READS, READS), READS), INFLUX)
    assert query.startswith(
        'SELECT "part" / "whole" AS "value" FROM (SELECT (sum("v0") - sum("v1")) AS "part", sum("v2")'
    )
    assert query.endswith('fill(none)) WHERE "whole" > 0 GROUP BY "node"')
    assert all(f'mean("per_s") AS "v{number}"' in query for number in range(3))
    # The outer query has no time range, because a range that starts mid-step would drop that step.
    assert query.count("$timeFilter") == query.count("FROM") - 1


@pytest.mark.parametrize("kind", [Ratio, Difference])
def test_influxql_does_not_calculate_across_measurements(kind: type[Ratio] | type[Difference]) -> None:
    with pytest.raises(ValueError, match="across measurements: a, b"):
        influxql.render(kind(gauge("b"), gauge("a")), INFLUX)


def test_grafana_variables_are_not_quoted_as_tags() -> None:
    assert influxql.render(gauge("a"), influxql.Scope(by=("${by:raw}",))).endswith(
        "GROUP BY time($__interval), ${by:raw} fill(none)"
    )


def test_labels_are_rendered_as_tags_in_influxql() -> None:
    query = influxql.render(gauge("a", where(b="x'", c=("y", "z/*"))), INFLUX)
    assert "\"b\" = 'x\\''" in query
    assert '"c" =~ /^(y|z\\/.*)$/' in query


@every("signal", SIGNALS.values())
def test_a_signal_uses_metrics_with_the_right_kind_and_labels(signal: Signal) -> None:
    assert set(metrics_of(signal.expression)) <= families().keys()
    for part in parts_of(signal.expression):
        kind, labels = families()[part.metric]
        assert kind in {Rate: ("counter", "unknown"), Gauge: ("gauge",), Quantile: ("histogram",)}[type(part)]
        assert {name for name, _ in part.where} <= labels
        assert set(signal.labels) <= labels


def test_duplicate_signal_names_are_rejected() -> None:
    signal = next(iter(SIGNALS.values()))
    with pytest.raises(ValueError, match="duplicate signal name"):
        by_name([signal, Signal(signal.name, "", signal.expression, signal.unit, "")])
