"""The text made from a node's arrays equals that of its rows."""

import dataclasses
from collections.abc import Iterator, Mapping
from functools import cache
from math import inf, nan

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from collector.merge.grid import Grid
from collector.merge.merge_job import NodeRun
from collector.merge.node_columns import Floats, IntervalSums, Ints, NodeColumns
from collector.model.metric import Kind, Series
from collector.model.snapshot import Event
from collector.node.catalogue import CATALOGUE
from collector.node.jolokia.table_budget import OTHERS
from collector.node.metrics.decaying_percentiles import QUANTILES
from collector.node.metrics.separate_writes import SEPARATE_WRITES
from collector.recording.header import Header
from collector.recording.reader import Integrity
from exporters.rows.column_arrays import node_text, number_texts, rounded_numbers
from exporters.rows.columns import rounded
from exporters.rows.merged_rows import Choice, Row, Table, rows_text, table_of
from exporters.rows.operation_columns import DECAYED_MEAN, Operations
from exporters.rows.row_files import node_cells

CHOICES = (Choice(), Choice("k*"), Choice("ks", "t"), Choice("*", "t"), Choice("ks"), Choice(local=True))
COLLECTIONS = "cassandra_jvm_gc_seconds_total"
NUMBERS = (
    st.floats(-1e12, 1e12)
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.integers(-(10**9), 10**9).map(lambda number: number / 20_000)
    | st.integers(-(2**40), 2**40).map(lambda number: number / 2**17)
    | st.integers(-5, 5).map(float)
)
TEXTS = st.text(max_size=8)


def _read_series(formula: object) -> set[Series]:
    """Return the series that a formula names."""
    fields = [getattr(formula, field.name) for field in dataclasses.fields(formula)]  # type: ignore[arg-type]
    series = {field for field in fields if isinstance(field, tuple) and field and field[0] in CATALOGUE}
    nested = {item for field in fields if isinstance(field, tuple) for item in field if isinstance(item, tuple)}
    return series | nested


@cache
def series_of(choice: Choice) -> list[Series]:
    """Return the series that the rows show, and those of other keyspaces and tables."""
    view = table_of(choice).view
    names = [(keyspace, table) for keyspace in ("ks", "k2", "x") for table in ("t", "u", OTHERS)]
    operations = [
        Operations(keyspace if choice.keyspace else "", table if choice.table else "", local=choice.local)
        for keyspace, table in names
    ]
    shown = {
        one.series(metric, operation)
        for one in (*operations, view.operations)
        for metric in (one.count, one.total, one.duration)
        for operation in ("Read", "Write", "RangeSlice", "CASRead", "CASWrite")
    }
    decayed = {
        series
        for one in (*operations, view.operations)
        for operation in ("Read", "Write")
        for series in (
            *((*one.series(one.decayed, operation), quantile) for quantile in QUANTILES),
            *([one.series(DECAYED_MEAN, operation)] if choice.table else []),
        )
    }
    collections = {(COLLECTIONS, "G1 Young Generation"), (COLLECTIONS, "ZGC Pauses"), (COLLECTIONS, "ZGC Cycles")}
    read = {series for column in view.columns for series in _read_series(column.of)}
    return sorted(read | shown | decayed | collections | {SEPARATE_WRITES})


@st.composite
def nodes(draw: st.DrawFn, choice: Choice) -> NodeColumns:
    """Generate a node's columns with any subset of the series that the rows show, each in any of its intervals."""
    height = draw(st.integers(0, 3))
    sums = IntervalSums()

    def numbers(strategy: st.SearchStrategy[float]) -> Floats:
        return np.asarray(draw(st.lists(strategy, min_size=height, max_size=height)), np.float64)

    for series in draw(st.lists(st.sampled_from(series_of(choice)), unique=True)):
        kind = CATALOGUE[series[0]].kind
        is_known = numbers(st.sampled_from([0.0, 1.0, 1.0]))
        if kind is Kind.COUNTER:
            increase = numbers(st.just(0.0) | st.floats(0, 1e9) | st.integers(0, 10**9).map(float))
            sums.counters[series] = increase * is_known, numbers(st.sampled_from([5.0, 5.0, 4.997])) * is_known
        elif kind is Kind.GAUGE:
            total = numbers(st.floats(-1e9, 1e9) | st.sampled_from([0.0, 1.0, inf]))
            sums.gauges[series] = is_known.astype(np.int64), total, total - 1, total + 0.5
        elif kind is Kind.HISTOGRAM:
            sums.histograms[series] = {
                length: _counts(draw, height, length) for length in draw(st.sampled_from([(128,), (165,), (165, 128)]))
            }
    sources = draw(st.lists(st.sampled_from(["cassandra", "cpu", "disk"]), unique=True))
    return NodeColumns(
        draw(TEXTS),
        Header("1.0", 1.0, "one", sources=("cassandra",), disk=draw(TEXTS), interface="eth0"),
        Grid(5.0),
        list(range(7, 7 + height)),
        sums,
        {name: metric.unit for name, metric in CATALOGUE.items()},
        {source: numbers(st.sampled_from([0.0, 5.0, 5.003])) for source in sources},
        [{} for _ in range(height)],
        [[Event("restart", text) for text in draw(st.lists(TEXTS, max_size=2))] for _ in range(height)],
        numbers(st.floats(0, 10)).tolist(),
        [0] * height,
        [5] * height,
        Integrity(),
    )


