"""Columns of a node's rows as arrays, computed from the arrays of the columnar merge, and the text of the rows.

The numbers and the text are the same as those of the formulas and of the rows, but for all of a node's intervals at
once. NaN stands for an absent value.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, reduce, singledispatchmethod
from itertools import groupby
from math import isnan

import numpy as np
import orjson

from collector.merge.merge_job import NodeRun
from collector.merge.node_columns import Bools, Floats, Ints, NodeColumns
from collector.model import histogram
from collector.model.histogram import Buckets
from collector.model.metric import Series
from collector.node.metrics.decaying_percentiles import DECAYED
from collector.node.metrics.jvm import counts_pauses
from collector.node.metrics.requests import OPERATIONS
from exporters.rows.columns import (
    DIGITS,
    DISK,
    INTERFACE,
    MS,
    Cell,
    CollectionTime,
    Gauge,
    Percentage,
    PerSecond,
    Ratio,
    SumOfRates,
    rounded,
)
from exporters.rows.merged_rows import CSV_LINE_END, TOTAL, Row, Table, Text, cells_texts, first_cells, last_cells
from exporters.rows.operation_columns import (
    ADDED,
    DECAYED_MEAN,
    HighestLatency,
    LatencyQuantile,
    MeanLatency,
    OperationRate,
    Operations,
    TotalRate,
)

Layouts = Mapping[int, tuple[Ints, Ints]]
"""A histogram, as in `IntervalSums`."""
Counter = tuple[Floats, Floats]
"""A counter's increase and elapsed time; both are NaN in intervals without a rate."""
# Up to this number, multiplying by 10**DIGITS changes a number by less than TIE_SLACK.
MAX_SCALED = 1e9
TIE_SLACK = 0.002
# From this number on, orjson writes exponents or might differ from `repr`.
MAX_NUMBER = 1e15


@dataclass(frozen=True)
class _Latencies:
    """Latency histograms with the same layout in some of the intervals.

    rows          the intervals.
    upper_bounds  in seconds, including infinity.
    counts        for each interval and bucket, the number of values in it.
    """

    rows: Ints
    upper_bounds: Floats
    counts: Floats

    @cached_property
    def cumulative(self) -> Floats:
        """For each interval and bucket, the number of values in it and in all buckets below it."""
        return np.cumsum(self.counts, axis=1)

    @property
    def total(self) -> Floats:
        """The number of values; NaN if there are none."""
        total = self.cumulative[:, -1]
        return np.where(total > 0, total, np.nan)

    def quantile(self, q: float) -> Floats:
        """Return `histogram.quantile` for every interval (0 < `q` <= 1)."""
        rank = q * self.cumulative[:, -1] * (1 - histogram.ROUNDING)
        index = np.argmax(self.cumulative >= rank[:, None], axis=1)
        rows = np.arange(len(index))
        low, high = self._low(index), self.upper_bounds[index]
        below = np.where(index > 0, self.cumulative[rows, index - 1], 0.0)
        fraction = (rank - below) / self.counts[rows, index]
        value = low + (high - low) * np.minimum(np.maximum(fraction, 0.0), 1.0)
        return np.where(np.isnan(self.total), np.nan, np.where(np.isinf(high), low, np.minimum(value, high)))

    def highest(self) -> Floats:
        """Return `histogram.highest` for every interval."""
        index = np.argmax(self.cumulative >= self.cumulative[:, -1:], axis=1)
        high = self.upper_bounds[index]
        return np.where(np.isnan(self.total), np.nan, np.where(np.isinf(high), self._low(index), high))

    def _low(self, index: Ints) -> Floats:
        return np.where(index > 0, self.upper_bounds[index - 1], 0.0)


