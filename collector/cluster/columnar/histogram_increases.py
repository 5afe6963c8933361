"""What the histograms of a block gained, line by line, as flat arrays; what contradicts the counters is left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collector.cluster.columnar.arrays import Bools, Floats, Ints
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
"""Of one histogram: line, bucket, gain."""


@dataclass(frozen=True)
class Found:
    """The gains (line, column, bucket, gain) where `counted`, and the absolute counts after the last line."""

    parts: list[Buckets]
    counted: Bools
    lengths: dict[int, int]
    totals: dict[int, Ints]
    wrong: list[tuple[int, str]]

    @property
    def buckets(self) -> Buckets:
        """All gains, column by column."""
        none = np.zeros(0, np.int64)
        line, column, bucket, gain = (np.concatenate(each) for each in zip((none,) * 4, *self.parts, strict=True))
        return line, column, bucket, gain


def bucket_gains(
    block: Block,
    carry: LastReadings,
    metrics: Mapping[str, Metric],
    goes_on: Bools,
    values: Floats,
    increase: Floats,
    valid: Bools,
    elapsed: Floats,
    there: Bools,
) -> Found:
    """Return what the histograms gained where they go on. Raises CodingError, ValueError."""
    whole = block.gains()
    counted = goes_on.copy()
    found = Found([], counted, {}, {}, [])
    places = {key: place for place, key in enumerate(block.series)}
    begins: dict[int, list[tuple[int, int]]] = {}
    for at, place, length in block.lengths:
        begins.setdefault(place, []).append((at, length))
    for place, beginnings in begins.items():
        mine = slice(*np.searchsorted(whole[1], (place, place + 1)))
        absolute = whole[0][mine], whole[2][mine], whole[3][mine]
        source, series = block.series[place]
        last = carry.get((source, series))
        gains = _gains(absolute, beginnings, None if last is None else last.counts, counted[:, place])
        length = found.lengths[place] = beginnings[-1][1]
        found.totals[place] = _total(absolute, *beginnings[-1])
        counted[gains[0][gains[2] < 0], place] = False
        metric = metrics.get(series[0])
        if metric is None:
            counted[:, place] = False
            continue
        try:
            upper_bounds = np.asarray(histogram.upper_bounds_of(metric.unit, length))
        except LayoutError as error:
            found.wrong.extend((int(at), f"{' '.join(series)}: {error}") for at in np.nonzero(counted[:, place])[0])
            counted[:, place] = False
            continue
        check = _Check(place, places.get((source, (metric.count, *series[1:]))), values, increase, valid, elapsed)
        scale = metrics[metric.count].scale if metric.count in metrics else 1.0
        check.counts(gains[0], gains[2], scale, counted, series, found.wrong)
        if len(beginnings) == 1:
            total = places.get((source, (metric.total, *series[1:])))
            check.means(absolute, upper_bounds, total, there, counted, series, found.wrong)
        keep = counted[gains[0], place]
        line, bucket, gain = (each[keep] for each in gains)
        found.parts.append((line, np.full(len(line), place), bucket, gain))
    return found


def _gains(absolute: Entries, beginnings: Sequence[tuple[int, int]], before: Ints | None, counted: Bools) -> Entries:
    """Return a histogram's gains: what stands in the lines of `beginnings` are the counts themselves.

    `before` are the counts before the first line; where they are not known or of no use, nothing is `counted`.
    """
    line, bucket, gain = absolute
    parts = []
    kept = np.ones(len(line), bool)
    for at, length in beginnings:
        of = line == at
        kept &= ~of
        counts = np.zeros(length, np.int64)
        counts[bucket[of]] = gain[of]
        if before is None or len(before) != length or (counts < before).any():
            counted[at] = False
        else:
            where = np.nonzero(counts != before)[0]
            parts.append((np.full(len(where), at), where, (counts - before)[where]))
        before = None
    parts.append((line[kept], bucket[kept], gain[kept]))
    line, bucket, gain = (np.concatenate(each) for each in zip(*parts, strict=True))
    return line, bucket, gain


def _total(absolute: Entries, begin: int, length: int) -> Ints:
    """Return the counts after the last line. Raises CodingError for a bucket that there cannot be."""
    line, bucket, gain = absolute
    if len(bucket) and not 0 <= bucket.min() <= bucket.max() < length:
        raise CodingError(f"a gain beyond {length} buckets")
    of = line >= begin
    return np.bincount(bucket[of], gain[of], length).astype(np.int64)


@dataclass(frozen=True)
class _Check:
    """Holds a histogram's column against the counters beside it, as `collector.model.rates` does."""

    place: int
    counter: int | None
    values: Floats
    increase: Floats
    valid: Bools
    elapsed: Floats

    def counts(
        self, line: Ints, gain: Ints, scale: float, counted: Bools, series: Series, wrong: list[tuple[int, str]]
    ) -> None:
        if self.counter is None:
            return
        totals = np.bincount(line, gain, len(self.values))
        expected = self.increase[:, self.counter] * scale
        with np.errstate(invalid="ignore"):
            same = self.valid[:, self.counter] & (self.elapsed[:, self.counter] == self.elapsed[:, self.place])
            far = np.abs(totals - expected) > np.maximum(COUNT_SLACK_FEW, COUNT_SLACK * expected)
        for at in np.nonzero(counted[:, self.place] & same & far)[0].tolist():
            counted[at, self.place] = False
            wrong.append((at, f"{' '.join(series)}: {count_mismatch_text(totals[at], expected[at])}"))

    def means(
        self,
        since: Entries,
        upper_bounds: Floats,
        total: int | None,
        there: Bools,
        counted: Bools,
        series: Series,
        wrong: list[tuple[int, str]],
    ) -> None:
        if self.counter is None or total is None:
            return
        line, bucket, gain = since
        lines = len(self.values)
        lows = np.concatenate([[0.0], upper_bounds[:-1]])
        highs = np.where(np.isinf(upper_bounds), 0.0, upper_bounds)
        number = np.cumsum(np.bincount(line, gain, lines))
        least = np.cumsum(np.bincount(line, gain * lows[bucket], lines))
        most = np.cumsum(np.bincount(line, gain * highs[bucket], lines))
        beyond = np.cumsum(np.bincount(line, gain * (bucket == len(upper_bounds) - 1), lines)) > 0
        count = self.values[:, self.counter]
        with np.errstate(all="ignore"):
            mean = self.values[:, total] * 1e-6 / count
            low, high = least / number, np.where(beyond, np.inf, most / number)
            off = (mean < low / MEAN_SLACK - MEAN_SLACK_S) | (mean > high * MEAN_SLACK + MEAN_SLACK_S)
        asked = (number > 0) & there[:, self.counter] & there[:, total] & (count >= MEAN_MIN_COUNT)
        for at in np.nonzero(counted[:, self.place] & asked & off)[0].tolist():
            counted[at, self.place] = False
            wrong.append((at, f"{' '.join(series)}: {mean_mismatch_text((low[at], high[at]), mean[at])}"))