def _counts(draw: st.DrawFn, height: int, length: int) -> tuple[Ints, Ints]:
    counts = np.zeros((height, length), np.int64)
    known = np.zeros(height, np.int64)
    for row in range(height):
        known[row] = draw(st.integers(0, 1))
        buckets: Mapping[int, int] = draw(st.dictionaries(st.integers(0, length - 1), st.integers(0, 1000), max_size=4))
        for bucket, count in buckets.items():
            counts[row, bucket] = count * known[row]
    return known, counts


def run_of(node: NodeColumns) -> NodeRun:
    return NodeRun(node)


def node_rows(table: Table, node: NodeRun) -> Iterator[tuple[int, Row]]:
    """Yield the index of each of a node's intervals, and its row, which the formulas compute."""
    for index, interval in node.intervals.items():
        answered = int(node.answered(interval.sample))
        devices = node.head.disk, node.head.interface
        yield index, table.row(node.node, interval.sample, answered, 1 - answered, devices)


@pytest.mark.parametrize("choice", CHOICES, ids=str)
@given(data=st.data())
def test_text_from_arrays_equals_that_of_rows(choice: Choice, data: st.DataObject) -> None:
    run, table = run_of(data.draw(nodes(choice))), table_of(choice)
    assert node_text(table, run) == rows_text(table.header, [row for _, row in node_rows(table, run)])


@pytest.mark.parametrize("choice", CHOICES, ids=str)
@given(data=st.data())
def test_cells_from_arrays_equal_those_of_rows(choice: Choice, data: st.DataObject) -> None:
    run, table = run_of(data.draw(nodes(choice))), table_of(choice)
    names = data.draw(st.lists(st.sampled_from(table.header), min_size=1, unique=True))
    expected = [(index, {name: row[name] for name in names}) for index, row in node_rows(table, run)]
    # The texts differ if only one of the two cells is an integer.
    assert repr(list(node_cells(table, run, names))) == repr(expected)


@given(st.lists(NUMBERS, min_size=1, max_size=4))
@example([1e305])
def test_numbers_are_rounded_like_single_cells(numbers: list[float]) -> None:
    expected = [nan if (cell := rounded(number)) is None else cell for number in numbers]
    result = rounded_numbers(np.asarray(numbers))
    assert np.array_equal(result, np.asarray(expected, np.float64), equal_nan=True)
    assert not np.signbit(result[result == 0]).any()


@given(st.lists(st.lists(NUMBERS, min_size=2, max_size=2), min_size=1))
@example([[1e15, 0.5], [1e22, -1e16]])
def test_numbers_are_written_like_single_cells(rows: list[list[float]]) -> None:
    names = ["a", "b"]
    lines = number_texts(list(np.asarray(rows).T))
    tsv, csv = rows_text(names, [dict(zip(names, map(rounded, row), strict=True)) for row in rows])
    assert [line for line, _ in lines] == tsv.split("\n")[:-1]
    assert [line for _, line in lines] == csv.split("\r\n")[:-1]


@pytest.mark.parametrize("choice", [Choice("k*"), Choice("ks", "t"), Choice("ks"), Choice(local=True)])
def test_every_column_has_an_array(choice: Choice) -> None:
    empty = np.zeros(1)
    node = NodeColumns(
        "n1",
        Header("1.0", 1.0, "one"),
        Grid(5.0),
        [7],
        IntervalSums(),
        {},
        {},
        [{}],
        [[]],
        [0.0],
        [0],
        [5],
        Integrity(),
    )
    node.sums.counters["cassandra_jvm_gc_seconds_total", "Old"] = empty, empty
    table, run = table_of(choice), run_of(node)
    expected = rows_text(table.header, (row for _, row in node_rows(table, run)))
    assert node_text(table, run) == expected
