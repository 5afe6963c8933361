"""A block's histogram increases as flat arrays, without those that contradict the counters."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter

import numpy as np

from collector.merge.columnar.decode import Block, BucketIncreases
from collector.merge.columnar.readings import LastReadings, SourceSeries
from collector.merge.node_columns import Bools, Floats, Ints
from collector.model import rates
from collector.model.histogram import LayoutError, upper_bounds_of
from collector.model.metric import Metric
from collector.recording.codec import CodingError

Disagreement = tuple[int, int, str]
"""A column, a line and the reason why the histogram is not counted on the line."""


@dataclass(frozen=True)
class SeriesMatrices:
    """Matrices with a row for each line and a column for each series; see `session_rates.BlockRates`."""

    values: Floats
    increase: Floats
    valid: Bools
    elapsed: Floats
    present: Bools


@dataclass(frozen=True)
class HistogramIncreases:
    """A block's histogram increases.

    buckets        the increases on the lines and columns in `counted`.
    counted        for each line and column, whether the increases are known and consistent.
    lengths        for each column, the number of buckets.
    totals         for each column, the counts after the last line.
    disagreements  each line on which a histogram contradicts its counters or has an unknown layout, with the reason.
    """

    buckets: BucketIncreases
    counted: Bools
    lengths: dict[int, int]
    totals: dict[int, Ints]
    disagreements: list[tuple[int, str]]


@dataclass(frozen=True)
class _Histogram:
    """A histogram in a block.

    begin           the first line; it has counts instead of increases.
    length          the number of buckets.
    counter, total  the columns of the number and the sum of its values; None if they are not recorded.
    scale           the factor from the counter's raw value to the number of values.
    bounds          the buckets' lower and upper bounds (see `_bucket_bounds`); all are 0 if the layout is unknown.
    """

    key: SourceSeries
    column: int
    begin: int
    length: int
    counter: int | None
    total: int | None
    scale: float
    bounds: tuple[Floats, Floats]

    @property
    def name(self) -> str:
        return " ".join(self.key[1])


def histogram_increases(
    block: Block,
    all_increases: BucketIncreases,
    last_readings: LastReadings,
    metrics: Mapping[str, Metric],
    continues: Bools,
    matrices: SeriesMatrices,
) -> HistogramIncreases:
    """Return a block's histogram increases for the lines and columns for which `continues` is true.

    `all_increases` are those of `Block.bucket_increases`. Raises CodingError and ValueError.
    """
    counted = continues.copy()
    if not block.lengths:
        return HistogramIncreases(all_increases, counted, {}, {}, [])
    disagreements: list[Disagreement] = []
    histograms = _histograms(block, metrics, counted, disagreements)
    number = np.searchsorted(_array(histograms, "column"), all_increases.columns)
    last_buckets = all_increases.buckets[all_increases.starts + all_increases.sizes - 1]
    if (last_buckets >= _array(histograms, "length")[number]).any():
        raise CodingError("bucket index beyond the buckets of the histogram")
    increases, totals = _since_last(histograms, number, all_increases, last_readings, counted)
    if (increases.increases < 0).any():
        is_negative = np.minimum.reduceat(increases.increases, increases.starts) < 0
        counted[increases.lines[is_negative], increases.columns[is_negative]] = False
    checks = _Checks(histograms, number, matrices, counted)
    disagreements += checks.counts(increases)
    disagreements += checks.means(all_increases, last_buckets)
    return HistogramIncreases(
        increases.kept(counted[increases.lines, increases.columns]),
        counted,
        {histogram.column: histogram.length for histogram in histograms},
        totals,
        [(at, text) for _, at, text in sorted(disagreements, key=itemgetter(0))],
    )


def _histograms(
    block: Block, metrics: Mapping[str, Metric], counted: Bools, disagreements: list[Disagreement]
) -> list[_Histogram]:
    """Return the block's histograms, ordered by column; `counted` becomes False for those with an unknown layout."""
    columns = {key: column for column, key in enumerate(block.series)}
    histograms = []
    for begin, column, length in sorted(block.lengths, key=itemgetter(1)):
        source, series = key = block.series[column]
        metric = metrics.get(series[0])
        counter = total = None
        scale, bounds = 1.0, (np.zeros(length), np.zeros(length))
        if metric is not None:
            counter, total = (columns.get((source, (name, *series[1:]))) for name in (metric.count, metric.total))
            scale = metrics[metric.count].scale if metric.count in metrics else scale
            try:
                bounds = _bucket_bounds(metric.unit, length)
            except LayoutError as error:
                lines = np.nonzero(counted[:, column])[0].tolist()
                disagreements += [(column, line, f"{' '.join(series)}: {error}") for line in lines]
                counted[:, column] = False
        else:
            counted[:, column] = False
        histograms.append(_Histogram(key, column, begin, length, counter, total, scale, bounds))
    return histograms


def _array(histograms: Sequence[_Histogram], name: str) -> Ints:
    return np.asarray([getattr(histogram, name) for histogram in histograms], np.int64)


