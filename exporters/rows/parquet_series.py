"""Recorded values as Parquet: all numbers, and the increases of histogram buckets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from collector.arrow import pa
from collector.merge.clock_correction import ClockCorrection
from collector.merge.columnar.decode import Block
from collector.merge.columnar.readings import SourceSeries
from collector.merge.columnar.session_rates import BlockRates, SessionRates
from collector.merge.node_columns import Floats, Ints
from collector.merge.recordings import Recording
from collector.model import histogram
from collector.model.metric import Metric, Series
from collector.recording.header import SeriesLimit
from exporters.rows.parquet import TIME, table_path, write_table
from exporters.rows.row_files import Files

LEVEL = 9
"""The level of zstd."""


@dataclass
class _TableParts:
    """The arrays of one table, one tuple per block; `series` numbers the series in order of first appearance."""

    series: dict[Series, int] = field(default_factory=dict)
    parts: list[tuple[Any, ...]] = field(default_factory=list)

    def series_numbers(self, keys: Sequence[SourceSeries]) -> Ints:
        return np.asarray([self.series.setdefault(series, len(self.series)) for _, series in keys], np.int64)


def write_series(recording: Recording, clock: ClockCorrection, folder: Path, run: str, max_series: int) -> list[Path]:
    """Write a node's recorded numbers, with times corrected by `clock`; return the files' paths.

    Raises OSError and TooManySeriesError. Writes two tables with these columns:

    values   time, metric, labels, and the raw value: `value` for integers, `real` for other numbers.
    buckets  time, metric, labels, the bucket's upper bound `le`, and `count`, its increase since the previous reading.
    """
    values, buckets, metrics = _TableParts(), _TableParts(), dict[str, Metric]()
    limit = SeriesLimit(max_series, recording.node)
    for session in recording.sessions:
        for block, rates in SessionRates(session, limit).blocks():
            metrics.update(block.head.catalogue)
            _take(block, rates, values, buckets, clock)
    paths = []
    for name, table in {"values": _values(values, metrics), "buckets": _buckets(buckets, metrics)}.items():
        path = folder / table_path(name, run, recording.node)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(table, path, LEVEL)
        paths.append(path)
    return paths


def packed_series(recording: Recording, clock: ClockCorrection, run: str, max_series: int) -> Files:
    """Return the path and the content of each file that `write_series` would write. Raises the same errors."""
    with TemporaryDirectory(prefix="casstat-") as folder:
        paths = write_series(recording, clock, Path(folder), run, max_series)
        return [(PurePosixPath(path.relative_to(folder)), path.read_bytes()) for path in paths]


def _take(block: Block, rates: BlockRates, values: _TableParts, buckets: _TableParts, clock: ClockCorrection) -> None:
    times_s = (block.clock_at(line, clock).reference_s(tick.time_s) for line, tick in enumerate(block.ticks))
    times = np.asarray([round(time_s * 1000) for time_s in times_s], np.int64)
    number = values.series_numbers(rates.keys)
    is_mixed = np.zeros(len(rates.keys), bool)
    is_mixed[list(rates.mixed)] = True
    line_index, column = np.nonzero(rates.present & ~(np.isnan(rates.values) & is_mixed))
    is_integer = ~is_mixed[column]
    real = np.where(is_integer, np.nan, rates.values[line_index, column])
    values.parts.append((times[line_index], number[column], rates.exact[line_index, column], real, is_integer))
    increases = rates.histograms.buckets
    length = np.asarray([rates.histograms.lengths.get(index, 0) for index in range(len(rates.keys))], np.int64)
    positive = increases.increases > 0
    line_index, column = (
        np.repeat(indices, increases.sizes)[positive] for indices in (increases.lines, increases.columns)
    )
    number = buckets.series_numbers(rates.keys)
    buckets.parts.append(
        (times[line_index], number[column], length[column], increases.buckets[positive], increases.increases[positive])
    )


def _joined(columns: _TableParts) -> list[Any]:
    """Return the arrays of all blocks, concatenated and sorted by series and time."""
    if not columns.parts:
        return [np.zeros(0, np.int64) for _ in range(5)]
    arrays = [np.concatenate(pair) for pair in zip(*columns.parts, strict=True)]
    order = np.lexsort((arrays[0], arrays[1]))
    return [pair[order] for pair in arrays]


def _values(columns: _TableParts, metrics: dict[str, Metric]) -> pa.Table:
    time, number, value, real, is_integer = _joined(columns)
    is_integer = is_integer.astype(bool)
    return pa.table(
        {
            **_named(columns, metrics, time, number),
            "value": pa.array(value, pa.int64(), mask=~is_integer),
            "real": pa.array(real.astype(np.float64), pa.float64(), mask=is_integer),
        }
    )


def _buckets(columns: _TableParts, metrics: dict[str, Metric]) -> pa.Table:
    time, number, length, bucket, increase = _joined(columns)
    series = list(columns.series)
    upper_bounds: Floats = np.zeros(len(number))
    for pair in np.unique(np.stack([number, length], axis=1), axis=0).tolist() if len(number) else []:
        rows = (number == pair[0]) & (length == pair[1])
        metric = metrics[series[pair[0]][0]]
        upper_bounds[rows] = np.asarray(histogram.upper_bounds_of(metric.unit, pair[1]))[bucket[rows]]
    return pa.table(
        {
            **_named(columns, metrics, time, number),
            "le": pa.array(upper_bounds),
            "count": pa.array(increase, pa.int64()),
        }
    )


def _named(columns: _TableParts, metrics: dict[str, Metric], time: Ints, number: Ints) -> dict[str, Any]:
    names = [series[0] for series in columns.series]
    labels = [_labels(metrics.get(series[0]), series[1:]) for series in columns.series]
    return {"time": pa.array(time, TIME), "metric": _dictionary(names, number), "labels": _dictionary(labels, number)}


def _dictionary(texts: Sequence[str], number: Ints) -> Any:
    numbers = {text: index for index, text in enumerate(dict.fromkeys(texts))}
    indices = np.asarray([numbers[text] for text in texts], np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(indices[number], pa.int32()), pa.array(list(numbers), pa.string()))


def _labels(metric: Metric | None, values: Iterable[str]) -> str:
    names = metric.labels if metric else ()
    return ",".join(f"{name}={value}" for name, value in zip(names, values, strict=False))
