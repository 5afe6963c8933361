"""The rows of a merged run as Parquet."""

import io

from collector.arrow import csv, pa, pc
from exporters.rows.merged_rows import INTEGER_COLUMNS, TEXT_COLUMNS, Table
from exporters.rows.parquet import TIME, write_table

# Higher levels of zstd save 1% and take a third longer.
LEVEL = 3
PARSING = csv.ParseOptions(newlines_in_values=True)


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
    rows = csv.read_csv(pa.BufferReader(text.encode()), reading, PARSING, converting)
    times = pc.round(pc.multiply(rows.column("time"), 1000)).cast(pa.int64()).cast(TIME)
    rows = rows.set_column(rows.column_names.index("time"), "time", times)
    output = io.BytesIO()
    # The node's name is part of the path. Most numbers occur only once, so dictionaries of them take time and space.
    write_table(rows.drop_columns(["node"]), output, LEVEL, types.keys() - set(TEXT_COLUMNS))
    return output.getvalue()
