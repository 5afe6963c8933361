"""Parquet tables for query engines, partitioned by run and node (`run=…/node=…`).

Sorting values by series and storing integers as differences (Parquet's DELTA_BINARY_PACKED) keep the files small. Needs
pyarrow, which casstat[analysis] installs.
"""

import io
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from urllib.parse import quote

from collector.arrow import csv, csv_table, pa, pc, pq
from collector.recording.writer import bounded_name
from exporters.rows.merged_rows import INTEGER_COLUMNS, TEXT_COLUMNS, Table

TIME = pa.timestamp("ms", "UTC")
"""The type of `time` in all tables."""
ROWS_A_GROUP = 1 << 20
# Higher levels of zstd save 1% and take a third longer.
_ROWS_LEVEL = 3
_PARSING = csv.ParseOptions(newlines_in_values=True)


def table_path(table: str, run: str, node: str) -> PurePosixPath:
    """Return the path of a node's file in a partitioned table, relative to the table's directory."""
    return PurePosixPath(
        table, f"run={quote(run, safe='')}", f"node={bounded_name(quote(node, safe=':'))}", "part-0.parquet"
    )


def write_table(table: pa.Table, target: Path | BinaryIO, level: int, plain: Collection[str] = ()) -> None:
    """Write a table, compressed with this level of zstd; `plain` columns have no dictionary. Raises OSError."""
    types = dict(zip(table.column_names, table.schema.types, strict=True))
    # Only integers and timestamps can be delta-encoded.
    packed = [
        name
        for name in ("time", "value", "count")
        if name in types and (pa.types.is_integer(types[name]) or pa.types.is_timestamp(types[name]))
    ]
    pq.write_table(
        table,
        target,
        row_group_size=ROWS_A_GROUP,
        compression="zstd",
        compression_level=level,
        use_dictionary=[name for name in table.column_names if name not in packed and name not in plain],
        column_encoding=dict.fromkeys(packed, "DELTA_BINARY_PACKED"),
    )


def rows_parquet(table: Table, text: str) -> bytes:
    """Return a node's rows as the content of a Parquet file; `text` is the rows as CSV, without a header, not empty.

    The types of the columns do not depend on the rows, so they are the same for all nodes and runs.
    """
    types = {
        name: pa.string() if name in TEXT_COLUMNS else pa.int64() if name in INTEGER_COLUMNS else pa.float64()
        for name in table.header
    }
    converting = csv.ConvertOptions(strings_can_be_null=True, null_values=[""], column_types=types)
    reading = csv.ReadOptions(use_threads=False, column_names=table.header)
    rows = csv_table(text.encode(), reading, _PARSING, converting)
    times = pc.round(pc.multiply(rows.column("time"), 1000)).cast(pa.int64()).cast(TIME)
    rows = rows.set_column(rows.column_names.index("time"), "time", times)
    output = io.BytesIO()
    # The node's name is part of the path. Most numbers occur only once, so dictionaries of them take time and space.
    write_table(rows.drop_columns(["node"]), output, _ROWS_LEVEL, types.keys() - set(TEXT_COLUMNS))
    return output.getvalue()
