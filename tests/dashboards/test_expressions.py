"""Expressions as Prometheus and InfluxDB take them, and made of metrics that there are."""

import pytest

from dashboards import influxql, promql
from dashboards.expression import Expression, Level, Number, Quantile, Rate, Ratio, Rest, metrics_of, where
from dashboards.signals.signal import Signal
from dashboards.signals.table import SIGNALS, by_name
from tests.dashboards.known import families

PROM = promql.Scope('node=~"$node"', ("node",), "1m")
INFLUX = influxql.Scope('"node" =~ /^$node$/')
READS = Rate("a_total", where(operation="Read"))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (READS, 'sum by (node) (rate(a_total{node=~"$node",operation="Read"}[1m]))'),
        (Level("a", across="min"), 'min by (node) (a{node=~"$node"})'),
        (Quantile(0.99, "a"), 'histogram_quantile(0.99, sum by (le, node) (rate(a_bucket{node=~"$node"}[1m])))'),
        (Ratio(Level("a"), Level("b")), 'max by (node) (a{node=~"$node"}) / max by (node) (b{node=~"$node"})'),
        (
            Ratio(Rest(Level("a"), Level("b")), Level("c")),
            '(max by (node) (a{node=~"$node"}) - max by (node) (b{node=~"$node"})) / max by (node) (c{node=~"$node"})',
        ),
        (Rest(Number(1), Level("a")), '1 - max by (node) (a{node=~"$node"})'),
        (Level("a", where(b="x.*")), 'max by (node) (a{node=~"$node",b=~"x\\\\..*"})'),
        (Level("a", where(b=("x", 'y"'))), 'max by (node) (a{node=~"$node",b=~"x|y\\""})'),
    ],
)
def test_promql(expression: Expression, expected: str) -> None:
    assert promql.spelled(expression, PROM) == expected


def test_nothing_is_matched_where_nothing_is_given() -> None:
    assert promql.selector("a") == "a"


@pytest.mark.parametrize(
    ("expression", "selected", "inner"),
    [
        (READS, 'sum("v0")', ['mean("per_s") AS "v0" FROM "a_total"']),
        (Level("a"), 'max("v0")', ['max("value") AS "v0" FROM "a"']),
        (Level("a", across="avg"), 'mean("v0")', ['mean("value") AS "v0" FROM "a"']),
        (Quantile(0.999, "a"), 'max("v0")', ['max("p999") AS "v0" FROM "a"']),
        (Rest(Number(1), Level("a")), '(1 - max("v0"))', ['max("value") AS "v0" FROM "a"']),
    ],
)
def test_influxql(expression: Expression, selected: str, inner: list[str]) -> None:
    query = influxql.spelled(expression, INFLUX)
    assert query.startswith(f'SELECT {selected} AS "value" FROM (')  # noqa: S608
    assert query.endswith('WHERE $timeFilter GROUP BY time($__interval), "node" fill(none)')
    assert all(each in query for each in inner)
    assert query.count("$timeFilter") == query.count("FROM")
    assert query.count("$node") == len(inner)


def test_a_part_of_nothing_is_absent_in_influxql() -> None:
    # Where it divides by 0 the answer is 0.
    query = influxql.spelled(Ratio(Rest(READS, READS), READS), INFLUX)
    assert query.startswith(
        'SELECT "part" / "whole" AS "value" FROM (SELECT (sum("v0") - sum("v1")) AS "part", sum("v2")'
    )
    assert query.endswith('fill(none)) WHERE "whole" > 0 GROUP BY "node"')
    assert all(f'mean("per_s") AS "v{number}"' in query for number in range(3))
    # Not outside: bounds that fall between two steps would lose all.
    assert query.count("$timeFilter") == query.count("FROM") - 1


@pytest.mark.parametrize("kind", [Ratio, Rest])
def test_influxql_does_not_calculate_across_measurements(kind: type[Ratio] | type[Rest]) -> None:
    with pytest.raises(ValueError, match="across measurements: a, b"):
        influxql.spelled(kind(Level("b"), Level("a")), INFLUX)


def test_grafanas_own_choice_of_tags_is_left_to_it() -> None:
    assert influxql.spelled(Level("a"), influxql.Scope(by=("${by:raw}",))).endswith(
        "GROUP BY time($__interval), ${by:raw} fill(none)"
    )


def test_labels_in_influxql() -> None:
    query = influxql.spelled(Level("a", where(b="x'", c=("y", "z/*"))), INFLUX)
    assert "\"b\" = 'x\\''" in query
    assert '"c" =~ /^(y|z\\/.*)$/' in query


@pytest.mark.parametrize("signal", SIGNALS.values(), ids=SIGNALS)
def test_a_signal_is_made_of_what_is_measured(signal: Signal) -> None:
    assert set(metrics_of(signal.expression)) <= families().keys()
    for part in _parts(signal.expression):
        kind, labels = families()[part.metric]
        assert kind in {Rate: ("counter", "unknown"), Level: ("gauge",), Quantile: ("histogram",)}[type(part)]
        assert {name for name, _ in part.where} <= labels
        assert set(signal.each) <= labels


def test_two_signals_have_two_names() -> None:
    one = next(iter(SIGNALS.values()))
    with pytest.raises(ValueError, match="two signals"):
        by_name([one, Signal(one.name, "", one.expression, one.unit, "")])


def _parts(expression: Expression) -> list[Rate | Level | Quantile]:
    if isinstance(expression, Ratio | Rest):
        return [*_parts(expression.part), *_parts(expression.whole)]
    return [] if isinstance(expression, Number) else [expression]
