"""The rows of a merged run, as tables and for plots."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.main import main
from collector.cluster.grid import Grid
from collector.cluster.merge import merge
from collector.cluster.merge_job import Job, Merged
from collector.cluster.recordings import recordings, sessions
from collector.cluster.reference_merge import reference_merge
from collector.model.snapshot import Event
from exporters.files.merged_rows import Choice, table_of
from exporters.files.tsv_csv import header_text, rows_text
from exporters.gnuplot.merged_run import NodeRows, node_rows, run_of
from exporters.gnuplot.plot_data import CLUSTER
from exporters.line.columns import Cell
from tests.collector.cluster.generated_runs import BEGIN_S, Made, record

CHOICE = Choice()
GONE = [100] * 10 + [None] * 10 + [100] * 10


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three nodes, of which one is away for a third of the time."""
    record(Made("a", [100] * 30, micros=400, boot="m"), tmp_path)
    events = {3: (Event("gc", "GC 1 s", BEGIN_S + 2.5),)}
    record(Made("b", [50] * 30, micros=9000, boot="m", disk="sda", events=events), tmp_path)
    record(Made("c", GONE, micros=400, nanos=True, boot="other"), tmp_path)
    return tmp_path


def make_rows(node: object) -> NodeRows:
    return node_rows(CHOICE, node)  # type: ignore[arg-type]


def run(folder: Path, *, plainly: bool = False) -> Merged[NodeRows]:
    found, notes = recordings(sessions([folder])[0])
    assert notes == []
    job = Job(Grid(5.0), {}, table_of(CHOICE).needs, make_rows)
    return (reference_merge if plainly else merge)(found, job)


@pytest.mark.parametrize("plainly", [True, False])
def test_the_cluster_is_the_sum_and_says_of_how_many(folder: Path, plainly: bool) -> None:
    merged = run(folder, plainly=plainly)
    rows = [table_of(CHOICE).cluster_row(each, 3) for _, each in sorted(merged.cluster.items())]
    assert [(row["nodes"], row["nodes_missing"]) for row in rows] == [(3, 0), (3, 0), (2, 1), (2, 1), (3, 0), (3, 0)]
    assert [row["reads"] for row in rows] == [1250, 1250, 750, 750, 1250, 1250]
    assert [row["reads_per_s"] for row in rows[:4]] == [250, 250, 150, 150]
    # Two nodes are on one machine, whose network counts once; each has a disk of its own.
    assert [row["net_rx_packets_per_s"] for row in rows] == [6] * 6
    assert [row["disk_reads_per_s"] for row in rows] == [30] * 6
    assert rows[0]["cpu_user_pct"] == 50
    pending = [rows[0][f"{which}compactions_pending"] for which in ("min_", "", "max_")]
    assert pending == [1, 9, 5]
    # A fifth of the reads took 9 ms, the others 0.4: the mean of the nodes' percentiles would be 3.3.
    assert isinstance(rows[0]["read_p95_ms"], float)
    assert 8.2 < rows[0]["read_p95_ms"] < 9.9
    assert isinstance(rows[0]["read_p50_ms"], float)
    assert 0.3 < rows[0]["read_p50_ms"] < 0.43


def test_networks_of_containers_on_one_machine_are_added_up(tmp_path: Path) -> None:
    for name, network in (("a", "net:[1]"), ("b", "net:[2]"), ("c", "net:[2]")):
        record(Made(name, [100] * 10, boot="m", network=network), tmp_path)
    for plainly in (True, False):
        merged = run(tmp_path, plainly=plainly)
        (row, *_) = [table_of(CHOICE).cluster_row(each, 3) for _, each in sorted(merged.cluster.items())]
        assert (row["net_rx_packets_per_s"], row["disk_reads_per_s"]) == (6, 10)


def test_plots_get_gaps_marks_and_a_footer(folder: Path) -> None:
    found = run_of(run(folder), CHOICE, "x", 10.0)
    assert found.nodes == ["a", "b", "c"]
    there = [row is not None and row["reads_per_s"] is not None for row in found.rows["c"]]
    assert there == [True, True, False, False, True, True]
    # What the one that was away counted meanwhile is spread over the time that it was away.
    rates = [row["reads_per_s"] for row in found.rows[CLUSTER] if row]
    assert rates == [250, 250, 150, 150, pytest.approx(150 + 500 / 15, abs=0.001), 250]
    assert [each.total if each else None for each in found.buckets["read"]][:3] == [1250, 1250, 750]
    assert [(mark.node, mark.kind, mark.time_s) for mark in found.marks] == [("b", "gc", BEGIN_S + 2.5)]
    assert [(phase.end_s - phase.begin_s, phase.warm_up) for phase in found.phases] == [(10.0, True)]
    assert found.footer == [
        "Cassandra 4.0.17, 5.0.8",
        "casstat 1.0",
        "3 nodes",
        "sampled every 1 s, shown every 5 s",
        "90 samples, 0 lost",
        "clock error at most 2.0 ms",
    ]


def test_tables_are_written_in_every_form(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["merge", str(folder), "-o", str(out), "--series"]) == 0
    with (out / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    with (out / "rows.tsv").open(newline="") as file:
        assert list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)) == rows
    assert list(rows[0])[:2] == ["time", "node"]
    assert [row["node"] for row in rows] == ["cluster"] * 6 + ["a"] * 6 + ["b"] * 6 + ["c"] * 6
    assert {row["disk"] for row in rows if row["node"] == "b"} == {"sda"}
    from pyarrow import parquet

    whole = parquet.read_table(out / "rows")
    types = {str(parquet.read_table(out / name).schema.field("time").type) for name in ("rows", "values", "buckets")}
    assert types == {"timestamp[ms, tz=UTC]"}
    assert {time.timestamp() for time in whole["time"].to_pylist()} == {float(row["time"]) for row in rows}
    assert sum(row["reads"] for row in whole.to_pylist() if row["node"] == "cluster") == 6500
    values = parquet.read_table(out / "values").to_pylist()
    reads = [each for each in values if each["metric"] == "cassandra_client_requests_total" and each["node"] == "a"]
    assert [each["value"] for each in reads] == [100 * number for number in range(31)]
    assert {each["labels"] for each in reads} == {"operation=Read"}
    buckets = parquet.read_table(out / "buckets").to_pylist()
    mine = [each for each in buckets if each["node"] == "b"]
    assert [each["count"] for each in mine] == [50] * 30
    assert {each["le"] for each in mine} == {0.009887}


CELLS = st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b"]), CELLS), max_size=4))
def test_whatever_is_in_a_cell_a_row_is_a_line_of_so_many_cells(rows: list[dict[str, Cell]]) -> None:
    names = ["a", "b"]
    tsv, text = rows_text(names, rows)
    lines = tsv.split("\n")
    assert len(lines) == len(rows) + 1
    assert all(line.count("\t") == 1 for line in lines[:-1])
    cells = [["" if (cell := row.get(name)) is None else str(cell) for name in names] for row in rows]
    assert list(csv.reader(io.StringIO(text, newline=""))) == cells
    assert header_text(names)[0] == "a\tb\n"
