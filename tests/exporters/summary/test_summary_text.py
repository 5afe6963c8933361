"""The summary as text, for phases with and without data."""

from exporters.summary.phase_summary import Peak, PhaseSummary
from exporters.summary.summary_text import summary_lines
from tests.collector.zones import local_zone
from tests.exporters import golden

VALUES = {
    f"{operation}{name}": number
    for operation, factor in (("read", 1.0), ("write", 2.5))
    for name, number in {
        "s_per_s": 12_345.6 * factor,
        "_mean_ms": 0.25 * factor,
        "_p50_ms": 0.2 * factor,
        "_p95_ms": 0.9 * factor,
        "_p99_ms": 1.85 * factor,
        "_p999_ms": 12.5 * factor,
        "_max_ms": 1024.0 * factor,
        "_timeouts": 0,
        "_unavailables": int(4 * factor),
        "_failures": None,
    }.items()
}
PEAKS = {
    "cpu_busy_pct": Peak(97.5, "10.0.0.1", 1_700_000_000.0),
    "net_rx_kbit_per_s": Peak(123_456.7, "n2", 1_700_000_060.0),
}
CLIENT_PEAKS = {
    "run_queue": Peak(12, "client", 1_700_000_000.0),
    "process_cpu_pct": Peak(187.5, "client", 1_700_000_060.0, "java (4242)"),
}


def test_the_text_has_a_row_per_phase_and_operation() -> None:
    phases = [
        PhaseSummary("main", 1000.0, 1060.0, VALUES, {}),
        PhaseSummary("a phase without reads", 1060.0, 1120.4, {}, {}),
        PhaseSummary("total", 1000.0, 1120.4, VALUES, PEAKS, CLIENT_PEAKS),
    ]
    with local_zone("UTC0"):
        golden.check("run_summary.txt", "\n".join(summary_lines(phases)) + "\n")


def test_operations_that_occur_in_a_phase_have_rows_and_a_total() -> None:
    others = {"range_reads": 500, "range_reads_per_s": 50.0, "range_read_p99_ms": 3.0, "cas_writes": 0}
    phases = [
        PhaseSummary("main", 1000.0, 1060.0, VALUES, {}),
        PhaseSummary("scan", 1060.0, 1120.0, {**VALUES, **others, "operations_per_s": 43_259.6}, {}),
    ]
    rows = [line.split("  ") for line in summary_lines(phases)[2:]]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert [row[2 if number % 4 == 0 else 0] for number, row in enumerate(cells)] == [
        *("reads", "writes", "range reads", "all operations") * 2
    ]
    assert cells[6] == ["range reads", "50", "-", "-", "-", "3.00", "-", "-", "-", "-", "-"]
    assert cells[7] == ["all operations", "43,260"]


def test_a_run_without_complete_intervals_has_a_message_instead_of_a_table() -> None:
    assert summary_lines([]) == ["no phase is long enough to contain a complete interval"]


def test_the_text_states_how_many_nodes_a_phase_lacks() -> None:
    phases = [
        PhaseSummary("main", 1000.0, 1060.0, {**VALUES, "nodes": 3, "nodes_missing": 0}, {}),
        PhaseSummary("late\n", 1060.0, 1120.0, {**VALUES, "nodes": 2, "nodes_missing": 1}, {}),
    ]
    notes = [line for line in summary_lines(phases) if "not included" in line]
    assert notes == ["late: 1 of 3 nodes not included, because Cassandra did not answer throughout the phase"]
