"""Recordings as Parquet, for query engines: merged rows, all numeric values, and histogram bucket increases.

Each table is partitioned by run and node (`run=…/node=…`). Sorting values by series and storing integers as differences
(Parquet's DELTA_BINARY_PACKED) keep the files small. Needs pyarrow, which casstat[analysis] installs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import numpy as np

from collector.arrow import csv, pa, pc, pq
from collector.cluster.arrays import Floats, Ints
from collector.cluster.clock_correction import ClockCorrection
from collector.cluster.columnar.decode import Block, UnsupportedError, blocks
from collector.cluster.columnar.last_readings import LastReadings, SourceSeries
from collector.cluster.columnar.reduce import is_repeated
from collector.cluster.columnar.series_rates import rates_of
from collector.cluster.recordings import Recording
from collector.journal.read_limits import SeriesLimit
from collector.journal.reader import read_lines
from collector.journal.tick_order import TickOrder
from collector.journal.validation import MALFORMED
from collector.journal.writer import bounded_name
from collector.model import histogram
from collector.model.metric import Metric, Series

# For rows, higher levels of zstd save 1% and take a third longer.
SERIES_LEVEL, ROWS_LEVEL = 9, 3
TIME = pa.timestamp("ms", "UTC")
"""The type of `time` in all tables."""
ROWS_A_GROUP = 1 << 20
# Merged rows are read in blocks of BLOCK_BYTES.
BLOCK_BYTES = 4 << 20
# A node's name is read as text, because it may be "1" or "NA"; it may also contain a line break.
NAMED_TYPES: Mapping[str, pa.DataType] = {"node": pa.string(), "time": pa.float64()}
PARSING = csv.ParseOptions(newlines_in_values=True)


@dataclass
class _TableParts:
    """The arrays of one table, one tuple per block; `series` numbers the series in order of first appearance."""

    series: dict[Series, int] = field(default_factory=dict)
    parts: list[tuple[Any, ...]] = field(default_factory=list)

    def series_numbers(self, keys: Sequence[SourceSeries]) -> Ints:
        return np.asarray([self.series.setdefault(series, len(self.series)) for _, series in keys], np.int64)


def write_series(recording: Recording, clock: ClockCorrection, folder: Path, run: str, max_series: int) -> list[Path]:
    """Write a node's recorded numbers, with times corrected by `clock`; return the files' paths.

    Raises OSError, UnsupportedError and TooManySeriesError. Writes two tables with these columns:

    values   time, metric, labels, and the raw value: `value` for integers, `real` for other numbers.
    buckets  time, metric, labels, the bucket's upper bound `le`, and `count`, its increase since the previous reading.
    """
    values, buckets, metrics = _TableParts(), _TableParts(), dict[str, Metric]()
    limit = SeriesLimit(max_series, recording.node)
    for session in recording.sessions:
        last_readings: LastReadings = {}
        sequence = TickOrder()
        for path in session.files:
            for block in blocks(read_lines(path), limit):
                if not isinstance(block, Block) or block.head.session != session.head.session:
                    continue
                if not is_repeated(block, sequence):
                    metrics.update(block.head.catalogue)
                    try:
                        _take(block, last_readings, values, buckets, clock)
                    except MALFORMED as error:
                        raise UnsupportedError(str(error)) from None
    tables = {"values": _values(values, metrics), "buckets": _buckets(buckets, metrics)}
    return [
        _write_table(table, _partition(folder, name, run, recording.node), SERIES_LEVEL)
        for name, table in tables.items()
    ]


def packed_series(
    recording: Recording, clock: ClockCorrection, run: str, max_series: int
) -> list[tuple[PurePosixPath, bytes]]:
    """Return the path and the content of each file that `write_series` would write. Raises the same errors."""
    with TemporaryDirectory(prefix="casstat-") as folder:
        paths = write_series(recording, clock, Path(folder), run, max_series)
        return [(PurePosixPath(path.relative_to(folder)), path.read_bytes()) for path in paths]


def write_rows(rows: Path, folder: Path, run: str) -> list[Path]:
    """Write the rows of a CSV file to one Parquet file per node, and return these files. Raises OSError.

    In the CSV file, the rows of each node must be consecutive. A column has the same type in all Parquet files. The CSV
    file is read in parts, because a large cluster's rows would take a gigabyte of memory.
    """
    paths = []
    for node, table in _tables_by_node(rows, _column_types(rows)):
        times = pc.round(pc.multiply(table.column("time"), 1000)).cast(pa.int64()).cast(TIME)
        table = table.set_column(table.column_names.index("time"), "time", times)
        paths.append(_write_table(table.drop_columns(["node"]), _partition(folder, "rows", run, node), ROWS_LEVEL))
    return paths


def _column_types(rows: Path) -> dict[str, pa.DataType]:
    """Return the type of each column of a CSV file, inferred from all its rows."""
    types: dict[str, pa.DataType] = {}
    for text in _csv_parts(rows):
        schema = csv.read_csv(pa.BufferReader(text), csv.ReadOptions(), PARSING, _options(NAMED_TYPES)).schema
        for name, inferred in zip(schema.names, schema.types, strict=True):
            types[name] = _common_type(types.get(name, inferred), inferred)
    return types


def _csv_parts(rows: Path) -> Iterator[bytes]:
    """Yield the rows of a CSV file in parts, each with the header."""
    with rows.open("rb") as file:
        header = text = file.readline()
        while data := file.read(BLOCK_BYTES):
            text += data
            end = text.rfind(b"\n") + 1
            while text.count(b'"', 0, end) % 2:
                # This line break is within a quoted value.
                end = text.rfind(b"\n", 0, end - 1) + 1
            yield text[:end]
            text = header + text[end:]
        yield text


def _common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return a type that can represent the values of both."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    return pa.float64() if {one, other} == {pa.int64(), pa.float64()} else pa.string()


def _tables_by_node(rows: Path, types: Mapping[str, pa.DataType]) -> Iterator[tuple[str, pa.Table]]:
    """Yield each node's name and rows; the rows of a node must be consecutive."""
    last, parts = "", list[pa.Table]()
    for batch in csv.open_csv(rows, csv.ReadOptions(block_size=BLOCK_BYTES), PARSING, _options(types)):
        table = pa.Table.from_batches([batch])
        nodes = [node or "" for node in table.column("node").to_pylist()]
        begin = 0
        for node, group in groupby(nodes):
            if node != last and parts:
                yield last, pa.concat_tables(parts)
                parts = []
            length = len(list(group))
            parts.append(table.slice(begin, length))
            last, begin = node, begin + length
    if parts:
        yield last, pa.concat_tables(parts)


