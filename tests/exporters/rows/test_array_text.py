"""The text made from a node's arrays equals that of its rows."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import inf, nan
from random import Random

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
from exporters.rows.merged_rows import Row, Table, rows_text, table_of
from exporters.rows.operation_columns import DECAYED_MEAN, Operations
from exporters.rows.row_files import node_cells

CHOICES = (
    Operations(),
    Operations("k*"),
    Operations("ks", "t"),
    Operations("*", "t"),
    Operations("ks"),
    Operations(local=True),
)
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
def series_of(shown: Operations) -> list[Series]:
    """Return the series that the rows show, and those of other keyspaces and tables."""
    view = table_of(shown).view
    names = [(keyspace, table) for keyspace in ("ks", "k2", "x") for table in ("t", "u", OTHERS)]
    all_operations = [
        Operations(keyspace if shown.keyspace else "", table if shown.table else "", local=shown.local)
        for keyspace, table in names
    ]
    counted = {
        one.series(metric, operation)
        for one in (*all_operations, shown)
        for metric in (one.count, one.total, one.duration)
        for operation in ("Read", "Write", "RangeSlice", "CASRead", "CASWrite")
    }
    decayed = {
        series
        for one in (*all_operations, shown)
        for operation in ("Read", "Write")
        for series in (
            *((*one.series(one.decayed, operation), quantile) for quantile in QUANTILES),
            *([one.series(DECAYED_MEAN, operation)] if shown.table else []),
        )
    }
    collections = {(COLLECTIONS, "G1 Young Generation"), (COLLECTIONS, "ZGC Pauses"), (COLLECTIONS, "ZGC Cycles")}
    read = {series for column in view.columns for series in _read_series(column.of)}
    return sorted(read | counted | decayed | collections | {SEPARATE_WRITES})


def node_of(operations: Operations, chance: Random, texts: Sequence[str]) -> NodeColumns:
    """Return a node's columns with any subset of the series that the rows show, each in any of its intervals.

    Hypothesis would take longer to draw all numbers than the rows take.
    """
    height = chance.randint(0, 3)
    sums = IntervalSums()

    def numbers(number: Callable[[], float]) -> Floats:
        return np.asarray([number() for _ in range(height)], np.float64)

    every_series = series_of(operations)
    for series in chance.sample(every_series, chance.choice((0, 1, 4, 20, len(every_series) // 2, len(every_series)))):
        kind = CATALOGUE[series[0]].kind
        is_known = numbers(lambda: chance.choice((0.0, 1.0, 1.0)))
        if kind is Kind.COUNTER:
            increases = numbers(
                lambda: chance.choice((0.0, 5e-324, 1e9, chance.uniform(0, 1e9), float(chance.randint(0, 10**9))))
            )
            elapsed_s = numbers(lambda: chance.choice((5.0, 5.0, 4.997)))
            sums.counters[series] = increases * is_known, elapsed_s * is_known
        elif kind is Kind.GAUGE:
            total = numbers(lambda: chance.choice((chance.uniform(-1e9, 1e9), chance.uniform(-1, 1), 0.0, 1.0, inf)))
            sums.gauges[series] = is_known.astype(np.int64), total, total - 1, total + 0.5
        elif kind is Kind.HISTOGRAM:
            lengths = chance.choice(((128,), (165,), (165, 128)))
            sums.histograms[series] = {length: _counts(chance, height, length) for length in lengths}
    sources = chance.sample(("cassandra", "cpu", "disk"), chance.randint(0, 3))
    return NodeColumns(
        chance.choice(texts),
        Header("1.0", 1.0, "one", sources=("cassandra",), disk=chance.choice(texts), interface="eth0"),
        Grid(5.0),
        list(range(7, 7 + height)),
        sums,
        {name: metric.unit for name, metric in CATALOGUE.items()},
        {source: numbers(lambda: chance.choice((0.0, 5.0, 5.003))) for source in sources},
        [{} for _ in range(height)],
        [[Event("restart", text) for text in chance.choices(texts, k=chance.randint(0, 2))] for _ in range(height)],
        numbers(lambda: chance.choice((0.0, chance.uniform(0, 10)))).tolist(),
        [0] * height,
        [5] * height,
        Integrity(),
    )


def _counts(chance: Random, height: int, length: int) -> tuple[Ints, Ints]:
    counts = np.zeros((height, length), np.int64)
    known = np.asarray([chance.randint(0, 1) for _ in range(height)], np.int64)
    for row in known.nonzero()[0]:
        for bucket in chance.choices(range(length), k=chance.randint(0, 4)):
            counts[row, bucket] = chance.randint(0, 1000)
    return known, counts


def run_of(node: NodeColumns) -> NodeRun:
    return NodeRun(node)


def node_rows(table: Table, node: NodeRun) -> Iterator[tuple[int, Row]]:
    """Yield the index of each of a node's intervals, and its row, which the formulas compute."""
    for index, interval in node.intervals.items():
        answered = int(node.answered(interval.sample))
        devices = node.head.disk, node.head.interface
        yield index, table.row(node.node, interval.sample, answered, 1 - answered, devices)


@given(st.builds(Random, st.integers(0, 1 << 32)), st.lists(TEXTS, min_size=1, max_size=5))
def test_text_and_cells_from_arrays_equal_those_of_rows(chance: Random, texts: list[str]) -> None:
    for operations in CHOICES:
        run, table = run_of(node_of(operations, chance, texts)), table_of(operations)
        rows = list(node_rows(table, run))
        assert node_text(table, run) == rows_text(table.header, [row for _, row in rows])
        names = chance.sample(table.header, chance.randint(1, len(table.header)))
        expected = [(index, {name: row[name] for name in names}) for index, row in rows]
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


@pytest.mark.parametrize(
    "operations", [Operations("k*"), Operations("ks", "t"), Operations("ks"), Operations(local=True)]
)
def test_every_column_has_an_array(operations: Operations) -> None:
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
    table, run = table_of(operations), run_of(node)
    expected = rows_text(table.header, (row for _, row in node_rows(table, run)))
    assert node_text(table, run) == expected
