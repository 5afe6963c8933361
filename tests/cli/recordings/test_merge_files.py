"""The files that `casstat merge` writes: TSV, CSV and Parquet."""

import csv
from pathlib import Path

from cli.main import main
from tests.collector.merge.generated_runs import record_three_nodes


def test_merge_writes_the_same_rows_in_every_format(tmp_path: Path) -> None:
    out = tmp_path / "out"
    folder = record_three_nodes(tmp_path / "recordings")
    assert main(["merge", str(folder), "-o", str(out), "--series"]) == 0
    with (out / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    with (out / "rows.tsv").open(newline="") as file:
        assert list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)) == rows
    assert list(rows[0])[:2] == ["time", "node"]
    assert [row["node"] for row in rows] == ["cluster"] * 6 + ["a"] * 6 + ["b"] * 6 + ["c"] * 6
    assert {row["disk"] for row in rows if row["node"] == "b"} == {"sda"}
    from collector.arrow import pq

    table = pq.read_table(out / "rows")
    types = {str(pq.read_table(out / name).schema.field("time").type) for name in ("rows", "values", "buckets")}
    assert types == {"timestamp[ms, tz=UTC]"}
    assert {time.timestamp() for time in table["time"].to_pylist()} == {float(row["time"]) for row in rows}
    assert sum(row["reads"] for row in table.to_pylist() if row["node"] == "cluster") == 6500
    values = pq.read_table(out / "values").to_pylist()
    reads = [row for row in values if row["metric"] == "cassandra_client_requests_total" and row["node"] == "a"]
    assert [row["value"] for row in reads] == [100 * number for number in range(31)]
    assert {row["labels"] for row in reads} == {"operation=Read"}
    buckets = pq.read_table(out / "buckets").to_pylist()
    of_b = [row for row in buckets if row["node"] == "b"]
    assert [row["count"] for row in of_b] == [50] * 30
    assert {row["le"] for row in of_b} == {0.009887}