def _options(types: Mapping[str, pa.DataType]) -> csv.ConvertOptions:
    return csv.ConvertOptions(strings_can_be_null=True, null_values=[""], column_types=dict(types))


def _partition(folder: Path, name: str, run: str, node: str) -> Path:
    partition = folder / name / f"run={quote(run, safe='')}" / f"node={bounded_name(quote(node, safe=':'))}"
    partition.mkdir(parents=True, exist_ok=True)
    return partition / "part-0.parquet"


def _write_table(table: pa.Table, path: Path, level: int) -> Path:
    types = dict(zip(table.column_names, table.schema.types, strict=True))
    # Only integers and timestamps can be delta-encoded.
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
        compression_level=level,
        use_dictionary=[name for name in table.column_names if name not in packed],
        column_encoding=dict.fromkeys(packed, "DELTA_BINARY_PACKED"),
    )
    return path


def _take(
    block: Block, last_readings: LastReadings, values: _TableParts, buckets: _TableParts, clock: ClockCorrection
) -> None:
    rates = rates_of(block, last_readings, block.head.catalogue)
    times = np.asarray([round(clock.reference_s(tick.time_s) * 1000) for tick in block.ticks], np.int64)
    number = values.series_numbers(rates.keys)
    is_mixed = np.zeros(len(rates.keys), bool)
    is_mixed[list(rates.mixed)] = True
    line_index, column = np.nonzero(rates.present & ~(np.isnan(rates.values) & is_mixed))
    is_integer = ~is_mixed[column]
    real = np.where(is_integer, np.nan, rates.values[line_index, column])
    values.parts.append((times[line_index], number[column], rates.exact[line_index, column], real, is_integer))
    line_index, column, bucket, increase = rates.buckets
    length = np.asarray([rates.lengths.get(index, 0) for index in range(len(rates.keys))], np.int64)
    positive = increase > 0
    line_index, column = line_index[positive], column[positive]
    number = buckets.series_numbers(rates.keys)
    buckets.parts.append((times[line_index], number[column], length[column], bucket[positive], increase[positive]))


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
    return {
        "time": pa.array(time, TIME),
        "metric": _dictionary(names, number),
        "labels": _dictionary(labels, number),
    }


def _dictionary(texts: Sequence[str], number: Ints) -> Any:
    numbers = {text: index for index, text in enumerate(dict.fromkeys(texts))}
    indices = np.asarray([numbers[text] for text in texts], np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(indices[number], pa.int32()), pa.array(list(numbers), pa.string()))


def _labels(metric: Metric | None, values: Iterable[str]) -> str:
    names = metric.labels if metric else ()
    return ",".join(f"{name}={value}" for name, value in zip(names, values, strict=False))
