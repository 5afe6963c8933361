"""A node's intervals as numpy arrays, one per series; and the array types of the columnar merge."""

import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from collector.merge.coverage import NodeTick
from collector.merge.grid import Grid, NodeInterval
from collector.model import histogram
from collector.model.histogram import Buckets
from collector.model.metric import Series
from collector.model.snapshot import Derived, Event, Rate, Sample, Tick
from collector.recording.header import Header
from collector.recording.reader import Integrity

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Array = TypeVar("Array", Ints, Floats, Bools)
Sum = TypeVar("Sum")


def as_slice(indices: Ints) -> slice | Ints:
    """Return indices as a slice, which is several times as fast, unless there are gaps between them.

    The indices must be in ascending order, without duplicates.
    """
    if len(indices) and indices[-1] - indices[0] == len(indices) - 1:
        return slice(int(indices[0]), int(indices[-1]) + 1)
    return indices


def largest(numbers: Ints) -> int:
    """Return the largest absolute value; 0 if there are no numbers."""
    return max(-int(numbers.min()), int(numbers.max())) if len(numbers) else 0


def integers(numbers: Sequence[int]) -> Ints:
    """Return integers as an array. Raises OverflowError for other types and beyond 64 bits."""
    try:
        # Three times as fast as array("q", numbers). numpy would accept numbers that are not integers.
        return np.frombuffer(struct.pack(f"{len(numbers)}q", *numbers), np.int64)
    except struct.error as error:
        raise OverflowError(str(error)) from None


# For each function that combines two values, the value that changes none.
_NEUTRAL: Mapping[np.ufunc, float] = {np.add: 0.0, np.maximum: -np.inf, np.minimum: np.inf}


class Totals:
    """Totals over blocks or nodes: for each key, arrays with one row per interval, as many as there are functions.

    functions  those that combine two values.
    """

    def __init__(self, *functions: np.ufunc) -> None:
        self.functions = functions
        self.arrays: dict[Any, tuple[Any, ...]] = {}

    def add(self, key: object, height: int, rows: slice | Ints, *values: Any) -> None:
        """Add values in some of the `height` rows; there must be no duplicates among them."""
        if key not in self.arrays:
            self.arrays[key] = tuple(np.full(height, _NEUTRAL[function]) for function in self.functions)
        for total, value, combine in zip(self.arrays[key], values, self.functions, strict=True):
            total[rows] = combine(total[rows], value)

    def extend(self, height: int, new_rows: Ints) -> None:
        """Extend the arrays to `height` rows; `new_rows` are the numbers of the previous ones among them."""
        for key, arrays in self.arrays.items():
            pairs = zip(arrays, self.functions, strict=True)
            self.arrays[key] = tuple(wider(array, height, new_rows, _NEUTRAL[function]) for array, function in pairs)

    def join(self, other: "Totals") -> None:
        """Add other totals, which have the same rows."""
        for key, arrays in other.arrays.items():
            if key not in self.arrays:
                self.arrays[key] = arrays
                continue
            for total, addend, combine in zip(self.arrays[key], arrays, self.functions, strict=True):
                combine(total, addend, out=total)


def wider(array: Array, height: int, new_rows: Ints, empty: float) -> Array:
    """Return an array with `height` rows: those of `array`, at `new_rows`, and rows filled with `empty`."""
    extended = np.full((height, *array.shape[1:]), empty, array.dtype)
    extended[new_rows] = array
    return extended


@dataclass
class IntervalSums:
    """Sums over the ticks in each interval, by series; each array has one row per interval.

    counters    increase and elapsed time, in base units; both are 0 in an interval without values.
    gauges      number of readings, and their sum, minimum and maximum.
    histograms  for each number of buckets, the number of ticks and the counts (interval x bucket).
    """

    counters: dict[Series, tuple[Floats, Floats]] = field(default_factory=dict)
    gauges: dict[Series, tuple[Floats, Floats, Floats, Floats]] = field(default_factory=dict)
    histograms: dict[Series, dict[int, tuple[Ints, Ints]]] = field(default_factory=dict)


