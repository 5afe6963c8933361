"""A block's histogram increases as flat arrays, without those that contradict the counters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collector.cluster.arrays import Bools, Floats, Ints
from collector.cluster.columnar.decode import Block
from collector.cluster.columnar.last_readings import LastReadings
from collector.journal.validation import CodingError
from collector.model import histogram
from collector.model.histogram import LayoutError
from collector.model.metric import Metric, Series
from collector.model.rates import (
    COUNT_SLACK,
    COUNT_SLACK_FEW,
    MEAN_MIN_COUNT,
    MEAN_SLACK,
    MEAN_SLACK_S,
    count_mismatch_text,
    mean_mismatch_text,
)

Buckets = tuple[Ints, Ints, Ints, Ints]
Entries = tuple[Ints, Ints, Ints]
"""Lines, buckets and increases for one histogram."""


@dataclass(frozen=True)
class HistogramIncreases:
    """A block's histogram increases.

    parts          for each histogram: lines, columns, buckets and increases.
    counted        for each line and column, whether the increases are known and consistent.
    lengths        for each column, the number of buckets.
    totals         for each column, the counts after the last line.
    disagreements  each line on which a histogram contradicts its counters or has an unknown layout, with the reason.
    """

    parts: list[Buckets]
    counted: Bools
    lengths: dict[int, int]
    totals: dict[int, Ints]
    disagreements: list[tuple[int, str]]

    @property
    def buckets(self) -> Buckets:
        """All increases, ordered by column."""
        none = np.zeros(0, np.int64)
        line, column, bucket, gain = (np.concatenate(arrays) for arrays in zip((none,) * 4, *self.parts, strict=True))
        return line, column, bucket, gain


def histogram_increases(
    block: Block,
    all_increases: Buckets,
    last_readings: LastReadings,
    metrics: Mapping[str, Metric],
    continues: Bools,
    values: Floats,
    increase: Floats,
    valid: Bools,
    elapsed: Floats,
    present: Bools,
) -> HistogramIncreases:
    """Return a block's histogram increases for the lines and columns for which `continues` is true.

    `all_increases` are those of `Block.bucket_increases`. Raises CodingError and ValueError.
    """
    counted = continues.copy()
    result = HistogramIncreases([], counted, {}, {}, [])
    column_indices = {key: column_index for column_index, key in enumerate(block.series)}
    for column_index, layouts in _layouts_by_column(block).items():
        own_rows = slice(*np.searchsorted(all_increases[1], (column_index, column_index + 1)))
        absolute = all_increases[0][own_rows], all_increases[2][own_rows], all_increases[3][own_rows]
        source, series = block.series[column_index]
        last = last_readings.get((source, series))
        increases = _since_last(absolute, layouts, None if last is None else last.counts, counted[:, column_index])
        length = result.lengths[column_index] = layouts[-1][1]
        result.totals[column_index] = _total(absolute, *layouts[-1])
        counted[increases[0][increases[2] < 0], column_index] = False
        metric = metrics.get(series[0])
        try:
            upper_bounds = None if metric is None else np.asarray(histogram.upper_bounds_of(metric.unit, length))
        except LayoutError as error:
            upper_bounds = None
            lines = np.nonzero(counted[:, column_index])[0]
            result.disagreements.extend((int(line), f"{' '.join(series)}: {error}") for line in lines)
        if metric is None or upper_bounds is None:
            counted[:, column_index] = False
            continue
        check = _Check(
            column_index, column_indices.get((source, (metric.count, *series[1:]))), values, increase, valid, elapsed
        )
        scale = metrics[metric.count].scale if metric.count in metrics else 1.0
        check.counts(increases[0], increases[2], scale, counted, series, result.disagreements)
        if len(layouts) == 1:
            total = column_indices.get((source, (metric.total, *series[1:])))
            check.means(absolute, upper_bounds, total, present, counted, series, result.disagreements)
        keep = counted[increases[0], column_index]
        line, bucket, gain = (array[keep] for array in increases)
        result.parts.append((line, np.full(len(line), column_index), bucket, gain))
    return result


def _layouts_by_column(block: Block) -> dict[int, list[tuple[int, int]]]:
    """Return each histogram's layouts, keyed by column: the first line and number of buckets of each layout."""
    layouts: dict[int, list[tuple[int, int]]] = {}
    for line, column_index, length in block.lengths:
        layouts.setdefault(column_index, []).append((line, length))
    return layouts


