"""Merged rows as Parquet: the types of the columns are always the same."""

import io
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from collector.arrow import pq
from exporters.rows.columns import Cell
from exporters.rows.merged_rows import rows_text, table_of
from exporters.rows.operation_columns import Operations
from exporters.rows.parquet import rows_parquet

TABLE = table_of(Operations())


def test_types_do_not_depend_on_the_rows() -> None:
    names = TABLE.header
    rows: list[Mapping[str, Cell]] = [
        {"time": 1000.1, "node": "1", "nodes": 1, "nodes_missing": 0, "reads": 5, "events": 'a, "b"\nc', "disk": "1"},
        {"time": 1005, "node": "1", "nodes": 0, "nodes_missing": 1, "percentiles": "NA", "reads_per_s": 0.25},
    ]
    for count in (1, 2):
        table = pq.read_table(io.BytesIO(rows_parquet(TABLE, rows_text(names, rows[:count])[1])))
        types = {name: str(table.schema.field(name).type) for name in table.column_names}
        assert list(types) == [name for name in names if name != "node"]
        assert types.pop("time") == "timestamp[ms, tz=UTC]"
        assert {name for name, kind in types.items() if kind == "int64"} == {"nodes", "nodes_missing"}
        texts = {"disk", "net_interface", "percentiles", "events"}
        assert {name for name, kind in types.items() if kind == "string"} == texts
        assert set(types.values()) == {"int64", "string", "double"}
        for written, row in zip(table.to_pylist(), rows, strict=False):
            assert written.pop("time").timestamp() == row["time"]
            assert {name: value for name, value in written.items() if value is not None} == {
                name: value for name, value in row.items() if name not in ("time", "node")
            }


# Prints by how many kB the process's data segment (VmData) grows when it writes its first Parquet file.
GROWTH = """
import re, sys
from pathlib import Path
from exporters.rows.merged_rows import table_of
from exporters.rows.operation_columns import Operations
from exporters.rows.parquet import rows_parquet

def used() -> int:
    return int(re.search(r"VmData:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

before = used()
rows_parquet(table_of(Operations()), Path(sys.argv[1]).read_text())
print(used() - before)
"""


def test_no_memory_is_reserved_in_advance(tmp_path: Path) -> None:
    """Reserved memory counts towards the limit of --max-memory, even if it is not used."""
    rows = tmp_path / "rows.csv"
    rows.write_text(rows_text(TABLE.header, [{"time": time, "node": "n1"} for time in range(200)])[1])
    command = [sys.executable, "-c", GROWTH, str(rows)]
    # Each of pyarrow's threads, by default one per processor, has a stack.
    environ = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environ)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) < 500_000
