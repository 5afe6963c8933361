"""Merged rows as Parquet: all files have the same types, whatever the block size."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from collector.arrow import pq
from exporters.files import parquet
from exporters.files.parquet import write_rows

NODES = ("cluster", "1", "NA", "a\nb")
ROWS = 200


@pytest.mark.parametrize("block_bytes", [40, 300, 1 << 20])
def test_all_files_have_the_types_of_all_rows(
    block_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "BLOCK_BYTES", block_bytes)
    expected = {
        node: [
            {
                "time": 1000.0 + number / 10,
                "count": number,
                # Only the last row of the last node has a fractional ratio and a string.
                "ratio": 0.5 if (node, number) == (NODES[-1], ROWS - 1) else float(number),
                "events": 'a, "b"\nc' if (node, number) == (NODES[-1], ROWS - 1) else None,
                "empty": None,
            }
            for number in range(ROWS)
        ]
        for node in NODES
    }
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "node", *list(expected["1"][0])[1:]])
        for node, rows in expected.items():
            writer.writerows([row["time"], node, row["count"], f"{row['ratio']:g}", row["events"], ""] for row in rows)
    paths = write_rows(tmp_path / "rows.csv", tmp_path, "r")
    tables = [pq.read_table(path, partitioning=None) for path in paths]
    for table, rows in zip(tables, expected.values(), strict=True):
        assert [str(column.type) for column in table.schema] == [
            "timestamp[ms, tz=UTC]",
            "int64",
            "double",
            "string",
            "null",
        ]
        for written, row in zip(table.to_pylist(), rows, strict=True):
            assert written.pop("time").timestamp() == pytest.approx(row.pop("time"))
            assert written == row


# Prints by how many kB the process's data segment (VmData) grows when it writes its first Parquet file.
GROWTH = """
import re, sys
from pathlib import Path
from exporters.files.parquet import write_rows

def used() -> int:
    return int(re.search(r"VmData:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

before = used()
write_rows(Path(sys.argv[1]), Path(sys.argv[2]), "run")
print(used() - before)
"""


def test_no_memory_is_reserved_in_advance(tmp_path: Path) -> None:
    """Reserved memory counts towards the limit of --max-memory, even if it is not used."""
    rows = tmp_path / "rows.csv"
    rows.write_text("time,node,reads\n" + "".join(f"{time},n1,{time / 2}\n" for time in range(ROWS)))
    command = [sys.executable, "-c", GROWTH, str(rows), str(tmp_path)]
    # Each of pyarrow's threads, by default one per processor, has a stack.
    environ = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=environ)
    assert int(done.stdout) < 500_000