def _since_last(
    histograms: Sequence[_Histogram],
    number: Ints,
    all_increases: BucketIncreases,
    last_readings: LastReadings,
    counted: Bools,
) -> tuple[BucketIncreases, dict[int, Ints]]:
    """Return the increases, with those of the first lines instead of the counts, and the counts after the last line.

    `number` contains the index in `histograms` of each changed histogram. `counted` becomes False on a first line if
    the previous counts are unknown, higher or in another layout.
    """
    buckets, counts = all_increases.buckets, all_increases.increases
    increases, totals = counts.copy(), dict[int, Ints]()
    edges = np.searchsorted(number, np.arange(len(histograms) + 1)).tolist()
    starts = np.append(0, np.cumsum(all_increases.sizes)).tolist()
    for histogram, (index, end_index) in zip(histograms, pairwise(edges), strict=True):
        own = slice(starts[index], starts[end_index])
        totals[histogram.column] = all_increases.added(own, buckets[own], histogram.length)
        has_counts = index < end_index and all_increases.lines[index] == histogram.begin
        first = slice(starts[index], starts[index + 1] if has_counts else starts[index])
        first_counts = np.zeros(histogram.length, np.int64)
        first_counts[buckets[first]] = counts[first]
        last = last_readings.get(histogram.key)
        before = None if last is None else last.counts
        if before is None or len(before) != len(first_counts) or (first_counts < before).any():
            counted[histogram.begin, histogram.column] = False
        else:
            increases[first] -= before[buckets[first]]
    return replace(all_increases, increases=increases), totals


@dataclass(frozen=True)
class _Checks:
    """Checks histograms against their counters, as `collector.model.rates` does.

    Each check returns the disagreements; `counted` becomes False for them. `number` contains, for each histogram that
    changes on a line, its index in `histograms`.
    """

    histograms: Sequence[_Histogram]
    number: Ints
    matrices: SeriesMatrices
    counted: Bools

    def counts(self, increases: BucketIncreases) -> list[Disagreement]:
        """Compare the increases with those of the counters."""
        checked = [number for number, histogram in enumerate(self.histograms) if histogram.counter is not None]
        histograms = [self.histograms[number] for number in checked]
        columns, counters = _array(histograms, "column"), _array(histograms, "counter")
        matrices = self.matrices
        sums = self._matrix(increases.lines, increases.sums(increases.increases.astype(np.float64)))[:, checked]
        expected = matrices.increase[:, counters] * [histogram.scale for histogram in histograms]
        with np.errstate(invalid="ignore"):
            is_same_time = matrices.elapsed[:, counters] == matrices.elapsed[:, columns]
            is_far = np.abs(sums - expected) > np.maximum(rates.COUNT_SLACK_FEW, rates.COUNT_SLACK * expected)
        return self._discarded(
            histograms,
            matrices.valid[:, counters] & is_same_time & is_far,
            lambda cell: rates.count_mismatch_text(sums[cell], expected[cell]),
        )

    def means(self, increases: BucketIncreases, last_buckets: Ints) -> list[Disagreement]:
        """Compare the means of all values since the node started with those of the counters."""
        checked = [number for number, one in enumerate(self.histograms) if None not in (one.counter, one.total)]
        histograms = [self.histograms[number] for number in checked]
        counters, totals = _array(histograms, "counter"), _array(histograms, "total")
        lengths = _array(self.histograms, "length")
        lows, highs = (
            np.concatenate(bounds) for bounds in zip(*(histogram.bounds for histogram in self.histograms), strict=True)
        )
        index = np.repeat((np.cumsum(lengths) - lengths)[self.number], increases.sizes) + increases.buckets
        gain = increases.increases.astype(np.float64)

        def since_start(sums: Floats) -> Floats:
            return np.cumsum(self._matrix(increases.lines, sums)[:, checked], axis=0)

        values = since_start(increases.sums(gain))
        is_last = last_buckets == lengths[self.number] - 1
        is_beyond = since_start(np.where(is_last, gain[increases.starts + increases.sizes - 1], 0)) > 0
        count = self.matrices.values[:, counters]
        with np.errstate(all="ignore"):
            mean = self.matrices.values[:, totals] * 1e-6 / count
            low = since_start(increases.sums(gain * lows.take(index))) / values
            high = np.where(is_beyond, np.inf, since_start(increases.sums(gain * highs.take(index))) / values)
            is_low = mean < low / rates.MEAN_SLACK - rates.MEAN_SLACK_S
            is_high = mean > high * rates.MEAN_SLACK + rates.MEAN_SLACK_S
        present = self.matrices.present
        is_comparable = (values > 0) & present[:, counters] & present[:, totals] & (count >= rates.MEAN_MIN_COUNT)
        is_off = is_comparable & (is_low | is_high)
        return self._discarded(
            histograms, is_off, lambda cell: rates.mean_mismatch_text((low[cell], high[cell]), mean[cell])
        )

    def _matrix(self, lines: Ints, sums: Floats) -> Floats:
        """Return the changed histograms' sums, with a row for each line and a column for each histogram."""
        matrix = np.zeros((len(self.counted), len(self.histograms)))
        matrix[lines, self.number] = sums
        return matrix

    def _discarded(
        self, histograms: Sequence[_Histogram], is_wrong: Bools, text: Callable[[tuple[int, int]], str]
    ) -> list[Disagreement]:
        """Return the disagreements; `is_wrong` has a row for each line and a column for each of the histograms."""
        disagreements = []
        for line, number in np.argwhere(is_wrong & self.counted[:, _array(histograms, "column")]).tolist():
            histogram = histograms[number]
            self.counted[line, histogram.column] = False
            disagreements.append((histogram.column, line, f"{histogram.name}: {text((line, number))}"))
        return disagreements


@lru_cache(maxsize=16)
def _bucket_bounds(unit: str, length: int) -> tuple[Floats, Floats]:
    """Return the lower and the upper bounds of a histogram's buckets; the last upper bound is 0 instead of infinity.

    Raises LayoutError.
    """
    bounds = np.asarray(upper_bounds_of(unit, length))
    return np.append(0.0, bounds)[:-1], np.where(np.isinf(bounds), 0.0, bounds)
