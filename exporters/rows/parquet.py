"""Parquet tables for query engines, partitioned by run and node (`run=…/node=…`).

Sorting values by series and storing integers as differences (Parquet's DELTA_BINARY_PACKED) keep the files small. Needs
pyarrow, which casstat[analysis] installs.
"""

from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from urllib.parse import quote

from collector.arrow import pa, pq
from collector.recording.writer import bounded_name

TIME = pa.timestamp("ms", "UTC")
"""The type of `time` in all tables."""
ROWS_A_GROUP = 1 << 20


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