class ColumnArrays:
    """The arrays of one node's columns, for the reads and writes that `operations` selects."""

    def __init__(self, node: NodeColumns, operations: Operations) -> None:
        self._node, self._sums, self._operations = node, node.sums, operations
        self._latencies_by_operation: dict[str, list[_Latencies]] = {}

    @cached_property
    def absent(self) -> Floats:
        """An array without values."""
        return np.full(len(self._node.indices), np.nan)

    def _rate(self, series: Series) -> Counter:
        counter = self._sums.counters.get(series)
        if counter is None:
            return self.absent, self.absent
        known = counter[1] != 0
        return np.where(known, counter[0], np.nan), np.where(known, counter[1], np.nan)

    def increase(self, operation: str) -> Floats:
        """Return the number of operations."""
        return self._sum_of_known(self._rate(series)[0] for series in self._counters(self._operations.count, operation))

    def is_decayed(self) -> Bools:
        """Return whether each interval has decaying percentiles instead of those of the interval."""
        decayed: Bools = np.zeros(len(self.absent), bool)
        for series, (number, *_) in self._sums.gauges.items():
            if series[0] in DECAYED:
                decayed |= number > 0
        for operation in ("Read", "Write"):
            for latencies in self._latencies(operation):
                decayed[latencies.rows] = False
        return decayed

    def _counters(self, metric: str, operation: str) -> list[Series]:
        return self._operations.selected(self._sums.counters.keys(), metric, operation)

    def ends(self, formula: Gauge) -> tuple[Floats, Floats]:
        """Return a gauge's lowest and highest values."""
        number, _, lowest, highest = self._sums.gauges.get(formula.series, (0, 0, self.absent, self.absent))
        known = np.asarray(number) > 0
        low, high = (np.where(known, formula.factor * end, np.nan) for end in (lowest, highest))
        return low, high

    @singledispatchmethod
    def column(self, formula: object) -> Floats:
        """Return a formula's values."""
        raise NotImplementedError(formula)

    @column.register
    def _(self, formula: PerSecond) -> Floats:
        increase, elapsed_s = self._rate(formula.series)
        return formula.factor * (increase / elapsed_s)

    @column.register
    def _(self, formula: Gauge) -> Floats:
        if formula.series not in self._sums.gauges:
            return self.absent
        number, total, *_ = self._sums.gauges[formula.series]
        return formula.factor * (total / np.where(number > 0, number, np.nan))

    @column.register
    def _(self, formula: Ratio) -> Floats:
        return formula.factor * self._ratio(formula.numerator, formula.denominator)

    def _ratio(self, numerator: Series, denominator: Series) -> Floats:
        (above, above_s), (below, below_s) = self._rate(numerator), self._rate(denominator)
        return above / np.where((above_s == below_s) & (below != 0), below, np.nan)

    @column.register
    def _(self, formula: Percentage) -> Floats:
        increases = [self._rate(series)[0] for series in formula.series]
        included = [increase for increase, is_in in zip(increases, formula.is_included, strict=True) if is_in]
        total = _sum(increases)
        return 100 * _sum(included) / np.where(total != 0, total, np.nan)

    @column.register
    def _(self, formula: SumOfRates) -> Floats:
        return self._sum_of_rates(formula.series)

    @column.register
    def _(self, formula: CollectionTime) -> Floats:
        rates = self._sum_of_rates(
            series for series in self._sums.counters if series[0] == formula.counter and counts_pauses(series)
        )
        total, interval = (self.column(Gauge(series)) for series in (formula.total, formula.interval))
        from_gauges = 100 * total / np.where(interval != 0, interval, np.nan)
        return np.where(np.isnan(rates), from_gauges, 100 * rates)

    def total_increase(self) -> Floats:
        """Return the number of all operations."""
        return self._sum_of_known(map(self.increase, ADDED))

    def _sum_of_rates(self, series: Iterable[Series]) -> Floats:
        """Return the sum of the known rates per second; NaN if none is known."""
        return self._sum_of_known(self.column(PerSecond(key)) for key in series)

    def _sum_of_known(self, values: Iterable[Floats]) -> Floats:
        rates = list(values)
        unknown = reduce(np.logical_and, map(np.isnan, rates), np.ones(len(self.absent), bool))
        return np.where(unknown, np.nan, _sum(np.where(np.isnan(rate), 0.0, rate) for rate in rates))

    @column.register
    def _(self, formula: OperationRate) -> Floats:
        return self._sum_of_rates(self._counters(self._operations.count, formula.operation))

    @column.register
    def _(self, formula: TotalRate) -> Floats:
        return self._sum_of_known(self.column(OperationRate(formula.operations, operation)) for operation in ADDED)

    @column.register
    def _(self, formula: MeanLatency) -> Floats:
        operations = self._operations
        totals = self._counters(operations.total, formula.operation)
        count, total, has_total = np.zeros_like(self.absent), np.zeros_like(self.absent), self.absent
        for series in totals:
            (increase, elapsed_s), (number, number_s) = self._rate(series), self._rate((operations.count, *series[1:]))
            is_known = elapsed_s == number_s
            total, count = total + np.where(is_known, increase, 0.0), count + np.where(is_known, number, 0.0)
            has_total = np.where(np.isnan(elapsed_s), has_total, elapsed_s)
        mean_s = total / np.where(count != 0, count, np.nan)
        if operations.table:
            decayed_s = self.column(Gauge(operations.series(DECAYED_MEAN, formula.operation)))
            mean_s = np.where(np.isnan(has_total), decayed_s, mean_s)
        return MS * mean_s

    @column.register
    def _(self, formula: LatencyQuantile) -> Floats:
        operations = self._operations
        decayed_s = self.column(Gauge((*operations.series(operations.decayed, formula.operation), f"{formula.q:g}")))
        quantiles_s: Floats = np.where(decayed_s != 0, decayed_s, np.nan)
        for latencies in self._latencies(formula.operation):
            quantiles_s[latencies.rows] = latencies.quantile(formula.q)
        return MS * quantiles_s

    @column.register
    def _(self, formula: HighestLatency) -> Floats:
        highest_s: Floats = self.absent.copy()
        for latencies in self._latencies(formula.operation):
            highest_s[latencies.rows] = latencies.highest()
        return MS * highest_s

    def _latencies(self, operation: str) -> list[_Latencies]:
        """Return the histograms of the intervals in which they are known, by layout."""
        if operation not in self._latencies_by_operation:
            self._latencies_by_operation[operation] = list(self._read_latencies(operation))
        return self._latencies_by_operation[operation]

    def _read_latencies(self, operation: str) -> Iterator[_Latencies]:
        metric, histograms = self._operations.duration, self._sums.histograms
        selected = {series: histograms[series] for series in self._operations.selected(histograms, metric, operation)}
        numbers, counts = dict[int, Ints](), dict[int, Ints]()
        for layouts in selected.values():
            for length, (number, of_layout) in layouts.items():
                if number.any():
                    numbers[length] = numbers.get(length, 0) + number
                    counts[length] = counts.get(length, 0) + of_layout
        layouts_known = np.zeros(len(self.absent), np.int64)
        for number in numbers.values():
            layouts_known += number > 0
        for length, number in numbers.items():
            rows = np.nonzero((number > 0) & (layouts_known == 1))[0]
            upper_bounds = np.asarray(histogram.upper_bounds_of(self._node.units[metric], length))
            yield _Latencies(rows, upper_bounds, counts[length][rows].astype(np.float64))
        if (layouts_known > 1).any():
            yield from self._mixed_latencies(selected, layouts_known > 1)

    def _mixed_latencies(self, selected: Mapping[Series, Layouts], is_mixed: Bools) -> Iterator[_Latencies]:
        """Yield the histograms of intervals with two layouts, one by one."""
        parts = defaultdict[int, list[Buckets]](list)
        for series, layouts in selected.items():
            for row, buckets in self._node.buckets(series, layouts):
                if is_mixed[row]:
                    parts[row].append(buckets)
        for row, of_row in parts.items():
            merged = histogram.merge(of_row)
            yield _Latencies(
                np.asarray([row]), np.asarray(merged.upper_bounds), np.asarray([merged.counts], np.float64)
            )


