"""For the series of a block, their previous readings; see `collector.model.rates`.

The last reading of every series is passed from one block to the next. Only the series whose values are needed are
selected, which for a table of rows are less than half of them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from collector.merge.columnar.decode import MAX_SUM, Block
from collector.merge.node_columns import Bools, Floats, Ints, integers
from collector.model.metric import Kind, Metric, Series
from collector.recording.codec import CodingError

SourceSeries = tuple[str, Series]
"""A source and one of its series."""


class LastReading(NamedTuple):
    """A series' last reading; `counts` contains the bucket counts if it is a histogram."""

    value: float | int | None
    at_s: float
    origin: str
    counts: Ints | None = None


LastReadings = dict[SourceSeries, LastReading]
"""The last reading of every series in a session."""


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
        histograms = [metric for metric in metrics.values() if metric.kind is Kind.HISTOGRAM]
        names = {*wanted, *(name for metric in histograms for name in (metric.name, metric.count, metric.total))}
        is_selected = np.asarray([series[0] in names for _, series in block.series], bool)
        is_selected[[column for _, column, _ in (*block.others, *block.lengths)]] = True
        is_selected[[column for column, reading in enumerate(last) if has_unusual_value(reading)]] = True
        is_selected[changes.decreases(integers_of(last))] = True
        columns = np.nonzero(is_selected)[0]
    number_of = np.full(len(block.series), -1)
    number_of[columns] = np.arange(len(columns))
    return Selection(columns, number_of)


def integers_of(last: Sequence[LastReading | None]) -> Ints:
    """Return the value of each last reading; 0 if there is none, or if it is unusual."""
    values = [0 if reading is None or has_unusual_value(reading) else reading.value or 0 for reading in last]
    return np.asarray(values, np.int64)


def has_unusual_value(reading: LastReading | None) -> bool:
    """Return whether a last reading has a number whose differences cannot be computed as integers of 64 bits."""
    if reading is None or reading.value is None:
        return False
    return not isinstance(reading.value, int) or not -MAX_SUM < reading.value < MAX_SUM


class PreviousReadings:
    """For each line and series, the time since the previous reading, and whether no reset has occurred since then.

    Most series of a source appear on the same lines and were last read at the same time. They form a group, and the
    results are computed once per group. Each matrix below has one column per group.

    group_of   for each series, the number of its group.
    last       the line of the latest reading so far; -1 if there is none in the block.
    at         the completion time.
    origins    the origin, an index into `names`.
    elapsed    the time since the previous reading.
    continues  whether there is a previous reading without a reset since then.
    """

    def __init__(self, block: Block, carried: Sequence[LastReading | None], present: Bools) -> None:
        self.names = list(dict.fromkeys(["", *(last_reading.origin for last_reading in carried if last_reading)]))
        self.group_of = _groups(block, carried, present)
        representatives = np.unique(self.group_of, return_index=True)[1].tolist()
        self._sources = [block.series[column_index][0] for column_index in representatives]
        carried = [carried[column_index] for column_index in representatives]
        present = present[:, representatives]
        lines, number = present.shape
        self.at, self.origins = self._readings(block)
        rows = np.where(present, np.arange(lines)[:, None], -1)
        self.last = np.maximum.accumulate(rows, axis=0)
        before = np.vstack([np.full((1, number), -1), self.last[:-1]])
        first_at = np.asarray([last_reading.at_s if last_reading else np.nan for last_reading in carried], np.float64)
        first_origin = np.asarray(
            [self.names.index(last_reading.origin) if last_reading else 0 for last_reading in carried], np.int64
        )
        column = np.arange(number)
        at_before = np.where(before >= 0, self.at[before, column], first_at)
        if np.isnan(self.at[present]).any():
            raise CodingError("series without a source")
        known = present & ~np.isnan(at_before)
        origin_before = np.where(before >= 0, self.origins[before, column], first_origin)
        same = (self.origins == origin_before) | (self.origins == 0) | (origin_before == 0)
        self.restarted: dict[int, list[str]] = {}
        self.ended: list[tuple[int, int]] = []
        if (known & ~same).any():
            self._restarts(known, same, before, origin_before)
        with np.errstate(invalid="ignore"):
            self.elapsed: Floats = self.at - at_before
            self.continues: Bools = known & same & (self.elapsed > 0)

    def covered(self, is_counter: Bools, selected: Selection, valid: Bools) -> dict[str, Floats]:
        """Return the time that each line's rates cover, for each source with counters; 0 for a line without rates.

        It is the minimum over the source's counters, as in `collector.model.rates`. `valid` has the lines on which the
        selected counters have a rate; a counter that is not selected has one wherever its group continues.
        """
        covered: dict[str, Floats] = {}
        for group, source in enumerate(self._sources):
            own = (self.group_of == group) & is_counter
            if not own.any():
                continue
            numbers = selected.number_of[own]
            has_rate = self.continues[:, group] if (numbers < 0).any() else valid[:, numbers].any(axis=1)
            elapsed = np.where(has_rate, self.elapsed[:, group], np.inf)
            covered[source] = np.minimum(covered[source], elapsed) if source in covered else elapsed
        return {source: np.where(np.isinf(elapsed), 0.0, elapsed) for source, elapsed in covered.items()}

    def _readings(self, block: Block) -> tuple[Floats, Ints]:
        """Return the completion time and origin for each line and group."""
        shape = len(block.ticks), len(self._sources)
        at, origins = np.full(shape, np.nan), np.zeros(shape, np.int64)
        for source, times_s in block.completion_times().items():
            at[:, self._columns_of(source)] = times_s[:, None]
        for line, source, origin in block.origins:
            if origin not in self.names:
                self.names.append(origin)
            origins[line:, self._columns_of(source)] = self.names.index(origin)
        return at, origins

    def _columns_of(self, source: str) -> list[int]:
        return [column for column, other in enumerate(self._sources) if other == source]

    def _restarts(self, known: Bools, same: Bools, before: Ints, origin_before: Ints) -> None:
        """Find the restarts, and discard readings from before each restart."""
        lines, columns = np.nonzero(known & ~same)
        for line, column in zip(lines.tolist(), columns.tolist(), strict=True):
            if not known[line, column]:
                continue
            source = self._sources[column]
            self.restarted.setdefault(line, [])
            if source not in self.restarted[line]:
                self.restarted[line].append(source)
            origin = int(origin_before[line, column])
            if (line, origin) not in self.ended:
                self.ended.append((line, origin))
                later = (np.arange(len(known)) > line)[:, None] & (before <= line) & (origin_before == origin)
                known &= ~later


def _groups(block: Block, carried: Sequence[LastReading | None], present: Bools) -> Ints:
    """Return each series' group; groups are numbered in the order of their first series."""
    # Bits of rows are packed several times as fast as those of columns.
    patterns = np.packbits(np.ascontiguousarray(present.T), axis=1)
    numbers: dict[tuple[str, bytes, float | None, str], int] = {}
    groups = []
    for (source, _), last, pattern in zip(block.series, carried, patterns, strict=True):
        at_s, origin = (None, "") if last is None else (last.at_s, last.origin)
        groups.append(numbers.setdefault((source, pattern.tobytes(), at_s, origin), len(numbers)))
    return np.asarray(groups, np.int64)
