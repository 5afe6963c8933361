"""The rows of a merged run, in tables and for plots."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.merge.grid import Grid
from collector.merge.merge_job import Job, Merged
from collector.merge.recordings import recordings, sessions
from collector.node.metrics.requests import OPERATIONS, Operation
from exporters.charts.merged_plot_data import NodeRows, node_rows, run_of
from exporters.charts.plot_data import CLUSTER, slowest
from exporters.rows.columns import Cell
from exporters.rows.merged_rows import header_text, rows_text, table_of
from exporters.rows.operation_columns import Operations
from tests.collector.merge import recorded_nodes
from tests.collector.merge.generated_runs import BEGIN_S, GeneratedNode, record, record_three_nodes
from tests.collector.merge.reference_merge import merge, reference_merge

CHOICE = Operations()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the directory of three nodes' recordings; the third node is down for a third of the run."""
    return record_three_nodes(tmp_path)


def make_rows(node: object) -> NodeRows:
    return node_rows(CHOICE, node)  # type: ignore[arg-type]


def run(folder: Path, *, reference: bool = False) -> Merged[NodeRows]:
    runs, notes = recordings(sessions([folder])[0])
    assert notes == []
    job = Job(Grid(5.0), {}, table_of(CHOICE).needs, make_rows)
    return (reference_merge if reference else merge)(runs, job)


@pytest.mark.parametrize("reference", [True, False])
def test_cluster_rows_are_aggregates_and_include_the_number_of_nodes(folder: Path, reference: bool) -> None:
    merged = run(folder, reference=reference)
    rows = [table_of(CHOICE).cluster_row(interval, 3) for _, interval in sorted(merged.cluster.items())]
    assert [(row["nodes"], row["nodes_missing"]) for row in rows] == [(3, 0), (3, 0), (2, 1), (2, 1), (3, 0), (3, 0)]
    assert [row["reads"] for row in rows] == [1250, 1250, 750, 750, 1250, 1250]
    assert [row["reads_per_s"] for row in rows[:4]] == [250, 250, 150, 150]
    # Two nodes share a machine, so its network traffic is counted once, but each node has its own disk.
    assert [row["net_rx_packets_per_s"] for row in rows] == [6] * 6
    assert [row["disk_reads_per_s"] for row in rows] == [30] * 6
    assert rows[0]["cpu_user_pct"] == 50
    pending = [rows[0][f"{prefix}compactions_pending"] for prefix in ("min_", "", "max_")]
    assert pending == [1, 9, 5]
    # One fifth of the reads take 9 ms, and the others take 0.4 ms. The mean of the nodes' percentiles would be 3.3 ms.
    assert isinstance(rows[0]["read_p95_ms"], float)
    assert 8.2 < rows[0]["read_p95_ms"] < 9.9
    assert isinstance(rows[0]["read_p50_ms"], float)
    assert 0.3 < rows[0]["read_p50_ms"] < 0.43


def test_the_networks_of_containers_on_one_machine_are_added_up(tmp_path: Path) -> None:
    for name, network in (("a", "net:[1]"), ("b", "net:[2]"), ("c", "net:[2]")):
        record(GeneratedNode(name, [100] * 10, boot="m", network=network), tmp_path)
    for reference in (True, False):
        merged = run(tmp_path, reference=reference)
        (row, *_) = [table_of(CHOICE).cluster_row(interval, 3) for _, interval in sorted(merged.cluster.items())]
        assert (row["net_rx_packets_per_s"], row["disk_reads_per_s"]) == (6, 10)


def test_plots_have_gaps_marks_and_a_footer(folder: Path) -> None:
    plot_run = run_of(run(folder), CHOICE, "x", 10.0)
    assert plot_run.nodes == ["a", "b", "c"]
    has_reads = [row is not None and row.get("reads_per_s") is not None for row in plot_run.rows["c"]]
    assert has_reads == [True, True, False, False, True, True]
    # The node's first rate after the interruption is averaged over the 15 s since its last reading.
    rates = [row["reads_per_s"] for row in plot_run.rows[CLUSTER] if row]
    assert rates == [250, 250, 150, 150, pytest.approx(150 + 500 / 15, abs=0.001), 250]
    assert [buckets.total if buckets else None for buckets in plot_run.buckets["read"]][:3] == [1250, 1250, 750]
    assert [(mark.node, mark.kind, mark.time_s) for mark in plot_run.marks] == [("b", "gc", BEGIN_S + 2.5)]
    assert [(phase.end_s - phase.begin_s, phase.warm_up) for phase in plot_run.phases] == [(10.0, True)]
    assert plot_run.footer == [
        "Cassandra 4.0.17, 5.0.8",
        "casstat 1.0",
        "3 nodes",
        "sampled every 1 s, shown every 5 s",
        "90 samples, 0 lost",
        "clock error at most 2.0 ms",
    ]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.word)
def test_the_slowest_operation_of_a_node_may_be_of_any_kind(tmp_path: Path, operation: Operation) -> None:
    ticks = [
        replace(
            tick, scrapes=(replace(scrape, values={(name, operation.scope): n for (name, _), n in values.items()}),)
        )
        for tick in recorded_nodes.busy("n1", 12)
        for scrape in tick.scrapes
        for values in [scrape.values]
    ]
    recorded_nodes.record(tmp_path / "n1", ticks)
    plot_run = run_of(run(tmp_path), CHOICE, "x")
    assert slowest(plot_run, "n1") == slowest(plot_run, CLUSTER) != [None] * len(plot_run.times)


CELLS = st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b"]), CELLS), max_size=4))
def test_a_row_is_one_line_with_all_cells_whatever_they_contain(rows: list[dict[str, Cell]]) -> None:
    names = ["a", "b"]
    tsv, text = rows_text(names, rows)
    lines = tsv.split("\n")
    assert len(lines) == len(rows) + 1
    assert all(line.count("\t") == 1 for line in lines[:-1])
    cells = [["" if (cell := row.get(name)) is None else str(cell) for name in names] for row in rows]
    assert list(csv.reader(io.StringIO(text, newline=""))) == cells
    assert header_text(names)[0] == "a\tb\n"
