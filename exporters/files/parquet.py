"""Recordings as Parquet, for whoever has a query engine: the merged rows, all values, what the histograms gained.

Each is partitioned by run and node (`run=…/node=…`). Values are sorted by series, and integers held as differences
(Parquet's DELTA_BINARY_PACKED), which is what makes them small. It needs pyarrow, which comes with casstat[analysis].
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from collector.cluster.columnar.arrays import Floats, Ints
from collector.cluster.columnar.decode import Block, UnsupportedError, blocks
from collector.cluster.columnar.last_readings import LastReadings, SourceSeries
from collector.cluster.columnar.reduce import is_repeated
from collector.cluster.columnar.series_rates import rates_of
from collector.cluster.recordings import Recording
from collector.journal.read_limits import SeriesLimit
from collector.journal.reader import lines_of
from collector.journal.tick_order import TickOrder
from collector.journal.validation import MALFORMED
from collector.journal.writer import bounded
from collector.model import histogram
from collector.model.metric import Metric, Series

LEVEL = 9
TIME = pa.timestamp("ms", "UTC")
"""The type of `time` in all tables."""
ROWS_A_GROUP = 1 << 20


@dataclass
class _Columns:
    """Arrays of one table, block by block; `series` are numbered in the order of their first sight."""

    series: dict[Series, int] = field(default_factory=dict)
    parts: list[tuple[Any, ...]] = field(default_factory=list)

    def numbers(self, keys: Sequence[SourceSeries]) -> Ints:
        return np.asarray([self.series.setdefault(series, len(self.series)) for _, series in keys], np.int64)


def write_series(recording: Recording, offset_s: float, folder: Path, run: str, max_series: int) -> list[Path]:
    """Write all that was recorded of a node, its clock being ahead by `offset_s`; return the files.

    Raises OSError, UnsupportedError, TooManySeriesError.

    values   time, metric, labels, and the raw value: `value` where it is a whole number, else `real`.
    buckets  time, metric, labels, the bucket's upper edge `le`, and how many values came into it since the last tick.
    """
    values, buckets, metrics = _Columns(), _Columns(), dict[str, Metric]()
    limit = SeriesLimit(max_series, recording.node)
    for session in recording.sessions:
        carry: LastReadings = {}
        sequence = TickOrder()
        for path in session.files:
            for block in blocks(lines_of(path), limit):
                if not isinstance(block, Block) or block.head.session != session.head.session:
                    continue
                if not is_repeated(block, sequence):
                    metrics.update(block.head.catalogue)
                    try:
                        _take(block, carry, values, buckets, offset_s)
                    except MALFORMED as error:
                        raise UnsupportedError(str(error)) from None
    tables = {"values": _values(values, metrics), "buckets": _buckets(buckets, metrics)}
    return [_written(table, _partition(folder, name, run, recording.node)) for name, table in tables.items()]


def write_rows(rows: Path, folder: Path, run: str) -> list[Path]:
    """Write the rows of a CSV file, in which those of a node stand together; return the files. Raises OSError."""
    # A node may be called 1, NA, or have two lines.
    types = {"node": pa.string(), "time": pa.float64()}
    options = csv.ConvertOptions(strings_can_be_null=True, null_values=[""], column_types=types)
    table = csv.read_csv(rows, csv.ReadOptions(), csv.ParseOptions(newlines_in_values=True), options)
    times = pc.round(pc.multiply(table.column("time"), 1000)).cast(pa.int64()).cast(TIME)
    table = table.set_column(table.column_names.index("time"), "time", times)
    nodes = [node or "" for node in table.column("node").to_pylist()]
    written = []
    begin = 0
    for node, group in groupby(nodes):
        length = len(list(group))
        part = table.slice(begin, length).drop_columns(["node"])
        written.append(_written(part, _partition(folder, "rows", run, node)))
        begin += length
    return written


def _partition(folder: Path, name: str, run: str, node: str) -> Path:
    into = folder / name / f"run={quote(run, safe='')}" / f"node={bounded(quote(node, safe=':'))}"
    into.mkdir(parents=True, exist_ok=True)
    return into / "part-0.parquet"


def _written(table: pa.Table, path: Path) -> Path:
    types = dict(zip(table.column_names, table.schema.types, strict=True))
    # Times of intervals below a second are no whole numbers, and only those can be differences.
    packed = [
        name
        for name in ("time", "value", "count")
        if name in types and (pa.types.is_integer(types[name]) or pa.types.is_timestamp(types[name]))
    ]
    pq.write_table(
        table,
        path,
        row_group_size=ROWS_A_GROUP,
        compression="zstd",
        compression_level=LEVEL,
        use_dictionary=[name for name in table.column_names if name not in packed],
        column_encoding=dict.fromkeys(packed, "DELTA_BINARY_PACKED"),
    )
    return path


def _take(block: Block, carry: LastReadings, values: _Columns, buckets: _Columns, offset_s: float) -> None:
    found = rates_of(block, carry, block.head.catalogue)
    times = np.asarray([round((tick.time_s - offset_s) * 1000) for tick in block.ticks], np.int64)
    number = values.numbers(found.keys)
    odd = np.zeros(len(found.keys), bool)
    odd[list(found.odd)] = True
    line, column = np.nonzero(found.there & ~(np.isnan(found.values) & odd))
    whole = ~odd[column]
    real = np.where(whole, np.nan, found.values[line, column])
    values.parts.append((times[line], number[column], found.exact[line, column], real, whole))
    line, column, bucket, gain = found.buckets
    length = np.asarray([found.lengths.get(place, 0) for place in range(len(found.keys))], np.int64)
    kept = gain > 0
    line, column = line[kept], column[kept]
    number = buckets.numbers(found.keys)
    buckets.parts.append((times[line], number[column], length[column], bucket[kept], gain[kept]))


def _joined(columns: _Columns) -> list[Any]:
    """Return the arrays of all blocks, sorted by series and time."""
    if not columns.parts:
        return [np.zeros(0, np.int64) for _ in range(5)]
    arrays = [np.concatenate(each) for each in zip(*columns.parts, strict=True)]
    order = np.lexsort((arrays[0], arrays[1]))
    return [each[order] for each in arrays]


def _values(columns: _Columns, metrics: dict[str, Metric]) -> pa.Table:
    time, number, value, real, whole = _joined(columns)
    whole = whole.astype(bool)
    return pa.table(
        {
            **_named(columns, metrics, time, number),
            "value": pa.array(value, pa.int64(), mask=~whole),
            "real": pa.array(real.astype(np.float64), pa.float64(), mask=whole),
        }
    )


def _buckets(columns: _Columns, metrics: dict[str, Metric]) -> pa.Table:
    time, number, length, bucket, gain = _joined(columns)
    series = list(columns.series)
    upper_bounds: Floats = np.zeros(len(number))
    for each in np.unique(np.stack([number, length], axis=1), axis=0).tolist() if len(number) else []:
        of = (number == each[0]) & (length == each[1])
        metric = metrics[series[each[0]][0]]
        upper_bounds[of] = np.asarray(histogram.upper_bounds_of(metric.unit, each[1]))[bucket[of]]
    return pa.table(
        {**_named(columns, metrics, time, number), "le": pa.array(upper_bounds), "count": pa.array(gain, pa.int64())}
    )


def _named(columns: _Columns, metrics: dict[str, Metric], time: Ints, number: Ints) -> dict[str, Any]:
    names = [series[0] for series in columns.series]
    labels = [_labels(metrics.get(series[0]), series[1:]) for series in columns.series]
    return {
        "time": pa.array(time, TIME),
        "metric": _dictionary(names, number),
        "labels": _dictionary(labels, number),
    }


def _dictionary(texts: Sequence[str], number: Ints) -> Any:
    known = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    places = np.asarray([known[text] for text in texts], np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(places[number], pa.int32()), pa.array(list(known), pa.string()))


def _labels(metric: Metric | None, values: Iterable[str]) -> str:
    names = metric.labels if metric else ()
    return ",".join(f"{name}={value}" for name, value in zip(names, values, strict=False))