def _since_last(absolute: Entries, layouts: Sequence[tuple[int, int]], before: Ints | None, counted: Bools) -> Entries:
    """Return a histogram's increases; on the lines in `layouts`, `absolute` contains counts instead of increases.

    `before` contains the counts before the first line. `counted` becomes False on a line with absolute counts if the
    previous counts are unknown, higher or in another layout.
    """
    line, bucket, gain = absolute
    parts = []
    is_relative = np.ones(len(line), bool)
    for at, length in layouts:
        at_line = line == at
        is_relative &= ~at_line
        counts = np.zeros(length, np.int64)
        counts[bucket[at_line]] = gain[at_line]
        if before is None or len(before) != length or (counts < before).any():
            counted[at] = False
        else:
            changed = np.nonzero(counts != before)[0]
            parts.append((np.full(len(changed), at), changed, (counts - before)[changed]))
        before = None
    parts.append((line[is_relative], bucket[is_relative], gain[is_relative]))
    line, bucket, gain = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return line, bucket, gain


def _total(absolute: Entries, begin: int, length: int) -> Ints:
    """Return the counts after the last line. Raises CodingError if a bucket index is not below `length`."""
    line, bucket, gain = absolute
    if len(bucket) and not 0 <= bucket.min() <= bucket.max() < length:
        raise CodingError(f"bucket index beyond the {length} buckets of the histogram")
    since_begin = line >= begin
    return np.bincount(bucket[since_begin], gain[since_begin], length).astype(np.int64)


@dataclass(frozen=True)
class _Check:
    """Checks a histogram against its counters, as `collector.model.rates` does."""

    column_index: int
    counter: int | None
    values: Floats
    increase: Floats
    valid: Bools
    elapsed: Floats

    def counts(
        self, line: Ints, gain: Ints, scale: float, counted: Bools, series: Series, disagreements: list[tuple[int, str]]
    ) -> None:
        if self.counter is None:
            return
        totals = np.bincount(line, gain, len(self.values))
        expected = self.increase[:, self.counter] * scale
        with np.errstate(invalid="ignore"):
            same = self.valid[:, self.counter] & (self.elapsed[:, self.counter] == self.elapsed[:, self.column_index])
            far = np.abs(totals - expected) > np.maximum(COUNT_SLACK_FEW, COUNT_SLACK * expected)
        for at in np.nonzero(counted[:, self.column_index] & same & far)[0].tolist():
            counted[at, self.column_index] = False
            disagreements.append((at, f"{' '.join(series)}: {count_mismatch_text(totals[at], expected[at])}"))

    def means(
        self,
        since_start: Entries,
        upper_bounds: Floats,
        total: int | None,
        present: Bools,
        counted: Bools,
        series: Series,
        disagreements: list[tuple[int, str]],
    ) -> None:
        if self.counter is None or total is None:
            return
        line, bucket, gain = since_start
        lines = len(self.values)
        lows = np.concatenate([[0.0], upper_bounds[:-1]])
        highs = np.where(np.isinf(upper_bounds), 0.0, upper_bounds)
        number = np.cumsum(np.bincount(line, gain, lines))
        lowest_sum = np.cumsum(np.bincount(line, gain * lows[bucket], lines))
        highest_sum = np.cumsum(np.bincount(line, gain * highs[bucket], lines))
        beyond = np.cumsum(np.bincount(line, gain * (bucket == len(upper_bounds) - 1), lines)) > 0
        count = self.values[:, self.counter]
        with np.errstate(all="ignore"):
            mean = self.values[:, total] * 1e-6 / count
            low, high = lowest_sum / number, np.where(beyond, np.inf, highest_sum / number)
            off = (mean < low / MEAN_SLACK - MEAN_SLACK_S) | (mean > high * MEAN_SLACK + MEAN_SLACK_S)
        is_comparable = (number > 0) & present[:, self.counter] & present[:, total] & (count >= MEAN_MIN_COUNT)
        for at in np.nonzero(counted[:, self.column_index] & is_comparable & off)[0].tolist():
            counted[at, self.column_index] = False
            disagreements.append((at, f"{' '.join(series)}: {mean_mismatch_text((low[at], high[at]), mean[at])}"))