def _sum(arrays: Iterable[Floats]) -> Floats:
    """Return the sum, added from left to right as `sum` does."""
    return reduce(np.add, arrays, np.zeros(1))


def node_text(table: Table, node: NodeRun) -> Text:
    """Return a node's rows as TSV and as CSV."""
    if not node.columns.indices:
        return "", ""
    arrays = ColumnArrays(node.columns, table.view.operations)
    with np.errstate(all="ignore"):
        numbers = _numbers(table, arrays)
    others = _other_cells(node, arrays.is_decayed())
    parts = []
    for is_number, group in groupby(table.header, numbers.__contains__):
        names = list(group)
        parts.append(number_texts([numbers[name] for name in names]) if is_number else cells_texts(names, others))
    tsv = "".join("\t".join(tsv for tsv, _ in row) + "\n" for row in zip(*parts, strict=True))
    csv = "".join(",".join(csv for _, csv in row) + CSV_LINE_END for row in zip(*parts, strict=True))
    return tsv, csv


def array_cells(table: Table, node: NodeRun, names: Sequence[str]) -> Iterator[tuple[int, Row]]:
    """Yield the index of each of a node's intervals, and its row with some columns."""
    arrays = ColumnArrays(node.columns, table.view.operations)
    with np.errstate(all="ignore"):
        numbers = _numbers(table, arrays, frozenset(names))
    others = [] if numbers.keys() >= set(names) else _other_cells(node, arrays.is_decayed())
    cells = [_cells(numbers[name]) if name in numbers else [row[name] for row in others] for name in names]
    rows = (dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True))
    return zip(node.columns.indices, rows, strict=True)


