"""pyarrow with the allocator of the C library; import it from here.

pyarrow's default allocator reserves 1 GiB at once, which is all that --max-memory allows by default.
`pyarrow.set_memory_pool` does not affect all of pyarrow (for example, not the Parquet writer). The environment variable
does; pyarrow reads it when it is imported.
"""

import os

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

__all__ = ["csv", "csv_table", "pa", "pc", "pq"]


def csv_table(
    content: bytes | bytearray, reading: csv.ReadOptions, parsing: csv.ParseOptions, converting: csv.ConvertOptions
) -> pa.Table:
    """Return the table that CSV describes. Raises pyarrow.ArrowInvalid.

    pyarrow's threads may release the content later than this function returns. If it belonged to Python, a thread that
    does so while the interpreter is ending would abort the process.
    """
    owned = pa.allocate_buffer(len(content))
    memoryview(owned).cast("B")[:] = content
    return csv.read_csv(owned, reading, parsing, converting)
