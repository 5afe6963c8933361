"""Selects the series of a block whose values are needed, which for a table of rows are less than half of them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from collector.merge.columnar.decode import Block
from collector.merge.columnar.last_readings import LastReading
from collector.merge.columns import Ints, integers
from collector.model.metric import Kind, Metric


@dataclass(frozen=True)
class IntegerChanges:
    """The changes of a block's integers, in the order of the lines: line, series number and change.

    A series' first change is its value; each other change is the difference from the previous value. `number` is the
    number of series.
    """

    lines: Ints
    columns: Ints
    changes: Ints
    number: int

    @classmethod
    def of(cls, block: Block) -> "IntegerChanges":
        """Return a block's changes. Raises CodingError, and OverflowError for impossible integers."""
        return cls(*block.integers.positions(), integers(block.integers.values), len(block.series))

    @cached_property
    def first_indices(self) -> Ints:
        """The index of each series' first change; -1 if there is none."""
        first = np.full(self.number, -1)
        first[self.columns[::-1]] = np.arange(len(self.columns))[::-1]
        return first

    def value_at(self, lines: Ints) -> Ints:
        """Return each series' value at the line given for it."""
        values = np.zeros(len(lines), np.int64)
        until = self.lines <= lines[self.columns]
        if until.all():
            np.add.at(values, self.columns, self.changes)
        else:
            np.add.at(values, self.columns[until], self.changes[until])
        return values

    def decreases(self, before: Ints) -> Ints:
        """Return the numbers of the series that decrease; `before` has each series' value before the block."""
        first = self.first_indices
        begun = np.nonzero(first >= 0)[0]
        increases = self.changes.copy()
        increases[first[begun]] -= before[begun]
        decreasing: Ints = self.columns[increases < 0]
        return decreasing


@dataclass(frozen=True)
class Selection:
    """Some of a block's series.

    columns    their numbers in the block, in ascending order.
    number_of  for each series of the block, its number among the selected ones; -1 if it is not selected.
    """

    columns: Ints
    number_of: Ints

    def block(self, block: Block) -> Block:
        """Return the block with only the selected series; its integers, presence and histograms are not changed."""
        number_of = self.number_of.tolist()
        return replace(
            block,
            series=[block.series[column] for column in self.columns.tolist()],
            others=[(line, number_of[column], value) for line, column, value in block.others],
            lengths=[(line, number_of[column], length) for line, column, length in block.lengths],
        )

    def changes(self, changes: IntegerChanges) -> IntegerChanges:
        """Return the changes of the selected series."""
        columns = self.number_of[changes.columns]
        kept = columns >= 0
        return IntegerChanges(changes.lines[kept], columns[kept], changes.changes[kept], len(self.columns))


def selection(
    block: Block,
    last: Sequence[LastReading | None],
    metrics: Mapping[str, Metric],
    changes: IntegerChanges,
    wanted: Collection[str] | None,
) -> Selection:
    """Return the series of the `wanted` metrics (all if None), and those that must be looked at line by line.

    These are the histograms with their counters, which may contradict each other, all values that are not integers, and
    the counters that decrease, since there is no rate on that line. `last` has each series' last reading.
    """
    columns = np.arange(len(block.series))
    if wanted is not None:
        names = {*wanted, *_checked_metrics(metrics)}
        is_selected = np.asarray([series[0] in names for _, series in block.series], bool)
        is_selected[[column for _, column, _ in (*block.others, *block.lengths)]] = True
        is_selected[[column for column, reading in enumerate(last) if reading and isinstance(reading.value, float)]] = (
            True
        )
        is_selected[changes.decreases(integers_of(last))] = True
        columns = np.nonzero(is_selected)[0]
    number_of = np.full(len(block.series), -1)
    number_of[columns] = np.arange(len(columns))
    return Selection(columns, number_of)


def integers_of(last: Sequence[LastReading | None]) -> Ints:
    """Return the value of each last reading; 0 if there is none, or if it is not an integer."""
    values = [reading.value if reading else 0 for reading in last]
    return np.asarray([value if isinstance(value, int) else 0 for value in values], np.int64)


def _checked_metrics(metrics: Mapping[str, Metric]) -> set[str]:
    """Return the names of the histograms and of their counters."""
    histograms = [metric for metric in metrics.values() if metric.kind is Kind.HISTOGRAM]
    return {name for metric in histograms for name in (metric.name, metric.count, metric.total)}