@dataclass
class NodeColumns:
    """A node's intervals on a grid in columnar form.

    indices    the interval index for each row.
    integrity  the defects in the node's files.
    outside    the texts on ticks that belong to no interval: the last ones before the first interval or, if there are
               none, the first ones after it.
    all_ticks  all ticks of the recording, inside and outside the grid, in the order in which they were recorded.
    unknown_s  `NodeInterval.unknown_s` by interval index, unless it is 0.
    """

    node: str
    head: Header
    grid: Grid
    indices: list[int]
    sums: IntervalSums
    units: Mapping[str, str]
    elapsed: dict[str, Floats]
    texts: list[dict[Series, str]]
    events: list[list[Event]]
    late_s: list[float]
    missed: list[int]
    ticks: list[int]
    integrity: Integrity = Integrity()  # noqa: RUF009 - it is frozen
    outside: Mapping[Series, str] = field(default_factory=dict)
    all_ticks: Sequence[NodeTick] = ()
    unknown_s: Mapping[int, float] = field(default_factory=dict)

    def intervals(self, wanted: Collection[str | Series] | None = None) -> dict[int, NodeInterval]:
        """Return the intervals by index, with only the `wanted` metrics and series (all if None)."""
        values, spread = self._values(wanted)
        covered = {source: elapsed.tolist() for source, elapsed in self.elapsed.items()}
        intervals = {}
        for row, index in enumerate(self.indices):
            tick = Tick(self.grid.end_of(index), self.late_s[row], self.missed[row])
            elapsed_s = {
                source: source_elapsed[row] for source, source_elapsed in covered.items() if source_elapsed[row]
            }
            sample = Sample(self.node, tick, values[row], elapsed_s, tuple(self.events[row]), spread=spread[row])
            intervals[index] = NodeInterval(sample, self.ticks[row], self.unknown_s.get(index, 0.0))
        return intervals

    def _values(
        self, wanted: Collection[str | Series] | None
    ) -> tuple[list[dict[Series, Derived]], list[dict[Series, tuple[float, float]]]]:
        values: list[dict[Series, Derived]] = [dict(texts) for texts in self.texts]
        spread: list[dict[Series, tuple[float, float]]] = [{} for _ in self.indices]
        for series, (increase, elapsed) in _selected(self.sums.counters, wanted):
            rows = np.nonzero(elapsed)[0]
            for row, gain, elapsed_s in zip(
                rows.tolist(), increase[rows].tolist(), elapsed[rows].tolist(), strict=True
            ):
                values[row][series] = Rate(gain, elapsed_s)
        for series, (number, total, lowest, highest) in _selected(self.sums.gauges, wanted):
            rows = np.nonzero(number)[0]
            means, bounds = (total[rows] / number[rows]).tolist(), np.stack([lowest[rows], highest[rows]], 1).tolist()
            for row, mean, (low, high) in zip(rows.tolist(), means, bounds, strict=True):
                values[row][series] = mean
                spread[row][series] = low, high
        for series, layouts in _selected(self.sums.histograms, wanted):
            for row, buckets in self.buckets(series, layouts):
                values[row][series] = buckets
        return values, spread

    def buckets(self, series: Series, layouts: Mapping[int, tuple[Ints, Ints]]) -> Iterable[tuple[int, Buckets]]:
        """Yield each row in which the histogram is known, and its buckets."""
        unit = self.units[series[0]]
        upper_bounds = {
            length: histogram.upper_bounds_of(unit, length) for length, (number, _) in layouts.items() if number.any()
        }
        for row in range(len(self.indices)):
            parts = [
                Buckets(upper_bounds[length], tuple(counts[row].tolist()))
                for length, (number, counts) in layouts.items()
                if number[row]
            ]
            if parts:
                yield row, histogram.merge(parts) if len(parts) > 1 else parts[0]


def _selected(
    sums_by_series: Mapping[Series, Sum], wanted: Collection[str | Series] | None
) -> list[tuple[Series, Sum]]:
    return [
        (series, sums)
        for series, sums in sums_by_series.items()
        if wanted is None or series[0] in wanted or series in wanted
    ]