def _cells(numbers: Floats) -> list[Cell]:
    """Return numbers as cells, rounded as by `columns.rounded`; NaN and infinity are absent."""
    return [
        None if isnan(number) else int(number) if number.is_integer() else number
        for number in rounded_numbers(numbers).tolist()
    ]


def _numbers(table: Table, arrays: ColumnArrays, names: Set[str] | None = None) -> dict[str, Floats]:
    """Return the arrays of the numeric columns, by name; with `names`, at least those."""
    numbers = {operation.plural: arrays.increase(operation.scope) for operation in OPERATIONS}
    numbers[TOTAL] = arrays.total_increase()
    for column in table.view.columns:
        if names is not None and names.isdisjoint((column.name, f"min_{column.name}", f"max_{column.name}")):
            continue
        numbers[column.name] = arrays.column(column.of)
        if column.is_gauge and isinstance(column.of, Gauge):
            numbers[f"min_{column.name}"], numbers[f"max_{column.name}"] = arrays.ends(column.of)
    return numbers


def _other_cells(node: NodeRun, is_decayed: Bools) -> list[Row]:
    """Return the rows without the cells of the numeric columns."""
    devices = {DISK: node.head.disk or None, INTERFACE: node.head.interface or None}
    rows = []
    for interval, decayed in zip(node.columns.intervals(()).values(), is_decayed.tolist(), strict=True):
        sample = interval.sample
        answered = int(node.answered(sample))
        first = first_cells(node.node, sample, answered, 1 - answered)
        rows.append({**first, **devices, **last_cells(sample, is_decayed=decayed)})
    return rows


def number_texts(columns: Sequence[Floats]) -> list[Text]:
    """Return the cells of each row, rounded as in `cells.rounded`, as TSV and as CSV."""
    matrix = rounded_numbers(np.stack(columns, axis=1))
    large = np.nonzero((np.abs(matrix) >= MAX_NUMBER).any(axis=1))[0].tolist()
    large_rows = [{str(number): rounded(float(column[row])) for number, column in enumerate(columns)} for row in large]
    matrix[large] = np.nan
    text = orjson.dumps(matrix, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    # Absent values are empty, and whole numbers have no decimal point.
    text = text.replace("null", "").replace(".0,", ",").replace(".0]", "]")[len("[[") : -len("]]")]
    rows = text.split("],[")
    texts = list(zip(text.replace("],[", "\n").replace(",", "\t").split("\n"), rows, strict=True))
    for row, row_text in zip(
        large, cells_texts([str(number) for number in range(len(columns))], large_rows), strict=True
    ):
        texts[row] = row_text
    return texts


def rounded_numbers(numbers: Floats) -> Floats:
    """Return the numbers, rounded exactly as by `cells.rounded`; infinity becomes NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = numbers * 10**DIGITS
        is_tie = np.abs(np.abs(scaled - np.trunc(scaled)) - 0.5) < TIE_SLACK
        result = np.rint(scaled) / 10**DIGITS
    is_whole = numbers == np.trunc(numbers)
    # Adding 0.0 changes -0.0 to 0.0.
    result = np.where(is_whole, numbers, result) + 0.0
    # The product may round to the wrong side of a tie, and it is not precise enough for large numbers.
    for index in zip(*np.nonzero(~is_whole & (is_tie | (np.abs(numbers) > MAX_SCALED))), strict=True):
        result[index] = np.nan if (number := rounded(float(numbers[index]))) is None else number
    return np.where(np.isfinite(result), result, np.nan)
